"""What may be done to a cluster: on which hosts a job may start, to which pstates a host may go, which jobs can be cut.

The only place that knows. A policy's plan is checked with it before anybody else sees the plan
(`decision.policies.plan_check`), and the compiled engine checks each command with it when the command's time comes
(`decision.engine.kernels.commands`).
"""

from decision.compiling.jit import kernel

from .bitmap import first_missing
from .cluster import IDLE, SLEEPING
from .platform_facts import PSTATE_COMPUTING, PSTATE_SLEEP

# Why not
FINE, NO_HOST, SAME_HOST, NOT_FREE, NO_PSTATE = range(5)


@kernel
def interval_fault(state, first, last, previous):
    """Whether hosts first .. last exist and come after host `previous`: the reason why not, and a host."""
    if first < 0 or last >= len(state.host_state):
        return NO_HOST, last if first >= 0 else first
    return (FINE if first > previous else SAME_HOST), first


@kernel
def start_fault(state, free, first, last, begin, end):
    """Whether a job may start on the hosts of the intervals ``first[i] .. last[i]``, begin <= i < end.

    `free` (W,) are the hosts that may be used. Returns the reason why not and a host, or FINE and the number of hosts.
    """
    hosts, previous = 0, -1
    for i in range(begin, end):
        reason, host = interval_fault(state, first[i], last[i], previous)
        if reason != FINE:
            return reason, host
        host = first_missing(free, first[i], last[i])
        if host >= 0:
            return NOT_FREE, host
        hosts += last[i] - first[i] + 1
        previous = last[i]
    return FINE, hosts


@kernel
def changes_speed_only(state, facts, host, pstate):
    """Whether a change to `pstate` is from one computing pstate to another, which is possible at any time."""
    present = facts.pstate_kind[host, state.pstate[host]]
    return _kind(facts, host, pstate) == PSTATE_COMPUTING and present == PSTATE_COMPUTING


@kernel
def switch_fault(state, facts, host, pstate):
    """Whether a host may go to a pstate: to another computing one always, to sleep when free, from it when asleep."""
    kind, present = _kind(facts, host, pstate), facts.pstate_kind[host, state.pstate[host]]
    if kind not in (PSTATE_COMPUTING, PSTATE_SLEEP):
        return NO_PSTATE
    if changes_speed_only(state, facts, host, pstate):
        return FINE
    if kind == PSTATE_SLEEP:
        return FINE if present == PSTATE_COMPUTING and state.host_state[host] == IDLE else NOT_FREE
    return FINE if present == PSTATE_SLEEP and state.host_state[host] in (SLEEPING, IDLE) else NOT_FREE


@kernel
def _kind(facts, host, pstate):
    """What a pstate is, -1 where the host has no such pstate."""
    return facts.pstate_kind[host, pstate] if 0 <= pstate < facts.pstate_kind.shape[1] else -1


def cannot_be_cut(job_id: str, profile: str) -> str:
    """Why a job cannot be suspended."""
    return f"job {job_id} cannot be suspended: its profile {profile!r} is not a delay, and only delays can be cut"
