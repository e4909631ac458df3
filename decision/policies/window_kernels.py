"""What is decided at an instant: whether a window is due, which jobs start, and when the next call is."""

import numpy as np

from decision.compiling.bundle import I8, bundle_at
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.placement.windows import groups_of
from decision.state.bitmap import count_hosts
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import CALL_AT, START, PlanArrays, add, clear
from decision.state.platform_facts import PlatformFacts

from .allocation import take_lowest, take_on_tree
from .capacity import TOLERANCE
from .prepared import DECIDE, DECIDED, NO_PLAN
from .window_jobs import first_of, in_order, is_due, take_hosts, taken_from, write_sequence
from .window_solvers import WindowMemory, place_window

_memory_at = bundle_at(WindowMemory)
_PRICED = Interface(int, ClusterState, PlatformFacts, WindowMemory, PlanArrays, I8)
_start_by_price = _PRICED.caller()


@kernel
def _decide(state, facts, memory, plan):
    """Fill `plan` for this instant, after all transitions of it, and say whether that is done.

    It reads `state` and never writes it.
    """
    clear(plan, state)
    now, period = state.now, memory.period
    index = int((now + TOLERANCE) / period)
    called = 0 <= memory.due_window <= index
    if called:
        memory.due_window = -1
    if state.nb_queued == 0:
        return True
    head = -1
    if is_due(now, period, index, memory.last_window, called):
        memory.last_window = index
        order = in_order(state, state.queue[: state.nb_queued], period, index)
        taken = _decide_window(state, facts, memory, plan, order, index)
        if taken < 0:
            return False
        if taken < len(order):
            head = order[taken]
    elif memory.due_window < 0:
        head = first_of(state, state.queue[: state.nb_queued], period, index + 1)
    if head >= 0 and memory.due_window < 0 and state.size[head] <= count_hosts(plan.free):
        memory.due_window = index + 1
        plan.time[add(plan, CALL_AT, -1)] = (index + 1) * period
    return True


@kernel
def _decide_window(state, facts, memory, plan, order, index):
    """Plan the starts of a window; how many jobs it takes from the front of `order`, -1 where it has failed."""
    taken, wide = taken_from(state, order, count_hosts(plan.free), memory.most_jobs)
    if wide > 0:
        jobs = np.empty(wide, np.int64)
        i = 0
        for job in order[:taken]:
            if state.size[job] > 1:
                jobs[i] = job
                i += 1
        if memory.pricer != 0:
            _start_by_price(memory.pricer, (state, facts, memory, plan, jobs))
        elif not _start_together(state, facts, memory, plan, jobs, index):
            return -1
    for job in order[:taken]:
        if state.size[job] == 1:
            take_lowest(plan, add(plan, START, job), 1)
    return taken


@_PRICED.entry
def start_priced(state, facts, memory, plan, jobs):
    """The job on most hosts first, each gets the free hosts whose cost and prices are least."""
    sizes = np.empty(len(jobs), np.int64)
    for i in range(len(jobs)):
        sizes[i] = state.size[jobs[i]]
    for i in np.argsort(-sizes, kind="mergesort"):
        take_on_tree(plan, state, facts, add(plan, START, jobs[i]), memory.prices, True)
    return len(jobs)


@kernel
def _start_together(state, facts, memory, plan, jobs, index):
    hosts = np.empty(count_hosts(plan.free), np.int64)
    write_sequence(facts, plan.free, hosts)
    groups = groups_of(facts.down, facts.switch[hosts])
    sizes = np.empty(len(jobs), np.int64)
    for i in range(len(jobs)):
        sizes[i] = state.size[jobs[i]]
    held = np.zeros((len(jobs), sizes.max()), np.int64)
    if place_window(memory.placer, (facts.down, groups, sizes, memory, index, held)) == 0:
        return False
    for i in range(len(jobs)):
        take_hosts(plan, add(plan, START, jobs[i]), hosts[held[i, : sizes[i]]])
    return True


@DECIDE.entry
def decide_by_window(state, facts, memory, plan):
    return DECIDED if _decide(state, facts, _memory_at(memory), plan) else NO_PLAN
