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
    number = memory.number
    number[obs.FAILED_CHOICES] = number[obs.ANY_CHANGE] = number[obs.KNOWN_JOBS] = number[obs.SWITCHES] = 0
    number[obs.GAP], number[obs.LAST_DECISION] = 1, -1
    memory.seconds[obs.PAID] = 0.0
    return 0


@OPEN.entry_with(PackingMemory)
def packing_look(state, facts, cycles, plan, memory):
    """See all that comes at one instant together, at a tick if there are ticks."""
    number = memory.number
    if cycles.next_shown < state.nb_queued:
        return 0
    if (
        state.nb_ended > 0
        or number[obs.KNOWN_JOBS] != state.nb_jobs
        or number[obs.SWITCHES] != state.nb_capacity_changes
    ):
        number[obs.ANY_CHANGE] = 1
        number[obs.KNOWN_JOBS], number[obs.SWITCHES] = state.nb_jobs, state.nb_capacity_changes
    if cycles.nb_queued == 0 or not _is_due(state, cycles, plan, memory):
        return 0
    number[obs.FAILED_CHOICES] = 0
    _look_at_nodes(state, cycles, memory)
    return number[obs.MASKED] == 0 or _some_fit(state, cycles, memory)


@kernel
def _look_at_nodes(state, cycles, memory):
    """When jobs end by their walltimes."""
    for host in range(len(memory.requested)):
        job = state.host_job[host]
        memory.requested[host] = state.start_time[job] + state.walltime[job] if job >= 0 else cycles.until[host]


@kernel
def _is_due(state, cycles, plan, memory):
    """Whether this is the instant of a decision; between two ticks the next one is asked for."""
    number, tick = memory.number, memory.seconds[obs.TICK]
    if tick == 0.0:
        return True
    since = state.now - state.submit_time[0]
    index = np.int64((since + TOLERANCE) / tick)
    if index == number[obs.LAST_DECISION] or since > index * tick + TOLERANCE:
        _call_at_tick(state, cycles, plan, memory, index + 1)
        return False
    number[obs.LAST_DECISION] = index
    if number[obs.ANY_CHANGE]:
        number[obs.ANY_CHANGE], number[obs.GAP] = 0, 1
    return True


@kernel
def _call_at_tick(state, cycles, plan, memory, index):
    """Ask for a tick, unless an earlier one was asked for."""
    time = state.submit_time[0] + index * memory.seconds[obs.TICK]
    if cycles.call > time + TOLERANCE:
        call_at(cycles, plan, time)


@kernel
def _some_fit(state, cycles, memory):
    """Whether a job of the window could start now."""
    smallest = len(cycles.until) + 1
    for at in range(min(cycles.nb_queued, memory.number[obs.WINDOW])):
        smallest = min(smallest, state.size[cycles.queue[at]])
    return smallest <= cycles.nb_free


@kernel
def _let_time_pass(state, cycles, plan, memory):
    """Jobs that wait next to free nodes are looked at again at a tick; and on an idle cluster, where nothing ends."""
    number = memory.number
    if cycles.nb_queued == 0:
        return
    if memory.seconds[obs.TICK] == 0.0:
        if cycles.nb_running == 0:
            call_at(cycles, plan, state.now + _PATIENCE)
        return
    if cycles.nb_free > 0 and (number[obs.MASKED] == 0 or _some_fit(state, cycles, memory)):
        _call_at_tick(state, cycles, plan, memory, number[obs.LAST_DECISION] + number[obs.GAP])
        if number[obs.DOUBLES]:
            number[obs.GAP] = min(2 * number[obs.GAP], _LONGEST_GAP)


@ACT.entry_with(PackingMemory)
def packing_act(state, facts, cycles, plan, memory, action):
    """Start a job of the window if it fits; X, an empty slot, and a failure too many let time pass."""
    number, goes_on = memory.number, False
    if 0 <= action < min(cycles.nb_queued, number[obs.WINDOW]):
        if state.size[cycles.queue[action]] <= cycles.nb_free:
            number[obs.FAILED_CHOICES] = 0
            _start(state, cycles, plan, memory, action)
            goes_on = cycles.nb_queued > 0 and (number[obs.MASKED] == 0 or _some_fit(state, cycles, memory))
        else:
            number[obs.FAILED_CHOICES] += 1
            goes_on = number[obs.FAILED_CHOICES] < obs.FAILURES
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
    window = memory.number[obs.WINDOW]
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
    owed = idle - memory.seconds[obs.PAID]
    memory.seconds[obs.PAID] = idle
    return -owed / (nodes * memory.seconds[obs.LONGEST])


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
