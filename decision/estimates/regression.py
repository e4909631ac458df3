"""`predictors.Regression` as kernels, for policies: run times from what each user's jobs took before."""

import math
from typing import Any

import numpy as np

from decision.compiling.bundle import F8, F8x2
from decision.compiling.jit import kernel
from decision.model.dates import DAY

from .habits import BEFORE_LAST, JOBS, LAST_RUN, MEAN, Habits, forget_habits, new_row_of, request_key, row_of, user_key

_INPUTS = 9
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
    """As `new_regression` makes it."""
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
    guess = _value(memory)
    return min(math.exp(min(max(guess, 0.0), memory.longest[0])), walltime)


@kernel
def learn_end(memory, user, size, walltime, submit_time, runtime):
    """Learn that a job has ended after running for `runtime` seconds: a step of recursive least squares."""
    target = math.log(max(runtime, 1.0))
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
