"""Moments of a log, forecasts of each, and what happened."""

import lzma
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.platform import Host, Platform, PowerState
from decision.policies import find_policy
from decision.slurm.case import Case
from decision.slurm.text import read_date
from decision.starts.forecast import Forecast, forecast, known_times
from decision.starts.history import JobLog, RunTimes
from decision.starts.judge import LEVELS, Calibration, Cases, moments_of
from decision.starts.slurm import rows_of, slurm_forecast, slurm_log

from .rivals import Boosting, features, like_jobs, point

OURS, RAW, LIMITS, PLAN, LIKE, BOOSTING = "futures", "futures, raw", "limits", "Slurm's plan", "like jobs", "boosting"
_MOST = 40  # jobs of a moment
_RETRAINED = 20  # moments after which boosting learns again
FAR = 1e9  # seconds: a start that no future has


class Judged(NamedTuple):
    """A log and how its moments are forecast."""

    name: str
    log: JobLog
    futures: Callable[[float, RunTimes, int], Forecast]
    limits: Callable[[float, RunTimes], Forecast]
    plan: Callable[[float], Mapping[str, float]] | None = None  # by job: when it is planned to start
    skipped: frozenset[str] = frozenset()  # jobs that are not judged


class Results(NamedTuple):
    """What was forecast of one log, by who forecast it: quantiles (n, len(LEVELS)) of the seconds left."""

    name: str
    cases: Cases
    said: dict[str, F8]  # nan where one says nothing
    rows: I8  # (n,) of the log
    judged: np.ndarray  # (n,) whether a case is judged: the others came before, to learn from


def plain_platform(hosts: int) -> Platform:
    """Equal hosts."""
    one = (PowerState(speed=1e9),)
    return Platform(hosts=tuple(Host(id=i, name=f"h{i:06d}", pstates=one) for i in range(hosts)))


def of_log(name: str, log: JobLog, hosts: int, policy: str) -> Judged:
    """A log whose starts are those of a policy, or taken for them."""
    platform, chosen = plain_platform(hosts), find_policy(policy, {})

    def futures(at: float, times: RunTimes, count: int) -> Forecast:
        return forecast(platform, chosen, log, at, futures=count, times=times)

    def limits(at: float, times: RunTimes) -> Forecast:
        return forecast(platform, chosen, log, at, futures=1, times=times, by_limits=True)

    return Judged(name, log, futures, limits)


def of_case(name: str, case: Case, cycles: Path | None = None) -> Judged:
    """A recording of a Slurm; with what its backfill planned, where `cycles` says it."""
    log, settings = slurm_log(case), case.settings

    def futures(at: float, times: RunTimes, count: int) -> Forecast:
        return slurm_forecast(case, settings, int(at), log=log, futures=count, times=times)

    def limits(at: float, times: RunTimes) -> Forecast:
        return slurm_forecast(case, settings, int(at), log=log, times=times, by_limits=True)

    strange = frozenset(job.id for job in case.jobs if job.requeues or job.held or not job.started)
    return Judged(name, log, futures, limits, read_plans(cycles) if cycles else None, strange)


_PLANNED = re.compile(r"^(\S+) planned (\S+) (\S+) ")


def read_plans(path: Path) -> Callable[[float], Mapping[str, float]] | None:
    """What each cycle of backfill planned (``TIME planned JOB START END NODES``): by time, the plan of each job."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        found = [match.groups() for line in file if (match := _PLANNED.match(line))]
    times = np.array([read_date(time) for time, _, _ in found], np.float64)
    if not len(times):
        return None

    def plan(at: float) -> Mapping[str, float]:
        # the last ten minutes: a cycle tests not all jobs, and the latest plan of each counts
        first, last = np.searchsorted(times, (at - 600, at), side="right")
        return {job: float(read_date(start)) for _, job, start in found[first:last]}

    return plan


def judge_log(
    given: Judged, moments: int, futures: int, seed: int = 0, show: Callable[[int, int], None] | None = None
) -> Results:
    """Forecast at moments of a log; a quarter as many come before those that are judged, to calibrate.

    Everything that learns, learns at each moment from what had happened by then.
    """
    log, rng = given.log, np.random.default_rng(seed)
    early = max(8, moments // 4)
    times, since = RunTimes(), -np.inf
    boosting, parts = Boosting(), []
    ats = moments_of(log, moments + early, seed, given.skipped)
    for number, at in enumerate(ats.tolist()):
        known_times(log, at, times, since)
        since = at
        ours, rows = _forecast_at(given, at, times, futures)
        judged = np.flatnonzero(np.isfinite(log.start[rows]) & ~np.isin(np.array(log.id)[rows], list(given.skipped)))
        if len(judged) > _MOST:
            judged = np.sort(rng.choice(judged, _MOST, replace=False))
        if not len(judged):
            continue
        rows = rows[judged]
        if number % _RETRAINED == 0:
            _teach(boosting, parts, log, at)
        known = features(log, at, rows)
        learnt = boosting.say(known)
        planned = given.plan(at) if given.plan else {}
        plan = np.array([planned.get(log.id[row], np.nan) for row in rows.tolist()]) - at
        limits = given.limits(at, times)
        said = {
            RAW: np.array([np.minimum(ours.quantile(level)[judged] - at, FAR) for level in LEVELS]).T,
            LIMITS: point(np.minimum(limits.starts[0][judged] - at, FAR)),
            PLAN: point(plan),
            LIKE: like_jobs(log, at, rows),
            BOOSTING: np.full((len(rows), len(LEVELS)), np.nan) if learnt is None else learnt,
        }
        parts.append((number, at, rows, known, said))
        if show:
            show(number + 1, len(ats))
    return _joined(given, parts, early)


def _forecast_at(given: Judged, at: float, times: RunTimes, futures: int) -> tuple[Forecast, I8]:
    ours = given.futures(at, times, futures)
    return ours, rows_of(ours, given.log)


def _teach(boosting: Boosting, parts: list, log: JobLog, at: float) -> None:
    """Let boosting learn from earlier moments what has started by now."""
    known = [part[3][log.start[part[2]] <= at] for part in parts]
    left = [(log.start[part[2]] - part[1])[log.start[part[2]] <= at] for part in parts]
    if known:
        boosting.learn(np.concatenate(known), np.concatenate(left))


def _joined(given: Judged, parts: list, early: int) -> Results:
    log = given.log
    rows = np.concatenate([part[2] for part in parts])
    moment = np.concatenate([np.full(len(part[2]), part[0]) for part in parts])
    at = np.concatenate([np.full(len(part[2]), part[1]) for part in parts])
    cases = Cases(moment, at, at - log.submit[rows], log.start[rows] - at)
    said = {name: np.concatenate([part[4][name] for part in parts]) for name in parts[0][4]}
    return Results(given.name, cases, said, rows, moment >= early)


def calibrated(results: Results, prior: F8 | None = None) -> F8:
    """The futures' quantiles, widened by what was missed before: at each moment by jobs that had started by then.

    `prior` are the scores of other logs, which count until this one has its own.
    """
    cases, raw = results.cases, results.said[RAW]
    calibration, out, learnt = Calibration(prior), raw.copy(), np.zeros(len(raw), bool)
    for moment in np.unique(cases.moment).tolist():
        rows = cases.moment == moment
        at = cases.at[rows][0]
        new = ~learnt & (cases.moment < moment) & (cases.at + cases.left <= at)
        calibration.learn(raw[new], cases.left[new])
        learnt |= new
        out[rows] = calibration.apply(raw[rows])
    return out
