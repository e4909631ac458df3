"""Whether a plan can be carried out; what is impossible is said in one line, before anybody else sees it.

`first_fault` is compiled and looks at each action once; only where it finds a fault is the message put together.
"""

import math
from collections.abc import Sequence

import numpy as np

from decision.jit import kernel
from decision.model.errors import ConfigError, PolicyError
from decision.model.hosts import format_hosts
from decision.model.record import HostState
from decision.state.bitmap import has_host, insert_interval, remove_interval
from decision.state.cluster import (
    N_JOBS,
    QUEUED,
    RUNNING,
    ClusterState,
    PlatformFacts,
)
from decision.state.rules import (
    FINE,
    NO_HOST,
    NO_PSTATE,
    NOT_FREE,
    SAME_HOST,
    changes_speed_only,
    interval_fault,
    start_fault,
    switch_fault,
)

from .plan_arrays import CALL_AT, KILL, REJECT, SET_PSTATE, START, PlanArrays

# Why an action is impossible, in addition to the reasons of `decision.state.rules`
NO_JOB, NOT_WAITING, NOT_RUNNING, TWICE, TAKEN, WRONG_NUMBER, PAST = range(8, 15)


def check_plan(state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str]) -> None:
    """Refuse a plan with an impossible action; `names` are the jobs' ids by number.

    Raises:
        PolicyError: naming the time, the job and the hosts.
    """
    if plan.count[0] == 0:
        return
    fault = first_fault(state, facts, plan)
    if fault[1] != FINE:
        raise refusal(state, plan, names, fault)


def check_walltime(policy: object, job_id: str, walltime: float, where: str) -> None:
    """Refuse a job without walltime where the policy needs one; `where` it came from begins the message.

    Raises:
        ConfigError: naming place, job, field and policy.
    """
    if walltime == math.inf and getattr(policy, "needs_walltime", False):
        name = getattr(policy, "name", type(policy).__name__)
        advice = "give it one, or choose a policy that does without, such as fcfs or first-fit"
        raise ConfigError(f"{where}: job {job_id} has no 'walltime', and policy {name} needs one; {advice}")


def refusal(state: ClusterState, plan: PlanArrays, names: Sequence[str], fault: tuple[int, int, int]) -> PolicyError:
    """The error that says what `first_fault` found."""
    return PolicyError(f"t={state.now[0]:.12g} s: {_explain(state, plan, names, *fault)}")


@kernel
def first_fault(state, facts, plan):
    """The first impossible action: its index, the reason (FINE where there is none), and a host or number of hosts."""
    free = state.free.copy()  # hosts that no earlier action starts a job on or puts to sleep
    taken = np.zeros(len(free), np.uint64)  # hosts that earlier actions start jobs on, put to sleep or wake
    for at in range(plan.count[0]):
        reason, host = _fault(state, facts, plan, at, free, taken)
        if reason != FINE:
            return at, reason, host
    return -1, FINE, -1


@kernel
def _fault(state, facts, plan, at, free, taken):
    kind, job = plan.kind[at], plan.job[at]
    if kind == CALL_AT:
        return (FINE if state.now[0] < plan.time[at] < np.inf else PAST), -1
    if kind == SET_PSTATE:
        return _switch_fault(state, facts, plan, at, free, taken)
    if job < 0 or job >= state.count[N_JOBS]:
        return NO_JOB, -1
    if kind == KILL:
        return (FINE if state.job_state[job] == RUNNING else NOT_RUNNING), -1
    if state.job_state[job] != QUEUED:
        return NOT_WAITING, -1
    if _named_before(plan, at):
        return TWICE, -1
    return _start_fault(state, plan, at, free, taken) if kind == START else (FINE, -1)


@kernel
def _named_before(plan, at):
    found = False
    for i in range(at):
        found |= plan.job[i] == plan.job[at]
    return found


@kernel
def _start_fault(state, plan, at, free, taken):
    reason, host = start_fault(state, free, plan.first, plan.last, plan.begin[at], plan.end[at])
    if reason == NOT_FREE and has_host(state.free, host):
        return TAKEN, host
    if reason != FINE:
        return reason, host
    for i in range(plan.begin[at], plan.end[at]):
        remove_interval(free, plan.first[i], plan.last[i])
        insert_interval(taken, plan.first[i], plan.last[i])
    return (FINE if host == state.size[plan.job[at]] else WRONG_NUMBER), host


@kernel
def _switch_fault(state, facts, plan, at, free, taken):
    previous, pstate = -1, plan.value[at]
    for i in range(plan.begin[at], plan.end[at]):
        reason, host = interval_fault(state, plan.first[i], plan.last[i], previous)
        if reason != FINE:
            return reason, host
        for host in range(plan.first[i], plan.last[i] + 1):
            reason = switch_fault(state, facts, host, pstate)
            if reason != NO_PSTATE and not changes_speed_only(state, facts, host, pstate):
                if has_host(taken, host):
                    return TAKEN, host
                remove_interval(free, host, host)
                insert_interval(taken, host, host)
            if reason != FINE:
                return reason, host
        previous = plan.last[i]
    return (FINE if previous >= 0 else WRONG_NUMBER), 0


def _explain(state: ClusterState, plan: PlanArrays, names: Sequence[str], at: int, reason: int, host: int) -> str:
    kind, job = int(plan.kind[at]), int(plan.job[at])
    if kind == SET_PSTATE:
        return _explain_switch(state, plan, names, at, reason, host)
    if reason == PAST:
        asked = f"asks to be called at t={plan.time[at]:.12g} s"
        return f"{asked}, which is past" if plan.time[at] <= state.now[0] else f"{asked}, which is no time"
    if reason == NO_JOB:
        return f"there is no job number {job}; {int(state.count[N_JOBS])} were submitted"
    who, verb = names[job], {START: "start", REJECT: "be rejected", KILL: "be killed"}[kind]
    if reason == TWICE:
        return f"{who} is named by two actions of one plan"
    if reason in (NOT_WAITING, NOT_RUNNING):
        doing = {QUEUED: "waiting", RUNNING: "running"}.get(int(state.job_state[job]), "over")
        return f"{who} cannot {verb}: it is {doing}"
    hosts = _hosts_of(plan, at)
    if reason == WRONG_NUMBER:
        given = f"{host} given" if host == 0 else f"{host} given ({hosts})"
        return f"{who} needs {int(state.size[job])} hosts, {given}"
    return f"{who} cannot start on hosts {hosts}: {_explain_host(state, names, reason, host)}"


def _explain_switch(
    state: ClusterState, plan: PlanArrays, names: Sequence[str], at: int, reason: int, host: int
) -> str:
    pstate = int(plan.value[at])
    if reason == WRONG_NUMBER:
        return f"pstate {pstate} is set for no hosts"
    return f"hosts {_hosts_of(plan, at)} cannot go to pstate {pstate}: {_explain_host(state, names, reason, host)}"


def _explain_host(state: ClusterState, names: Sequence[str], reason: int, host: int) -> str:
    if reason == NO_HOST:
        return f"there is no host {host}, the last one is {len(state.host_state) - 1}"
    if reason == NO_PSTATE:
        return f"host {host} has no such pstate, or it only models a switch"
    if reason == SAME_HOST:
        return f"host {host} is given twice"
    if reason == TAKEN:
        return f"host {host} is taken by an earlier action of the plan"
    job, what = int(state.host_job[host]), int(state.host_state[host])
    if job >= 0:
        return f"host {host} computes {names[job]}"
    return f"host {host} is {HostState(what).name.lower().replace('_', ' ')}"


def _hosts_of(plan: PlanArrays, at: int) -> str:
    pieces = zip(plan.first[plan.begin[at] : plan.end[at]], plan.last[plan.begin[at] : plan.end[at]], strict=True)
    return format_hosts({host for first, last in pieces for host in range(first, last + 1)})
