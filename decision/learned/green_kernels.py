"""Launchpad in compiled code: looks at each step, starts, suspensions for a job that is worth more, and what is paid.

A job that another was suspended for (the heir) starts in the next decision, at the same instant, before anything is
chosen: Batsim starts no job on the hosts of one that was killed in the same reply.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.policies.capacity import TOLERANCE
from decision.policies.config import Suspend
from decision.state.cluster import QUEUED
from decision.state.plan_arrays import SUSPEND, add

from .cycles import call_at, start_at
from .green_seen import GreenMemory, fits_now, worth_after
from .kernel_interfaces import ACT, BEGIN, FOLLOW, MEASURE, OPEN, REWARD, STEP_ENDS
from .window import slot_begun


@BEGIN.entry_with(GreenMemory)
def green_begin(state, facts, memory):
    """Nobody was suspended, and nothing paid."""
    memory.heir = memory.candidate = memory.victim = -1
    memory.paid = 0.0
    return 0


# --- When there is something to choose, and what is done -----------------------------------------------------------


@OPEN.entry_with(GreenMemory)
def green_look(state, facts, cycles, plan, memory):
    """Start the heir, and see all that comes at one instant together; whether there is something to choose."""
    if cycles.next_shown < state.nb_queued:
        return 0
    for i in range(state.nb_running):
        if state.suspended[state.running[i]]:
            return 0  # its hosts are not free yet
    _start_heir(state, cycles, plan, memory)
    return _goes_on(state, cycles, plan, memory)


@ACT.entry_with(GreenMemory)
def green_choose(state, facts, cycles, plan, memory, action):
    """Start a ready job that fits, or suspend one for another; anything else ends the look."""
    pool = memory.pool
    if 0 <= action < min(cycles.nb_queued, pool) and fits_now(state, cycles, cycles.queue[action]):
        start_at(state, cycles, plan, action)
        return _goes_on(state, cycles, plan, memory)
    if action == pool and memory.victim >= 0:
        add(plan, SUSPEND, memory.victim)
        memory.heir = memory.candidate
        return 0  # the next look is at the same instant
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _start_heir(state, cycles, plan, memory):
    heir = memory.heir
    memory.heir = -1
    if heir < 0 or state.job_state[heir] != QUEUED or not fits_now(state, cycles, heir):
        return
    for at in range(cycles.nb_queued):
        if cycles.queue[at] == heir:
            start_at(state, cycles, plan, at)
            return


@kernel
def _goes_on(state, cycles, plan, memory):
    """Whether there is something to choose besides no_op; else the next step is waited for."""
    _find_pair(state, cycles, memory)
    if memory.victim >= 0:
        return 1
    for at in range(min(cycles.nb_queued, memory.pool)):
        if fits_now(state, cycles, cycles.queue[at]):
            return 1
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _call_next_step(state, cycles, plan, memory):
    """Ask for the next step while jobs are ready, unless something earlier was asked for."""
    if cycles.nb_queued == 0:
        return
    step = memory.step_length
    due = (np.floor((state.now + TOLERANCE) / step) + 1.0) * step
    if cycles.call > due + TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _find_pair(state, cycles, memory):
    """The ready job that is worth most of those that do not fit, and the running one that is worth least of those that
    are worth less and have enough hosts for it."""
    memory.candidate = memory.victim = -1
    if memory.suspends == Suspend.NEVER or state.nb_running == 0:
        return
    most, candidate = 0.0, -1
    for at in range(min(cycles.nb_queued, memory.pool)):
        job = cycles.queue[at]
        if not fits_now(state, cycles, job):
            worth = worth_after(state, memory, job, 0.0)
            if candidate < 0 or worth > most:
                most, candidate = worth, job
    if candidate < 0:
        return
    missing = state.size[candidate] - min(cycles.nb_free, state.supply - cycles.nb_busy)
    least, victim = most, -1
    for i in range(state.nb_running):
        job = state.running[i]
        if state.size[job] >= missing:
            worth = worth_after(state, memory, job, state.now - state.start_time[job])
            if worth < least or (victim >= 0 and worth == least and job > victim):
                least, victim = worth, job
    if victim >= 0:
        memory.candidate, memory.victim = candidate, victim


@FOLLOW.entry_with(GreenMemory)
def green_follow(state, cycles, memory, starts):
    """The slot of a job that began by now, or suspend for one that did but does not fit; else no_op."""
    pool, by = memory.pool, state.now + TOLERANCE
    slot = slot_begun(state, cycles, pool, 0, starts, by, cycles.nb_free)
    if slot >= 0:
        return slot
    suspends = memory.victim >= 0 and starts[memory.candidate] <= by
    return pool if suspends else pool + 1


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(GreenMemory)
def green_reward(state, facts, cycles, progress, memory, moment):
    """The value that was completed since the last choice, minus `parameters[0]` times the value that was violated."""
    if moment != STEP_ENDS:
        return 0.0
    worth = progress.earned - progress.parameters[0] * progress.violated
    owed = worth - memory.paid
    memory.paid = worth
    return owed


@MEASURE.entry_with(GreenMemory)
def green_measure(state, facts, cycles, progress, memory, out):
    """Value of the jobs that ended, its share of all, the share that was violated, and suspensions."""
    submitted, suspensions = 0.0, 0
    for job in range(state.nb_jobs):
        if state.nth_rest[job] == 0:
            submitted += state.value[job]
        else:
            suspensions += 1
    out[0] = progress.earned
    out[1] = progress.earned / submitted if submitted > 0.0 else np.nan
    out[2] = progress.violated / submitted if submitted > 0.0 else np.nan
    out[3] = suspensions
    return 0
