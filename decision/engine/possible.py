"""Whether a command can be carried out now. Why not is said in Python (`decision.engine.replies`)."""

import numpy as np

from decision.jit import kernel
from decision.policies.plan import CALL_AT, KILL, REJECT, SET_PSTATE, START
from decision.state.cluster import (
    IDLE,
    PSTATE_COMPUTING,
    PSTATE_SLEEP,
    QUEUED,
    RUNNING,
    SLEEPING,
)

from .arrays import CLOCK, ENERGY_ON
from .commands import END_ELSEWHERE, FINALLY_REJECTED, NEW_REQUEST, START_ELSEWHERE


@kernel
def is_possible(state, facts, truth, sim, plan, at):
    """Whether command `at` of the plan makes sense in this state."""
    kind, job = plan.kind[at], plan.job[at]
    if kind == START:
        return state.job_state[job] == QUEUED and _can_have(state, truth, sim, plan, at, job)
    if kind == REJECT:
        return state.job_state[job] == QUEUED
    if kind == KILL:
        return first_unkillable(state, plan, at) < 0
    if kind == CALL_AT:
        return plan.time[at] > sim.real[CLOCK]
    if kind == SET_PSTATE:
        return sim.flag[ENERGY_ON] == 1 and _can_switch_all(state, facts, plan, at)
    if kind == START_ELSEWHERE:
        return state.job_state[job] == QUEUED
    if kind == END_ELSEWHERE and plan.value[at] == FINALLY_REJECTED:
        return state.job_state[job] == QUEUED
    if kind == END_ELSEWHERE:
        return state.job_state[job] == RUNNING and state.alloc_count[job] == 0
    return True


@kernel
def first_unkillable(state, plan, at):
    """The first job of a kill request that was never executed, -1 where there is none."""
    first = at
    while at < plan.count[0] and plan.kind[at] == KILL and (at == first or plan.value[at] != NEW_REQUEST):
        if state.alloc_count[plan.job[at]] == 0:
            return plan.job[at]
        at += 1
    return -1


@kernel
def _can_have(state, truth, sim, plan, at, job):
    """Whether the hosts of a start exist, are free, and are as many as the job needs."""
    hosts = 0
    for i in range(plan.begin[at], plan.end[at]):
        first, last = plan.first[i], plan.last[i]
        if first < 0 or last >= len(state.host_state) or not _all_free(state, first, last):
            return False
        if i > plan.begin[at] and first <= plan.last[i - 1]:
            return False
        hosts += last - first + 1
    return hosts == state.size[job] or (hosts > 0 and truth.moldable[sim.truth_of[job]] == 1)


@kernel
def _all_free(state, first, last):
    for word in range(first >> 6, (last >> 6) + 1):
        low = max(first - (word << 6), 0)
        high = min(last - (word << 6), 63)
        mask = (~np.uint64(0) >> np.uint64(63 - high)) & (~np.uint64(0) << np.uint64(low))
        if state.free[word] & mask != mask:
            return False
    return True


@kernel
def _can_switch_all(state, facts, plan, at):
    for i in range(plan.begin[at], plan.end[at]):
        if plan.first[i] < 0 or plan.last[i] >= len(state.host_state):
            return False
        if i > plan.begin[at] and plan.first[i] <= plan.last[i - 1]:
            return False
        for host in range(plan.first[i], plan.last[i] + 1):
            if not can_switch(state, facts, host, plan.value[at]):
                return False
    return plan.end[at] > plan.begin[at]


@kernel
def can_switch(state, facts, host, pstate):
    """Whether a host can go to a pstate: between computing ones also at work, to and from sleep only when idle."""
    if pstate < 0 or pstate >= facts.pstate_kind.shape[1]:
        return False
    kind, present = facts.pstate_kind[host, pstate], facts.pstate_kind[host, state.pstate[host]]
    if kind == PSTATE_COMPUTING and present == PSTATE_COMPUTING:
        return True
    if kind == PSTATE_COMPUTING:
        return state.host_state[host] in (SLEEPING, IDLE) and present == PSTATE_SLEEP
    return kind == PSTATE_SLEEP and present == PSTATE_COMPUTING and state.host_state[host] == IDLE
