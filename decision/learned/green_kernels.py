"""Launchpad in compiled code: looks at each step, starts, suspensions for a job that is worth more, and what is seen.

A job that another was suspended for (the heir) starts in the next decision, at the same instant, before anything is
chosen: Batsim starts no job on the hosts of one that was killed in the same reply.
"""

import numpy as np

from decision.compiling.bundle import F8, I8, Bundle
from decision.compiling.jit import kernel
from decision.policies.capacity import TOLERANCE
from decision.policies.config import Suspend
from decision.policies.order import density_of
from decision.state.cluster import N_FORECAST, N_JOBS, N_QUEUED, N_RUNNING, QUEUED
from decision.state.plan_arrays import START, SUSPEND, add

from .cycles import BUSY_HOSTS, FREE_HOSTS, LENGTH, NEXT_SHOWN, call_at, start_at
from .kernel_interfaces import ACT, BEGIN, FOLLOW, MEASURE, OBSERVE, OPEN, REWARD, STEP_ENDS
from .progress import EARNED, VIOLATED
from .window import slot_begun

_AHEAD = (1, 2, 5, 10, 20)  # steps ahead that the compact observation tells of
CLUSTER = 3 + 2 * len(_AHEAD) + 4  # numbers about the cluster
COMPACT_FEATURES = 11  # numbers of a job, of which the image has the first ones
IMAGE_FEATURES = 8
ROWS = 20  # steps of the image
EXTRA_ACTIONS = 2  # actions beside starts: suspend, and no_op
_STEPS = 20.0  # that count as 1 in waits and deadlines

# GreenMemory.number
POOL = 0  # ready jobs
SUSPENDS = 1  # `decision.policies.config.Suspend`
IMAGE = 2  # 1 where the image is seen
_HEIR = 3  # job that another was suspended for and that has not started yet, -1 for none
_CANDIDATE = 4  # ready job that does not fit and that another may be suspended for, -1 for none
_VICTIM = 5  # that other
N_GREEN_NUMBERS = 6

# GreenMemory.setting
STEP_LENGTH = 0  # seconds
LONGEST_RUNTIME = 1  # seconds: the longest job
MOST_VALUE = 2  # of a job
MOST_DENSITY = 3  # value per host-second
_PAID = 4  # rewards so far
N_GREEN_SETTINGS = 5


class GreenMemory(Bundle):
    """The encoder as numbers, and what is known of this look."""

    setting: F8  # (N_GREEN_SETTINGS,)
    number: I8  # (N_GREEN_NUMBERS,)


@BEGIN.entry_with(GreenMemory)
def green_begin(state, facts, memory):
    """Nobody was suspended, and nothing paid."""
    memory.number[_HEIR] = memory.number[_CANDIDATE] = memory.number[_VICTIM] = -1
    memory.setting[_PAID] = 0.0
    return 0


# --- When there is something to choose, and what is done -----------------------------------------------------------


@OPEN.entry_with(GreenMemory)
def green_look(state, facts, cycles, plan, memory):
    """Start the heir, and see all that comes at one instant together; whether there is something to choose."""
    if cycles.number[NEXT_SHOWN] < state.count[N_QUEUED]:
        return 0
    for i in range(state.count[N_RUNNING]):
        if state.suspended[state.running[i]]:
            return 0  # its hosts are not free yet
    _start_heir(state, cycles, plan, memory)
    return _goes_on(state, cycles, plan, memory)


@ACT.entry_with(GreenMemory)
def green_choose(state, facts, cycles, plan, memory, action):
    """Start a ready job that fits, or suspend one for another; anything else ends the look."""
    pool = memory.number[POOL]
    if 0 <= action < min(cycles.number[LENGTH], pool) and _fits(state, cycles, cycles.queue[action]):
        start_at(state, cycles, plan, action)
        return _goes_on(state, cycles, plan, memory)
    if action == pool and memory.number[_VICTIM] >= 0:
        add(plan, SUSPEND, memory.number[_VICTIM])
        memory.number[_HEIR] = memory.number[_CANDIDATE]
        return 0  # the next look is at the same instant
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _start_heir(state, cycles, plan, memory):
    heir = memory.number[_HEIR]
    memory.number[_HEIR] = -1
    if heir < 0 or state.job_state[heir] != QUEUED or not _fits(state, cycles, heir):
        return
    for at in range(cycles.number[LENGTH]):
        if cycles.queue[at] == heir:
            start_at(state, cycles, plan, at)
            return


@kernel
def _goes_on(state, cycles, plan, memory):
    """Whether there is something to choose beside no_op; else the next step is waited for."""
    _find_pair(state, cycles, memory)
    if memory.number[_VICTIM] >= 0:
        return 1
    for at in range(min(cycles.number[LENGTH], memory.number[POOL])):
        if _fits(state, cycles, cycles.queue[at]):
            return 1
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _fits(state, cycles, job):
    return state.size[job] <= cycles.number[FREE_HOSTS]


@kernel
def _call_next_step(state, cycles, plan, memory):
    """Ask for the next step while jobs are ready, unless something earlier was asked for."""
    if cycles.number[LENGTH] == 0:
        return
    step = memory.setting[STEP_LENGTH]
    due = (np.floor((state.now[0] + TOLERANCE) / step) + 1.0) * step
    if cycles.call[0] > due + TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _find_pair(state, cycles, memory):
    """The ready job that is worth most of those that do not fit, and the running one that is worth least of those that
    are worth less and have enough hosts for it."""
    number = memory.number
    number[_CANDIDATE] = number[_VICTIM] = -1
    if number[SUSPENDS] == Suspend.NEVER or state.count[N_RUNNING] == 0:
        return
    most, candidate = 0.0, -1
    for at in range(min(cycles.number[LENGTH], number[POOL])):
        job = cycles.queue[at]
        if not _fits(state, cycles, job):
            worth = _worth_of(state, memory, job, 0.0)
            if candidate < 0 or worth > most:
                most, candidate = worth, job
    if candidate < 0:
        return
    missing = state.size[candidate] - min(cycles.number[FREE_HOSTS], state.supply[0] - cycles.number[BUSY_HOSTS])
    least, victim = most, -1
    for i in range(state.count[N_RUNNING]):
        job = state.running[i]
        if state.size[job] >= missing:
            worth = _worth_of(state, memory, job, state.now[0] - state.start_time[job])
            if worth < least or (victim >= 0 and worth == least and job > victim):
                least, victim = worth, job
    if victim >= 0:
        number[_CANDIDATE], number[_VICTIM] = candidate, victim


@kernel
def _worth_of(state, memory, job, ran):
    return state.value[job] if memory.number[SUSPENDS] == Suspend.VALUE else density_of(state, job, ran)


@FOLLOW.entry_with(GreenMemory)
def green_follow(state, cycles, memory, starts):
    """The slot of a job that began by now, or suspend for one that did but does not fit; else no_op."""
    pool, by = memory.number[POOL], state.now[0] + TOLERANCE
    slot = slot_begun(state, cycles, pool, 0, starts, by, cycles.number[FREE_HOSTS])
    if slot >= 0:
        return slot
    suspends = memory.number[_VICTIM] >= 0 and starts[memory.number[_CANDIDATE]] <= by
    return pool if suspends else pool + 1


# --- What is seen --------------------------------------------------------------------------------------------------


@OBSERVE.entry_with(GreenMemory)
def green_observe(state, facts, cycles, plan, memory, out, mask):
    """The compact observation or the image, and the mask."""
    pool, shown = memory.number[POOL], min(cycles.number[LENGTH], memory.number[POOL])
    mask[:] = 0
    for slot in range(shown):
        mask[slot] = _fits(state, cycles, cycles.queue[slot])
    mask[pool] = memory.number[_VICTIM] >= 0
    mask[pool + 1] = 1
    out[:] = 0.0
    beyond = min((cycles.number[LENGTH] - shown) / pool, 1.0)
    if memory.number[IMAGE]:
        cells = ROWS * len(cycles.until)
        _see_occupied(state, plan, memory, out[:cells])
        _see_powered(state, cycles, out[cells : 2 * cells])
        for slot in range(shown):
            _see_job(state, cycles, memory, cycles.queue[slot], out[2 * cells + IMAGE_FEATURES * slot :])
        out[2 * cells + IMAGE_FEATURES * pool] = beyond
        return 0
    _see_cluster(state, cycles, plan, memory, out)
    out[CLUSTER - 4] = beyond
    density = memory.setting[MOST_DENSITY]
    for slot in range(shown):
        job, at = cycles.queue[slot], CLUSTER + COMPACT_FEATURES * slot
        _see_job(state, cycles, memory, job, out[at:])
        out[at + 8] = min(density_of(state, job, 0.0) / density, 1.0)
        out[at + 9] = mask[slot]
        out[at + 10] = job == memory.number[_CANDIDATE]
    return 0


@kernel
def _see_job(state, cycles, memory, job, out):
    """Write the first IMAGE_FEATURES numbers of a job."""
    setting, now = memory.setting, state.now[0]
    first = state.origin[job] if state.nth_rest[job] > 0 else job
    left, unit = _expected(state, job), 1.0 / (_STEPS * setting[STEP_LENGTH])
    out[0] = min(state.value[job] / setting[MOST_VALUE], 1.0)
    out[1] = min(state.qos[job] * 0.01, 1.0)
    out[2] = state.size[job] / len(cycles.until)
    out[3] = min(left / setting[LONGEST_RUNTIME], 1.0)
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
    return (state.start_time[job] + _expected(state, job) - state.now[0]) / memory.setting[STEP_LENGTH]


@kernel
def _see_cluster(state, cycles, plan, memory, out):
    """Hosts that are free, have power and compute, now and in some steps; and the job that may be suspended."""
    number, share, count = cycles.number, 1.0 / len(cycles.until), len(_AHEAD)
    out[0] = number[FREE_HOSTS] * share
    out[1] = state.supply[0] * share
    out[2] = number[BUSY_HOSTS] * share
    for k in range(count):
        out[3 + k] = _power_in(state, _AHEAD[k]) * share
    busy = out[3 + count : 3 + 2 * count]
    for i in range(state.count[N_RUNNING]):
        job = state.running[i]
        _add_busy(busy, _steps_left(state, memory, job), state.size[job] * share)
    for action in range(plan.count[0]):
        if plan.kind[action] == START:
            job = plan.job[action]
            _add_busy(busy, _expected(state, job) / memory.setting[STEP_LENGTH], state.size[job] * share)
    for k in range(count):
        busy[k] = min(busy[k], 1.0)  # sums of shares are rounded
    victim = memory.number[_VICTIM]
    if victim >= 0:
        out[CLUSTER - 3] = min(state.value[victim] / memory.setting[MOST_VALUE], 1.0)
        out[CLUSTER - 2] = state.size[victim] * share
        left = _steps_left(state, memory, victim) * memory.setting[STEP_LENGTH] / memory.setting[LONGEST_RUNTIME]
        out[CLUSTER - 1] = min(max(left, 0.0), 1.0)


@kernel
def _add_busy(busy, left, share):
    for k in range(len(_AHEAD)):
        if left <= _AHEAD[k]:
            break
        busy[k] += share


@kernel
def _power_in(state, steps):
    """Hosts that are expected to have power in so many steps; what was said last, where nothing says it."""
    known = state.count[N_FORECAST]
    hosts = state.supply[0] if known == 0 or steps == 0 else np.int64(state.forecast[min(steps, known) - 1])
    return min(hosts, len(state.host_state))


@kernel
def _see_occupied(state, plan, memory, out):
    """1 where a host's job still runs so many steps from now."""
    for i in range(state.count[N_RUNNING]):
        job = state.running[i]
        begin = state.alloc_first[job]
        rows = _rows_of(_steps_left(state, memory, job))
        for k in range(begin, begin + state.alloc_count[job]):
            _fill(out, len(state.host_state), rows, state.interval_first[k], state.interval_last[k])
    for action in range(plan.count[0]):
        if plan.kind[action] == START:
            rows = _rows_of(_expected(state, plan.job[action]) / memory.setting[STEP_LENGTH])
            for k in range(plan.begin[action], plan.end[action]):
                _fill(out, len(state.host_state), rows, plan.first[k], plan.last[k])


@kernel
def _rows_of(left):
    return min(np.int64(np.ceil(left - 1e-6)), ROWS)


@kernel
def _see_powered(state, cycles, out):
    """1 where a host has power so many steps from now: of as many hosts as have it, counted from the first."""
    hosts = len(cycles.until)
    for row in range(ROWS):
        out[row * hosts : row * hosts + _power_in(state, row)] = 1.0


@kernel
def _fill(out, hosts, rows, first, last):
    for row in range(rows):
        out[row * hosts + first : row * hosts + last + 1] = 1.0


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(GreenMemory)
def green_reward(state, facts, cycles, progress, memory, moment):
    """The value that was completed since the last choice, minus `parameters[0]` times the value that was violated."""
    if moment != STEP_ENDS:
        return 0.0
    worth = progress.total[EARNED] - progress.parameters[0] * progress.total[VIOLATED]
    owed = worth - memory.setting[_PAID]
    memory.setting[_PAID] = worth
    return owed


@MEASURE.entry_with(GreenMemory)
def green_measure(state, facts, cycles, progress, memory, out):
    """Value of the jobs that ended, its share of all, the share that was violated, and suspensions."""
    submitted, suspensions = 0.0, 0
    for job in range(state.count[N_JOBS]):
        if state.nth_rest[job] == 0:
            submitted += state.value[job]
        else:
            suspensions += 1
    out[0] = progress.total[EARNED]
    out[1] = progress.total[EARNED] / submitted if submitted > 0.0 else np.nan
    out[2] = progress.total[VIOLATED] / submitted if submitted > 0.0 else np.nan
    out[3] = suspensions
    return 0
