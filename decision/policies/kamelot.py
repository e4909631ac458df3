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

from decision.compiling.bundle import F8, U8, Float, Int, bundle_at
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.state.bitmap import insert_interval, next_in, next_out, remove_interval
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.plan_arrays import CALL_AT, START, add, add_interval, clear

from .capacity import TOLERANCE
from .gantt import Gantt, begin_gantt, measure_first, new_gantt, release, reserve
from .prepared import DECIDE, DECIDED, CompiledPolicy


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
def _decide(state, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    clear(plan, state)
    if _waits(state, memory, plan) or not _any_fits(state):
        return
    if _is_as_reserved(state, memory):
        memory.begin[0] = state.now
        candidate = state.nb_queued - (state.nb_jobs - memory.seen_jobs)
    else:
        _reserve_running(state, memory)
        memory.nb_reserved = candidate = 0
    started = _reserve_waiting(state, memory, plan, candidate)
    memory.seen_jobs = state.nb_jobs
    memory.seen_running = state.nb_running + started
    memory.seen_over = state.nb_jobs - state.nb_queued - state.nb_running
    memory.seen_free[:] = plan.free


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
def _any_fits(state):
    """Whether there is a waiting job for which enough hosts are free now."""
    i, length = 0, state.nb_queued
    while i < length and state.size[state.queue[i]] > state.nb_free:
        i += 1
    return i < length


@kernel
def _is_as_reserved(state, memory):
    """Whether nothing has happened since the last plan but arrivals and its starts, and no job overruns."""
    over = state.nb_jobs - state.nb_queued - state.nb_running
    if over != memory.seen_over or state.nb_running != memory.seen_running:
        return False
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
        while candidate < length and not _could_start(state, memory, queue[candidate]):
            candidate += 1
        if candidate == length:
            break
        job = queue[at]
        duration = state.expected_runtime[job] + memory.security_time
        begin = reserve(memory, state.size[job], duration)
        if begin == now:
            memory.kept_until[job] = now + duration
            _plan_start(plan, job, memory.hosts)
            started += 1
        if begin < memory.free_until[1]:  # it may have taken hosts that are free now
            measure_first(memory, memory.free_until)
        at += 1
        candidate = max(candidate, at)
    memory.nb_reserved = at - started
    return started


@kernel
def _could_start(state, memory, job):
    """Whether the reservations so far let a job start now."""
    size, duration = state.size[job], state.expected_runtime[job] + memory.security_time
    return size < len(memory.free_until) and state.now + duration <= memory.free_until[size]


@kernel
def _plan_start(plan, job, hosts):
    action, end = add(plan, START, job), len(hosts) << 6
    first = next_in(hosts, 0)
    while first < end:
        after = next_out(hosts, first)
        add_interval(plan, action, first, after - 1)
        remove_interval(plan.free, first, after - 1)
        first = next_in(hosts, after)


@DECIDE.entry
def _decide_kamelot(state, facts, memory, plan):
    _decide(state, _memory_at(memory), plan)
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
