"""Forecasts of starts judged as forecasts are: at moments of a log, by several ways, beside what happened."""

import lzma
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8
from decision.experiments.inputs import read_selected
from decision.experiments.tasks import file_digest, task_key
from decision.files.text import utf8, write_files
from decision.files.workload import Selection
from decision.forecasts.answer import MOST_OF_A_MOMENT, levels_of
from decision.forecasts.calibration import PRIOR_SCORES, Blend, Evidence
from decision.forecasts.forecast import Forecast, forecast, known_times
from decision.forecasts.history import KnownJobs, RunTimes
from decision.forecasts.judge import (
    COVERED,
    KEPT_LEVELS,
    MEDIAN,
    WAIT_CLASSES,
    Cases,
    Score,
    moments_of,
    score_quantiles,
)
from decision.forecasts.like_jobs import like_jobs, queue_features
from decision.forecasts.log import log_until
from decision.forecasts.slurm import rows_of, slurm_forecast, slurm_log
from decision.forecasts.words import span
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.papers.campaign import Findings, ResultTable, tables_markdown, write_arrays
from decision.policies import find_policy
from decision.report.plots.figures import BLUE, RED, Picture, new_figure, save, styled
from decision.slurm.case import CASE_FILE, Case, Sources, load_case, read_case, write_case
from decision.slurm.text import read_date

_OFFSET = 60.0  # seconds


def point(left: F8) -> F8:
    """A forecast of one time (n,) as quantiles that are all the same."""
    return np.repeat(np.maximum(0.0, left)[:, None], len(KEPT_LEVELS), axis=1)


class Boosting:
    """Quantile regression by gradient boosting (scikit-learn), of the logarithm of what is left to wait."""

    def __init__(self) -> None:
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise ConfigError(
                "gradient boosting, to compare with, needs scikit-learn: pip install 'batsim-decision[comparison]'"
            ) from None
        self._make = HistGradientBoostingRegressor
        self._models: Sequence = ()

    def learn(self, known: F8, left: F8) -> None:
        """Features (n, F) and what was left (n,) in seconds, of jobs that have started."""
        target = np.log(np.maximum(0.0, left) + _OFFSET)
        make = (self._make(loss="quantile", quantile=level, max_iter=60, random_state=0) for level in KEPT_LEVELS)
        self._models = [model.fit(known, target) for model in make] if len(left) >= 30 else ()

    def forecast(self, known: F8) -> F8 | None:
        """Quantiles (n, len(KEPT_LEVELS)); None before it has learnt."""
        if not self._models:
            return None
        quantiles = np.column_stack([model.predict(known) for model in self._models])
        return np.sort(np.maximum(0.0, np.exp(quantiles) - _OFFSET), axis=1)


# Moments of a log, forecasts of each, and what happened.


OURS, RAW, LIMITS, PLAN, LIKE, BOOSTING = "futures", "futures, raw", "limits", "Slurm's plan", "like jobs", "boosting"
_BY = "quantiles by "  # before a forecaster's name, in a file of forecasts
_RETRAINED = 20  # moments after which boosting learns again
_NO_START = 1e9  # seconds: a start that no future has


class Judged(NamedTuple):
    """A log and how its moments are forecast."""

    name: str
    log: KnownJobs
    futures: Callable[[float, RunTimes, int], Forecast]
    limits: Callable[[float, RunTimes], Forecast]
    plan: Callable[[float], Mapping[str, float]] | None = None  # by job: when it is planned to start
    skipped: frozenset[str] = frozenset()  # jobs that are not judged


class LogForecasts(NamedTuple):
    """What was forecast of one log, by who forecast it: quantiles (n, len(KEPT_LEVELS)) of the seconds left."""

    name: str
    cases: Cases
    quantiles: dict[str, F8]  # nan where one says nothing
    rows: I8  # (n,) of the log
    judged: np.ndarray  # (n,) whether a case is judged: the others came before, to learn from


def plain_platform(hosts: int) -> Platform:
    """Equal hosts, as many as a log asks for."""
    one = (PowerState(speed=1e9),)
    return Platform(hosts=tuple(Host(id=i, name=f"h{i:06d}", pstates=one) for i in range(hosts)))


def of_log(name: str, log: KnownJobs, hosts: int, policy: str) -> Judged:
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
) -> LogForecasts:
    """Forecast at moments of a log; a quarter as many come before those that are judged, to calibrate.

    Everything that learns, learns at each moment from what had happened by then.
    """
    log, rng = given.log, np.random.default_rng(seed)
    early = max(8, moments // 4)
    times, since = RunTimes(), -np.inf
    boosting, blend, parts = Boosting(), Blend(PRIOR_SCORES), list[Any]()
    ats = moments_of(log, moments + early, seed, given.skipped)
    for number, at in enumerate(ats.tolist()):
        known_times(log, at, times, since)
        since = at
        ours = given.futures(at, times, futures)
        rows = rows_of(ours, log)
        judged = np.flatnonzero(np.isfinite(log.start[rows]) & ~np.isin(np.array(log.id)[rows], list(given.skipped)))
        if len(judged) > MOST_OF_A_MOMENT:
            judged = np.sort(rng.choice(judged, MOST_OF_A_MOMENT, replace=False))
        if not len(judged):
            continue
        rows = rows[judged]
        if number % _RETRAINED == 0 and parts:  # from what has started by now
            over = [log.start[part[2]] <= at for part in parts]
            left = [(log.start[part[2]] - part[1])[known] for part, known in zip(parts, over, strict=True)]
            features = [part[3][known] for part, known in zip(parts, over, strict=True)]
            boosting.learn(np.concatenate(features), np.concatenate(left))
        evidence = Evidence(levels_of(ours)[judged], like_jobs(log, at, rows), queue_features(log, at, rows))
        blend.learn(at, log.start)
        learnt = boosting.forecast(evidence.features)
        planned = given.plan(at) if given.plan else {}
        plan = np.array([planned.get(log.id[row], np.nan) for row in rows.tolist()]) - at
        limits = given.limits(at, times)
        quantiles = {
            OURS: blend.follow(at, rows, evidence),
            RAW: evidence.futures,
            LIMITS: point(np.minimum(limits.starts[0][judged] - at, _NO_START)),
            PLAN: point(plan),
            LIKE: evidence.alike,
            BOOSTING: np.full((len(rows), len(KEPT_LEVELS)), np.nan) if learnt is None else learnt,
        }
        parts.append((number, at, rows, evidence.features, quantiles))
        if show:
            show(number + 1, len(ats))
    return _joined(given, parts, early)


def _joined(given: Judged, parts: list[Any], early: int) -> LogForecasts:
    log = given.log
    rows = np.concatenate([part[2] for part in parts])
    moment = np.concatenate([np.full(len(part[2]), part[0]) for part in parts])
    at = np.concatenate([np.full(len(part[2]), part[1]) for part in parts])
    cases = Cases(moment, at, at - log.submit[rows], log.start[rows] - at)
    quantiles = {name: np.concatenate([part[4][name] for part in parts]) for name in parts[0][4]}
    return LogForecasts(given.name, cases, quantiles, rows, moment >= early)


class LogAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A log, and how it is to be judged."""

    path: Path
    policy: str
    hosts: int | None
    as_recorded: bool
    selection: Selection
    moments: int
    futures: int

    def definition(self) -> dict[str, Any]:
        """All that its forecasts depend on, but for this package."""
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        return {
            "experiment": "starts",
            "name": self.path.name,
            "files": {file.name: file_digest(file) for file in files if file.is_file()},
            "policy": self.policy,
            "hosts": self.hosts,
            "as_recorded": self.as_recorded,
            "selection": self.selection.facts(),
            "moments": self.moments,
            "futures": self.futures,
        }

    def judged_in(self, folder: Path, show: Callable[[int, int], None]) -> LogForecasts:
        """Its forecasts: those that a folder keeps of these sources, or new ones, which are kept there."""
        kept = folder / "runs" / f"{self.path.name}-{task_key(self)}.npz"
        if kept.exists():
            with np.load(kept) as file:
                quantiles = {name.removeprefix(_BY): file[name] for name in file.files if name.startswith(_BY)}
                cases = Cases(**{name: file[name] for name in Cases._fields})
                return LogForecasts(_name_of(self.path), cases, quantiles, file["rows"], file["judged"])
        given = read_judged(self.path, self.policy, self.hosts, self.as_recorded, self.selection)
        found = judge_log(given, self.moments, self.futures, show=show)
        arrays: dict[str, Any] = {"rows": found.rows, "judged": found.judged, **found.cases._asdict()}
        arrays |= {_BY + name: quantiles for name, quantiles in found.quantiles.items()}
        write_arrays(kept, arrays)
        return found


def _name_of(log: Path) -> str:
    return log.name if log.is_dir() else log.name.partition(".")[0]


def reproduce_starts(asked: Sequence[LogAsked], folder: Path, show: Callable[[int, int], None]) -> Findings:
    """Judge forecasts on logs, and write ``table.md`` and a picture of each log; logs that are finished are kept.

    Raises:
        ConfigError: if a log cannot be read, or has no job that waits.
    """
    results, done, moments = [], 0, sum(each.moments for each in asked)
    for each in asked:

        def shown(at: int, of: int, done: int = done, own: int = each.moments) -> None:
            show(done + at * own // of, moments)

        results.append(each.judged_in(folder, shown))
        done += each.moments
    tables, notes = result_tables(results), sentence(results)
    write_files({folder / "table.md": [utf8(tables_markdown(tables) + "\n\n" + notes + "\n")]})
    for found in results:
        save_picture(found, folder / f"{found.name}.png")
    return Findings(tables, f"{notes}; {folder}/table.md")


def read_judged(path: Path, policy: str, hosts: int | None, as_recorded: bool, selection: Selection) -> Judged:
    """A log, a case, or a recording of a Slurm, by what it is."""
    if not path.is_dir():
        workload = read_selected(path, "w0", selection, plain_platform(1))
        count = hosts or workload.nb_res
        known = log_until(plain_platform(count), workload, find_policy(policy, {}), np.inf, as_recorded)
        return of_log(_name_of(path), known.jobs, count, policy)
    cycles = next((path / name for name in ("cycles.txt.xz", "cycles.txt") if (path / name).is_file()), None)
    if (path / CASE_FILE).is_file():
        return of_case(path.name, load_case(path), cycles)
    found: dict[str, Any] = {
        name: path / f"{name}.txt"
        for name in ("nodes", "partitions", "assoc", "qos")
        if (path / f"{name}.txt").is_file()
    }
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        made = read_case(Sources(conf=path / "slurm.conf", jobs=path / "sacct.txt", **found))
        write_case(*made, Path(temporary))
        case = load_case(Path(temporary))
        _ = case.settings  # read while the folder is there
    return of_case(path.name, case, cycles)


# What a log's forecasts came to, beside the others'.


_COLUMNS = ("forecast", "jobs", "50 %", "80 %", "95 %", "pinball loss, s", "median error, s", "width of 80 %, s")
_MARKS = (0, 5, 10, 30, 60, 120, 360, 1440, 4320, 10_080)  # minutes
_SHOWN = 20  # forecasts in the picture


def result_tables(results: Sequence[LogForecasts]) -> tuple[ResultTable, ...]:
    """A table of each log: who forecast it how well; the futures also by how long jobs still waited."""
    tables = []
    for log in results:
        rows = []
        for name, quantiles in log.quantiles.items():
            known = log.judged & np.isfinite(quantiles).all(1)
            if known.any():
                is_point = bool((quantiles[known][:, 0] == quantiles[known][:, -1]).all())
                rows.append(_row(name, score_quantiles(log.cases, quantiles, known), is_point))
        for kind in WAIT_CLASSES:
            among = log.judged & log.cases.among(kind)
            if among.any():
                rows.append(_row(f"{OURS}: {kind}", score_quantiles(log.cases, log.quantiles[OURS], among), False))
        tables.append(ResultTable(log.name, _COLUMNS, rows))
    return tuple(tables)


def _row(name: str, found: Score, is_point: bool) -> list[str]:
    covered = ["" if is_point else _with_ends(found.covered[each], 100, " %") for each in COVERED]
    losses = [_with_ends(each, 1, "") for each in (found.pinball, found.error)]
    return [name, f"{found.cases:,}", *covered, *losses, "" if is_point else f"{found.width:,.0f}"]


def _with_ends(found: tuple[float, float, float], scale: float, unit: str) -> str:
    value, low, high = (scale * each for each in found)
    return f"{value:,.0f}{unit} ({low:,.0f}-{high:,.0f})"


_GOALS = {80: 0.04, 95: 0.03}  # by percent: how far the share of intervals that hold may be off


def sentence(results: Sequence[LogForecasts]) -> str:
    """How the futures stand among all, over the logs."""
    held = agrees = lowest = 0
    for each in results:
        others = {name: q for name, q in each.quantiles.items() if name != RAW}
        known = each.judged & np.all([np.isfinite(q).all(1) | ~np.isfinite(q).any() for q in others.values()], axis=0)
        scores = {
            name: score_quantiles(each.cases, q, known) for name, q in others.items() if np.isfinite(q[known]).all()
        }
        covered = score_quantiles(each.cases, each.quantiles[OURS], each.judged).covered
        held += all(abs(covered[percent][0] - percent / 100) <= off for percent, off in _GOALS.items())
        agrees += all(covered[percent][1] <= percent / 100 <= covered[percent][2] for percent in _GOALS)
        lowest += scores[OURS].pinball[0] <= min(found.pinball[0] for found in scores.values())
    return (
        f"intervals of 80 % within 4 and of 95 % within 3 points on {held} of {len(results)} logs, and inside "
        f"the intervals of what was measured on {agrees}; the lowest pinball loss on {lowest}"
    )


def save_picture(results: LogForecasts, path: Path) -> None:
    """Twenty forecasts of a log against what happened."""
    save(twenty_forecasts(results).figure, path)


@styled
def twenty_forecasts(results: LogForecasts) -> Picture:
    """Twenty forecasts, spread evenly over the judged ones, against what happened."""
    rows = np.flatnonzero(results.judged)
    rows = rows[np.linspace(0, len(rows) - 1, min(_SHOWN, len(rows))).astype(int)]
    quantiles, left = results.quantiles[OURS][rows] / 60, results.cases.left[rows] / 60
    figure = new_figure(34)
    axes = figure.subplots()
    places = np.arange(len(rows))
    for (low, high), width in ((COVERED[95], 1.5), (COVERED[80], 5)):
        axes.hlines(places, quantiles[:, low], quantiles[:, high], color=BLUE, linewidth=width, alpha=0.55)
    axes.plot(quantiles[:, MEDIAN], places, "|", color=BLUE, markersize=9)
    axes.plot(left, places, "x", color=RED, markersize=6)
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    marks = [mark for mark in _MARKS if mark <= axes.get_xlim()[1]]
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.set_xlabel("minutes from the forecast to the start")
    axes.set_yticks(places, [f"{span(waited)}" for waited in results.cases.waited[rows].tolist()])
    axes.set_ylabel("waited so far")
    axes.invert_yaxis()
    held = int(((left >= quantiles[:, COVERED[80][0]]) & (left <= quantiles[:, COVERED[80][1]])).sum())
    caption = (
        f"Twenty forecasts of {results.name}, spread over all that were judged: lines are intervals of 95 %, bars of "
        f"80 %, marks the middle, crosses what happened. {held} of {len(rows)} crosses are on the bars."
    )
    alt = f"Bars from quantile 0.1 to 0.9 with crosses, {held} of {len(rows)} on the bars."
    return Picture(figure, caption, alt)
