"""Which waiting jobs would begin too late if they were guarded no sooner: the bound on the longest wait of `learned`.

Jobs that want much of the machine are the ones that wait longest: from when they are guarded hosts are kept for them,
and these come free one after the other. So such a job is guarded before its wait is what it may be (1.3 times the
longest wait that FCFS with EASY has had so far, `decision.policies.shadow`) by the time that this is likely to
take, which is the larger of two. One is planned: each wide job that has waited for long gets, in order of submission,
the earliest hosts that jobs which run and those before it leave, run times being planned as in rollouts. The other one
was seen: how long jobs of its class of sizes took to begin once it had been time to guard them, the largest counting
less with each that took less long. Where guarded jobs begin soon, nobody is guarded sooner than by the learned numbers.

Others are as late where many are guarded; they fit in where wide ones do not, and are left to the learned guard.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.policies.guard import find_earliest, note_guarded, note_reservation
from decision.policies.profile import TOLERANCE

from .rollouts import plan_ends, planned

# Chosen by hand with three shaken copies of twelve logs in sight: on grid5000 the longest wait is 1.31 in place of 1.88
# times EASY's, and on nine of the logs the mean wait is at most 5 % longer (presets/README.md, "A bound inside")
_AIM = 1.3  # times EASY's longest wait so far: by then a wide job is to begin
_LEAST = 0.7  # times it: no job is guarded before
_PLANNED = 0.6  # of the time that it is planned to take: it counts for less, since what is planned is often too long
_WIDE = 3  # a job is wide if so many of its size want more than the machine
_FORGOTTEN = 0.2  # of what was seen, with each job that begins sooner
_MOST = 256  # jobs are looked at, those that have waited longest
LATE_CLASSES = 2  # of sizes: more than half of the machine, and less


@kernel
def count_late_jobs(state, memory, running, longest, guarded):
    """How many jobs, the first of the queue, are guarded, where `guarded` are by the learned numbers.

    Args:
        state: of the cluster.
        memory: of the policy.
        running: jobs that run.
        longest: seconds: EASY's longest wait.
        guarded: jobs.
    """
    if len(memory.lag) == 0:  # the policy keeps no bound
        return guarded
    # the first jobs of the queue: those that are guarded, or have waited for long enough to be
    queue, length, count, now, most = state.queue, 0, 0, state.now, min(state.nb_queued, _MOST)
    while length < most and (
        queue[length] < memory.nb_guarded or now - state.submit_time[queue[length]] >= _LEAST * longest - TOLERANCE
    ):
        length += 1
    if length == 0:
        return guarded
    # free hosts from each of these times on, if running jobs run as planned; with room for reservations of those jobs
    plan_ends(state, memory, running)
    times, free = np.empty(running + 1 + length), np.empty(running + 1 + length, np.int64)
    times[0], free[0] = now, state.nb_free
    for i in range(running):
        times[i + 1] = max(times[i], memory.end[i])
        free[i + 1] = free[i] + memory.end_hosts[i]
    last = running + 1
    for i in range(length):
        job = queue[i]
        if _WIDE * state.size[job] <= len(state.host_state):
            continue
        wait, lag, run = now - state.submit_time[job], _lag_of(state, memory, job), planned(state, memory, job)
        at = find_earliest(times, free, last, state.size[job], run)
        # hosts are kept for it in the plan, as if it were guarded: the next ones begin later
        if at < last:
            begin = times[at]
            lag = max(lag, _PLANNED * (begin - now))
            last = note_reservation(times, free, last, at, state.size[job], begin + run)
        limit = max(_AIM * longest - lag, _LEAST * longest) - TOLERANCE
        # how long it then takes to begin is measured from here, and teaches `note_begin`
        if wait >= limit and memory.late_since[job] == np.inf:
            memory.late_since[job] = now
        # guarded jobs are the first of the queue: one that is late takes all before it with it
        if job < memory.nb_guarded or wait >= limit:
            count = i + 1
    return note_guarded(memory, queue, count) if count > guarded else guarded


@kernel
def note_begin(state, memory, job):
    """A job begins: how long that took since it had been time to guard it, if it had."""
    if len(memory.lag) > 0 and memory.late_since[job] < np.inf:
        at, lag = _class_of(state, job), state.now - memory.late_since[job]
        # up at once, down slowly: too early costs some utilization, too late breaks the bound
        memory.lag[at] = max(lag, memory.lag[at] + _FORGOTTEN * (lag - memory.lag[at]))


@kernel
def _lag_of(state, memory, job):
    """Seconds from when it is time to guard a job to its start, as it was for others and is for itself so far."""
    lag = memory.lag[_class_of(state, job)]
    return max(lag, state.now - memory.late_since[job]) if memory.late_since[job] < np.inf else lag


@kernel
def _class_of(state, job):
    """Which class of sizes a job is in."""
    return 0 if 2 * state.size[job] > len(state.host_state) else 1
