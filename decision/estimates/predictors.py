"""Predictors of run times for a scheduler: they learn from each job when it ends, and never look ahead."""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from decision.model.dates import DAY
from decision.model.record import Floats

from .distribution import Quantiles

_FORGET = 20  # jobs after which a habit's mean forgets


class Predictor(Protocol):
    """Guesses how long jobs will run."""

    def predict(self, user: str, size: int, walltime: float, submit_time: float) -> float:
        """Seconds that a job will run, at most its walltime; inf where nothing is known.

        Args:
            user: who submits it.
            size: hosts.
            walltime: seconds, inf where the job has none.
            submit_time: seconds.
        """

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Learn that a job has ended after running for `runtime` seconds."""


class Walltime:
    """The walltime itself: what schedulers use without a predictor."""

    def predict(self, user: str, size: int, walltime: float, submit_time: float) -> float:
        """The walltime."""
        return walltime

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Nothing to learn."""


class LastTwo:
    """The mean of the user's last two ended jobs; the walltime for users with fewer, and for jobs of nobody.

    Tsafrir, Etsion and Feitelson, Backfilling Using System-Generated Predictions Rather than User Runtime Estimates,
    IEEE Transactions on Parallel and Distributed Systems 18(6), 2007.
    """

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}

    def predict(self, user: str, size: int, walltime: float, submit_time: float) -> float:
        """The mean of the two, at most the walltime."""
        last = self._last.get(user, ())
        return min(sum(last) / 2, walltime) if len(last) == 2 else walltime

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Remember the run time, forget the one before the last."""
        if user:
            self._last.setdefault(user, deque(maxlen=2)).append(runtime)


class Regression:
    """Ridge regression of the logarithm of run times, by recursive least squares, on what a scheduler knows.

    Its inputs: 1, the logarithms of size and walltime, the hour of the day as sine and cosine, and of the logarithms
    of run times of the user's jobs, and of those among them with the same size and walltime, the mean (that forgets)
    and the mean of the last two. What is unknown is taken from the user's jobs, or from all.

    Args:
        ridge: weight of the pull to zero, in jobs.
    """

    INPUTS = 9

    def __init__(self, ridge: float = 1.0) -> None:
        self._weights = np.zeros(self.INPUTS)
        self._inverse = np.eye(self.INPUTS) / ridge
        self._all = _Habits()
        self._habits: dict[tuple[object, ...], _Habits] = {}

    def predict(self, user: str, size: int, walltime: float, submit_time: float) -> float:
        """e to the regression's value, at least a second, at most the walltime and the longest run time so far."""
        if not self._all.jobs:
            return walltime
        guess = float(self._weights @ self._inputs(user, size, walltime, submit_time))
        return min(math.exp(min(max(guess, 0.0), self._all.longest)), walltime)

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Correct the weights by the error on this job."""
        target = math.log(max(runtime, 1.0))
        if self._all.jobs:
            self._correct(self._inputs(user, size, walltime, submit_time), target)
        for habits in (self._all, *(self._habits.setdefault(key, _Habits()) for key in _keys(user, size, walltime))):
            habits.learn(target)

    def _inputs(self, user: str, size: int, walltime: float, submit_time: float) -> Floats:
        person, alike = (self._habits.get(key) for key in _keys(user, size, walltime))
        person = person or self._all
        alike = alike or person
        limit = math.log(walltime) if walltime < math.inf else 0.0
        hour = 2 * math.pi * (submit_time % DAY) / DAY
        known = (person.mean, person.last, alike.mean, alike.last)
        return np.array([1.0, math.log2(size), limit, math.sin(hour), math.cos(hour), *known])

    def _correct(self, inputs: Floats, target: float) -> None:
        """One step of recursive least squares."""
        gain = self._inverse @ inputs
        gain /= 1 + inputs @ gain
        self._weights += gain * (target - self._weights @ inputs)
        self._inverse -= np.outer(gain, inputs @ self._inverse)


def _keys(user: str, size: int, walltime: float) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """A user's jobs, and those alike."""
    return (user,), (user, size, walltime)


class _Habits:
    """What is known of the run times of some jobs, as logarithms of seconds."""

    __slots__ = ("_recent", "jobs", "longest", "mean")

    def __init__(self) -> None:
        self.jobs = 0
        self.mean = 0.0  # of all, of late jobs more
        self.longest = 0.0
        self._recent: deque[float] = deque(maxlen=2)

    @property
    def last(self) -> float:
        """The mean of the last two."""
        return sum(self._recent) / len(self._recent)

    def learn(self, runtime: float) -> None:
        self.jobs += 1
        self.mean += (runtime - self.mean) / min(self.jobs, _FORGET)
        self.longest = max(self.longest, runtime)
        self._recent.append(runtime)


PREDICTORS: dict[str, Callable[[], Predictor]] = {
    "walltime": Walltime,
    "last2": LastTwo,
    "regression": Regression,
    "quantiles": Quantiles,
}
