"""Learned order in compiled code: its memory, the score of each job, and who starts."""

import math

import numpy as np

from decision.compiling.bundle import F8, I4
from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order
from decision.estimates.regression import RegressionMemory, learn_end, predict
from decision.model.dates import DAY
from decision.model.record import SHORTEST_RUNTIME
from decision.policies.backfill import take
from decision.policies.capacity import TOLERANCE
from decision.policies.guard import note_guarded
from decision.policies.memory import Memory
from decision.policies.order import drop_gone, sort_by_key
from decision.state.cluster import QUEUED

from .releases import enough_at, free_hosts_at
from .rollout_outcomes import NB_JUDGE, planned
from .rollouts import Rollouts, note_job_end

# The weights
(
    RUNTIME,
    WALLTIME,
    SIZE,
    OFFSET,
    AGE,
    URGENCY,
    RESERVE_AFTER,  # hosts are kept for a job that would have waited for so long, in units of the longest wait
    RESERVE_DOUBT,  # what each unit of doubt adds to RESERVE_AFTER
    GUARD_AFTER,  # a job that would have waited for so long, in the same units, is guarded
    FORESIGHT,  # share of the time until a job's hosts are free that counts for that
    SHORT,  # jobs: a queue that is no longer is short
    JUDGE,  # the first of those that rollouts judge by
) = range(12)
SHORT_GUARD = JUDGE + NB_JUDGE  # GUARD_AFTER of a short queue; 0: it is in order of arrival, without rollouts; no areas
NB_WEIGHTS = SHORT_GUARD + 1
_NEARLY_IDLE = 0.02  # of the hosts' time: a machine of which jobs use less is nearly idle
_OFTEN_IDLE = 0.6  # likewise: of one of which they use less queues are over soon, if they are not long already
_LONG = 2  # times all hosts: what jobs want that wait in a long queue
_SLOWDOWN = 3.0  # the scale of all scores
_FEW = 10  # jobs without doubt, as it were, that ended before the first one

# LearnedMemory.doubt, over the jobs that have ended
_SUM = 0  # of the logarithm of walltime over run time
_ENDED = 1  # jobs
_USED = 2  # host-seconds


class LearnedMemory(Memory, RegressionMemory, Rollouts):
    """The guard's and the predictor's memory, and what is known of each job."""

    weights: F8  # (P,)
    doubt: F8  # (3,)
    predicted: F8  # (J,) seconds: run times
    fixed: F8  # (J,) what of a score does not change
    freed: I4  # (2H + 1,) hosts that are free from each expected end on
    lag: F8  # (LATE_CLASSES,) seconds that wide jobs took from when they were to be guarded; empty without a bound
    late_since: F8  # (J,) seconds: since when a job is to be guarded (`late_jobs`); inf before


@kernel
def note_ends(state, memory):
    """Learn from the jobs that have ended how long jobs run, and how much users ask for too much."""
    for i in range(state.nb_ended):
        job = state.ended[i]
        walltime, runtime = state.walltime[job], state.end_time[job] - state.start_time[job]
        learn_end(memory, state.user[job], state.size[job], walltime, state.submit_time[job], runtime)
        memory.doubt[_SUM] += max(math.log(walltime / max(runtime, SHORTEST_RUNTIME)), 0.0)
        memory.doubt[_ENDED] += 1.0
        memory.doubt[_USED] += runtime * state.size[job]
        note_job_end(state, memory, job)


@kernel
def note_arrivals(state, memory):
    """Predict the run times of the jobs that have come."""
    weights, length = memory.weights, memory.nb_sorted
    for job in range(memory.nb_ordered, state.nb_jobs):
        if state.job_state[job] != QUEUED:
            continue
        size, walltime = state.size[job], max(state.walltime[job], SHORTEST_RUNTIME)
        runtime = predict(memory, state.user[job], size, state.walltime[job], state.submit_time[job])
        memory.predicted[job] = max(runtime, SHORTEST_RUNTIME)
        memory.fixed[job] = (
            weights[RUNTIME] * math.log(memory.predicted[job])
            + weights[WALLTIME] * math.log(walltime)
            + weights[SIZE] * math.log(size)
        )
        memory.sorted[length] = job
        length += 1
    memory.nb_ordered = state.nb_jobs
    memory.nb_sorted = length


@kernel
def guarded_after(state, memory, longest, unit):
    """For how long (seconds) jobs wait before they are guarded: less in a short queue, where that costs little."""
    limit = memory.weights[GUARD_AFTER] * longest
    if memory.weights[SHORT_GUARD] > 0.0 and _is_short(state, memory):
        early = 0.0 if _is_nearly_idle(state, memory) else memory.weights[SHORT_GUARD] * unit
        return min(limit, early)
    return limit


@kernel
def _is_nearly_idle(state, memory):
    """Whether so little was used that FCFS with EASY keeps nobody waiting who need not."""
    return _uses_less(state, memory, _NEARLY_IDLE, 0.0)


@kernel
def _uses_less(state, memory, share, since):
    """Whether jobs that have ended used less than a share of the hosts' time since then (seconds), but for a week."""
    return memory.doubt[_USED] < share * len(state.host_state) * (state.now - since - 7 * DAY)


@kernel
def _is_short(state, memory):
    return state.nb_queued <= memory.weights[SHORT]


@kernel
def is_by_arrival(state, memory):
    return memory.weights[SHORT_GUARD] == 0.0 and _is_short(state, memory)


@kernel
def count_guarded(state, memory, running, drained, limit):
    """How many jobs are guarded, which are the first of the queue: those that wait for `limit` seconds."""
    share, count, now, queue = memory.weights[FORESIGHT], 0, state.now, state.queue
    for i in range(state.nb_queued):
        job = queue[i]
        wait = now - state.submit_time[job]
        if job >= memory.nb_guarded and wait + share * drained < limit - TOLERANCE:
            break
        delay = min(_delay(state, memory, running, state.size[job]), drained)
        if job < memory.nb_guarded or wait + share * delay >= limit - TOLERANCE:
            count = i + 1
    return note_guarded(memory, queue, count)


@kernel
def _doubt(memory):
    return memory.doubt[_SUM] / (memory.doubt[_ENDED] + _FEW)


@kernel
def sort_by_score(state, memory, running, drained, guarded, unit):
    """Bring ``memory.sorted`` up to date, guarded jobs first, then the highest score, ties by arrival; its length."""
    length = drop_gone(memory.sorted, memory.nb_sorted, state.job_state)
    memory.nb_sorted = length
    _score_all(state, memory, length, running, drained, unit)
    for i in range(guarded):
        memory.key[state.queue[i]] = -np.inf
    sort_by_key(memory.sorted, memory.spare, memory.key, 1, length)
    return length


@kernel
def _is_by_area(state, memory):
    """Whether the smallest area comes first: no job gets old on a machine that is often idle, in no long queue."""
    since_first = state.submit_time[0]
    if memory.weights[SHORT_GUARD] == 0.0 or not _uses_less(state, memory, _OFTEN_IDLE, since_first):
        return False
    wanted = 0
    for i in range(state.nb_queued):
        wanted += state.size[state.queue[i]]
    return wanted <= _LONG * len(state.host_state)


@kernel
def _score_all(state, memory, length, running, drained, unit):
    """Into ``memory.key`` what waiting jobs are in order of: minus the score, area or arrival."""
    if _is_by_area(state, memory):
        for i in range(length):
            job = memory.sorted[i]
            memory.key[job] = state.size[job] * planned(state, memory, job)
        return
    now, weights, by_arrival = state.now, memory.weights, is_by_arrival(state, memory)
    offset = math.exp(weights[OFFSET])
    for i in range(length):
        job = memory.sorted[i]
        wait = now - state.submit_time[job]
        score = _SLOWDOWN * math.log(wait / memory.predicted[job] + offset) + weights[AGE] * wait / unit
        score -= memory.fixed[job]
        if wait + drained > unit:
            begin = _delay(state, memory, running, state.size[job])
            score += weights[URGENCY] * max((wait + min(begin, drained)) / unit - 1.0, 0.0)
        memory.key[job] = job if by_arrival else -score


@kernel
def add_up_releases(state, memory, running):
    """How many hosts are free from each expected end on, into ``memory.freed``; seconds until the last of them."""
    free = state.nb_free
    for i in range(running):
        free += memory.release_hosts[i]
        memory.freed[i] = free
    return max(memory.release_time[running - 1] - state.now, 0.0) if running > 0 else 0.0


@kernel
def _delay(state, memory, running, size):
    """Seconds until so many hosts are free at the latest, if nothing else starts; inf if never."""
    if size <= state.nb_free:
        return 0.0
    low, high = 0, running
    while low < high:
        middle = (low + high) >> 1
        if memory.freed[middle] >= size:
            high = middle
        else:
            low = middle + 1
    return max(memory.release_time[low] - state.now, 0.0) if low < running else np.inf


@kernel
def choose_by_score(state, memory, length, running, guarded, unit):
    """Put the jobs that start now into ``memory.chosen``; returns how many."""
    now, free, chosen = state.now, state.nb_free, 0
    kept, shadow, extra, ends, sizes = False, np.inf, 0, memory.release_time, memory.release_hosts
    for i in range(length):
        job = memory.sorted[i]
        size, end = state.size[job], now + state.expected_runtime[job]
        if size > free:
            begin = np.inf if kept else max(enough_at(ends, sizes, running, free, size), now)
            if not kept and (i < guarded or _is_reserved(state, memory, job, begin, unit)):
                kept, shadow = True, begin
                extra = free_hosts_at(ends, sizes, running, free, shadow) - size
            continue
        if kept and end > shadow:
            if size > extra:
                continue
            extra -= size
        chosen = take(memory.chosen, chosen, job)
        insert_in_order(ends, sizes, running, end, size)
        running += 1
        free -= size
        if free == 0:
            break
    return chosen


@kernel
def _is_reserved(state, memory, job, begin, unit):
    """Whether hosts are kept for a job that could begin at `begin` (seconds)."""
    least = memory.weights[RESERVE_AFTER] + memory.weights[RESERVE_DOUBT] * _doubt(memory)
    return begin - state.submit_time[job] >= least * unit
