"""Watched jobs: each keeps its right to hosts by a time of its own, which no start takes away.

With a guard that is relative to FCFS with EASY (`guard`), each waiting job has a time of its own: the end of what it
may wait (nearly: `_LATE`), or, where that is later, the earliest time at which its hosts are free if running jobs run
to their walltime and no other job starts. A job that is not guarded starts only where it leaves each job that was
submitted before it its hosts at that time: it ends by then, or takes hosts that are left over. So its start does not
move the time at which hosts are free for an older job beyond that one's own time. Each waiting job is looked at by
itself; where several want the same hosts, they are served in order of submission once they are guarded.

Of jobs that wait in order of submission, those count that want more hosts than all before them: hosts that are there
for such a one are there for the others, which may wait longer. And only those count whose time comes before a waiting
job that starts now would end.
"""

import numpy as np

from decision.compiling.bundle import F8, I4, Bundle, Int
from decision.compiling.jit import kernel

from .capacity import TOLERANCE, hosts_given_back

_LATE = 29 / 30  # of what a job may wait: by then it is to start
_MOST = 64  # jobs are watched, those that have waited longest


class Watch(Bundle):
    """The watched jobs."""

    nb_watched: Int
    watch_job: I4  # (_MOST,) their numbers
    watch_time: F8  # (_MOST,) seconds: by when each is to have its hosts
    watch_extra: I4  # (_MOST,) hosts that are left over then


def new_watch() -> dict[str, np.ndarray]:
    """The fields of a watch over nobody."""
    return {
        "watch_job": np.zeros(_MOST, np.int32),
        "watch_time": np.zeros(_MOST),
        "watch_extra": np.zeros(_MOST, np.int32),
    }


@kernel
def _longest_runtime(state):
    """Of the waiting jobs, as expected (seconds)."""
    longest = 0.0
    for i in range(state.nb_queued):
        longest = max(longest, state.expected_runtime[state.queue[i]])
    return longest


@kernel
def nobody_is_late(state, most):
    """Whether nothing that starts now could be in the way of a waiting job, where each may wait for `most` seconds."""
    return state.now + _longest_runtime(state) < state.submit_time[state.queue[0]] + _LATE * most - TOLERANCE


@kernel
def watch(state, memory, most):
    """Find out who is watched, where a job may wait for `most` seconds."""
    now, count, largest, longest = state.now, 0, 0, _longest_runtime(state)
    for i in range(state.nb_queued):
        job = state.queue[i]
        if now + longest < state.submit_time[job] + _LATE * most - TOLERANCE or count == _MOST:
            break
        if state.size[job] <= largest:
            continue
        largest = state.size[job]
        time, free = _right_of(state, job, max(now, state.submit_time[job] + _LATE * most))
        memory.watch_job[count] = job
        memory.watch_time[count] = time
        memory.watch_extra[count] = free - largest
        count += 1
    memory.nb_watched = count


@kernel
def _right_of(state, job, time):
    """When the job is to have its hosts, at `time` (seconds) or as soon as there are enough; and how many there are."""
    free = state.nb_free
    for i in range(state.nb_running):
        end = state.expected_end[i]
        if end > time:
            if free >= state.size[job]:
                break
            time = end
        free += hosts_given_back(state, state.running[i])
    return (time, free) if free >= state.size[job] else (np.inf, free)


@kernel
def harms_watched(state, memory, job):
    """Whether a watched job that was submitted before would not have its hosts in time if this one starts now."""
    end = state.now + state.expected_runtime[job]
    for i in range(memory.nb_watched):
        if memory.watch_job[i] >= job:
            break
        if end > memory.watch_time[i] + TOLERANCE and state.size[job] > memory.watch_extra[i]:
            return True
    return False


@kernel
def watch_start(state, memory, job):
    """A job starts now: what it takes of the hosts that watched jobs leave over."""
    end = state.now + state.expected_runtime[job]
    for i in range(memory.nb_watched):
        if end > memory.watch_time[i] + TOLERANCE and memory.watch_job[i] != job:
            memory.watch_extra[i] -= state.size[job]
