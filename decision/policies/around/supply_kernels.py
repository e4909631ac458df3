"""Who makes way where power lacks or hosts fail, and who leaves when it is late.

A job is too late with a tolerance of a millisecond, because a peer's clock rounds and what it rounds adds up.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.policies.capacity import TOLERANCE
from decision.policies.supply_settings import Failed
from decision.state.cluster import UNAVAILABLE
from decision.state.plan_arrays import CALL_AT, KILL, REJECT, START, SUSPEND, add, put_first
from decision.state.transitions import bring_back, spare_power

_STEP = 1e-5  # seconds: a call that finds a job too late is so much after the last moment
_SOON = 1.0  # seconds: no such call is nearer, because it must reach Batsim before its time


@kernel
def some_failed(state):
    """Whether hosts are unavailable."""
    return state.nb_in_state[UNAVAILABLE] > 0


@kernel
def let_fail(state, plan, failed):
    """End the jobs that run on unavailable hosts as `failed` (Failed) says; whether there are any."""
    found = False
    for i in range(state.nb_running):
        job = state.running[i]
        if state.suspended[job] == 0 and _has_failed(state, job):
            found = True
            if failed == Failed.KILL:
                add(plan, KILL, job)
            else:
                plan.value[add(plan, SUSPEND, job)] = 1
    return found


@kernel
def _has_failed(state, job):
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            if state.host_state[host] == UNAVAILABLE:
                return True
    return False


@kernel
def runs_beyond(state, lent):
    """Whether more hosts compute than have power: that of the supply, and of so many hosts besides."""
    return state.supply < len(state.host_state) and spare_power(state) + lent < 0


@kernel
def too_late(state):
    """Which of the queue's jobs (n,) can no longer end in time."""
    queue = state.queue[: state.nb_queued]
    late = np.zeros(len(queue), np.bool_)
    for i in range(len(queue)):
        late[i] = _is_late(state, queue[i])
    return late


@kernel
def is_any_late(state):
    """Whether one of the queue's jobs can no longer end in time."""
    late = False
    for i in range(state.nb_queued):
        late |= _is_late(state, state.queue[i])
    return late


@kernel
def _is_late(state, job):
    return state.now > latest_start(state, job) + TOLERANCE


@kernel
def latest_start(state, job):
    """When (seconds) a job must start to end in time as expected; inf where it has no deadline."""
    if state.deadline[job] == 0.0:
        return np.inf
    expected = state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]
    return state.deadline[job] - expected


@kernel
def reject_hidden(state, plan, nb_hidden):
    """Bring the jobs back that are too late, and reject them before all else in the plan."""
    if nb_hidden > 0:
        bring_back(state, nb_hidden)
        put_first(plan, REJECT, state.queue[state.nb_queued - nb_hidden : state.nb_queued])


@kernel
def ask_when_late(state, plan, nb_hidden):
    """Where nothing runs and nothing starts, ask to be called when the next job that waits is too late.

    It may never start: then nothing else would happen, and the simulation could not end.
    """
    if state.nb_running > 0 or state.nb_queued == nb_hidden:
        return
    for at in range(plan.nb_actions):
        if plan.kind[at] in (START, CALL_AT):
            return
    soonest = np.inf
    for i in range(state.nb_queued):
        last = latest_start(state, state.queue[i]) + TOLERANCE
        if last >= state.now:
            soonest = min(soonest, last)
    if soonest < np.inf:
        plan.time[add(plan, CALL_AT, -1)] = max(soonest + _STEP, state.now + _SOON)


@kernel
def make_way(state, plan, lent):
    """Suspend running jobs until no more hosts compute than have power: those of least value, of equals the last.

    `lent` is how many hosts have power besides the supply.
    """
    running = state.running[: state.nb_running]
    goes = state.suspended[running] > 0
    over = -spare_power(state) - lent - np.sum(state.size[running] * goes)
    while over > 0:
        least = -1
        for i in range(len(running)):
            if not goes[i] and (least < 0 or _is_worth_less(state, running[i], running[least])):
                least = i
        if least < 0:
            raise InternalError("jobs beyond the supply of power that do not run")
        goes[least] = True
        add(plan, SUSPEND, running[least])
        over -= state.size[running[least]]


@kernel
def _is_worth_less(state, job, other):
    value = state.value[other] - state.value[job]
    return value > 0 or (value == 0 and job > other)
