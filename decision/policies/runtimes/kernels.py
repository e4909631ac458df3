"""`predictors.Regression` as kernels, for policies: run times from what each user's jobs took before."""

import math
from typing import Any, TypeVar

import numpy as np

from decision.compiling.bundle import F8, I4, I8, U8, Bundle, F8x2
from decision.compiling.draws import first_word
from decision.compiling.jit import kernel
from decision.model.dates import DAY
from decision.model.errors import InternalError

# What is known of the run times of some jobs, by user or by user and request: a table that kernels learn in.
#
# A key is a hash of 64 bits. Rows are used in the order in which keys come, so that only as much memory is touched as
# there are keys, and they are found by open addressing. The first row is that of all jobs, and of no key.

JOBS, MEAN, LAST_RUN, BEFORE_LAST = range(4)  # columns: how many jobs, a mean of run times, and two of these
_KEYS_PER_JOB = 2  # of its user, and of its user, size and walltime
_KEYS_OF_ALL = 2  # of all jobs with walltimes, and of all without


class Habits(Bundle):
    """Another table of N rows."""

    habit_slot: I4  # (S,) where the row of a key is, 0 where none is; S is a power of two, or 0 where rows are shared
    habit_key: U8  # (N + 1,)
    habits: F8x2  # (N + 1, 4)
    habits_used: I8  # (1,) rows that have a key


H = TypeVar("H", bound=Habits)


def room_for_habits(jobs: int) -> dict[str, Any]:
    """Empty arrays of `Habits` for so many jobs. Pages of rows that no key has take no memory."""
    rows = _keys_of(jobs)
    return {
        "habit_slot": np.zeros(1 << (2 * rows).bit_length(), np.int32),
        "habit_key": np.zeros(rows + 1, np.uint64),
        "habits": np.zeros((rows + 1, 4)),
        "habits_used": np.zeros(1, np.int64),
    }


def _keys_of(jobs: int) -> int:
    return _KEYS_PER_JOB * jobs + _KEYS_OF_ALL if jobs else 0


def shared_habits(rows: int) -> dict[str, Any]:
    """Empty arrays of `Habits` with so many rows for whatever keys come; those that share a row count as one."""
    return {
        "habit_slot": np.zeros(0, np.int32),
        "habit_key": np.zeros(0, np.uint64),
        "habits": np.zeros((rows, 4)),
        "habits_used": np.zeros(1, np.int64),
    }


def grown_habits(memory: H, jobs: int) -> H:
    """The same table with room for so many jobs: the same arrays where it has."""
    if len(memory.habit_key) > _keys_of(jobs):
        return memory
    room, rows = room_for_habits(jobs), int(memory.habits_used[0]) + 1
    room["habit_key"][:rows], room["habits"][:rows], room["habits_used"][:] = (
        memory.habit_key[:rows],
        memory.habits[:rows],
        memory.habits_used,
    )
    grown = memory._replace(**room)
    _find_places(grown)
    return grown


@kernel
def forget_habits(memory):
    """No key has a row."""
    memory.habit_slot[:] = 0
    memory.habits[: memory.habits_used[0] + 1] = 0.0
    memory.habits_used[0] = 0


@kernel
def _find_places(memory):
    for row in range(1, memory.habits_used[0] + 1):
        memory.habit_slot[_place(memory, memory.habit_key[row])] = row


@kernel
def user_key(user):
    """The key of a user's jobs."""
    return first_word(1, user + 1)


@kernel
def request_key(user, size, walltime):
    """The key of a user's jobs of this size and walltime (seconds)."""
    return first_word(first_word(2, user + 1) ^ first_word(3, size), walltime * 1000.0 if walltime < 1e12 else 0.0)


@kernel
def row_of(memory, key):
    """The row of a key; 0 where it has none."""
    if len(memory.habit_slot) == 0:
        row = _shared_row(memory, key)
        return row if memory.habits[row, JOBS] > 0.0 else 0
    return np.int64(memory.habit_slot[_place(memory, key)])


@kernel
def _shared_row(memory, key):
    # Row 0 is that of all jobs.
    return 1 + np.int64(key % np.uint64(len(memory.habits) - 1))


@kernel
def new_row_of(memory, key):
    """The row of a key, which gets one where it has none."""
    if len(memory.habit_slot) == 0:
        return _shared_row(memory, key)
    place = _place(memory, key)
    # First seen: the next row is cleared and taken. Rows are touched only here, so that unused pages take no memory.
    if memory.habit_slot[place] == 0:
        row = memory.habits_used[0] + 1
        if row >= len(memory.habit_key):
            raise InternalError("a predictor's memory has no room for another user")
        memory.habits_used[0] = row
        memory.habit_key[row] = key
        memory.habits[row, :] = 0.0
        memory.habit_slot[place] = row
    return np.int64(memory.habit_slot[place])


@kernel
def _place(memory, key):
    """Where the key is in the table, or could be put."""
    last = len(memory.habit_slot) - 1
    place = np.int64(key & np.uint64(last))
    # Linear probing; half of the slots at least are free (`room_for_habits`), so that this ends soon.
    while memory.habit_slot[place] != 0 and memory.habit_key[memory.habit_slot[place]] != key:
        place = (place + 1) & last
    return place


_INPUTS = 9
# So that a habit follows a user who changes: as with `predictors._FORGET`, the slow twin's.
_FORGET = 20.0  # jobs after which a habit's mean forgets


class RegressionMemory(Habits):
    """What was learned so far; habits are logarithms of seconds."""

    regression: F8  # (9,) weights
    inverse: F8x2  # (9, 9) of the covariance
    longest: F8  # (1,) of all run times, as a logarithm
    inputs: F8  # (9,) scratch
    gain: F8  # (9,) scratch
    ridge: F8  # (1,) weight of the pull to zero, in jobs


def new_regression(habits: dict[str, Any], ridge: float = 1.0) -> RegressionMemory:
    """One that has learned nothing.

    Args:
        habits: empty arrays of `Habits`.
        ridge: weight of the pull to zero, in jobs.
    """
    return RegressionMemory(
        regression=np.zeros(_INPUTS),
        inverse=np.eye(_INPUTS) / ridge,
        longest=np.zeros(1),
        inputs=np.zeros(_INPUTS),
        gain=np.zeros(_INPUTS),
        ridge=np.array([ridge]),
        **habits,
    )


@kernel
def forget_regression(memory):
    """Forget all jobs, so that the memory is as `new_regression` makes it."""
    forget_habits(memory)
    memory.longest[0] = 0.0
    for i in range(_INPUTS):
        memory.regression[i] = 0.0
        for k in range(_INPUTS):
            memory.inverse[i, k] = 1.0 / memory.ridge[0] if i == k else 0.0


@kernel
def predict(memory, user, size, walltime, submit_time):
    """Seconds that a job will run: a second at least, at most its walltime and the longest run time so far."""
    if memory.habits[0, JOBS] == 0.0:
        return walltime
    _see(memory, user, size, walltime, submit_time)
    # Never beyond the longest run time so far: a line that was fitted to few points says anything far from them.
    guess = _value(memory)
    return min(math.exp(min(max(guess, 0.0), memory.longest[0])), walltime)


@kernel
def learn_end(memory, user, size, walltime, submit_time, runtime):
    """Learn that a job has ended after running for `runtime` seconds: a step of recursive least squares."""
    target = math.log(max(runtime, 1.0))
    # Learn with the inputs as they were when it was predicted from, before this job changes them.
    if memory.habits[0, JOBS] > 0.0:
        _see(memory, user, size, walltime, submit_time)
        _correct(memory, target - _value(memory))
    memory.longest[0] = max(memory.longest[0], target)
    _learn(memory.habits[0], target)
    _learn(memory.habits[new_row_of(memory, user_key(user))], target)
    _learn(memory.habits[new_row_of(memory, request_key(user, size, walltime))], target)


@kernel
def _value(memory):
    value = 0.0
    for k in range(_INPUTS):
        value += memory.regression[k] * memory.inputs[k]
    return value


@kernel
def _see(memory, user, size, walltime, submit_time):
    """Write the inputs; what is unknown of alike jobs is taken from the user's, and of these from all."""
    person = row_of(memory, user_key(user))
    alike = row_of(memory, request_key(user, size, walltime))
    alike = alike if alike > 0 else person
    hour, inputs = 2 * math.pi * (submit_time % DAY) / DAY, memory.inputs
    inputs[0], inputs[1] = 1.0, math.log2(size)
    inputs[2] = math.log(walltime) if walltime < np.inf else 0.0
    inputs[3], inputs[4] = math.sin(hour), math.cos(hour)
    inputs[5], inputs[6] = memory.habits[person, MEAN], _last_two(memory.habits[person])
    inputs[7], inputs[8] = memory.habits[alike, MEAN], _last_two(memory.habits[alike])


@kernel
def _correct(memory, error):
    scale, inverse, gain, inputs = 1.0, memory.inverse, memory.gain, memory.inputs
    # Recursive least squares without forgetting: gain = P x / (1 + x P x), then P loses gain times its own.
    for i in range(_INPUTS):
        gain[i] = 0.0
        for k in range(_INPUTS):
            gain[i] += inverse[i, k] * inputs[k]
        scale += gain[i] * inputs[i]
    for i in range(_INPUTS):
        memory.regression[i] += gain[i] / scale * error
        for k in range(_INPUTS):  # the matrix is symmetric
            inverse[i, k] -= gain[i] * gain[k] / scale


@kernel
def _learn(habit, target):
    habit[JOBS] += 1.0
    habit[MEAN] += (target - habit[MEAN]) / min(habit[JOBS], _FORGET)
    habit[BEFORE_LAST] = habit[LAST_RUN]
    habit[LAST_RUN] = target


@kernel
def _last_two(habit):
    return habit[LAST_RUN] if habit[JOBS] < 2.0 else (habit[LAST_RUN] + habit[BEFORE_LAST]) / 2.0


# `predictors.LastTwo` as kernels, for policies: the mean of the run times of a user's last two ended jobs.


@kernel
def predict_last_two(memory, user, walltime):
    """Seconds: the mean of the two; the walltime for users with fewer, and for jobs of nobody (-1)."""
    habit = memory.habits[row_of(memory, user_key(user))]
    return (habit[LAST_RUN] + habit[BEFORE_LAST]) / 2.0 if user >= 0 and habit[JOBS] >= 2.0 else walltime


@kernel
def observe_last_two(memory, user, runtime):
    """Remember the run time (seconds) of a user's job that has ended, forget the one before the last."""
    if user >= 0:
        habit = memory.habits[new_row_of(memory, user_key(user))]
        habit[JOBS] += 1.0
        habit[BEFORE_LAST] = habit[LAST_RUN]
        habit[LAST_RUN] = runtime
