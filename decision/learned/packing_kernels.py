"""Packing in compiled code: when there is something to choose, and what is paid."""

import numpy as np

from decision.compiling.jit import kernel
from decision.policies.capacity import TOLERANCE

from . import packing_seen as obs
from .cycles import call_at, start_at
from .kernel_interfaces import ACT, BEGIN, FOLLOW, MEASURE, OPEN, REWARD, STEP_ENDS
from .packing_seen import PackingMemory
from .progress import is_over
from .window import slot_begun

_PATIENCE = 60.0  # seconds until an idle cluster is looked at again, where there are no ticks

_LONGEST_GAP = 1024  # ticks


# --- When there is something to choose -----------------------------------------------------------------------------


@BEGIN.entry_with(PackingMemory)
def packing_begin(state, facts, memory):
    """Nothing was decided, and nothing paid for."""
    memory.nb_failed_choices = memory.any_change = memory.known_jobs = memory.changes_seen = 0
    memory.gap, memory.last_decision = 1, -1
    memory.paid = 0.0
    return 0


@OPEN.entry_with(PackingMemory)
def packing_look(state, facts, cycles, plan, memory):
    """See all that comes at one instant together, at a tick if there are ticks."""
    if cycles.next_shown < state.nb_queued:
        return 0
    if state.nb_ended > 0 or memory.known_jobs != state.nb_jobs or memory.changes_seen != state.nb_capacity_changes:
        memory.any_change = 1
        memory.known_jobs, memory.changes_seen = state.nb_jobs, state.nb_capacity_changes
    if cycles.nb_queued == 0 or not _is_due(state, cycles, plan, memory):
        return 0
    memory.nb_failed_choices = 0
    _look_at_nodes(state, cycles, memory)
    return memory.masked == 0 or _some_fit(state, cycles, memory)


@kernel
def _look_at_nodes(state, cycles, memory):
    """When jobs end by their walltimes."""
    for host in range(len(memory.requested)):
        job = state.host_job[host]
        memory.requested[host] = state.start_time[job] + state.walltime[job] if job >= 0 else cycles.until[host]


@kernel
def _is_due(state, cycles, plan, memory):
    """Whether this is the instant of a decision; between two ticks the next one is asked for."""
    tick = memory.tick
    if tick == 0.0:
        return True
    since = state.now - state.submit_time[0]
    index = np.int64((since + TOLERANCE) / tick)
    if index == memory.last_decision or since > index * tick + TOLERANCE:
        _call_at_tick(state, cycles, plan, memory, index + 1)
        return False
    memory.last_decision = index
    if memory.any_change:
        memory.any_change, memory.gap = 0, 1
    return True


@kernel
def _call_at_tick(state, cycles, plan, memory, index):
    """Ask for a tick, unless an earlier one was asked for."""
    time = state.submit_time[0] + index * memory.tick
    if cycles.call > time + TOLERANCE:
        call_at(cycles, plan, time)


@kernel
def _some_fit(state, cycles, memory):
    """Whether a job of the window could start now."""
    smallest = len(cycles.until) + 1
    for at in range(min(cycles.nb_queued, memory.window)):
        smallest = min(smallest, state.size[cycles.queue[at]])
    return smallest <= cycles.nb_free


@kernel
def _let_time_pass(state, cycles, plan, memory):
    """Jobs that wait next to free nodes are looked at again at a tick; and on an idle cluster, where nothing ends."""
    if cycles.nb_queued == 0:
        return
    if memory.tick == 0.0:
        if cycles.nb_running == 0:
            call_at(cycles, plan, state.now + _PATIENCE)
        return
    if cycles.nb_free > 0 and (memory.masked == 0 or _some_fit(state, cycles, memory)):
        _call_at_tick(state, cycles, plan, memory, memory.last_decision + memory.gap)
        if memory.doubles:
            memory.gap = min(2 * memory.gap, _LONGEST_GAP)


@ACT.entry_with(PackingMemory)
def packing_act(state, facts, cycles, plan, memory, action):
    """Start a job of the window if it fits; X, an empty slot, and a failure too many let time pass."""
    goes_on = False
    if 0 <= action < min(cycles.nb_queued, memory.window):
        if state.size[cycles.queue[action]] <= cycles.nb_free:
            memory.nb_failed_choices = 0
            _start(state, cycles, plan, memory, action)
            goes_on = cycles.nb_queued > 0 and (memory.masked == 0 or _some_fit(state, cycles, memory))
        else:
            memory.nb_failed_choices += 1
            goes_on = memory.nb_failed_choices < obs.FAILURES
    if not goes_on:
        _let_time_pass(state, cycles, plan, memory)
    return goes_on


@kernel
def _start(state, cycles, plan, memory, at):
    job, action, now = cycles.queue[at], plan.nb_actions, state.now
    start_at(state, cycles, plan, at)
    for i in range(plan.begin[action], plan.end[action]):
        if len(memory.requested) > 0:
            memory.requested[plan.first[i] : plan.last[i] + 1] = now + state.walltime[job]


# --- What is paid --------------------------------------------------------------------------------------------------


@FOLLOW.entry_with(PackingMemory)
def packing_follow(state, cycles, memory, starts):
    """The slot of a job that began by now; X where none fits."""
    window = memory.window
    slot = slot_begun(state, cycles, window, 0, starts, state.now + TOLERANCE, cycles.nb_free)
    return slot if slot >= 0 else window


@REWARD.entry_with(PackingMemory)
def packing_reward(state, facts, cycles, progress, memory, moment):
    """The sum of the three shares at the end; or else minus the idle node-time of each step, up to the last end."""
    if moment != STEP_ENDS:
        return 0.0
    over, nodes = is_over(progress), len(cycles.until)
    if progress.parameters[obs.FINAL]:
        return _share_started(progress) + _utilization(progress, nodes) + _share_left(progress) if over else 0.0
    if over:
        idle = nodes * max(progress.last_end - progress.began, 0.0) - progress.work
    else:
        idle = nodes * (state.now - progress.began) - progress.used
    owed = idle - memory.paid
    memory.paid = idle
    return -owed / (nodes * memory.longest)


@MEASURE.entry_with(PackingMemory)
def packing_measure(state, facts, cycles, progress, memory, out):
    """The three parts of the reward."""
    out[0] = _share_started(progress)
    out[1] = _utilization(progress, len(cycles.until))
    out[2] = _share_left(progress)
    return 0


@kernel
def _share_started(progress):
    return progress.nb_placed / (progress.last_row - progress.first_row)


@kernel
def _utilization(progress, nodes):
    """Node-time of all jobs that have started, up to the last end of them."""
    seconds = progress.last_end - progress.began
    return progress.work / (nodes * seconds) if seconds > 0.0 else 0.0


@kernel
def _share_left(progress):
    return 1.0 - progress.nb_steps / len(progress.actions)
