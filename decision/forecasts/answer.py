"""What a forecast answers: for each job that waits when it starts, how sure that is, and what is not known.

Quantiles are those of the futures, moved by what forecasts of earlier moments of the same log missed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.errors import ConfigError

from .calibration import ERRORS, FUTURES, PRIOR_SCORES, Blend, Evidence
from .forecast import QUANTILES, Forecast, known_times
from .history import KnownJobs, RunTimes
from .judge import COVERED, KEPT_LEVELS, moments_of
from .like_jobs import like_jobs, queue_features
from .words import span

MOST_OF_A_MOMENT = 40  # jobs of an earlier moment, from which is learnt
FEW_JOBS = 5  # of its own kind, below which a job's run time is a guess from others
_NEVER = 1e8  # seconds: no start within any future

Forecaster = Callable[[float, RunTimes, int], Forecast]  # the moment, what is known of run times, and how many futures


class JobStart(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits. Times are seconds on the log's clock."""

    id: str
    submit: float
    size: int
    limit: float  # seconds, inf without one
    by: Mapping[float, float]  # share: the time by which it has started in so many cases; inf for never
    chance: float | None = None  # that it starts before the time that was asked for
    held_by: str = ""  # what holds it back now
    unknown: tuple[str, ...] = ()  # what the forecast does not know of it


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """When the jobs that wait at a moment start."""

    at: float  # seconds on the log's clock
    futures: int
    calibrated_by: int  # forecasts of earlier moments that calibrated these; 0: those of other logs alone
    jobs: tuple[JobStart, ...]
    before: float | None = None  # seconds: what the chances are of
    notes: tuple[str, ...] = ()  # what the forecast does not know of any job

    def document(self) -> dict[str, Any]:
        """The same for programs: seconds after the moment, None for never."""
        return {
            "at": self.at,
            "futures": self.futures,
            "calibrated_by": self.calibrated_by,
            "before": self.before,
            "notes": list(self.notes),
            "jobs": [
                {
                    "id": job.id,
                    "waited": self.at - job.submit,
                    "size": job.size,
                    "limit": job.limit if np.isfinite(job.limit) else None,
                    "starts_in": {f"{q:g}": t - self.at if np.isfinite(t) else None for q, t in job.by.items()},
                    "chance": job.chance,
                    "held_by": job.held_by,
                    "unknown": list(job.unknown),
                }
                for job in self.jobs
            ],
        }

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each job: id, waited, size, limit, a column for each quantile (seconds after
        the moment), chance, held_by and unknown."""
        import pandas as pd

        rows = [
            {
                "id": job.id,
                "waited": self.at - job.submit,
                "size": job.size,
                "limit": job.limit,
                **{f"q{100 * q:g}": t - self.at for q, t in job.by.items()},
                "chance": np.nan if job.chance is None else job.chance,
                "held_by": job.held_by,
                "unknown": "; ".join(job.unknown),
            }
            for job in self.jobs
        ]
        names = [*("id", "waited", "size", "limit"), *("chance", "held_by", "unknown")]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=names)


def learn_from_past(
    make: Forecaster,
    log: KnownJobs,
    at: float,
    moments: int,
    futures: int,
    show: Callable[[int, int], None] | None = None,
) -> Blend:
    """Forecast at moments of the log before `at`, and compare with the starts that were known by `at`."""
    blend = Blend(PRIOR_SCORES)
    past = log if at == np.inf else _before(log, at)
    if not moments or not len(past):
        return blend
    times, since = RunTimes(), -np.inf
    ats = moments_of(past, moments, 0)
    for number, moment in enumerate(ats.tolist()):
        known_times(past, moment, times, since)
        since = moment
        forecast = make(moment, times, futures)
        places = {name: row for row, name in enumerate(past.id)}
        rows = np.array([places[name] for name in forecast.id], np.int64)
        kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_OF_A_MOMENT)).astype(int))
        blend.learn(moment, past.start)
        blend.follow(moment, rows[kept], _evidence(levels_of(forecast)[kept], past, moment, rows[kept]))
        if show:
            show(number + 1, len(ats))
    blend.learn(at, past.start)
    return blend


def _before(log: KnownJobs, at: float) -> KnownJobs:
    """What was known of the log by then."""
    rows = np.flatnonzero(log.submit <= at)
    start = np.where(log.start[rows] <= at, log.start[rows], np.nan)
    runtime = np.where(log.end[rows] <= at, log.runtime[rows], np.nan)
    return KnownJobs(
        id=[log.id[row] for row in rows.tolist()],
        submit=log.submit[rows],
        start=start,
        runtime=runtime,
        size=log.size[rows],
        limit=log.limit[rows],
        user=log.user[rows],
    )


def levels_of(forecast: Forecast) -> F8:
    """(n, len(KEPT_LEVELS)) seconds after the moment by which so large shares of the futures have started each job."""
    return np.minimum(np.array([forecast.quantile(level) for level in KEPT_LEVELS]).T - forecast.at, _NEVER)


def answer(
    forecast: Forecast,
    log: KnownJobs,
    blend: Blend,
    *,
    quantiles: Sequence[float] = QUANTILES,
    before: float | None = None,
    held_by: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Starts:
    """What a forecast answers.

    Args:
        forecast: the futures.
        log: what was known then.
        blend: mixes and widens their quantiles by what it learnt.
        quantiles: shares between 0 and 1.
        before: seconds, the time that chances are asked for.
        held_by: by job, what holds it back now.
        notes: what is not known of any job.
    """
    if bad := [share for share in quantiles if not 0 < share < 1]:
        raise ConfigError(f"quantiles: {bad[0]:g} is not between 0 and 1", field="quantiles")
    places = {name: row for row, name in enumerate(log.id)}
    futures, rows = levels_of(forecast), np.array([places[name] for name in forecast.id], np.int64)
    moved = blend.forecast(_evidence(futures, log, forecast.at, rows))
    weigh = float(blend.weights[[FUTURES, ERRORS]].sum())
    if weigh >= 0.5:  # what has no start in so many futures is promised none
        moved[futures >= _NEVER] = np.inf
    if blend.learnt:
        notes = (_taught(blend, weigh, futures, moved), *notes)
    jobs = []
    for place, name in enumerate(forecast.id):
        line = moved[place]
        by = {share: forecast.at + float(np.interp(share, KEPT_LEVELS, line)) for share in quantiles}
        jobs.append(
            JobStart(
                id=name,
                submit=float(forecast.submit[place]),
                size=int(forecast.size[place]),
                limit=float(forecast.limit[place]),
                by=by,
                chance=None if before is None else _chance(line, before - forecast.at),
                held_by=(held_by or {}).get(name, ""),
                unknown=_unknown(forecast, place, int(log.user[rows[place]]) >= 0),
            )
        )
    return Starts(
        at=forecast.at,
        futures=len(forecast.starts),
        calibrated_by=blend.learnt,
        jobs=tuple(jobs),
        before=before,
        notes=tuple(notes),
    )


def _evidence(futures: F8, log: KnownJobs, at: float, rows: I8) -> Evidence:
    return Evidence(futures, like_jobs(log, at, rows), queue_features(log, at, rows))


def _taught(blend: Blend, weigh: float, futures: F8, moved: F8) -> str:
    """What earlier forecasts made of these."""
    low, high = COVERED[80]
    rest = "" if weigh > 0.995 else f", what happened in like queues and to like jobs {100 * (1 - weigh):.0f} %"
    known = np.isfinite(moved[:, high]) & (futures[:, high] < _NEVER)
    wide, before = (
        float(np.median((each[:, high] - each[:, low])[known])) if known.any() else np.inf for each in (moved, futures)
    )
    return (
        f"by what earlier forecasts missed, futures weigh {100 * weigh:.0f} %{rest}; the median job's 80 % interval is "
        f"{span(wide)} wide, the futures' own {span(before)}"
    )


def _chance(line: F8, left: float) -> float:
    """The share of cases in which a job starts within `left` seconds, between the levels as they lie."""
    known = np.isfinite(line)
    if not known.any() or left < line[known][0]:
        return 0.0 if not known.any() or left <= 0 else float(KEPT_LEVELS[0] * left / max(line[known][0], 1e-9))
    beyond = 1 - (1 - KEPT_LEVELS[-1]) / 2
    return float(min(beyond, np.interp(left, line[known], KEPT_LEVELS[known]) if left < line[known][-1] else beyond))


def _unknown(forecast: Forecast, place: int, has_user: bool) -> tuple[str, ...]:
    basis, count = forecast.basis[place], int(forecast.jobs[place])
    found = []
    if basis == "the limit alone":
        found.append("no job has ended yet: it is taken to run to its limit")
    elif has_user and basis in ("others' jobs of such limits", "all jobs"):
        found.append("a new user: its run time is a guess from others' jobs")
    elif count < FEW_JOBS:
        found.append(f"only {count} of the user's jobs like it {'has' if count == 1 else 'have'} ended")
    if not np.isfinite(forecast.quantile(0.5)[place]):
        found.append("in half of the futures it never starts")
    return tuple(found)


ALWAYS_UNKNOWN = (
    "not known: maintenance that is not announced, jobs that their users will cancel, and what users never did before"
)
