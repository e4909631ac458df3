"""What is known of the run times of some jobs, by user or by user and request: a table that kernels learn in.

A key is a hash of 64 bits. Rows are used in the order in which keys come, so that only as much memory is touched as
there are keys, and they are found by open addressing. The first row is that of all jobs, and of no key.
"""

from typing import Any, TypeVar

import numpy as np

from decision.compiling.bundle import I4, I8, U8, Bundle, F8x2
from decision.compiling.draws import first_word
from decision.compiling.jit import kernel
from decision.model.errors import InternalError

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
    return 1 + np.int64(key % np.uint64(len(memory.habits) - 1))


@kernel
def new_row_of(memory, key):
    """The row of a key, which gets one where it has none."""
    if len(memory.habit_slot) == 0:
        return _shared_row(memory, key)
    place = _place(memory, key)
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
    while memory.habit_slot[place] != 0 and memory.habit_key[memory.habit_slot[place]] != key:
        place = (place + 1) & last
    return place
