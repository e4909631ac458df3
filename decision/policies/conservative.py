"""Conservative backfilling: every job holds a reservation.

A job gets at arrival the earliest reservation that delays nobody's. When capacity comes back that had been planned
away (a job ended before its planned end, hosts returned or woke), the schedule is compressed: in queue order each
reservation is taken out and put back as early as it fits with all others in place, so none ever gets later. Where
the plan has become impossible (a job overran, hosts left) all reservations are made again, in queue order. A job
starts when its reservation begins; where nothing else happens then, the policy asks to be called. After Mu'alem and
Feitelson (TPDS 2001).

A start that comes late by no more than `TOLERANCE`, as a peer's clock has it, leaves the plan as it is.
"""

import numpy as np

from decision.compiling.jit import kernel

from .backfill import take
from .capacity import TOLERANCE, booked_end, fill_capacity, has_sleepers
from .compression import compress, note_freed
from .config import Order
from .memory import ends_since, note_decision
from .profile import add_free, are_free, earliest, forget_before, free_at


@kernel
def choose_reserved(state, facts, memory, queue, length):
    """Keep the reservations and put the jobs that start now into ``memory.chosen``; returns how many."""
    in_order = memory.order == Order.FCFS
    keep_reservations(state, facts, memory, queue, length, state.nb_jobs, in_order)
    chosen = take_due(state, memory, queue, length)
    note_decision(state, memory, chosen)
    return chosen


@kernel
def keep_reservations(state, facts, memory, queue, length, end, in_order):
    """Bring the profile and the reservations of the waiting jobs ``queue[:length]`` up to date.

    These are all that wait of the jobs numbered below `end`; `in_order` is whether they stand in order of submission.
    """
    now = state.now
    compresses = memory.troubled == 1
    troubled = (compresses and now < memory.last_now + TOLERANCE) or memory.next_start < now - TOLERANCE
    forget_before(memory, now)
    if not troubled and _is_as_foreseen(state, memory):
        compresses |= _give_back_early_ends(state, memory)
        due = _count_due(state, memory, queue, length)
        troubled = free_at(memory, now) + due != state.nb_free
    else:
        troubled = True
    if troubled:
        compresses = _put_back_all(state, facts, memory, queue, length)
    if compresses:
        compress(memory, queue, length, state.size, state.expected_runtime)
    _reserve_new(state, memory, queue, length, end, in_order)
    memory.troubled = troubled
    memory.last_now = now


@kernel
def next_call(state, memory, chosen):
    """When (seconds) to be called for a start: when the next reservation begins before any job is expected to end."""
    first_end = state.expected_end[0] if state.nb_running > 0 else np.inf
    for i in range(chosen):
        first_end = min(first_end, state.now + state.expected_runtime[memory.chosen[i]])
    begin = memory.next_start
    return begin if state.now < begin < first_end else np.inf


@kernel
def _is_as_foreseen(state, memory):
    """Whether nothing happened since the last plan but arrivals, its starts, and ends that are listed."""
    return ends_since(state, memory) == state.nb_ended and not has_sleepers(state, memory)


@kernel
def _give_back_early_ends(state, memory):
    """Return what ended jobs had reserved beyond now; whether there was any."""
    now, early = state.now, False
    for i in range(state.nb_ended):
        job = state.ended[i]
        planned = booked_end(state, memory, job)
        if planned > now:
            add_free(memory, now, planned, state.size[job])
            note_freed(memory, now, planned)
            early = True
    return early


@kernel
def _count_due(state, memory, queue, length):
    """Hosts of the waiting jobs whose reservation has begun."""
    due = 0
    if memory.next_start <= state.now:
        for i in range(length):
            if memory.reserved[queue[i]] <= state.now:
                due += state.size[queue[i]]
    return due


@kernel
def take_due(state, memory, queue, length):
    """Choose the jobs whose reservation has begun, as far as the hosts are really free."""
    now, free, chosen = state.now, state.nb_free, 0
    if memory.next_start > now:
        return 0
    next_start = np.inf
    for i in range(length):
        job = queue[i]
        begin = memory.reserved[job]
        if begin <= now and state.size[job] <= free:
            chosen = take(memory.chosen, chosen, job)
            free -= state.size[job]
        elif begin < next_start:
            next_start = begin
    memory.next_start = next_start
    return chosen


@kernel
def _reserve_new(state, memory, queue, length, end, in_order):
    """The earliest reservation for each job that has none, in queue order."""
    known = memory.nb_known
    for i in range(max(length - (end - known), 0) if in_order else 0, length):
        if queue[i] >= known:
            _reserve(memory, queue[i], state.size[queue[i]], state.expected_runtime[queue[i]])
    memory.nb_known = end


@kernel
def _reserve(memory, job, size, walltime):
    """Give the job the earliest reservation that leaves all others alone; none (inf) where it fits nowhere."""
    begin = earliest(memory, size, walltime)
    memory.reserved[job] = begin
    memory.examined[job] = memory.serial
    memory.next_start = min(memory.next_start, begin)
    if begin < np.inf:
        add_free(memory, begin, begin + walltime, -size)


@kernel
def _put_back_all(state, facts, memory, queue, length):
    """Fill the profile again with the present capacity and put the reservations back.

    Returns whether they fit; where they do not, each was made again.
    """
    fill_capacity(state, facts, memory)
    memory.nb_freed = 0
    memory.next_start = np.inf
    now, known = state.now, memory.nb_known
    for i in range(length):
        job = queue[i]
        if job < known and memory.reserved[job] < np.inf:
            begin = memory.reserved[job]
            if begin < now - TOLERANCE:
                begin = now
            memory.reserved[job] = begin
            memory.next_start = min(memory.next_start, begin)
            add_free(memory, max(begin, now), begin + state.expected_runtime[job], -state.size[job])
    if are_free(memory, 0, now, np.inf):
        note_freed(memory, now, np.inf)
        return True
    fill_capacity(state, facts, memory)
    for i in range(length):
        if queue[i] < known:
            _reserve(memory, queue[i], state.size[queue[i]], state.expected_runtime[queue[i]])
    return False
