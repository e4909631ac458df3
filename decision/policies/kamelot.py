"""Kamelot, the scheduler of OAR 3: conservative backfilling that reserves hosts, not numbers of hosts.

By its definition it makes all reservations again each time it is asked. Running jobs keep their hosts until their
walltime ends; each waiting job, in order of submission, gets the earliest time from which enough hosts are free for its
whole walltime, and of these the ones with the lowest ids; jobs whose time is now start. Two things make it other than
`conservative`: a reservation keeps the same hosts from its begin to its end, and each walltime counts as longer, by a
security time in which OAR cleans nodes up. After the scheduler's sources (oar-team/oar3, ``oar/kao/scheduling.py``).

Design
------
Only starts are seen from outside, so no more reservations are made than decide who starts. Reservations only take hosts
away: a job that cannot start now for the hosts that the jobs before it leave will not start, no matter where the next
ones are put. So it stops when no job that is left could start.

What was reserved is kept as long as making it again would give the same: while no job ends or overruns, no host moves,
and started jobs have begun and will end exactly as reserved. Then hosts that are free from now on were so before, thus
no reservation can be earlier than it was, and of the waiting jobs only new ones can start. All of this is exact; the
tests hold it to a twin that does what the first paragraph says.
"""

import math

import numpy as np

from decision.compiling.bundle import F8, I4, U8, Bundle, F8x2, Float, Int, U8x2, bundle_at
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError, InternalError
from decision.state.bitmap import (
    count_hosts,
    count_ones,
    highest_bit,
    insert_interval,
    next_in,
    next_out,
    remove_interval,
)
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.plan_arrays import CALL_AT, START, add, add_interval, clear

from .prepared import DECIDE, DECIDED, CompiledPolicy
from .profile import TOLERANCE, shift

# Gantt chart of hosts: which of them are free when, as a step function of time.
#
# Each step has the set of its free hosts as a bitmap. A reservation begins where a step begins and adds at most one
# step, where it ends. Steps are kept in order by their begin; their bitmaps stay in the rows in which they were made,
# so that an insertion moves no bitmaps.
#
# Reservations only take hosts away. So what found no place before a moment leaves none there for what is wider and
# longer: such moments are kept by width and duration, in classes, and no search begins before them.

# 2^32 s, more than a century, is beyond every walltime.
_CLASSES = 128  # of durations: four for each power of two, from 1 s on


class Gantt(Bundle):
    """Steps ``0 .. nb_steps - 1``; room for S of them. W words are a set of hosts."""

    nb_steps: Int
    begin: F8  # (S,) seconds, ascending: step i ends where step i + 1 begins, the last one never
    row: I4  # (S,) the step's row in the two arrays below
    nb_free: I4  # (S,) hosts free in the step of this row
    free: U8x2  # (S, W) which
    hosts: U8  # (W,) hosts of the last reservation
    earliest: F8x2  # (highest bit of 64 W + 1, _CLASSES) seconds: no place before for jobs of this class or beyond


def new_gantt(nb_steps: int, nb_words: int) -> Gantt:
    """An empty chart with room for so many steps of sets of hosts of so many words."""
    return Gantt(
        begin=np.zeros(nb_steps),
        row=np.zeros(nb_steps, np.int32),
        nb_free=np.zeros(nb_steps, np.int32),
        free=np.zeros((nb_steps, nb_words), np.uint64),  # the system gives memory to the rows that are used
        hosts=np.zeros(nb_words, np.uint64),
        earliest=np.zeros(((64 * nb_words).bit_length(), _CLASSES)),
    )


@kernel
def begin_gantt(gantt, now, free):
    """Forget everything: the hosts of the bitmap `free` (W,) are free from `now` (seconds) on."""
    gantt.nb_steps = 1
    gantt.begin[0] = now
    gantt.row[0] = 0
    gantt.free[0, :] = free
    gantt.nb_free[0] = count_hosts(free)
    gantt.earliest[:] = now


@kernel
def release(gantt, time, hosts):
    """The hosts of a bitmap (W,) come free at `time` (seconds), in the last step; nothing is reserved yet."""
    row = gantt.row[_cut(gantt, time)]
    for word in range(len(hosts)):
        gantt.free[row, word] |= hosts[word]
    gantt.nb_free[row] = count_hosts(gantt.free[row])


@kernel
def reserve(gantt, size, duration):
    """Take `size` hosts for `duration` seconds as early as possible, and of these the ones with the lowest ids.

    Returns:
        The begin in seconds; ``gantt.hosts`` says which. Inf and none if there will never be enough.
    """
    # Search from where this class may begin, rounding the job down to the class; note the result for what is at least
    # as wide and as long, rounding up.
    level, share = _class_of(duration)
    low = 0
    if level >= 0:
        soonest = gantt.earliest[min(highest_bit(size), len(gantt.earliest) - 1), min(level, _CLASSES - 1)]
        low = np.searchsorted(gantt.begin[: gantt.nb_steps], soonest)
    first = _find(gantt, size, duration, low)
    begin = gantt.begin[first] if first >= 0 else np.inf
    for width in range(highest_bit(2 * size - 1), len(gantt.earliest)):
        for longer in range(max(level + (share > 0), 0), _CLASSES):
            if gantt.earliest[width, longer] >= begin:  # and so are those beyond
                break
            gantt.earliest[width, longer] = begin
    if first < 0:
        gantt.hosts[:] = 0
        return np.inf
    # Of all hosts that are free for so long the lowest ones, word by word.
    left = size
    for word in range(len(gantt.hosts)):
        here = np.int64(count_ones(gantt.hosts[word]))
        if here > left:
            rest = gantt.hosts[word]
            for _ in range(left):
                rest &= rest - np.uint64(1)
            gantt.hosts[word] ^= rest
            here = left
        left -= here
    last = max(_cut(gantt, begin + duration), 1)  # who begins now has the hosts now, however short
    for word in range(len(gantt.hosts)):
        taken = gantt.hosts[word]
        if taken != 0:
            for i in range(first, last):
                gantt.free[gantt.row[i], word] &= ~taken
    for i in range(first, last):
        gantt.nb_free[gantt.row[i]] -= size
    return begin


@kernel
def measure_first(gantt, until):
    """Put into ``until[n]`` (H + 1,) until when (seconds) some n hosts are free throughout from the first step on."""
    hosts = gantt.hosts
    hosts[:] = gantt.free[0]
    left = np.int64(gantt.nb_free[0])
    until[left + 1 :] = -np.inf
    for i in range(1, gantt.nb_steps):
        if left == 0:
            break
        still = _narrow(hosts, gantt.free[gantt.row[i]])
        until[still + 1 : left + 1] = gantt.begin[i]
        left = still
    until[: left + 1] = np.inf


@kernel
def _class_of(duration):
    """The class of a duration (seconds), and how much longer it is than the shortest of that class."""
    if duration == np.inf:
        return _CLASSES, 0.0
    mantissa, exponent = math.frexp(duration)
    quarters = 8 * mantissa - 4
    return 4 * (exponent - 1) + int(quarters), quarters - int(quarters)


@kernel
def _find(gantt, size, duration, low):
    """The first step from `low` on from which `size` hosts are free for so long, -1 for none.

    ``gantt.hosts`` are all hosts that are.
    """
    # Too few hosts at all: no spell goes on through this step.
    first, end = -1, np.inf
    for at in range(low, gantt.nb_steps):
        # The spell so far is long enough.
        if gantt.begin[at] >= end:
            return first
        row = gantt.row[at]
        if gantt.nb_free[row] < size:
            first, end = -1, np.inf
        elif first < 0 or _narrow(gantt.hosts, gantt.free[row]) < size:
            # The common hosts have become too few: go back from here as far as enough of this step's hosts are free.
            first = _widest(gantt, low, at, size)
            end = gantt.begin[first] + duration
    return first


@kernel
def _widest(gantt, low, last, size):
    """The first step from `low` on from which `size` hosts, as many as `last` has, are free until the end of `last`."""
    hosts, first = gantt.hosts, last
    hosts[:] = gantt.free[gantt.row[last]]
    while first > low:
        before, common = gantt.row[first - 1], 0
        for word in range(len(hosts)):
            common += np.int64(count_ones(hosts[word] & gantt.free[before, word]))
        if common < size:
            break
        first -= 1
        _narrow(hosts, gantt.free[gantt.row[first]])
    return first


@kernel
def _narrow(hosts, others):
    """Keep the hosts that the others have too; returns how many."""
    total = 0
    for word in range(len(hosts)):
        hosts[word] &= others[word]
        total += np.int64(count_ones(hosts[word]))
    return total


@kernel
def _cut(gantt, time):
    """The index of the step that begins at `time` (seconds), which is made where there is none; nb_steps for inf."""
    steps = gantt.nb_steps
    at = np.searchsorted(gantt.begin[:steps], time)
    if time == np.inf or (at < steps and gantt.begin[at] == time):
        return at
    if steps >= len(gantt.begin):
        raise InternalError("the Gantt chart has no room for another step")
    shift(gantt.begin, at, steps, 1)
    shift(gantt.row, at, steps, 1)
    gantt.begin[at] = time
    # The new step takes the next row for its bitmap, a copy of the step that it divides.
    gantt.row[at] = steps
    before = gantt.row[at - 1]
    gantt.free[steps, :] = gantt.free[before]
    gantt.nb_free[steps] = gantt.nb_free[before]
    gantt.nb_steps = steps + 1
    return at


class KamelotMemory(Gantt):
    """What the policy is and remembers from call to call."""

    security_time: Float  # seconds by which each walltime counts as longer
    reaction: Float  # seconds from an event to its decision
    due: Float = np.nan  # seconds: when the next decision is made, nan where nothing waits for one
    # after the last plan was carried out
    nb_reserved: Int  # jobs from the front of the queue that have a reservation
    seen_jobs: Int  # jobs submitted
    seen_running: Int  # jobs that ran
    seen_over: Int = -1  # jobs that neither waited nor ran any more, -1 before the first plan
    kept_until: F8  # (J,) seconds: how long a running job is taken to keep its hosts, inf where nobody knows
    seen_free: U8  # (W,) hosts that were free after the last plan
    free_until: F8  # (H + 1,) seconds: how long so many of the hosts that are free now can be taken


_memory_at = bundle_at(KamelotMemory)


@kernel
def _waits(state, memory, plan):
    """Whether it is too early to react; asks once to be called, because a peer keeps every request."""
    now = state.now
    if memory.reaction == 0:
        return False
    if np.isnan(memory.due):
        memory.due = now + memory.reaction
        plan.time[add(plan, CALL_AT, -1)] = memory.due
    waits = now < memory.due - TOLERANCE
    if not waits:
        memory.due = np.nan
    return waits


@kernel
def _is_as_reserved(state, memory):
    """Whether nothing has happened since the last plan but arrivals and its starts, and no job overruns."""
    over = state.nb_jobs - state.nb_queued - state.nb_running
    if over != memory.seen_over or state.nb_running != memory.seen_running:
        return False
    # Counts agree; the same hosts must be free too, and the same ends be expected.
    same = True
    for word in range(len(state.free)):
        same &= state.free[word] == memory.seen_free[word]
    for i in range(state.nb_running):
        same &= memory.kept_until[state.running[i]] == _kept_until(state, memory, i)
    return same


@kernel
def _kept_until(state, memory, i):
    """Until when (seconds) the job ``running[i]`` is taken to keep its hosts; one that should have ended, for ever."""
    end = state.expected_end[i] + memory.security_time
    return end if end > state.now else np.inf


@kernel
def _reserve_running(state, memory):
    """Begin again with what running jobs leave."""
    begin_gantt(memory, state.now, state.free)
    for i in range(state.nb_running):
        job = state.running[i]
        until = _kept_until(state, memory, i)
        memory.kept_until[job] = until
        if until < np.inf:
            memory.hosts[:] = 0
            begin = state.alloc_first[job]
            for at in range(begin, begin + state.alloc_count[job]):
                insert_interval(memory.hosts, state.interval_first[at], state.interval_last[at])
            release(memory, until, memory.hosts)
    memory.free_until[: state.nb_free + 1] = np.inf
    memory.free_until[state.nb_free + 1 :] = -np.inf


@kernel
def _reserve_waiting(state, memory, plan, candidate):
    """Reserve for waiting jobs in order, as long as one from ``queue[candidate]`` on could start now.

    Returns:
        How many start; they are in the plan.
    """
    now, queue, length = state.now, state.queue, state.nb_queued
    at, started = memory.nb_reserved, 0
    while True:
        # Jobs that cannot start now get no reservation unless a later one might start: only starts are seen.
        while candidate < length:
            wanted = state.size[queue[candidate]]
            end = now + (state.expected_runtime[queue[candidate]] + memory.security_time)
            if wanted < len(memory.free_until) and end <= memory.free_until[wanted]:
                break
            candidate += 1
        if candidate == length:
            break
        job = queue[at]
        duration = state.expected_runtime[job] + memory.security_time
        begin = reserve(memory, state.size[job], duration)
        if begin == now:
            memory.kept_until[job] = now + duration
            action, host = add(plan, START, job), next_in(memory.hosts, 0)
            while host < len(memory.hosts) << 6:
                after = next_out(memory.hosts, host)
                add_interval(plan, action, host, after - 1)
                remove_interval(plan.free, host, after - 1)
                host = next_in(memory.hosts, after)
            started += 1
        if begin < memory.free_until[1]:  # it may have taken hosts that are free now
            measure_first(memory, memory.free_until)
        at += 1
        candidate = max(candidate, at)
    memory.nb_reserved = at - started
    return started


@DECIDE.entry
def _decide_kamelot(state, facts, memory, plan):
    clear(plan, state)
    kept = _memory_at(memory)
    # With a reaction time several events share a decision; and where no waiting job fits none can start.
    i = 0
    while i < state.nb_queued and state.size[state.queue[i]] > state.nb_free:
        i += 1
    if _waits(state, kept, plan) or i == state.nb_queued:
        return DECIDED
    # Go on from the reservations of the last time, or begin again with what runs.
    if _is_as_reserved(state, kept):
        kept.begin[0] = state.now
        candidate = state.nb_queued - (state.nb_jobs - kept.seen_jobs)
    else:
        _reserve_running(state, kept)
        kept.nb_reserved = candidate = 0
    started = _reserve_waiting(state, kept, plan, candidate)
    kept.seen_jobs = state.nb_jobs
    kept.seen_running = state.nb_running + started
    kept.seen_over = state.nb_jobs - state.nb_queued - state.nb_running
    kept.seen_free[:] = plan.free
    return DECIDED


class Kamelot(CompiledPolicy):
    """OAR's conservative backfilling over hosts, in order of submission.

    Args:
        security_time: seconds by which each walltime counts as longer (OAR's SCHEDULER_JOB_SECURITY_TIME).
        reaction: seconds from an event to the decision that it causes; what happens meanwhile shares the decision.

    Raises:
        ConfigError: for a number that makes no sense.
    """

    entry = _decide_kamelot
    needs_walltime = True

    def __init__(self, security_time: float = 60.0, reaction: float = 0.0) -> None:
        for name, value in (("security_time", security_time), ("reaction", reaction)):
            if not 0 <= value < math.inf:
                raise ConfigError(f"policy kamelot: option {name}={value:g} must be finite and not negative")
        self._security_time, self._reaction = security_time, reaction

    def memory_for(self, state: ClusterState, memory: KamelotMemory | None = None) -> KamelotMemory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is None:
            return _new_memory(state, self._security_time, self._reaction)
        fits = len(memory.kept_until) >= len(state.size) and len(memory.begin) >= _nb_steps(state)
        return memory if fits else _new_memory(state, memory.security_time, memory.reaction, memory.due)


def _new_memory(state: ClusterState, security_time: float, reaction: float, due: float = math.nan) -> KamelotMemory:
    """A memory that knows no reservations, with room for every job and host of `state`."""
    gantt = new_gantt(_nb_steps(state), len(state.free))
    return KamelotMemory(
        security_time=security_time,
        reaction=reaction,
        due=due,
        kept_until=np.zeros(len(state.size)),
        seen_free=state.free.copy(),
        free_until=np.zeros(nb_hosts(state) + 1),
        **gantt.arrays(),
    )


def _nb_steps(state: ClusterState) -> int:
    """Steps that can be needed: one for now, one for the end of each job that runs or has a reservation."""
    return 1 + len(state.running) + len(state.size)
