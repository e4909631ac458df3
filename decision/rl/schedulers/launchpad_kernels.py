"""Launchpad in compiled code: decision points at each step, starts, suspensions for a job of more value, and rewards.

A job that another was suspended for (the heir) starts in the next decision, at the same instant, before anything is
chosen: Batsim starts no job on the hosts of one that was killed in the same reply.
"""

import numpy as np

from decision.compiling.bundle import Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.policies.options import Suspend
from decision.policies.order import density_of
from decision.policies.profile import TOLERANCE
from decision.state.cluster import QUEUED
from decision.state.plan_arrays import START, SUSPEND, add

from .base import ACT, BEGIN, FOLLOW, MEASURE, OBSERVE, OPEN, REWARD, STEP_ENDS
from .decision_points import call_at, start_at
from .window import slot_begun

_AHEAD = (1, 2, 5, 10, 20)  # steps ahead that the compact observation tells of
CLUSTER = 3 + 2 * len(_AHEAD) + 4  # numbers about the cluster
COMPACT_FEATURES = 11  # numbers of a job, of which the image has the first ones
IMAGE_FEATURES = 8
ROWS = 20  # steps of the image
EXTRA_ACTIONS = 2  # actions besides starts: suspend, and no_op
_STEPS = 20.0  # that count as 1 in waits and deadlines: as far as the paper's image shows


class LaunchpadMemory(Bundle):
    """The encoder as numbers, and whom this decision point may suspend for whom."""

    pool: Int  # ready jobs
    suspends: Int  # `decision.policies.options.Suspend`
    image: Int  # 1 where the image is seen
    step_length: Float  # seconds
    longest_runtime: Float  # seconds: the longest job
    most_value: Float  # of a job
    most_density: Float  # value per host-second
    paid: Float  # rewards so far
    heir: Int = -1  # job that another was suspended for and that has not started yet, -1 for none
    candidate: Int = -1  # ready job that does not fit and that another may be suspended for, -1 for none
    victim: Int = -1  # that other


@kernel
def fits_now(state, cycles, job):
    """Whether as many hosts are free as a job needs."""
    return state.size[job] <= cycles.nb_free


@kernel
def value_after(state, memory, job, ran):
    """What jobs are compared by: value, or value per host-second that is left when a job has run for `ran` seconds."""
    return state.value[job] if memory.suspends == Suspend.VALUE else density_of(state, job, ran)


@OBSERVE.entry_with(LaunchpadMemory)
def launchpad_observe(state, facts, cycles, plan, memory, out, mask):
    """The compact observation or the image, and the mask."""
    pool, shown = memory.pool, min(cycles.nb_queued, memory.pool)
    mask[:] = 0
    for slot in range(shown):
        mask[slot] = fits_now(state, cycles, cycles.queue[slot])
    mask[pool] = memory.victim >= 0
    mask[pool + 1] = 1
    out[:] = 0.0
    beyond = min((cycles.nb_queued - shown) / pool, 1.0)
    # the paper's image: hosts by steps, where jobs run and where there is power, then the first numbers of ready jobs
    if memory.image:
        cells = ROWS * len(cycles.until)
        _see_occupied(state, plan, memory, out[:cells])
        _see_powered(state, cycles, out[cells : 2 * cells])
        for slot in range(shown):
            _see_job(state, cycles, memory, cycles.queue[slot], out[2 * cells + IMAGE_FEATURES * slot :])
        out[2 * cells + IMAGE_FEATURES * pool] = beyond
        return 0
    # the compact one: the same as shares, for any number of hosts, and three numbers more of each job
    _see_cluster(state, cycles, plan, memory, out)
    out[CLUSTER - 4] = beyond
    density = memory.most_density
    for slot in range(shown):
        job, at = cycles.queue[slot], CLUSTER + COMPACT_FEATURES * slot
        _see_job(state, cycles, memory, job, out[at:])
        out[at + 8] = min(density_of(state, job, 0.0) / density, 1.0)
        out[at + 9] = mask[slot]
        out[at + 10] = job == memory.candidate
    return 0


@kernel
def _see_job(state, cycles, memory, job, out):
    """Write the first IMAGE_FEATURES numbers of a job."""
    now = state.now
    # what is left of a suspended job is a job of its own, which waits since the first one came
    first = state.origin[job] if state.nth_rest[job] > 0 else job
    left, unit = _expected(state, job), 1.0 / (_STEPS * memory.step_length)
    out[0] = min(state.value[job] / memory.most_value, 1.0)
    out[1] = min(state.qos[job] * 0.01, 1.0)
    out[2] = state.size[job] / len(cycles.until)
    out[3] = min(left / memory.longest_runtime, 1.0)
    out[4] = 1.0
    if state.deadline[job] > 0.0:
        out[4] = 0.5 + 0.5 * min(max((state.deadline[job] - now) * unit, -1.0), 1.0)
    out[5] = min((now - state.submit_time[first]) * unit, 1.0)
    out[6] = min(max(1.0 - left / _expected(state, first), 0.0), 1.0)
    out[7] = 1.0


@kernel
def _expected(state, job):
    """Seconds that a job is expected to run."""
    return state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]


@kernel
def _steps_left(state, memory, job):
    """Steps that a running job is expected to go on for."""
    return (state.start_time[job] + _expected(state, job) - state.now) / memory.step_length


@kernel
def _see_cluster(state, cycles, plan, memory, out):
    """Hosts that are free, have power and compute, now and in some steps; and the job that may be suspended."""
    share, count = 1.0 / len(cycles.until), len(_AHEAD)
    out[0] = cycles.nb_free * share
    out[1] = state.supply * share
    out[2] = cycles.nb_busy * share
    for k in range(count):
        out[3 + k] = _power_in(state, _AHEAD[k]) * share
    busy = out[3 + count : 3 + 2 * count]
    for i in range(state.nb_running):
        job = state.running[i]
        _add_busy(busy, _steps_left(state, memory, job), state.size[job] * share)
    # and those that this decision has started so far
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            job = plan.job[action]
            _add_busy(busy, _expected(state, job) / memory.step_length, state.size[job] * share)
    for k in range(count):
        busy[k] = min(busy[k], 1.0)  # sums of shares are rounded
    victim = memory.victim
    if victim >= 0:  # zeros where nothing can be suspended
        out[CLUSTER - 3] = min(state.value[victim] / memory.most_value, 1.0)
        out[CLUSTER - 2] = state.size[victim] * share
        left = _steps_left(state, memory, victim) * memory.step_length / memory.longest_runtime
        out[CLUSTER - 1] = min(max(left, 0.0), 1.0)


@kernel
def _add_busy(busy, left, share):
    """Count a job's hosts in the steps in which it is expected to run on."""
    for k in range(len(_AHEAD)):
        if left <= _AHEAD[k]:
            break
        busy[k] += share


@kernel
def _power_in(state, steps):
    """Hosts that are expected to have power in so many steps; what was said last, where nothing says it."""
    known = state.nb_forecast
    hosts = state.supply if known == 0 or steps == 0 else np.int64(state.forecast[min(steps, known) - 1])
    return min(hosts, len(state.host_state))


@kernel
def _see_occupied(state, plan, memory, out):
    """1 where a host's job still runs so many steps from now."""
    for i in range(state.nb_running):
        job = state.running[i]
        begin = state.alloc_first[job]
        rows = _rows_of(_steps_left(state, memory, job))
        for k in range(begin, begin + state.alloc_count[job]):
            _fill(out, len(state.host_state), rows, state.interval_first[k], state.interval_last[k])
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            rows = _rows_of(_expected(state, plan.job[action]) / memory.step_length)
            for k in range(plan.begin[action], plan.end[action]):
                _fill(out, len(state.host_state), rows, plan.first[k], plan.last[k])


@kernel
def _rows_of(left):
    return min(np.int64(np.ceil(left - 1e-6)), ROWS)  # a step that is only begun by rounding does not count


@kernel
def _see_powered(state, cycles, out):
    """1 where a host has power so many steps from now: of as many hosts as have it, counted from the first."""
    hosts = len(cycles.until)
    for row in range(ROWS):
        out[row * hosts : row * hosts + _power_in(state, row)] = 1.0


@kernel
def _fill(out, hosts, rows, first, last):
    """Mark the hosts first .. last in the first rows of the image."""
    for row in range(rows):
        out[row * hosts + first : row * hosts + last + 1] = 1.0


@BEGIN.entry_with(LaunchpadMemory)
def launchpad_begin(state, facts, memory):
    """Nobody was suspended, and nothing paid."""
    memory.heir = memory.candidate = memory.victim = -1
    memory.paid = 0.0
    return 0


# --- When there is something to choose, and what is done -----------------------------------------------------------


@OPEN.entry_with(LaunchpadMemory)
def launchpad_look(state, facts, cycles, plan, memory):
    """Start the heir, and see all that comes at one instant together; whether there is something to choose."""
    if cycles.next_shown < state.nb_queued:
        return 0
    # a job that was suspended at this instant is asked for first; Batsim frees its hosts, and asks again
    for i in range(state.nb_running):
        if state.suspended[state.running[i]]:
            return 0  # its hosts are not free yet
    _start_heir(state, cycles, plan, memory)
    return _goes_on(state, cycles, plan, memory)


@ACT.entry_with(LaunchpadMemory)
def launchpad_choose(state, facts, cycles, plan, memory, action):
    """Start a ready job that fits, or suspend one for another; anything else lets time pass."""
    pool = memory.pool
    if 0 <= action < min(cycles.nb_queued, pool) and fits_now(state, cycles, cycles.queue[action]):
        start_at(state, cycles, plan, action)
        return _goes_on(state, cycles, plan, memory)
    if action == pool and memory.victim >= 0:
        add(plan, SUSPEND, memory.victim)
        memory.heir = memory.candidate
        return 0  # the next decision point is at the same instant, when the victim has left its hosts
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _start_heir(state, cycles, plan, memory):
    """Start the job that another made way for, unless it left or lost its hosts in between."""
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
    if cycles.nb_queued == 0:  # then only an arrival brings something to choose
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
            value = value_after(state, memory, job, 0.0)
            if candidate < 0 or value > most:
                most, candidate = value, job
    if candidate < 0:
        return
    # free hosts count only as far as the supply of power lets them compute
    missing = state.size[candidate] - min(cycles.nb_free, state.supply - cycles.nb_busy)
    least, victim = most, -1
    for i in range(state.nb_running):
        job = state.running[i]
        if state.size[job] >= missing:
            value = value_after(state, memory, job, state.now - state.start_time[job])
            # strictly less than the candidate's, or two jobs could suspend each other for ever; ties: the younger one
            if value < least or (victim >= 0 and value == least and job > victim):
                least, victim = value, job
    if victim >= 0:
        memory.candidate, memory.victim = candidate, victim


@FOLLOW.entry_with(LaunchpadMemory)
def launchpad_follow(state, cycles, memory, starts):
    """The slot of a job that began by now, or suspend for one that did but does not fit; else no_op."""
    pool, by = memory.pool, state.now + TOLERANCE
    slot = slot_begun(state, cycles, pool, 0, starts, by, cycles.nb_free)
    if slot >= 0:
        return slot
    suspends = memory.victim >= 0 and starts[memory.candidate] <= by
    return pool if suspends else pool + 1


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(LaunchpadMemory)
def launchpad_reward(state, facts, cycles, progress, memory, moment):
    """The value that was completed since the last choice, minus `parameters[0]` times the value that was violated."""
    if moment != STEP_ENDS:
        return 0.0
    total = progress.earned - progress.parameters[0] * progress.violated
    owed = total - memory.paid
    memory.paid = total
    return owed


@MEASURE.entry_with(LaunchpadMemory)
def launchpad_measure(state, facts, cycles, progress, memory, out):
    """Value of the jobs that ended, its share of all, the share that was violated, and suspensions."""
    submitted, suspensions = 0.0, 0
    for job in range(state.nb_jobs):
        if state.nth_rest[job] == 0:  # a remainder is no job that was submitted, but marks a suspension
            submitted += state.value[job]
        else:
            suspensions += 1
    out[0] = progress.earned
    out[1] = progress.earned / submitted if submitted > 0.0 else np.nan
    out[2] = progress.violated / submitted if submitted > 0.0 else np.nan
    out[3] = suspensions
    return 0
