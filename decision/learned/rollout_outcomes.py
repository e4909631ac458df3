"""What follows a set of jobs that start now, by a simulation of counts, and what that counts for (`rollouts`)."""

import math
from enum import IntEnum

import numpy as np

from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order
from decision.model.record import SHORTEST_RUNTIME

from .rollout_sets import reserve_hosts

# Rollouts.judge
MARGIN, TRUST, LATE, EXPONENT, SLOWNESS, NB_JUDGE = range(6)  # TRUST: 0 is as asked for, 1 as predicted

_LEAST_MEAN = 1.0  # seconds, of waiting time


class Past(IntEnum):
    """Positions in `Rollouts.past`: sums over the jobs that have ended."""

    WAIT = 0  # seconds
    SLOWDOWN = 1
    JOBS = 2


@kernel
def planned(state, memory, job):
    """Seconds that a job is planned to run: the mean of what was asked for and predicted, of their logarithms."""
    asked, trust = max(state.expected_runtime[job], SHORTEST_RUNTIME), memory.judge[TRUST]
    return asked * math.exp(trust * math.log(max(memory.predicted[job], SHORTEST_RUNTIME) / asked))


@kernel
def follow(state, memory, number, width, inside, beyond, running, longest, bound):
    """What a set counts for, or any number from `bound` on; ``chosen[inside:beyond]`` start, too."""
    now, free, begun, total, left = state.now, state.nb_free, 0, 0.0, memory.left
    last, least = 0, len(state.host_state) + 1
    for at in range(width):
        if memory.starts[number, at]:
            total += _count(memory, at, now, longest)
            free, begun = _begin(memory, begun, free, now + memory.window_runtime[at], memory.window_size[at])
        else:
            left[last] = at + 1
            last = at + 1
            least = min(least, memory.window_size[at])
    left[last] = 0
    for i in range(inside, beyond):
        job = memory.chosen[i]
        free, begun = _begin(memory, begun, free, now + planned(state, memory, job), state.size[job])
    first, first_begun, before, need, shadow, extra = 0, 0, 0, 0, np.inf, 0
    while left[0] > 0 and total < bound:
        time = memory.end[first] if first < running else np.inf
        time = min(time, memory.begun_end[first_begun] if first_begun < begun else np.inf)
        if time == np.inf:  # what is left needs hosts that are not there
            break
        while first < running and memory.end[first] <= time:
            free += memory.end_hosts[first]
            first += 1
        while first_begun < begun and memory.begun_end[first_begun] <= time:
            free += memory.begun_hosts[first_begun]
            first_begun += 1
        if free >= need:
            before = 0
        if free >= least and left[before] > 0:
            looked = before, need, shadow, extra
            ends = first, running, first_begun
            free, begun, total, looked = _begin_left(memory, time, least, looked, ends, begun, free, longest, total)
            before, need, shadow, extra = looked
    return total


@kernel
def _begin_left(memory, time, least, looked, ends, begun, free, longest, total):
    """Start what EASY starts at a time; returns free hosts, jobs that have begun, the sum, and what was looked at.

    The reservation of the first that is left is made when a job fits that may delay it, and stays as it is, since what
    starts leaves it alone. A job that would delay it now would delay it later, too. So jobs are looked at once, as long
    as it is the first and fewer than `need` hosts are free, which one of the others needs.

    Args:
        memory: with the jobs that are left.
        time: seconds.
        least: hosts; all that are left need as many.
        looked: behind which position to look, `need`, and when and with how many more hosts the first can start.
        ends: of the jobs that have not ended: the first of those that run now, their number, the first that has begun.
        begun: jobs that have begun.
        free: hosts.
        longest: seconds, as of `best_start`.
        total: the sum so far.
    """
    (before, need, shadow, extra), (first, running, first_begun), left = looked, ends, memory.left
    waits = memory.window_size[left[0] - 1]
    if waits <= free:
        waits, shadow = 0, np.inf
    reserved, at = shadow < np.inf, left[before]
    while at > 0 and free >= least:
        size, end = memory.window_size[at - 1], time + memory.window_runtime[at - 1]
        if size <= free and waits > 0 and not reserved:
            reserved = True
            shadow, extra = reserve_hosts(
                memory, memory.end, memory.end_hosts, first, running, first_begun, begun, free, waits
            )
        harmless = end <= shadow or size <= extra
        if size <= free and harmless:
            if end > shadow:
                extra -= size
            total += _count(memory, at - 1, time, longest)
            free, begun = _begin(memory, begun, free, end, size)
            left[before] = left[at]
        else:
            if before == 0:
                need = waits = size
            elif harmless:
                need = min(need, size)
            before = at
        at = left[at]
    return free, begun, total, (before, need, shadow, extra)


@kernel
def _begin(memory, begun, free, end, size):
    """A job begins; returns how many hosts are free then, and how many jobs have begun."""
    insert_in_order(memory.begun_end, memory.begun_hosts, begun, end, size)
    return free - size, begun + 1


@kernel
def _count(memory, at, time, longest):
    """What a job counts for that begins at a time."""
    judge, past, wait = memory.judge, memory.past, max(time - memory.window_submit[at], 0.0)
    ended = max(past[Past.JOBS], 1.0)
    count = wait / max(past[Past.WAIT] / ended, _LEAST_MEAN)
    count += judge[SLOWNESS] * slowdown_of(wait, memory.window_runtime[at]) / max(past[Past.SLOWDOWN] / ended, 1.0)
    if wait > 0.0:
        count += math.exp(judge[LATE] + judge[EXPONENT] * math.log(wait / longest))
    return count


@kernel
def slowdown_of(wait, runtime):
    return max((wait + runtime) / max(runtime, SHORTEST_RUNTIME), 1.0)
