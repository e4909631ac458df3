"""Rollouts: which of several sets of waiting jobs to start now, judged by what would follow each of them.

A policy brings its order of the waiting jobs and the set that it would start. Other sets are made from the same order:
all that fits; what EASY starts; and for each of the first jobs that fit and are not in the own set, what EASY starts if
that job comes first. Guarded jobs, the first of the order, always stay the first, and hosts are kept for the first of
them that does not fit. What follows a set is simulated: EASY in that order, no jobs that come, run times between what
was asked for and what is predicted. A set counts as the sum, over the first jobs of the order, of

    wait / W + SLOWNESS s / S + e^LATE (wait / longest)^EXPONENT

where s is the job's bounded slowdown, W and S are the means over the jobs that have ended, and `longest` is the longest
wait that the policy measures by. Another set takes the place of the policy's own if it counts for less by a share of
MARGIN. Bertsekas, Tsitsiklis and Wu, Rollout algorithms for combinatorial optimization (Journal of Heuristics, 1997).
"""

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, Bundle, I1x2
from decision.compiling.jit import kernel
from decision.model.record import SHORTEST_RUNTIME
from decision.policies.backfill import take
from decision.policies.order import sort_by_key
from decision.state.cluster import ClusterState, nb_hosts

from .rollout_outcomes import MARGIN, Past, follow, planned, slowdown_of
from .rollout_sets import SETS, make_sets, mark_own

_WINDOW = 200  # jobs of the order that are looked at
_AGAIN = 0.5  # of the time that a job has run by when it should have ended: so long it still runs


class Rollouts(Bundle):
    """What rollouts know of the past, and what they work on; W is the length of the window."""

    judge: F8  # (NB_JUDGE,)
    past: F8  # (3,) at each `Past`
    window_size: I4  # (W,) hosts of the first waiting jobs, in order
    window_submit: F8  # (W,) seconds
    window_walltime: F8  # (W,) seconds
    window_runtime: F8  # (W,) seconds that they are planned to run
    starts: I1x2  # (SETS, W) whether each starts; the first set is the policy's own
    left: I4  # (W + 1,) of what still waits in a rollout: the first at 0, then behind each the next; from 1, 0: none
    ending: I4  # (H,) jobs that run, by planned end
    end: F8  # (H,) seconds, ascending: when the jobs that run are planned to end
    end_hosts: I4  # (H,)
    begun_end: F8  # (W + H,) seconds, ascending: likewise of jobs that begin in a rollout, or in a set
    begun_hosts: I4  # (W + H,)


def new_rollouts(state: ClusterState, judge: NDArray[np.float64]) -> Rollouts:
    """Room for the cluster's hosts; nothing has ended yet. ``judge`` is (NB_JUDGE,)."""
    hosts = nb_hosts(state)
    return Rollouts(
        judge=judge,
        past=np.zeros(len(Past)),
        window_size=np.zeros(_WINDOW, np.int32),
        window_submit=np.zeros(_WINDOW),
        window_walltime=np.zeros(_WINDOW),
        window_runtime=np.zeros(_WINDOW),
        starts=np.zeros((SETS, _WINDOW), np.int8),
        left=np.zeros(_WINDOW + 1, np.int32),
        ending=np.zeros(hosts, np.int32),
        end=np.zeros(hosts),
        end_hosts=np.zeros(hosts, np.int32),
        begun_end=np.zeros(_WINDOW + hosts),
        begun_hosts=np.zeros(_WINDOW + hosts, np.int32),
    )


@kernel
def note_job_end(state, memory, job):
    """A job has ended."""
    wait, runtime = state.start_time[job] - state.submit_time[job], state.end_time[job] - state.start_time[job]
    memory.past[Past.WAIT] += wait
    memory.past[Past.SLOWDOWN] += slowdown_of(wait, runtime)
    memory.past[Past.JOBS] += 1.0


@kernel
def best_start(state, memory, length, chosen, running, guarded, longest):
    """Put the jobs of the best set into ``memory.chosen``; returns how many.

    Args:
        state: of the cluster.
        memory: with the waiting jobs in ``sorted``, the policy's own set in ``chosen``, and the ends of the jobs that
            run in ``release_time`` and ``release_hosts``; a predicted run time of each job, in seconds; and ``spare``
            and ``key``, of which those of waiting jobs stay.
        length: of the order.
        chosen: jobs in the own set.
        running: jobs that run.
        guarded: jobs that come first in every set.
        longest: seconds: the wait that `LATE` is counted by.
    """
    width = min(length, _WINDOW)
    if length < 2 or guarded >= width or memory.judge[MARGIN] >= 1.0:
        return chosen
    _look(state, memory, width)
    inside = mark_own(memory, width, chosen)
    sets = make_sets(state, memory, width, running, guarded)
    if sets == 1:
        return chosen
    plan_ends(state, memory, running)
    own = follow(state, memory, 0, width, inside, chosen, running, longest, np.inf)
    best, least = 0, own * (1.0 - memory.judge[MARGIN])
    for number in range(1, sets):
        count = follow(state, memory, number, width, inside, inside, running, longest, least)
        if count < least:
            best, least = number, count
    if best == 0:
        return chosen
    chosen = 0
    for at in range(width):
        if memory.starts[best, at]:
            chosen = take(memory.chosen, chosen, memory.sorted[at])
    return chosen


# --- What is looked at ---------------------------------------------------------------------------------------------


@kernel
def _look(state, memory, width):
    for at in range(width):
        job = memory.sorted[at]
        memory.window_size[at] = state.size[job]
        memory.window_submit[at] = state.submit_time[job]
        memory.window_walltime[at] = state.expected_runtime[job]
        memory.window_runtime[at] = planned(state, memory, job)


@kernel
def plan_ends(state, memory, running):
    """When the jobs that run are planned to end: not before they have run half as long again as they have."""
    now = state.now
    for i in range(running):
        job = state.running[i]
        began = state.start_time[job]
        end = max(began + planned(state, memory, job), now + max(_AGAIN * (now - began), SHORTEST_RUNTIME))
        memory.ending[i], memory.key[job] = job, min(end, state.expected_end[i])
    sort_by_key(memory.ending, memory.spare, memory.key, 1, running)
    for i in range(running):
        job = memory.ending[i]
        memory.end[i], memory.end_hosts[i] = memory.key[job], state.size[job]
