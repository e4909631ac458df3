"""`predictors.Regression` as kernels, for policies: run times from what each user's jobs took before.

Habits lie in a table by a hash of the user, and of user, size and walltime: where two share a row, which is rare, they
count as one. All else is as there.
"""

import math

import numpy as np

from decision.bundle import F8, Bundle, F8x2
from decision.draws import first_word
from decision.jit import kernel
from decision.model.dates import DAY

_INPUTS = 9
_ROWS = 1 << 14  # habits; the first one is that of all jobs
_FORGET = 20.0  # jobs after which a habit's mean forgets

# Columns of a habit, logarithms of seconds
_JOBS, _MEAN, _LAST, _BEFORE, _LONGEST = range(5)


class RegressionMemory(Bundle):
    """What was learned so far."""

    regression: F8  # (9,) weights
    inverse: F8x2  # (9, 9) of the covariance
    inputs: F8  # (9,) scratch
    gain: F8  # (9,) scratch
    habits: F8x2  # (2^14, 5)


def new_regression(ridge: float = 1.0) -> RegressionMemory:
    """One that has learned nothing; `ridge` is the weight of the pull to zero, in jobs."""
    return RegressionMemory(
        regression=np.zeros(_INPUTS),
        inverse=np.eye(_INPUTS) / ridge,
        inputs=np.zeros(_INPUTS),
        gain=np.zeros(_INPUTS),
        habits=np.zeros((_ROWS, 5)),
    )


@kernel
def predict(memory, user, size, walltime, submit_time):
    """Seconds that a job will run: a second at least, at most its walltime and the longest run time so far."""
    if memory.habits[0, _JOBS] == 0.0:
        return walltime
    _see(memory, user, size, walltime, submit_time)
    guess = _value(memory)
    return min(math.exp(min(max(guess, 0.0), memory.habits[0, _LONGEST])), walltime)


@kernel
def observe(memory, user, size, walltime, submit_time, runtime):
    """Learn that a job has ended after running for `runtime` seconds: a step of recursive least squares."""
    target = math.log(max(runtime, 1.0))
    if memory.habits[0, _JOBS] > 0.0:
        _see(memory, user, size, walltime, submit_time)
        _correct(memory, target - _value(memory))
    for row in (0, _person(user), _alike(user, size, walltime)):
        _learn(memory.habits[row], target)


@kernel
def _value(memory):
    value = 0.0
    for k in range(_INPUTS):
        value += memory.regression[k] * memory.inputs[k]
    return value


@kernel
def _see(memory, user, size, walltime, submit_time):
    """Write the inputs; what is unknown of alike jobs is taken from the user's, and of these from all."""
    person = _person(user)
    person = person if memory.habits[person, _JOBS] > 0.0 else 0
    alike = _alike(user, size, walltime)
    alike = alike if memory.habits[alike, _JOBS] > 0.0 else person
    hour, inputs = 2 * math.pi * (submit_time % DAY) / DAY, memory.inputs
    inputs[0], inputs[1] = 1.0, math.log2(size)
    inputs[2] = math.log(walltime) if walltime < np.inf else 0.0
    inputs[3], inputs[4] = math.sin(hour), math.cos(hour)
    inputs[5], inputs[6] = memory.habits[person, _MEAN], _last_two(memory.habits[person])
    inputs[7], inputs[8] = memory.habits[alike, _MEAN], _last_two(memory.habits[alike])


@kernel
def _correct(memory, error):
    scale, inverse, gain, inputs = 1.0, memory.inverse, memory.gain, memory.inputs
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
    habit[_JOBS] += 1.0
    habit[_MEAN] += (target - habit[_MEAN]) / min(habit[_JOBS], _FORGET)
    habit[_LONGEST] = max(habit[_LONGEST], target)
    habit[_BEFORE] = habit[_LAST]
    habit[_LAST] = target


@kernel
def _last_two(habit):
    return habit[_LAST] if habit[_JOBS] < 2.0 else (habit[_LAST] + habit[_BEFORE]) / 2.0


@kernel
def _person(user):
    return _row(first_word(1, user + 1))


@kernel
def _alike(user, size, walltime):
    return _row(
        first_word(first_word(2, user + 1) ^ first_word(3, size), walltime * 1000.0 if walltime < 1e12 else 0.0)
    )


@kernel
def _row(word):
    return 1 + np.int64(word % np.uint64(_ROWS - 1))
