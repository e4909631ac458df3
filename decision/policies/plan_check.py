"""Whether a plan can be carried out; what is impossible is said in one line, before anybody else sees it.

`first_fault` is compiled and looks at each action once; only where it finds a fault is the message put together.
"""

from collections.abc import Sequence

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import PolicyError
from decision.model.hosts import format_hosts
from decision.model.record import HostState
from decision.state.bitmap import has_host, insert_interval, remove_interval
from decision.state.cluster import (
    IDLE,
    PSTATE_COMPUTING,
    PSTATE_SLEEP,
    QUEUED,
    RUNNING,
    SLEEPING,
    SWITCHING_OFF,
    UNAVAILABLE,
    ClusterState,
    PlatformFacts,
    server_name,
)
from decision.state.plan_arrays import (
    CALL_AT,
    FINE,
    KILL,
    NO_HOST,
    NO_PSTATE,
    NOT_FREE,
    REJECT,
    SAME_HOST,
    SET_PSTATE,
    START,
    SUSPEND,
    PlanArrays,
    changes_speed_only,
    interval_fault,
    start_fault,
    switch_fault,
)

# Why an action is impossible, in addition to the reasons of `decision.state.plan_arrays`
NO_JOB, NOT_WAITING, NOT_RUNNING, TWICE, _TAKEN, WRONG_NUMBER, PAST, PART_OF_SERVER = range(8, 16)


def check_plan(state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str]) -> None:
    """Refuse a plan with an impossible action; `names` are the jobs' ids by number.

    Raises:
        PolicyError: naming the time, the job and the hosts.
    """
    if plan.nb_actions == 0:
        return
    fault = first_fault(state, facts, plan)
    if fault[1] != FINE:
        raise refusal(state, facts, plan, names, fault)


def refusal(
    state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str], fault: tuple[int, int, int]
) -> PolicyError:
    """The error that says what `first_fault` found."""
    return PolicyError(f"t={state.now:.12g} s: {_explain(state, facts, plan, names, *fault)}")


@kernel
def first_fault(state, facts, plan):
    """The first impossible action: its index, the reason (FINE where there is none), and a host or number of hosts."""
    free = state.free.copy()  # hosts that no earlier action starts a job on or puts to sleep
    taken = np.zeros(len(free), np.uint64)  # hosts that earlier actions start jobs on, put to sleep or wake
    # In the plan's order, since each action changes what the next one may take, as in the engine.
    for at in range(plan.nb_actions):
        reason, host = _fault(state, facts, plan, at, free, taken)
        if reason != FINE:
            return at, reason, host
    # Servers last: whether one is switched as a whole is known of the whole plan only.
    return _server_fault(state, facts, plan)


@kernel
def _server_fault(state, facts, plan):
    """The first switch after which some hosts of a server sleep and others do not; those that left do not count."""
    # Each host is its own server.
    if len(facts.server_begin) > len(facts.server):
        return -1, FINE, -1
    target = np.full(len(facts.server), -1, np.int32)  # pstate that the plan switches each host to
    for at in range(plan.nb_actions):
        if plan.kind[at] == SET_PSTATE:
            for i in range(plan.begin[at], plan.end[at]):
                target[plan.first[i] : plan.last[i] + 1] = plan.value[at]
    for at in range(plan.nb_actions):
        for i in range(plan.begin[at], plan.end[at] if plan.kind[at] == SET_PSTATE else plan.begin[at]):
            for host in range(plan.first[i], plan.last[i] + 1):
                other = _other_way(state, facts, target, host)
                if other >= 0:
                    return at, PART_OF_SERVER, other
    return -1, FINE, -1


@kernel
def _other_way(state, facts, target, host):
    """The first host of a switched host's server that will sleep where it does not, or the other way round; or -1."""
    server, sleeps = facts.server[host], _will_sleep(state, facts, target, host)
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        other = facts.server_host[i]
        # A host that left takes no part in switching, and cannot be asked to.
        away = state.host_state[other] == UNAVAILABLE and state.host_job[other] < 0
        if not away and _will_sleep(state, facts, target, other) != sleeps:
            return other
    return -1


@kernel
def _will_sleep(state, facts, target, host):
    """Whether a host sleeps, or is on its way to, once the plan is carried out."""
    if target[host] >= 0:
        return facts.pstate_kind[host, target[host]] != PSTATE_COMPUTING
    activity = state.host_state[host]
    asleep = facts.pstate_kind[host, state.pstate[host]] == PSTATE_SLEEP
    return activity in (SLEEPING, SWITCHING_OFF) or (activity == IDLE and asleep)


@kernel
def _fault(state, facts, plan, at, free, taken):
    kind, job = plan.kind[at], plan.job[at]
    # Not a job's action, so before any look at the job. Batsim refuses calls that are not after now.
    if kind == CALL_AT:
        return (FINE if state.now < plan.time[at] < np.inf else PAST), -1
    if kind == SET_PSTATE:
        return _switch_fault(state, facts, plan, at, free, taken)
    if job < 0 or job >= state.nb_jobs:
        return NO_JOB, -1
    if kind == KILL:
        return (FINE if state.job_state[job] == RUNNING else NOT_RUNNING), -1
    if kind == SUSPEND and (state.job_state[job] != RUNNING or state.suspended[job]):
        return NOT_RUNNING, -1
    if kind == SUSPEND:
        return (TWICE if _named_before(plan, at) else FINE), -1
    if state.job_state[job] != QUEUED:
        return NOT_WAITING, -1
    if _named_before(plan, at):
        return TWICE, -1
    return _start_fault(state, plan, at, free, taken) if kind == START else (FINE, -1)


@kernel
def _named_before(plan, at):
    named = False
    for i in range(at):
        named |= plan.job[i] == plan.job[at]
    return named


@kernel
def _start_fault(state, plan, at, free, taken):
    reason, host = start_fault(state, free, plan.first, plan.last, plan.begin[at], plan.end[at])
    # Free for the cluster, but not for this plan any more: another message.
    if reason == NOT_FREE and has_host(state.free, host):
        return _TAKEN, host
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
            # A change of speed leaves the host where it is, free or computing.
            if reason != NO_PSTATE and not changes_speed_only(state, facts, host, pstate):
                if has_host(taken, host):
                    return _TAKEN, host
                remove_interval(free, host, host)
                insert_interval(taken, host, host)
            if reason != FINE:
                return reason, host
        previous = plan.last[i]
    return (FINE if previous >= 0 else WRONG_NUMBER), 0


def _explain(
    state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str], at: int, reason: int, host: int
) -> str:
    kind, job = int(plan.kind[at]), int(plan.job[at])
    if kind == SET_PSTATE:
        return _explain_switch(state, facts, plan, names, at, reason, host)
    if reason == PAST:
        asked = f"asks to be called at t={plan.time[at]:.12g} s"
        return f"{asked}, which is past" if plan.time[at] <= state.now else f"{asked}, which is not a time"
    if reason == NO_JOB:
        return f"there is no job number {job}; {int(state.nb_jobs)} were submitted"
    job_name = names[job]
    verb = {START: "start", REJECT: "be rejected", KILL: "be killed", SUSPEND: "be suspended"}[kind]
    if reason == TWICE:
        return f"{job_name} is named by two actions of one plan"
    if reason in (NOT_WAITING, NOT_RUNNING):
        doing = {QUEUED: "waiting", RUNNING: "running"}.get(int(state.job_state[job]), "over")
        doing = "being suspended" if kind == SUSPEND and doing == "running" else doing
        return f"{job_name} cannot {verb}: it is {doing}"
    hosts = _hosts_of(plan, at)
    if reason == WRONG_NUMBER:
        given = f"{host} given" if host == 0 else f"{host} given ({hosts})"
        return f"{job_name} needs {int(state.size[job])} hosts, {given}"
    return f"{job_name} cannot start on hosts {hosts}: {_explain_host(state, facts, names, reason, host)}"


def _explain_switch(
    state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str], at: int, reason: int, host: int
) -> str:
    pstate = int(plan.value[at])
    if reason == WRONG_NUMBER:
        return f"pstate {pstate} is set for no hosts"
    starts = _job_given(plan, host) if reason in (_TAKEN, PART_OF_SERVER) else -1
    if starts >= 0 and _server_of(facts, host):
        why = f"{_host_text(facts, host)} is given to {names[starts]} by the plan"
    else:
        why = _explain_host(state, facts, names, reason, host)
    return f"hosts {_hosts_of(plan, at)} cannot go to pstate {pstate}: {why}"


def _explain_host(state: ClusterState, facts: PlatformFacts, names: Sequence[str], reason: int, host: int) -> str:
    if reason == NO_HOST:
        return f"there is no host {host}, the last one is {len(state.host_state) - 1}"
    host_name = _host_text(facts, host)
    if reason == NO_PSTATE:
        return f"{host_name} has no such pstate, or it only models a switch"
    if reason == SAME_HOST:
        return f"{host_name} is given twice"
    if reason == _TAKEN:
        return f"{host_name} is taken by an earlier action of the plan"
    job, activity = int(state.host_job[host]), int(state.host_state[host])
    if job >= 0:
        return f"{host_name} computes {names[job]}"
    text = f"{host_name} is {HostState(activity).name.lower().replace('_', ' ')}"
    return f"{text} and would stay so; a server is switched as a whole" if reason == PART_OF_SERVER else text


def _host_text(facts: PlatformFacts, host: int) -> str:
    server = _server_of(facts, host)
    return f"host {host} of server {server}" if server else f"host {host}"


def _server_of(facts: PlatformFacts, host: int) -> str:
    """The name of a host's server, empty where it has none."""
    return server_name(facts, int(facts.server[host]))


def _job_given(plan: PlanArrays, host: int) -> int:
    """The job that the plan starts on a host, -1 for none."""
    for at in range(plan.nb_actions):
        pieces = zip(plan.first[plan.begin[at] : plan.end[at]], plan.last[plan.begin[at] : plan.end[at]], strict=True)
        if plan.kind[at] == START and any(first <= host <= last for first, last in pieces):
            return int(plan.job[at])
    return -1


def _hosts_of(plan: PlanArrays, at: int) -> str:
    pieces = zip(plan.first[plan.begin[at] : plan.end[at]], plan.last[plan.begin[at] : plan.end[at]], strict=True)
    return format_hosts({host for first, last in pieces for host in range(first, last + 1)})
