"""Predictors of run times for a scheduler: they learn from each job when it ends, and never look ahead."""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec
import numpy as np

from decision.model.columns import JobColumns
from decision.model.dates import DAY
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.record import Floats, Ints
from decision.model.trace import of_jobs
from decision.model.workload import Workload

from .kernels import Quantiles

# Fewer follow a user who changes sooner, more are less noisy.
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
        """The walltime, which is all that is known."""
        return walltime

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Nothing is learned from an end."""


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
            # One step of recursive least squares.
            inputs = self._inputs(user, size, walltime, submit_time)
            gain = self._inverse @ inputs
            gain /= 1 + inputs @ gain
            self._weights += gain * (target - self._weights @ inputs)
            self._inverse -= np.outer(gain, inputs @ self._inverse)
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

# What predictors learn from: ended jobs of a workload or a log, in the order in which their run times became known.
#
# `predict_history` replays them through a predictor, and `measure_errors` measures how good it was.


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that ran. All columns have length J."""

    user: list[str]
    size: Ints  # hosts
    walltime: Floats  # seconds, inf where the job had none
    submit: Floats  # seconds
    end: Floats  # seconds, when the run time became known
    runtime: Floats  # seconds, > 0


def history_of(workload: Workload, speed: float | None = None) -> History:
    """The history of a workload: each job ends its waiting time and its run time after its submission.

    An unknown waiting time counts as 0 s: the run time is then known somewhat earlier than it was. A job of which
    nothing was recorded runs until its walltime at most.

    Args:
        workload: the jobs.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if a run time is not known.
    """
    submit, limit, runtime = submit_times(workload), walltimes(workload), runtimes(workload, speed)
    wait = np.zeros(len(submit))
    if workload.trace is None:
        runtime = np.minimum(runtime, limit)
    else:
        wait = np.maximum(np.nan_to_num(of_jobs(workload.trace, workload.jobs).wait), 0.0)
    return History(
        user=[job.user for job in workload.jobs],
        size=sizes(workload).astype(np.int64),
        walltime=limit,
        submit=submit,
        end=submit + wait + runtime,
        runtime=runtime,
    )


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """How far predictions were off, over the jobs that had one (nan where none had)."""

    jobs: int  # with a prediction
    share: float  # of all jobs
    mean_absolute_error: float  # seconds: mean of |p - r|
    median_absolute_error: float  # seconds
    under: float  # share of predictions below the run time
    over: float  # share above
    accuracy: float  # mean of min(p, r) / max(p, r): 1 is perfect (Tsafrir 2007)


def predict_history(history: History, predictor: Predictor) -> Floats:
    """A predictor's prediction for each job at its submission, (J,) seconds, inf where nothing is known.

    The predictor learns a job's run time at its end, not before; at the same instant, ends come before submissions.
    """
    count = len(history.runtime)
    columns = (history.size.tolist(), history.walltime.tolist(), history.submit.tolist(), history.runtime.tolist())
    jobs = list(zip(history.user, *columns, strict=True))
    predictions = np.full(count, math.inf)
    for event in np.argsort(np.concatenate((history.end, history.submit)), kind="stable").tolist():
        user, size, walltime, submit, runtime = jobs[event % count]
        if event < count:
            predictor.observe(user, size, walltime, submit, runtime)
        else:
            predictions[event - count] = predictor.predict(user, size, walltime, submit)
    return predictions


def interval_coverage(history: History) -> float:
    """Share of the jobs that take what the quantiles 0.1 and 0.9 of `Quantiles`, said at submission, have between them.

    Both ends belong to the interval. A job that was submitted before anything was known does not count; nan of none.
    """
    predictor = Quantiles()
    predict_history(history, predictor)
    return predictor.held / predictor.compared if predictor.compared else math.nan


PREDICTED_BY = ", ".join((*PREDICTORS, "actual", "noise:S"))


def predict_by(name: str, history: History, rng: np.random.Generator) -> Floats:
    """Run times (J,) in seconds by a predictor's name; inf where nothing is known.

    Args:
        name: one of `PREDICTORS`; ``actual``, the run time itself; ``noise:S``, the run time times e to S times a
            number that is normally distributed.
        history: the jobs.
        rng: where noise comes from.

    Raises:
        ConfigError: for another name.
    """
    if name in PREDICTORS:
        return predict_history(history, PREDICTORS[name]())
    kind, colon, text = name.partition(":")
    if name == "actual":
        return history.runtime.copy()
    if kind == "noise" and colon:
        try:
            sigma = float(text)
        except ValueError:
            sigma = math.nan
        if not 0 <= sigma < math.inf:
            raise ConfigError(f"the predictor {name!r}: S must be a number, finite and not negative")
        return history.runtime * np.exp(sigma * rng.standard_normal(len(history.runtime)))
    known = [*PREDICTORS, "actual", "noise:S"]
    raise ConfigError(f"there is no predictor {name!r}{nearest(name, known)} (there are {PREDICTED_BY})")


def with_estimates(workload: Workload, predictions: Floats) -> Workload:
    """The workload whose jobs say these run times (J,), in seconds: at least 1 s, at most their walltime.

    A job of which nothing is known (inf) says its walltime, and nothing where it has none.
    """
    seconds = np.minimum(np.maximum(predictions, 1.0), walltimes(workload))
    seconds = np.where(np.isfinite(seconds), seconds, math.nan)
    if isinstance(workload.jobs, JobColumns):
        return msgspec.structs.replace(workload, jobs=workload.jobs.replaced(estimate=seconds, source=None))
    jobs = tuple(
        msgspec.structs.replace(job, estimate=own, source=None)
        for job, own in zip(workload.jobs, seconds.tolist(), strict=True)
    )
    return msgspec.structs.replace(workload, jobs=jobs)


def measure_errors(predictions: Floats, runtimes: Floats) -> Errors:
    """The errors of predictions (J,) of run times (J,), both in seconds."""
    predicted = np.isfinite(predictions)
    p, r = predictions[predicted], runtimes[predicted]
    if not len(p):
        nan = math.nan
        return Errors(
            jobs=0, share=0.0, mean_absolute_error=nan, median_absolute_error=nan, under=nan, over=nan, accuracy=nan
        )
    return Errors(
        jobs=len(p),
        share=len(p) / len(runtimes),
        mean_absolute_error=float(np.abs(p - r).mean()),
        median_absolute_error=float(np.median(np.abs(p - r))),
        under=float((p < r).mean()),
        over=float((p > r).mean()),
        accuracy=float((np.minimum(p, r) / np.maximum(p, r)).mean()),
    )
