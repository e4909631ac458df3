"""What predictors learn from: ended jobs of a workload or a log, in the order in which their run times became known.

`predict_history` replays them through a predictor, and `measure_errors` measures how good it was.
"""

import math

import msgspec
import numpy as np

from decision.model.columns import JobColumns
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.record import Floats, Ints
from decision.model.trace import of_jobs
from decision.model.workload import Workload

from .distribution import Quantiles
from .predictors import PREDICTORS, Predictor


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
        return history.runtime * np.exp(_sigma(name, text) * rng.standard_normal(len(history.runtime)))
    known = [*PREDICTORS, "actual", "noise:S"]
    raise ConfigError(f"there is no predictor {name!r}{nearest(name, known)} (there are {PREDICTED_BY})")


def _sigma(name: str, text: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = math.nan
    if not 0 <= sigma < math.inf:
        raise ConfigError(f"the predictor {name!r}: S must be a number, finite and not negative")
    return sigma


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
