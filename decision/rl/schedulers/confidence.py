"""Confidence in users: which share of their walltimes their last jobs used.

Casagrande et al., DeepScheduling (AINA 2020). Users are kept in an open hash table.
"""

from typing import Any

import numpy as np

from decision.compiling.bundle import F8, I4, Bundle
from decision.compiling.jit import kernel

_RECENT = 20  # jobs of a user that tell what share of a walltime the next one uses, as DeepScheduling has it


class Confidence(Bundle):
    """What a memory needs for the kernels here. J jobs, K >= 2 J places for users, a power of two."""

    user: I4  # (K,) numbers of users, -1 where there is none
    last: I4  # (K,) the job of each that ended last
    confidence: F8  # (K,) mean share of their walltimes that its last jobs used
    previous: I4  # (J,) the job of the same user that ended before, -1 for none


def new_confidence(jobs: int) -> dict[str, I4 | F8]:
    """The arrays of a `Confidence` with room for so many jobs, nobody being known."""
    places = 1 << (2 * jobs).bit_length()
    return {
        "user": np.full(places, -1, np.int32),
        "last": np.zeros(places, np.int32),
        "confidence": np.zeros(places),
        "previous": np.full(jobs, -1, np.int32),
    }


def longer_confidence(memory: Any, jobs: int) -> dict[str, I4 | F8]:
    """The arrays of a memory's `Confidence` with room for more jobs."""
    longer = Confidence(**new_confidence(jobs))
    longer.previous[: len(memory.previous)] = memory.previous
    # places depend on the number of places: users are put in anew
    for at in np.flatnonzero(memory.user >= 0).tolist():
        place = place_of_user(longer, int(memory.user[at]))
        for name in ("user", "last", "confidence"):
            getattr(longer, name)[place] = getattr(memory, name)[at]
    return longer.arrays()


@kernel
def place_of_user(memory, user):
    """Where a user is, or is to be."""
    mask = len(memory.user) - 1
    # Knuth's multiplier for 16 bits (2 ** 16 over the golden ratio): users are often numbered in a row
    at = (user * 40503) & mask
    while memory.user[at] != user and memory.user[at] >= 0:
        at = (at + 1) & mask
    return at


@kernel
def confidence_in(state, memory, job):
    """Mean share of their walltimes that the last jobs of the job's user took; 1 where there are none."""
    user = state.user[job]
    if user < 0:
        return 1.0
    at = place_of_user(memory, user)
    return memory.confidence[at] if memory.user[at] == user else 1.0


@kernel
def learn_from(state, memory, job):
    """Note which share of its walltime an ended job used, and the mean of its user's last ones."""
    user = state.user[job]
    if user < 0 or not state.end_time[job] >= state.start_time[job]:
        return
    at = place_of_user(memory, user)
    memory.previous[job] = memory.last[at] if memory.user[at] == user else -1
    memory.user[at], memory.last[at] = user, job
    # summed anew along the list of the user's jobs: a running mean of the last ones would need them all the same
    total, count = 0.0, 0
    while job >= 0 and count < _RECENT:
        total += min((state.end_time[job] - state.start_time[job]) / state.walltime[job], 1.0)
        count += 1
        job = memory.previous[job]
    memory.confidence[at] = total / count
