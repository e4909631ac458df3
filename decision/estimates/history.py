"""Ended jobs in the order in which a scheduler learned of them, and how well a predictor would have done."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.workload import Workload

from .predictors import Predictor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that ran. All columns have length J."""

    user: list[str]
    size: Ints  # hosts
    walltime: Floats  # seconds, inf where the job had none
    submit: Floats  # seconds
    end: Floats  # seconds, when the run time became known
    runtime: Floats  # seconds, > 0


def history_of(workload: Workload, speed: float | None = None) -> History:
    """The history of a workload whose jobs never wait: each runs from its submission, until its walltime at most.

    Args:
        workload: the jobs.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if a run time is not known.
    """
    submit, limit = submit_times(workload), walltimes(workload)
    runtime = np.minimum(runtimes(workload, speed), limit)
    return History(
        user=[job.user for job in workload.jobs],
        size=sizes(workload).astype(np.int64),
        walltime=limit,
        submit=submit,
        end=submit + runtime,
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
    """What a predictor says of each job at its submission, (J,) seconds, inf where nothing is known.

    A job's run time is told at its end, not before; of what happens at one instant, ends come first.
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


def measure(predictions: Floats, runtimes: Floats) -> Errors:
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
