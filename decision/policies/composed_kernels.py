"""What a composed policy decides at an instant; what few of them do is called by address."""

import numpy as np

from decision.compiling.entry import Entry
from decision.compiling.jit import kernel, without_vectors
from decision.state.plan_arrays import START, add, clear

from .allocation import plan_start, take_near, take_on_tree
from .backfill import choose_starts
from .booked import decide_booked
from .config import Allocation, Backfill, Order, PolicyConfig, Power, StartHosts, Suspend
from .conservative import choose_reserved, next_call
from .guard import ask_for_call, choose_guarded, follow_guard, guard_call
from .memory import SLOT, call_slot, memory_at
from .order import sort_queue
from .power import manage_power
from .prepared import DECIDE, DECIDED
from .suspension import suspend_for_others


@kernel
def decide(state, facts, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    clear(plan, state)
    guarded = follow_guard(state, memory) if memory.guard < np.inf else 0
    strict = memory.backfill == Backfill.CONSERVATIVE or guarded > 0
    suspends = memory.suspend != Suspend.NEVER
    if state.nb_free == 0 and not strict and memory.power == Power.NEVER and not suspends:
        return
    if memory.order == Order.FCFS and not suspends:
        queue, length = state.queue, state.nb_queued
    else:
        queue, length = memory.sorted, sort_queue(state, memory)
    if suspends and call_slot(memory.suspension_slot, (state, facts, memory, plan, length)) > 0.0:
        return
    call = np.inf
    if memory.start == StartHosts.BOOKED:
        chosen, call = 0, call_slot(memory.booked_slot, (state, facts, memory, plan, length))
    elif memory.backfill == Backfill.CONSERVATIVE:
        chosen = choose_reserved(state, facts, memory, queue, length)
        call = next_call(state, memory, chosen)
    elif guarded > 0 or memory.nb_watched > 0:
        chosen = choose_guarded(state, facts, memory, queue, length, guarded)
    else:
        chosen = choose_starts(state, facts, memory, queue, length)
    if memory.guard < np.inf:
        call = min(call, guard_call(state, memory, guarded, chosen, _note_starts(state, memory, chosen)))
    for i in range(chosen):
        if memory.network_slot != 0:
            call_slot(memory.network_slot, (state, facts, memory, plan, add(plan, START, memory.chosen[i])))
        else:
            plan_start(plan, state, facts, memory, memory.chosen[i])
    if memory.power != Power.NEVER and memory.start == StartHosts.AWAKE:
        call = min(call, manage_power(state, facts, memory, plan, queue, length, chosen, guarded))
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


@kernel
def _note_starts(state, memory, chosen):
    """Remember when the first so many chosen jobs start; returns how many hosts they leave free."""
    free = state.nb_free
    for i in range(chosen):
        memory.reserved[memory.chosen[i]] = state.now
        free -= state.size[memory.chosen[i]]
    return free


@SLOT.entry
def _take_on_tree(state, facts, memory, plan, action):
    """Give an action of the plan its hosts."""
    take_on_tree(plan, state, facts, action, memory.prices, memory.allocation == Allocation.TREE)
    return 0.0


@SLOT.entry
def _take_near(state, facts, memory, plan, action):
    """Give an action of the plan its hosts."""
    take_near(plan, state, facts, action)
    return 0.0


@SLOT.entry
def _decide_booked(state, facts, memory, plan, length):
    """As `decide_booked`, for the first so many jobs."""
    if memory.order == Order.FCFS:
        return decide_booked(state, facts, memory, plan, state.queue, length)
    return decide_booked(state, facts, memory, plan, memory.sorted, length)


@SLOT.entry
def _suspend_for_others(state, facts, memory, plan, length):
    """Whether `suspend_for_others` plans something."""
    return 1.0 * suspend_for_others(state, memory, plan, length)


@DECIDE.entry
@without_vectors
def decide_composed(state, facts, memory, plan):
    decide(state, facts, memory_at(memory), plan)
    return DECIDED


def used_slots(config: PolicyConfig) -> dict[str, Entry]:
    """What a policy does and few others do, by its field of `Memory`."""
    used = {}
    if config.allocation in (Allocation.TREE, Allocation.SLURM_TREE):
        used["network_slot"] = _take_on_tree
    if config.allocation == Allocation.HOPS:
        used["network_slot"] = _take_near
    if config.start == StartHosts.BOOKED:
        used["booked_slot"] = _decide_booked
    if config.suspend != Suspend.NEVER:
        used["suspension_slot"] = _suspend_for_others
    return used


def slots_of(config: PolicyConfig) -> dict[str, int]:
    """The addresses of what a policy does and few others do, by field of `Memory`; `decide` calls no others."""
    return {slot: entry.address for slot, entry in used_slots(config).items()}
