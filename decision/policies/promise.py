"""By when waiting jobs would start if they were guarded now: who would start too late is guarded before that.

A guard that is relative to FCFS with EASY (`guard`) leaves a job alone for as long as its promise is early enough: the
start that it would have if it and all that were submitted before it got reservations now, each as early as running jobs
and those before it allow, if all run to their walltime. As long as nothing is guarded, jobs that came later may delay
it; once it is guarded nothing moves its start beyond the promise. So the guard comes as late as it can, for each job by
itself: late where hosts come free soon, early where many wait before it (slack-based backfilling, Talby and Feitelson,
IPPS 1999).

Jobs that have waited for less than a share of what they may wait are left alone also where their promise is too late:
then EASY lets jobs wait for as long, mostly, and what they may wait will grow.
"""

import numpy as np

from decision.compiling.jit import kernel

from .capacity import TOLERANCE, hosts_given_back

_AIM = 0.9  # of what a job may wait: the latest promise
LEAST = 0.55  # of what it may wait: it is not guarded before
LARGEST = 5 / 6  # of what it may wait: then it is guarded in any case
_MOST = 256  # jobs are promised something, those that have waited longest; others are guarded by their waits alone


@kernel
def count_late(state, memory, most):
    """How many jobs, the first of the queue, are to be guarded so that none waits for more than `most` seconds."""
    queue, length = state.queue, _count_asked(state, memory, most)
    if length == 0 or queue[length - 1] < memory.nb_guarded:
        return length
    count, promised = 0, min(length, _MOST)
    times, free = _free_ahead(state, promised)
    last = state.nb_running + 1
    for i in range(promised):
        job = queue[i]
        at = find_earliest(times, free, last, state.size[job], state.expected_runtime[job])
        promise = times[at] if at < last else np.inf
        if promise - state.submit_time[job] >= _AIM * most - TOLERANCE or _is_due(state, memory, job, most):
            count = i + 1
        if at < last:
            last = note_reservation(times, free, last, at, state.size[job], promise + state.expected_runtime[job])
    while count < length and _is_due(state, memory, queue[count], most):
        count += 1
    return count


@kernel
def _is_due(state, memory, job, most):
    """Whether a job is guarded already, or has waited for so long that it is in any case."""
    return job < memory.nb_guarded or state.now - state.submit_time[job] >= LARGEST * most - TOLERANCE


@kernel
def _count_asked(state, memory, most):
    """The first jobs of the queue: those that are guarded, or have waited for long enough to be."""
    count = 0
    while count < state.nb_queued and (
        state.queue[count] < memory.nb_guarded
        or state.now - state.submit_time[state.queue[count]] >= LEAST * most - TOLERANCE
    ):
        count += 1
    return count


@kernel
def _free_ahead(state, jobs):
    """Free hosts from each of these times on, if running jobs run to their walltime; with room for so many jobs."""
    runs = state.nb_running
    times, free = np.empty(runs + 1 + jobs), np.empty(runs + 1 + jobs, np.int64)
    times[0], free[0] = state.now, state.nb_free
    for i in range(runs):
        times[i + 1] = max(times[i], state.expected_end[i])
        free[i + 1] = free[i] + hosts_given_back(state, state.running[i])
    return times, free


@kernel
def find_earliest(times, free, last, size, runtime):
    """From which of the first `last` times on so many hosts are free for so long (seconds); `last` for none."""
    begin = 0
    for at in range(last):
        if begin < at and times[at] >= times[begin] + runtime:
            break
        if free[at] < size:
            begin = at + 1
    return begin


@kernel
def note_reservation(times, free, last, begin, size, end):
    """Take hosts from `times[begin]` to `end` (seconds); returns how many times there are now."""
    at = last
    while times[at - 1] > end:
        times[at], free[at] = times[at - 1], free[at - 1]
        at -= 1
    times[at], free[at] = end, free[at - 1]
    for i in range(begin, at):
        free[i] -= size
    return last + 1
