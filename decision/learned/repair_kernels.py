"""What a policy that puts jobs back into a window sees, does and is paid for, compiled."""

import numpy as np

from decision.compiling.bundle import I8, Bundle, Float, I8x2, Int
from decision.compiling.jit import kernel
from decision.placement.cost import text_cost
from decision.placement.repair import see_entries
from decision.placement.windows import groups_of, worth
from decision.policies.capacity import TOLERANCE
from decision.policies.window_jobs import first_of, in_order, is_due, take_hosts, taken_from, write_sequence
from decision.state.plan_arrays import START, add

from .cycles import call_at, note_start, place_in_queue, start_at
from .kernel_interfaces import ACT, BEGIN, MEASURE, OBSERVE, OPEN, REWARD


class RepairMemory(Bundle):
    """The encoder as numbers, and the present window. H hosts."""

    most_seen: Int  # entries that are seen
    most_jobs: Int  # on more than one host, at most in a window
    pays_each: Int  # 1 where each job is paid for when it is placed
    period: Float  # seconds
    last_window: Int = -1  # number of the last window that was decided, -1 for none
    due_window: Int = -1  # number of the window that was called for, -1 for none
    nb_left: Int  # hosts of the sequence that no job of this window has
    nb_wide: Int  # jobs on more than one host of this window
    at: Int  # which of them is next
    nb_single: Int  # jobs on one host
    owed: Float  # hops of the windows that were not paid for yet
    cost: Float  # hops of this window so far
    nb_windows: Float  # with a job on more than one host
    costs: Float  # hops of them all
    jobs: I8  # (jobs,) of the window, on more than one host, most first
    hosts: I8  # (H,) of the sequence that no job of the window has, from left to right
    groups: I8x2  # (L - 1, at least S) the switches above each lowest switch
    on: I8  # (H,) zeros, scratch
    own: I8  # (H,) scratch
    switches: I8  # (H,) scratch


@BEGIN.entry_with(RepairMemory)
def repair_begin(state, facts, memory):
    """No window was decided."""
    switches = facts.switch.max() + 1
    memory.groups[:, :switches] = groups_of(facts.down, np.arange(switches))
    memory.last_window = memory.due_window = -1
    memory.owed = memory.cost = memory.nb_windows = memory.costs = 0.0
    return 0


@OPEN.entry_with(RepairMemory)
def repair_open(state, facts, cycles, plan, memory):
    """Take the jobs of a window, if one is due; else ask for the next one, if a job could be in it.

    Nothing is done before the last arrival of an instant, because that is in a window which is due then.
    """
    period, now = memory.period, state.now
    if cycles.next_shown < state.nb_queued:
        return 0
    index = int((now + TOLERANCE) / period)
    called = 0 <= memory.due_window <= index
    if called:
        memory.due_window = -1
    if cycles.nb_queued == 0:
        return 0
    if not is_due(now, period, index, memory.last_window, called):
        _ask_for_next(state, cycles, plan, memory, index)
        return 0
    memory.last_window = index
    order = in_order(state, cycles.queue[: cycles.nb_queued], period, index)
    taken, wide = taken_from(state, order, cycles.nb_free, memory.most_jobs)
    memory.nb_single = taken - wide
    if wide == 0:
        _end_window(state, cycles, plan, memory)
        return 0
    _prepare(state, facts, plan, memory, order[:taken], wide)
    return 1


@kernel
def _ask_for_next(state, cycles, plan, memory, index):
    """Ask for the next window, unless that was done, if the first job that waits would fit now."""
    if cycles.nb_queued == 0 or memory.due_window >= 0:
        return
    period = memory.period
    head = first_of(state, cycles.queue[: cycles.nb_queued], period, index + 1)
    if state.size[head] <= cycles.nb_free:
        memory.due_window = index + 1
        call_at(cycles, plan, (index + 1) * period)


@kernel
def _prepare(state, facts, plan, memory, order, wide):
    """The window's jobs, the one on most hosts first, and the sequence."""
    jobs = memory.jobs
    memory.nb_wide, memory.at = wide, 0
    memory.nb_left = write_sequence(facts, plan.free, memory.hosts)
    memory.cost = 0.0
    placed = 0
    for job in order:
        if state.size[job] == 1:
            continue
        at = placed
        while at > 0 and state.size[jobs[at - 1]] < state.size[job]:
            jobs[at] = jobs[at - 1]
            at -= 1
        jobs[at] = job
        placed += 1


@ACT.entry_with(RepairMemory)
def repair_act(state, facts, cycles, plan, memory, action):
    """Place the next job of the window from an entry on."""
    job = memory.jobs[memory.at]
    begin, size = min(max(action, 0), min(memory.nb_left, memory.most_seen) - 1), state.size[job]
    own = _hosts_from(memory, begin, size)
    start = add(plan, START, job)
    take_hosts(plan, start, own)
    note_start(state, cycles, plan, place_in_queue(cycles, job), start)
    squares = worth(memory.groups, memory.on, _switches_of(facts, own, memory.switches)) * size
    cost = text_cost(len(facts.down), size, squares)
    memory.cost += cost
    memory.at += 1
    if memory.pays_each:
        memory.owed += cost
    if memory.at < memory.nb_wide:
        _take_out(memory, begin, size)
        return 1
    if not memory.pays_each:
        memory.owed += memory.cost
    memory.costs += memory.cost
    memory.nb_windows += 1
    _end_window(state, cycles, plan, memory)
    return 0


@kernel
def _hosts_from(memory, begin, size):
    """The next `size` hosts of the sequence from number `begin` on, with wrap-around, the first of the sequence first;
    in scratch memory."""
    hosts, own, left = memory.hosts, memory.own[:size], memory.nb_left
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped):
        own[i] = hosts[i]
    for i in range(wrapped, size):
        own[i] = hosts[begin + i - wrapped]
    return own


@kernel
def _take_out(memory, begin, size):
    """What `_hosts_from` gives leaves the sequence."""
    hosts, left = memory.hosts, memory.nb_left
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped, begin):
        hosts[i - wrapped] = hosts[i]
    for i in range(begin + size, left):
        hosts[i - size] = hosts[i]
    memory.nb_left = left - size


@kernel
def _switches_of(facts, hosts, out):
    """The lowest switches of the hosts (n,), written into `out` (at least n,)."""
    for i in range(len(hosts)):
        out[i] = facts.switch[hosts[i]]
    return out[: len(hosts)]


@kernel
def _end_window(state, cycles, plan, memory):
    """Jobs on one host get the lowest ones that are left; they are the first of those that the window has left."""
    period, index = memory.period, memory.last_window
    if memory.nb_single > 0:
        order = in_order(state, cycles.queue[: cycles.nb_queued], period, index)
        for job in order[: memory.nb_single]:
            start_at(state, cycles, plan, place_in_queue(cycles, job))
    _ask_for_next(state, cycles, plan, memory, index)


@OBSERVE.entry_with(RepairMemory)
def repair_observe(state, facts, cycles, plan, memory, observation, mask):
    """What `decision.placement.repair` lets a network see; nothing where no window is open."""
    shown = 0
    if memory.at >= memory.nb_wide:
        observation[:] = 0.0
    else:
        others = 0
        for job in memory.jobs[memory.at + 1 : memory.nb_wide]:
            others += state.size[job]
        size = state.size[memory.jobs[memory.at]]
        entries = min(memory.nb_left, memory.most_seen)
        seen = _switches_of(facts, memory.hosts[:entries], memory.switches)
        shown = see_entries(facts.down, memory.groups, seen, size, others, observation)
    for action in range(len(mask)):
        mask[action] = action < max(shown, 1)
    return 0


@REWARD.entry_with(RepairMemory)
def repair_reward(state, facts, cycles, progress, memory, moment):
    """Minus the hops of a window, when its last job is placed."""
    owed = memory.owed
    memory.owed = 0.0
    return -owed


@MEASURE.entry_with(RepairMemory)
def repair_measure(state, facts, cycles, progress, memory, out):
    """Hops of a window."""
    out[0] = memory.costs / max(memory.nb_windows, 1.0)
    return 0
