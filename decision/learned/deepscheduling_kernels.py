"""DeepScheduling in compiled code: jobs that book servers, minutes, and what is paid.

What happens at an instant is as in `decision.policies.booking`, whose bookings are part of the memory here: jobs whose
hosts are awake start, servers that are due fall asleep, and then there is a choice, if the minute is over. A job with
booked hosts waits in the queue of the cycles until it starts, but is no longer seen there.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.policies.booking import (
    book,
    count_available,
    forget_gone,
    is_booked,
    next_timeout,
    pick,
    sleep_due,
    start_due,
    wake_booked,
)
from decision.policies.capacity import TOLERANCE
from decision.state.plan_arrays import START

from . import deepscheduling_seen as obs
from .confidence import learn_from
from .cycles import call_at, note_start, place_in_queue
from .deepscheduling_seen import DeepSchedulingMemory, fits, take_snapshot
from .kernel_interfaces import ACT, BEGIN, MEASURE, OPEN, REWARD, STEP_ENDS


@BEGIN.entry_with(DeepSchedulingMemory)
def deepscheduling_begin(state, facts, memory):
    """Nothing is booked, and nobody known."""
    memory.booked_by[:] = -1
    memory.nb_booked = 0
    memory.counted[:] = 0
    memory.at[:] = 0.0
    memory.at[obs.NEXT] = memory.at[obs.LAST] = -np.inf
    memory.user[:] = -1
    return 0


# --- What happens at an instant ------------------------------------------------------------------------------------


@OPEN.entry_with(DeepSchedulingMemory)
def deepscheduling_look(state, facts, cycles, plan, memory):
    """Do what is due, see all that comes at one instant together; whether there is something to choose."""
    if cycles.next_shown < state.nb_queued:
        return 0
    _add_up(state, memory)
    for i in range(state.nb_ended):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    planned = plan.nb_actions
    start_due(state, memory, plan)
    _note_starts(state, cycles, plan, planned)
    memory.counted[obs.PUT_TO_SLEEP] = sleep_due(state, facts, memory, plan, memory.setting[obs.TIMEOUT])
    memory.counted[obs.AVAILABLE] = count_available(memory)
    _fill_window(cycles, memory)
    if _is_due(state, memory):
        if state.nb_jobs > 0 and _offers(state, memory):
            take_snapshot(state, facts, cycles, memory)
            return 1
        _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@ACT.entry_with(DeepSchedulingMemory)
def deepscheduling_choose(state, facts, cycles, plan, memory, action):
    """Bind a job of the window, if it fits; anything else lets time pass."""
    job = memory.window[action - 1] if 1 <= action <= memory.counted[obs.SHOWN] else -1
    if job >= 0 and fits(state, memory, job):
        picked, planned = np.zeros(len(plan.free), np.uint64), plan.nb_actions
        pick(facts, memory, plan, state.size[job], False, True, picked)
        book(facts, memory, plan, job, picked)
        _note_starts(state, cycles, plan, planned)
        memory.counted[obs.AVAILABLE] -= state.size[job]
        _fill_window(cycles, memory)
        if _offers(state, memory):
            take_snapshot(state, facts, cycles, memory)
            return 1
    _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@kernel
def _is_due(state, memory):
    """Whether the minute is over; where no job waits, an event must be later than the last choice."""
    now, at = state.now, memory.at
    return at[obs.NEXT] <= now + TOLERANCE and (memory.counted[obs.SHOWN] > 0 or now > at[obs.LAST] + TOLERANCE)


@kernel
def _offers(state, memory):
    """Whether there is a choice: with masks only where a job fits."""
    if memory.setting[obs.ONLY_FITTING] == 0.0:
        return True
    found = False
    for i in range(memory.counted[obs.SHOWN]):
        found |= fits(state, memory, memory.window[i])
    return found


@kernel
def _note_starts(state, cycles, plan, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on."""
    for action in range(begin, plan.nb_actions):
        if plan.kind[action] == START:
            note_start(state, cycles, plan, place_in_queue(cycles, plan.job[action]), action)


@kernel
def _fill_window(cycles, memory):
    """The first jobs that have no hosts yet."""
    shown = at = 0
    while shown < obs.JOBS_SEEN and at < cycles.nb_queued:
        job = cycles.queue[at]
        if not is_booked(memory, job):
            memory.window[shown] = job
            shown += 1
        at += 1
    memory.counted[obs.SHOWN] = shown


@kernel
def _set_next(state, memory):
    """A minute passes while jobs wait; else the next event is awaited."""
    memory.at[obs.LAST] = state.now
    memory.at[obs.NEXT] = state.now + obs.ONE_MINUTE if memory.counted[obs.SHOWN] > 0 else -np.inf


@kernel
def _let_time_pass(state, facts, cycles, plan, memory):
    """Wake servers, and ask to be called for the next minute or timeout."""
    wake_booked(state, facts, memory, plan)
    urge = 0.0
    for i in range(memory.counted[obs.SHOWN]):
        urge += 1.0 / state.walltime[memory.window[i]]
    memory.at[obs.URGE_RATE] = urge
    due = next_timeout(state, facts, plan, memory.setting[obs.TIMEOUT])
    if memory.at[obs.NEXT] > state.now:
        due = min(due, memory.at[obs.NEXT])
    if due < cycles.call - TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _add_up(state, memory):
    at, now = memory.at, state.now
    at[obs.URGED] += at[obs.URGE_RATE] * (now - at[obs.SUMMED_AT])
    at[obs.SUMMED_AT] = now


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(DeepSchedulingMemory)
def deepscheduling_reward(state, facts, cycles, progress, memory, moment):
    """What the time since the last choice was worth, in minutes; `parameters` are the four weights of its parts."""
    if moment != STEP_ENDS:
        return 0.0
    _add_up(state, memory)
    weight = progress.parameters
    shares = progress.parameters[3] == 0.0
    idle, used = progress.idle_servers / obs.ONE_MINUTE, progress.used / obs.ONE_MINUTE
    if shares:
        idle /= len(facts.server_begin) - 1
        used /= len(cycles.until)
    worth = weight[2] * used - weight[0] * idle - weight[1] * memory.at[obs.URGED]
    owed = worth - memory.at[obs.PAID_SO_FAR]
    memory.at[obs.PAID_SO_FAR] = worth
    return owed


@MEASURE.entry_with(DeepSchedulingMemory)
def deepscheduling_measure(state, facts, cycles, progress, memory, out):
    """Joules that served nobody, switches of servers, and jobs whose user is unknown."""
    unknown = 0
    for job in range(state.nb_jobs):
        unknown += state.user[job] < 0
    out[0] = progress.wasted
    out[1] = progress.nb_switched
    out[2] = unknown
    return 0
