"""Any policy under a guard: what it plans is carried out only where it delays no guarded job (`guard`)."""

import numpy as np

from decision.compiling.jit import kernel
from decision.model.platform import Platform
from decision.policies.allocation import take_lowest
from decision.policies.backfill import take_due
from decision.policies.guard import (
    GuardLimit,
    ask_for_call,
    follow_guard,
    guard_call,
    harms_watched,
    is_harmless,
    reserve_guarded,
    switch_times,
    watch_start,
)
from decision.policies.memory import Memory, grown_memory, memory_at, new_memory, note_decision
from decision.policies.options import PolicyConfig, Power
from decision.policies.policy import Policy
from decision.policies.power import wake_lowest
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.profile import add_free
from decision.policies.traits import Traits
from decision.state.bitmap import count_hosts, remove_interval
from decision.state.cluster import PSTATE_SLEEP, SLEEPING, ClusterState
from decision.state.plan_arrays import REJECT, SET_PSTATE, START, add, keep_only

from . import AroundPolicy, ask_inner, own_memory


@DECIDE.entry
def _decide_guarded(state, facts, memory, plan):
    # The policy plans as if there were no guard; then its plan is cut down to what delays no guarded job.
    if not ask_inner(memory, facts, plan):
        return NO_PLAN
    guard_plan(state, facts, memory_at(own_memory(memory)), plan)
    return DECIDED


class GuardedPolicy(AroundPolicy):
    """Another policy, what it plans being carried out only where it delays no guarded job.

    While a guarded job waits, hosts that sleep are woken and none is put to sleep.

    Args:
        policy: any.
        limit: how long a job may wait before it is guarded.
        name: for messages.
    """

    entry = _decide_guarded

    def __init__(self, policy: Policy, limit: GuardLimit, name: str = "") -> None:
        super().__init__(policy, name)
        # With a power slot, so that hosts which the policy puts to sleep count as capacity (`profile.has_sleepers`).
        self._config = PolicyConfig(power=int(Power.IDLE_TIMEOUT), **limit._asdict())

    @property
    def traits(self) -> Traits:
        """Those of the policy in it, and reservations need walltimes."""
        return super().traits._replace(needs_walltime=True)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        super().reset(platform, seed)
        wake, doze = switch_times(platform, 0.0)
        self._config = self._config._replace(wake_time=wake, doze_time=doze)

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """The guard's own memory, with room for all of `state`; an empty one where there is none yet."""
        return new_memory(state, self._config) if memory is None else grown_memory(memory, state, self._config)

    def __repr__(self) -> str:
        return f"<policy {self.name}, guarded>"


@kernel
def guard_plan(state, facts, memory, plan):
    """Take out of a plan that can be carried out what delays guarded jobs, and add the starts that are due.

    Hosts that starts would have taken which were taken out go to others.
    """
    guarded = follow_guard(state, memory)
    if guarded > 0 or memory.nb_watched > 0:
        reserve_guarded(state, facts, memory, guarded)
        # Due starts have their hosts in the profile already, so that nothing of the plan may take them.
        due = take_due(state, memory, state.queue, guarded)
        for i in range(due):
            watch_start(state, memory, memory.chosen[i])
        stays, refused = np.ones(plan.nb_actions, np.bool_), False
        for at in range(len(stays)):
            stays[at] = _may_stay(state, facts, memory, plan, at)
            refused |= plan.kind[at] == START and not stays[at]
        keep_only(plan, stays)
        for i in range(due):
            job = memory.chosen[i]
            if _starts(plan, job):
                continue
            # The profile has hosts for it, but others may have booked some of them. Who did gets them back once the job
            # has ended; jobs behind the guarded ones leave them alone.
            unbooked = plan.free.copy()
            if count_hosts(plan.free) < state.size[job]:
                plan.free[:] = state.free
                for at in range(plan.nb_actions):
                    for k in range(plan.begin[at], plan.end[at]):
                        remove_interval(plan.free, plan.first[k], plan.last[k])
            take_lowest(plan, add(plan, START, job), state.size[job])
            plan.free[:] &= unbooked
        # Hosts of refused starts would idle until the policy thinks otherwise, which it has no reason to: jobs that
        # delay nobody get them, in order of submission.
        free = count_hosts(plan.free) if refused else 0
        for i in range(state.nb_queued):
            job = state.queue[i]
            if free == 0:
                break
            size = state.size[job]
            if job < memory.nb_guarded or size > free or harms_watched(state, memory, job) or _starts(plan, job):
                continue
            if is_harmless(state, memory, job):
                watch_start(state, memory, job)
                add_free(memory, state.now, state.now + state.expected_runtime[job], -size)
                memory.reserved[job] = state.now
                take_lowest(plan, add(plan, START, job), size)
                free -= size
    chosen, free, switches = 0, state.nb_free, False
    for at in range(plan.nb_actions):
        switches |= plan.kind[at] == SET_PSTATE
        if plan.kind[at] == START:
            memory.reserved[plan.job[at]] = state.now
            free -= state.size[plan.job[at]]
            chosen += 1
    if guarded > 0:
        note_decision(state, memory, chosen)
        memory.kept = 1
        # The inner policy does not know for whom hosts are needed; all that sleep are woken, unless it switches some
        # itself.
        if state.nb_in_state[SLEEPING] > 0 and not switches:
            wake_lowest(state, facts, plan, state.nb_in_state[SLEEPING])
    call = guard_call(state, memory, guarded, 0, free)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


@kernel
def _may_stay(state, facts, memory, plan, at):
    """Whether an action delays no guarded job; a start that stays is entered into the profile."""
    kind, job, now = plan.kind[at], plan.job[at], state.now
    if kind == SET_PSTATE:
        awake = facts.pstate_kind[plan.first[plan.begin[at]], plan.value[at]] != PSTATE_SLEEP
        return awake or state.nb_queued == 0 or state.queue[0] >= memory.nb_guarded
    if kind != START:
        return True
    exempt = job < memory.nb_guarded
    if exempt and memory.reserved[job] <= now:  # what is due is in the profile already
        return True
    if not exempt:
        memory.reserved[job] = np.inf  # it was to start before, and what is around the guard left it out
    begin, end, size = memory.reserved[job], memory.reserved[job] + state.expected_runtime[job], state.size[job]
    # Taken out and put back: a job must not stand in its own way.
    if begin < np.inf:
        add_free(memory, begin, end, size)
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
    for at in range(plan.nb_actions):
        found |= plan.job[at] == job and plan.kind[at] in (START, REJECT)
    return found
