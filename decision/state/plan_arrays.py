"""What a policy decides: a plan, as arrays that kernels fill and drivers carry out; and whether it may be done.

A plan is a list of actions in the order in which they are carried out. Host sets are intervals in a pool of the
plan, so that writing a plan allocates nothing.

Here alone is known on which hosts a job may start, to which pstates a host may go, and which jobs can be cut. A
policy's plan is checked with it before anybody else sees the plan (`decision.policies.prepared`), and the compiled
engine checks each command with it when the command's time comes (`decision.engine.kernels.commands`).
"""

import numpy as np

from decision.compiling.bundle import F8, I1, I4, U8, Bundle, Int
from decision.compiling.jit import kernel
from decision.model.errors import InternalError

from .bitmap import first_missing, insert_interval
from .cluster import COMPUTING, IDLE, PSTATE_COMPUTING, PSTATE_SLEEP, SLEEPING, ClusterState

# Kinds of action
START = 0  # job on hosts
REJECT = 1  # job
KILL = 2  # job
SET_PSTATE = 3  # hosts to pstate `value`
CALL_AT = 4  # be asked again at `time`
SUSPEND = 5  # job: it is killed, and what is left of it is submitted again


class PlanArrays(Bundle):
    """What a policy decides; room for A actions and I intervals."""

    nb_actions: Int
    nb_intervals: Int  # of all actions
    kind: I1  # (A,) START, REJECT, ...
    job: I4  # (A,) number of the job, -1 where none
    time: F8  # (A,) seconds, CALL_AT only
    value: I4  # (A,) pstate, SET_PSTATE only
    begin: I4  # (A,) first interval of the hosts
    end: I4  # (A,) one past the last
    first: I4  # (I,) first host of an interval
    last: I4  # (I,) last host of it
    free: U8  # (W,) u8 bitmap: hosts still free after the plan's starts; `clear` copies the state's


def new_plan(state: ClusterState, nb_actions: int = 0, nb_intervals: int = 0) -> PlanArrays:
    """An empty plan with room for every job and host of `state`, and at least so many actions and intervals."""
    jobs, hosts = len(state.size), len(state.host_state)
    # One action for each job and some for each host are room for nearly all plans; a longer one is given as such.
    room = max(nb_actions, jobs + 4 * hosts + 16)
    pool = max(nb_intervals, 4 * hosts + 16)
    return PlanArrays(
        kind=np.zeros(room, np.int8),
        job=np.zeros(room, np.int32),
        time=np.zeros(room),
        value=np.zeros(room, np.int32),
        begin=np.zeros(room, np.int32),
        end=np.zeros(room, np.int32),
        first=np.zeros(pool, np.int32),
        last=np.zeros(pool, np.int32),
        free=state.free.copy(),
    )


def grown_plan(plan: PlanArrays, state: ClusterState) -> PlanArrays:
    """The same plan with room for every job of `state`."""
    longer = new_plan(state, len(plan.kind), len(plan.first))
    for name, array in plan.arrays().items():
        longer.arrays()[name][tuple(map(slice, array.shape))] = array
    return longer


@kernel
def clear(plan, state):
    """Empty the plan; its free hosts are the state's."""
    plan.nb_actions = 0
    plan.nb_intervals = 0
    for word in range(len(plan.free)):
        plan.free[word] = state.free[word]


@kernel
def add(plan, kind, job):
    """Append an action without hosts; returns its index."""
    at = plan.nb_actions
    if at >= len(plan.kind):
        raise InternalError("the plan has no room for another action")
    plan.kind[at] = kind
    plan.job[at] = job
    plan.value[at] = 0
    plan.begin[at] = plan.nb_intervals
    plan.end[at] = plan.nb_intervals
    plan.nb_actions = at + 1
    return at


@kernel
def put_first(plan, kind, jobs):
    """Put an action of this kind for each of `jobs` (n,) before all others."""
    count, more = plan.nb_actions, len(jobs)
    for _ in range(more):
        add(plan, kind, 0)
    # From the end, or actions would be written over before they have moved.
    for at in range(count - 1, -1, -1):
        for column in (plan.job, plan.value, plan.begin, plan.end):
            column[at + more] = column[at]
        plan.kind[at + more] = plan.kind[at]
        plan.time[at + more] = plan.time[at]
    for at in range(more):
        plan.kind[at] = kind
        plan.job[at] = jobs[at]
        for column in (plan.value, plan.begin, plan.end):
            column[at] = 0


@kernel
def keep_only(plan, stays):
    """Leave out the actions that do not stay, by `stays` (n,) of all n; their hosts are free again in the plan."""
    kept = 0
    for at in range(plan.nb_actions):
        if stays[at]:
            for column in (plan.job, plan.value, plan.begin, plan.end):
                column[kept] = column[at]
            plan.kind[kept] = plan.kind[at]
            plan.time[kept] = plan.time[at]
            kept += 1
        else:
            for i in range(plan.begin[at], plan.end[at]):
                insert_interval(plan.free, plan.first[i], plan.last[i])
    plan.nb_actions = kept


@kernel
def add_interval(plan, action, first, last):
    """Give hosts first..last to the plan's last action; ascending order, adjacent intervals are merged."""
    at = plan.nb_intervals
    if at > plan.begin[action] and plan.last[at - 1] == first - 1:
        plan.last[at - 1] = last
        return
    if at >= len(plan.first):
        raise InternalError("the plan has no room for another interval of hosts")
    plan.first[at] = first
    plan.last[at] = last
    plan.nb_intervals = at + 1
    plan.end[action] = at + 1


# --- Whether it may be done ------------------------------------------------------------------------------------------

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

    `free` (W,) are the hosts that may be used; where jobs share hosts so may those that compute. Returns the reason why
    not and a host, or FINE and the number of hosts.
    """
    hosts, previous = 0, -1
    for i in range(begin, end):
        reason, host = interval_fault(state, first[i], last[i], previous)
        if reason != FINE:
            return reason, host
        host = first_missing(free, first[i], last[i])
        while host >= 0:
            if state.shares == 0 or state.host_state[host] != COMPUTING:
                return NOT_FREE, host
            host = first_missing(free, host + 1, last[i]) if host < last[i] else -1
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
    # A host that wakes or falls asleep is in a virtual pstate, from which no switch begins.
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
