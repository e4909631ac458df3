"""What takes time: sleeps and parallel tasks, in the order in which they began, each with what is left of it.

Time goes on to the next end, and everything is brought up to date by the same subtraction that SimGrid makes: so the
clock has SimGrid's rounding errors, and what ends together there ends together here. Activities that end together do so
in the order in which they began. Rejected: a heap of absolute times; it is hardly faster (a pass over some hundreds of
numbers costs less than a tenth of a microsecond), and its times differ from Batsim's in the last digits, which Batsim's
files show where a value is halfway between two printed ones.
"""

import numpy as np

from decision.jit import kernel

from .arrays import ACTIVITIES, BRIEF, CLOCK, PTASK, SWITCH, TASKS, WALLTIME

TIME_PRECISION = 1e-9  # seconds: a sleep with less left is over
WORK_PRECISION = 1e-14  # share: a task with less left is over


@kernel
def told(clock):
    """The time as a decision process hears it, and the state has it: Batsim writes six decimals."""
    return round(clock * 1e6) / 1e6


@kernel
def begin_sleep(sim, seconds, code):
    """Wake `code` after `seconds`."""
    _begin(sim, seconds, 1.0, code)


@kernel
def begin_task(sim, rate, code):
    """Wake `code` when a whole task is done at `rate` (share per second); with nothing to do (inf) at once."""
    _begin(sim, 1.0, rate, code)


@kernel
def _begin(sim, left, rate, code):
    if left < TIME_PRECISION * rate:
        sim.brief[sim.flag[BRIEF]] = code
        sim.brief_left[sim.flag[BRIEF]] = 0.0 if rate == np.inf else left / rate
        sim.flag[BRIEF] += 1
        return
    if _is_task(code):
        sim.flag[TASKS] += 1
    at = sim.flag[ACTIVITIES]
    sim.flag[ACTIVITIES] = at + 1
    sim.left[at] = left
    sim.pace[at] = rate
    sim.code[at] = code


@kernel
def find(sim, code):
    """Index of an activity, -1 where there is none."""
    for at in range(sim.flag[ACTIVITIES]):
        if sim.code[at] == code:
            return at
    return -1


@kernel
def is_brief(sim, code):
    """Whether an activity that takes no time is under way."""
    return (sim.brief[: sim.flag[BRIEF]] == code).any()


@kernel
def cancel(sim, code):
    """End an activity without waking anybody, also where it is due now."""
    for i in range(sim.flag[ACTIVITIES]):
        if sim.code[i] == code:
            _remove(sim, i)
            break
    for i in range(sim.flag[BRIEF]):
        if sim.brief[i] == code:
            sim.brief[i] = -1
    for i in range(len(sim.due)):
        if sim.due[i] == code:
            sim.due[i] = -1
        elif sim.due[i] == -2:
            break


@kernel
def _remove(sim, at):
    if _is_task(sim.code[at]):
        sim.flag[TASKS] -= 1
    last = sim.flag[ACTIVITIES] - 1
    sim.flag[ACTIVITIES] = last
    for i in range(at, last):
        sim.left[i], sim.pace[i], sim.code[i] = sim.left[i + 1], sim.pace[i + 1], sim.code[i + 1]


@kernel
def _is_task(code):
    kind = code & 15
    return kind in (PTASK, SWITCH)


@kernel
def pass_time(state, sim):
    """Go on to the next end; what is over is in `sim.due`, in order, up to a -2. False where nothing takes time."""
    if sim.flag[ACTIVITIES] + sim.flag[BRIEF] == 0:
        return False
    seconds = _next_end(sim)
    if seconds > 0.0:
        sim.real[CLOCK] += seconds
        state.now[0] = told(sim.real[CLOCK])
        _spend(sim, seconds)
    _take_due(sim)
    return True


@kernel
def _next_end(sim):
    """Seconds to the next end."""
    seconds, count = np.inf, sim.flag[ACTIVITIES]
    if sim.flag[BRIEF]:
        for i in range(sim.flag[BRIEF]):
            seconds = min(seconds, sim.brief_left[i])
    elif sim.flag[TASKS] == 0:
        for i in range(count):
            seconds = min(seconds, sim.left[i])
    else:
        for i in range(count):
            seconds = min(seconds, sim.left[i] / sim.pace[i])
    return seconds


@kernel
def _spend(sim, seconds):
    left, pace, count = sim.left, sim.pace, sim.flag[ACTIVITIES]
    if sim.flag[TASKS] == 0:
        for i in range(count):
            left[i] -= seconds
    else:
        for i in range(count):
            left[i] -= pace[i] * seconds


@kernel
def _take_due(sim):
    """Move what is over from the activities to `sim.due`, keeping the order of both; then the brief ones."""
    kept = due = 0
    for i in range(sim.flag[ACTIVITIES]):
        if sim.left[i] < TIME_PRECISION and (sim.left[i] < WORK_PRECISION or not _is_task(sim.code[i])):
            if _is_task(sim.code[i]):
                sim.flag[TASKS] -= 1
            sim.due[due] = sim.code[i]
            due += 1
        else:
            if kept < i:
                sim.left[kept], sim.pace[kept], sim.code[kept] = sim.left[i], sim.pace[i], sim.code[i]
            kept += 1
    sim.flag[ACTIVITIES] = kept
    for i in range(sim.flag[BRIEF]):
        sim.due[due + i] = sim.brief[i]
    sim.due[due + sim.flag[BRIEF]] = -2
    sim.flag[BRIEF] = 0


@kernel
def end_brief(sim, tasks):
    """End the brief sleeps, or the brief tasks and their limits; they are in `sim.due` then, and no time passes."""
    kept = due = 0
    for i in range(sim.flag[BRIEF]):
        code = sim.brief[i]
        if (code & 15 in (PTASK, WALLTIME)) == tasks:
            sim.due[due] = code
            due += 1
        else:
            sim.brief[kept], sim.brief_left[kept] = code, sim.brief_left[i]
            kept += 1
    sim.due[due] = -2
    sim.flag[BRIEF] = kept
