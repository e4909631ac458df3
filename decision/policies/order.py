"""In which order waiting jobs are looked at.

Every order is a number per job, the lowest first, ties by arrival. Where the number never changes the sorted list
is kept from call to call; where it changes with time the list is nearly sorted from the last time. FCFS needs
neither: it is the state's own queue.

WFP3 and UNICEP: Tang et al., Fault-aware, utility-based job scheduling on Blue Gene/P systems (Cluster 2009).
F1 to F4: Carastan-Santos and de Camargo, Obtaining dynamic scheduling policies with simulation and machine
learning (SC'17). Multifactor: Slurm's priority plugin with the factors of age and job size.
"""

import math

import numpy as np

from decision.compiling.jit import kernel
from decision.compiling.small_kernels import first_word, uniform
from decision.model.errors import InternalError
from decision.state.cluster import QUEUED

from .options import Order


@kernel
def sort_queue(state, memory):
    """Bring ``memory.sorted`` up to date; returns its length."""
    began, jobs, key = (memory.nb_ordered, memory.nb_sorted), memory.sorted, memory.key
    memory.nb_sorted = _sort_waiting(state, memory, memory.order, jobs, key, memory.spare, began)
    memory.nb_ordered = state.nb_jobs
    return memory.nb_sorted


@kernel
def sort_candidates(state, memory):
    """Bring ``memory.candidates`` up to date, the waiting jobs in the order for backfilling; returns its length."""
    began, jobs, key = (memory.nb_considered, memory.nb_candidates), memory.candidates, memory.candidate_key
    memory.nb_candidates = _sort_waiting(state, memory, memory.backfill_order, jobs, key, memory.spare, began)
    memory.nb_considered = state.nb_jobs
    return memory.nb_candidates


@kernel
def _sort_waiting(state, config, order, jobs, key, spare, began):
    """Bring `jobs` up to date; returns its length. `began`: so many jobs were looked at before, so many are in it."""
    looked_at, length = began
    changes = order >= Order.WFP3
    # What is sorted stays so when jobs leave, and new ones come behind.
    kept = drop_gone(jobs, length, state.job_state)
    length = kept
    for job in range(looked_at, state.nb_jobs):
        if state.job_state[job] == QUEUED:
            if length >= len(jobs):
                raise InternalError("the policy's memory has no room for another waiting job")
            jobs[length] = job
            length += 1
    # Ranks that change with time are all made again, yet seldom change places: insertion is then nearly linear.
    for i in range(0 if changes else kept, length):
        key[jobs[i]] = rank_of(state, config, order, jobs[i])
    sort_by_key(jobs, spare, key, 1 if changes else kept, length)
    return length


@kernel
def drop_gone(jobs, length, job_state):
    kept = 0
    for i in range(length):
        jobs[kept] = jobs[i]
        # Without a branch: who is gone is overwritten by the next.
        kept += job_state[jobs[i]] == QUEUED
    return kept


@kernel
def rank_of(state, config, order, job):
    """The job's number in an order; nan (0 / 0) counts as last."""
    size, walltime, submit = np.float64(state.size[job]), state.expected_runtime[job], state.submit_time[job]
    # The codes in `options.Order` are grouped so that few comparisons find the formula.
    if order < Order.F1:
        rank = _rank_by_request(order, size, walltime, submit)
    elif order <= Order.F4:
        # The four functions fitted in the SC'17 paper. Their logarithm has no value at 0, where logs often begin:
        # submissions before 1 s count as at 1 s.
        age = math.log10(max(submit, 1.0))
        if order == Order.F1:
            rank = np.log10(walltime) * size + 8.70e2 * age
        elif order == Order.F2:
            rank = np.sqrt(walltime) * size + 2.56e4 * age
        elif order == Order.F3:
            rank = walltime * size + 6.86e6 * age
        else:
            rank = walltime * np.sqrt(size) + 5.30e5 * age
    elif order == Order.RANDOM:
        rank = uniform(first_word(config.seed, job))
    elif order == Order.HVF:
        rank = -state.value[job]
    elif order == Order.QOS:
        rank = -state.qos[job]
    elif order == Order.DENSITY:  # what waits is all still to be done
        rank = -density_of(state, job, 0.0)
    elif order == Order.EDF:
        rank = state.deadline[job] if state.deadline[job] > 0.0 else np.inf
    elif order == Order.WFP3:
        rank = -(((state.now - submit) / walltime) ** 3 * size)
    elif order == Order.UNICEP:  # it divides by log2(size): jobs of one host come before all others
        rank = -((state.now - submit) / (np.log2(size) * walltime)) if size > 1 else -np.inf
    else:
        age = min((state.now - submit) / config.max_age, 1.0)
        rank = -(config.age_weight * age + config.size_weight * size / len(state.host_state))
    # nan compares with nothing, and would leave the order to chance.
    return rank if rank == rank else np.inf


@kernel
def _rank_by_request(order, size, walltime, submit):
    if order == Order.LCFS:
        return -submit
    if order == Order.SJF:
        return walltime
    if order == Order.LJF:
        return -walltime
    if order == Order.SAF:
        return walltime * size
    if order == Order.LAF:
        return -walltime * size
    if order == Order.SQF:
        return size
    if order == Order.LQF:
        return -size
    return submit


@kernel
def density_of(state, job, ran):
    """A job's value per host-second left, after it has run for `ran` seconds; one that should be over has 1 ms left."""
    expected = state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]
    return state.value[job] / (state.size[job] * max(expected - ran, 1e-3))


@kernel
def sort_by_key(jobs, spare, key, begin, length):
    """Sort by (key, number): by insertion while little moves, as it does from call to call, else by merging."""
    # Moves after which insertion is given up: a few by job. A policy's first look at a long queue must not take
    # quadratic time.
    budget = 4 * length + 16
    for i in range(begin, length):
        job = jobs[i]
        at = i
        while at > 0 and _after(key, jobs[at - 1], job):
            jobs[at] = jobs[at - 1]
            at -= 1
        jobs[at] = job
        budget -= i - at
        if budget < 0:
            break
    if budget >= 0:
        return
    width = 1
    while width < length:
        for low in range(0, length - width, 2 * width):
            middle = low + width
            # Two runs that are in order already, as most are, need no copy.
            if _after(key, jobs[middle - 1], jobs[middle]):
                _merge(jobs, spare, key, low, middle, min(middle + width, length))
        width *= 2


@kernel
def _after(key, a, b):
    return key[a] > key[b] or (key[a] == key[b] and a > b)


@kernel
def _merge(jobs, spare, key, low, middle, high):
    spare[low:middle] = jobs[low:middle]
    left, right = low, middle
    for at in range(low, high):
        if left == middle:
            return
        if right == high or not _after(key, spare[left], jobs[right]):
            jobs[at] = spare[left]
            left += 1
        else:
            jobs[at] = jobs[right]
            right += 1
