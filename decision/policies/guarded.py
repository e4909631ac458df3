"""Any policy under a guard: what it plans is carried out only where it delays no guarded job (`guard`)."""

import numpy as np

from decision.jit import kernel
from decision.model.platform import Platform
from decision.state.bitmap import insert_interval
from decision.state.cluster import N_FREE, N_QUEUED, N_SLEEPING, PSTATE_SLEEP, ClusterState
from decision.state.plan_arrays import REJECT, SET_PSTATE, START, add
from decision.state.view import ClusterView

from .allocation import take_lowest
from .around import AroundPolicy
from .config import PolicyConfig, Power
from .conservative import take_due
from .guard import ask_for_call, follow_guard, guard_call, is_harmless, note_late, reserve_guarded, switch_times
from .memory import GUARDED, KEPT, Memory, config_in, grown_memory, new_memory, note_decision
from .policy import Plan, Policy
from .profile import add_free
from .servers import wake_lowest
from .traits import Traits
from .watch import harms_watched, watch_start


class GuardedPolicy(AroundPolicy):
    """Another policy, what it plans being carried out only where it delays no guarded job.

    While a guarded job waits, hosts that sleep are woken and none is put to sleep.

    Args:
        policy: any.
        guard: seconds, or AUTO.
        name: for messages.
    """

    def __init__(self, policy: Policy, guard: float, name: str = "") -> None:
        super().__init__(policy, name)
        self._config = PolicyConfig(power=int(Power.IDLE_TIMEOUT), guard=guard)
        self._memory: Memory | None = None

    @property
    def traits(self) -> Traits:
        """Reservations need walltimes."""
        return super().traits._replace(needs_walltime=True)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        self.policy.reset(platform, seed)
        wake, doze = switch_times(platform, 0.0)
        self._config = self._config._replace(wake_time=wake, doze_time=doze)
        self._memory = None

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """The guard's own memory, with room for all of `state`; an empty one where there is none yet."""
        return new_memory(state, self._config) if memory is None else grown_memory(memory, state, self._config)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`."""
        self.policy.decide(cluster, plan)
        self._memory = self.memory_for(cluster.arrays, self._memory)
        guard_plan(cluster.arrays, cluster.facts, self._memory, plan.arrays)

    def __repr__(self) -> str:
        return f"<policy {self.name}, guarded>"


@kernel
def guard_plan(state, facts, memory, plan):
    """Take out of a plan that can be carried out what delays guarded jobs, and add the starts that are due."""
    config = config_in(memory)
    guarded = follow_guard(state, config, memory)
    if guarded > 0 or memory.watch_count[0] > 0:
        reserve_guarded(state, facts, config, memory, guarded)
        due = take_due(state, memory, state.queue, guarded)
        note_late(state, memory, due)
        for i in range(due):
            watch_start(state, memory, memory.chosen[i])
        _keep_what_may_stay(state, facts, memory, plan)
        for i in range(due):
            if not _starts(plan, memory.chosen[i]):
                take_lowest(plan, add(plan, START, memory.chosen[i]), state.size[memory.chosen[i]])
    chosen, free = _note_starts(state, memory, plan)
    if guarded > 0:
        note_decision(state, memory, chosen)
        memory.counts[KEPT] = 1
        if state.count[N_SLEEPING] > 0 and not _switches(plan):
            wake_lowest(state, facts, plan, state.count[N_SLEEPING])
    call = guard_call(state, memory, guarded, 0, free)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


@kernel
def _keep_what_may_stay(state, facts, memory, plan):
    kept = 0
    for at in range(plan.count[0]):
        if _may_stay(state, facts, memory, plan, at):
            for column in (plan.job, plan.value, plan.begin, plan.end):
                column[kept] = column[at]
            plan.kind[kept] = plan.kind[at]
            plan.time[kept] = plan.time[at]
            kept += 1
        else:
            for i in range(plan.begin[at], plan.end[at]):
                insert_interval(plan.free, plan.first[i], plan.last[i])
    plan.count[0] = kept


@kernel
def _may_stay(state, facts, memory, plan, at):
    """Whether an action delays no guarded job; a start that stays is entered into the profile."""
    kind, job, now = plan.kind[at], plan.job[at], state.now[0]
    if kind == SET_PSTATE:
        awake = facts.pstate_kind[plan.first[plan.begin[at]], plan.value[at]] != PSTATE_SLEEP
        return awake or state.count[N_QUEUED] == 0 or state.queue[0] >= memory.counts[GUARDED]
    if kind != START or memory.reserved[job] <= now:  # what is due is in the profile already
        return True
    begin, end, size = memory.reserved[job], memory.reserved[job] + state.expected_runtime[job], state.size[job]
    if begin < np.inf:
        add_free(memory, begin, end, size)
    exempt = job < memory.counts[GUARDED]
    stays = is_harmless(state, memory, job) and (exempt or not harms_watched(state, memory, job))
    if stays:
        watch_start(state, memory, job)
        add_free(memory, now, now + state.expected_runtime[job], -size)
        memory.reserved[job] = now
    elif begin < np.inf:
        add_free(memory, begin, end, -size)
    return stays


@kernel
def _starts(plan, job):
    """Whether a plan starts or rejects a job."""
    found = False
    for at in range(plan.count[0]):
        found |= plan.job[at] == job and plan.kind[at] in (START, REJECT)
    return found


@kernel
def _switches(plan):
    """Whether a plan switches hosts."""
    found = False
    for at in range(plan.count[0]):
        found |= plan.kind[at] == SET_PSTATE
    return found


@kernel
def _note_starts(state, memory, plan):
    """How many jobs the plan starts, and how many hosts it leaves free."""
    chosen, free = 0, state.count[N_FREE]
    for at in range(plan.count[0]):
        if plan.kind[at] == START:
            memory.reserved[plan.job[at]] = state.now[0]
            free -= state.size[plan.job[at]]
            chosen += 1
    return chosen, free
