"""Comparison of policies over many runs, or over whole logs on shaken copies: scores and changes with intervals."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints

from .audit import RECORDED, Standing
from .metric_list import METRICS, Metric
from .metrics import GroupFigures
from .statistics import (
    CONFIDENCE,
    FEW_BLOCKS,
    Estimate,
    Windows,
    block_deviation,
    bootstrap_mean,
    exponential,
    few_blocks,
    find_blocks,
    interquartile_mean,
    middle_mean,
    precision,
    probability_of_improvement,
    student,
)

ALL = "all"  # the name of the rows over all workloads
LEAST_RUNS = 4  # per workload: with fewer no rank test could tell anything apart at 5 %

DEFAULT_METRICS = (
    *("bounded_slowdown", "wait", "p95_wait", "p99_wait", "max_wait"),
    *("late_starts", "arrival_utilization", "utilization"),
)
WORTH_METRICS = ("value", "value_share", "violations")  # by default, too, where jobs have values and deadlines

Verdict = Literal["better", "worse", "open", "baseline", "not comparable"]


class MeasuredRun(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one run."""

    workload: str
    contender: str  # the policy, with its engine where several are compared
    first_job: int  # of the window, in order of submission
    seed: int  # of the policy
    metrics: dict[str, float]  # by name, those that have a value; see `decision.experiments.metric_list`
    copy: int = 0  # of the workload, shaken; 0 is the workload as it is
    without: dict[str, list[float]] = {}  # of a whole log: the metrics without the jobs of each block of time
    schedule: str = ""  # of a whole log: equal for equal starts
    groups: list[GroupFigures] = []  # of a whole log: what users and the like had, where that is known


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's standing in one metric on one workload, or on all."""

    metric: str
    workload: str
    contender: str
    runs: int
    score: Estimate  # interquartile mean, of whole logs the mean over copies, in the metric's unit; over all workloads
    # a multiple of the baseline's
    improvement: Estimate | None  # probability that a run is better than one of the baseline's; None for whole logs
    verdict: Verdict
    change: Estimate | None = None  # for whole logs: against the baseline, -0.2 is a fifth less; None where one is 0
    blocks: float | None = None  # independent blocks of windows, in the workload with least; None without windows


class PolicyComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison: what tables and reports are made of."""

    baseline: str
    rows: list[Row]
    outcomes: list[MeasuredRun]
    setup: dict[str, str] = {}  # how it was run, for people
    recorded: list[Standing] = []  # of each workload, where what really happened stands next to the policies
    reading: list[str] = []  # what is to be known to read it

    @property
    def judged(self) -> bool:
        """Whether it is of whole logs, shaken."""
        return bool(self.rows) and self.rows[0].improvement is None

    @property
    def single(self) -> bool:
        """Whether each policy has one run of each workload, so that there is no interval."""
        return not self.judged and all(row.runs == 1 for row in self.rows)


def default_metrics(outcomes: Sequence[MeasuredRun], feedback: bool = False) -> list[Metric]:
    """Those that have a value in all runs: where all jobs come at once there are no arrivals.

    With feedback, where a slow policy is sent fewer jobs, also throughput.
    """
    names = (*DEFAULT_METRICS, *WORTH_METRICS, *(("throughput",) if feedback else ()))
    simulated = [run for run in outcomes if not is_recorded(run.contender)] or outcomes
    return [METRICS[name] for name in names if all(name in run.metrics for run in simulated)]


def is_recorded(contender: str) -> bool:
    """Whether a contender is what really happened, and no policy."""
    return contender.partition(" @")[0] == RECORDED


def compare_runs(
    outcomes: Sequence[MeasuredRun],
    metrics: Sequence[Metric],
    baseline: str,
    *,
    seed: int = 0,
    setup: Mapping[str, str] | None = None,
    windows: tuple[int, Mapping[str, int]] | None = None,
) -> PolicyComparison:
    """Compare contenders with a baseline, metric by metric.

    Statistics are those of `decision.experiments.statistics`; a verdict is "better" or "worse" where the interval of
    the probability of improvement leaves one half out and there are at least `LEAST_RUNS` runs, or independent blocks
    of windows. Windows of a workload that share jobs are drawn together, the same for the two that are compared. Over
    several workloads scores are divided by the baseline's interquartile mean on the same workload, and workloads are
    the tasks.

    Args:
        outcomes: the runs; every contender has the same on every workload.
        metrics: what is compared.
        baseline: the contender that the others are compared with.
        seed: of the bootstrap.
        setup: how they were run, which is passed on.
        windows: where runs are windows of their workloads: jobs in a window, and in each workload.

    Raises:
        ConfigError: if the baseline is unknown, or a metric has no value in some run.
    """
    found = _by_workload(outcomes)
    workloads, names = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    if baseline not in names:
        raise ConfigError(f"the baseline {baseline!r} is not compared (compared are {', '.join(names)})")
    where = None
    if windows is not None:
        length, jobs = windows
        firsts = {name: [run.first_job for run in found[name, baseline]] for name in workloads}
        where = [Windows(np.array(first), length, jobs[name]) for name, first in firsts.items()]
    rows = []
    for metric in metrics:
        scores = {name: np.array([_values(found[w, name], metric) for w in workloads]).T for name in names}
        scores = {name: own for name, own in scores.items() if not np.isnan(own).any()}  # as of what has no placement
        if baseline not in scores:
            continue
        for at, workload in enumerate(workloads):
            one = {n: s[:, [at]] for n, s in scores.items()}
            rows += _rows(metric, workload, one, baseline, seed, where and where[at : at + 1])
        scale = np.array([middle_mean(column) for column in scores[baseline].T])
        if len(workloads) > 1 and scale.all():
            rows += _rows(metric, ALL, {n: s / scale for n, s in scores.items()}, baseline, seed, where)
    return PolicyComparison(baseline=baseline, rows=rows, outcomes=list(outcomes), setup=dict(setup or {}))


_Runs = dict[tuple[str, str], list[MeasuredRun]]  # by workload and policy


def _by_workload(outcomes: Sequence[MeasuredRun]) -> _Runs:
    found: _Runs = {}
    for run in outcomes:
        found.setdefault((run.workload, run.contender), []).append(run)
    return found


def _values(runs: Sequence[MeasuredRun], metric: Metric) -> Floats:
    """The metric of a contender's runs of a workload, (n,); nan where what really happened has none."""
    values = np.array([run.metrics.get(metric.name, math.nan) for run in runs])
    if np.isnan(values).any() and not is_recorded(runs[0].contender):
        raise score_error(metric, runs[0].contender)
    return values


def score_error(metric: Metric, name: str) -> ConfigError:
    """That a metric has no value in some run of a contender."""
    needs_energy = "energy" in metric.name or metric.name in ("switches", "waste_bound")
    advice = "simulate energy, or choose other metrics" if needs_energy else "choose other metrics"
    return ConfigError(
        f"metric {metric.name} has no value in some run of {name}; {advice}",
        field="energy" if needs_energy else "metrics",
    )


def _rows(
    metric: Metric, workload: str, scores: dict[str, Floats], baseline: str, seed: int, where: list[Windows] | None
) -> list[Row]:
    """A row for each contender of its scores (runs, tasks) and those of the baseline."""
    sign = 1 if metric.better == "lower" else -1
    blocks = None if where is None else min(windows.independent for windows in where)
    # What a score can be: over all workloads it is a multiple of the baseline's
    bounds = (0.0, math.inf) if workload == ALL else (metric.least, metric.most)
    rows = []
    for name, own in scores.items():
        improvement = probability_of_improvement(
            sign * own, sign * scores[baseline], np.random.default_rng(seed), where
        )
        enough = (len(own) if blocks is None else blocks) >= LEAST_RUNS
        rows.append(
            Row(
                metric=metric.name,
                workload=workload,
                contender=name,
                runs=own.size,
                score=interquartile_mean(own, np.random.default_rng(seed), where).within(*bounds),
                improvement=improvement,
                verdict=_verdict(name, baseline, improvement if enough else None, 0.5, "higher"),
                blocks=blocks,
            )
        )
    return rows


def _verdict(
    name: str, baseline: str, found: Estimate | None, nothing: float, better: Literal["lower", "higher"]
) -> Verdict:
    """What an interval says of a contender: better or worse where it leaves out `nothing`, the value of no change.

    Args:
        name: of the contender.
        baseline: that it is compared with.
        found: what it is against the baseline; None where there is no interval to rely on.
        nothing: what it is where the two are alike.
        better: on which side of that.
    """
    if is_recorded(name) or is_recorded(baseline):
        return "not comparable"
    if name == baseline:
        return "baseline"
    if found is None or found.low <= nothing <= found.high:
        return "open"
    return "better" if (found.value < nothing) == (better == "lower") else "worse"


# Intervals from blocks of time and from shaken copies of a whole log together.
#
# The variance of a metric, or of its ratio to the baseline's on the same copies, is that over blocks of neighbours in
# time (`decision.experiments.statistics`), by the jackknife, plus that of the mean over copies. The interval is
# Student's, with Satterthwaite's degrees of freedom, of the logarithm where all is positive.
#
# A log ends once, so late starts, and whatever else is of a whole run, vary over copies alone. The longest wait's
# interval is of such weeks as these; what a longer log would have is not known.


class Runs(NamedTuple):
    """A metric of a policy on c shaken copies."""

    values: Floats  # (c,)
    without: Floats  # (c, blocks) without the jobs of each block; (c, 0) where it is of a whole run

    @classmethod
    def of(cls, values: Sequence[float], without: Sequence[Sequence[float]]) -> "Runs":
        """Of the values by copy, and those without each block, of which copies may have one more or fewer."""
        blocks = min(map(len, without))
        left = np.array([each[:blocks] for each in without], np.float64)
        return cls(np.array(values, np.float64), left.reshape(len(values), blocks))

    @property
    def sure(self) -> bool:
        """Whether there is an interval at all."""
        return len(self.values) > 1 or self.without.shape[1] > 1


def estimate(own: Runs) -> Estimate:
    """The mean over copies, with its interval."""
    mean = float(own.values.mean())
    half = _half(own.values, _pseudo_values(mean, own.without.mean(axis=0)))
    if mean > 0 and (own.values > 0).all():
        return Estimate(mean, mean * math.exp(-half / mean), mean * exponential(half / mean))
    return Estimate(mean, mean - half, mean + half)


def change(own: Runs, baseline: Runs) -> Estimate | None:
    """The ratio of the means over copies minus 1, paired by copy and block; None where the baseline's is 0."""
    mean, base = float(own.values.mean()), float(baseline.values.mean())
    if mean == base and np.array_equal(own.values, baseline.values) and np.array_equal(own.without, baseline.without):
        return Estimate(0.0, 0.0, 0.0)
    if base <= 0 or mean < 0:
        return None
    if mean == 0:
        return Estimate(-1.0, -1.0, -1.0)
    log = math.log(mean / base)
    lefts = [np.maximum(each.without.mean(axis=0), 1e-12) for each in (own, baseline)]
    half = _half(own.values / mean - baseline.values / base, _pseudo_values(log, np.log(lefts[0] / lefts[1])))
    return Estimate(*(exponential(log + side * half) - 1 for side in (0, -1, 1)))


def difference(own: Runs, baseline: Runs) -> Estimate:
    """The difference of the means over copies, paired likewise."""
    return estimate(Runs(own.values - baseline.values, own.without - baseline.without))


def _pseudo_values(whole: float, without: Floats) -> Floats:
    """The jackknife's, of each block left out (n,)."""
    return len(without) * whole - (len(without) - 1) * without


def _half(copies: Floats, blocks: Floats) -> float:
    """Half of the interval of a mean.

    Args:
        copies: (c,) of each copy.
        blocks: (n,) the jackknife's values.
    """
    parts = []  # variance and its degrees of freedom
    if len(copies) > 1:
        parts.append((float(copies.var(ddof=1)) / len(copies), len(copies) - 1.0))
    if len(blocks) > 1 and np.ptp(blocks) > 0:
        together = find_blocks(blocks, Windows(np.arange(len(blocks)), 1, len(blocks)))
        error = precision([together], CONFIDENCE).widening * block_deviation(blocks, together)
        parts.append((error**2, max(together.number - 1, 1.0)))
    variance = sum(each for each, _ in parts)
    if variance <= 0:
        return 0.0
    degrees = variance**2 / sum(each**2 / free for each, free in parts)
    return student(degrees, CONFIDENCE) * math.sqrt(variance)


_NOTHING = 1e-6  # seconds and the like: what subtractions of times leave


def rounded(found: Estimate) -> tuple[str, str, str]:
    """Value and ends of the interval as texts, to the last digit that is above a thirtieth of half of the interval.

    So half of an interval has one digit, or two where it begins with 1 or 2; and no value has more than four digits.
    """
    if max(map(abs, found)) < _NOTHING:
        return "0", "0", "0"
    half = (found.high - found.low) / 2
    places = 3 - math.floor(math.log10(abs(found.value) or 1.0))
    if half > 0 and math.isfinite(half):
        places = min(places, -math.floor(math.log10(half / 3)))
    return tuple(f"{round(each, places):,.{max(places, 0)}f}" for each in found)  # type: ignore[return-value]


# A comparison of policies over whole logs, each on shaken copies: estimates, and changes against a baseline.


def judge_runs(
    outcomes: Sequence[MeasuredRun],
    metrics: Sequence[Metric],
    baseline: str,
    *,
    named: Collection[str],
    setup: Mapping[str, str] | None = None,
    reading: Sequence[str] = (),
) -> PolicyComparison:
    """Compare contenders with a baseline on whole logs, metric by metric.

    A verdict is "better" or "worse" where the interval of the change, or of the difference where a metric may be 0,
    leaves no change out. Over several workloads the logarithms of the ratios are averaged.

    Args:
        outcomes: the runs; every contender has the same copies of every workload.
        metrics: what is compared; those without a value in the baseline's runs are left out.
        baseline: the contender that the others are compared with.
        named: contenders that have rows whatever their schedules are; of others with equal schedules the first has.
        setup: how they were run, which is passed on.
        reading: lines on how to read it, likewise.

    Raises:
        ConfigError: if a metric has no value in some run.
    """
    found = _by_workload(outcomes)
    workloads, every = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    listed = {*named, baseline}
    schedules = {name: tuple(run.schedule for w in workloads for run in found[w, name]) for name in every}
    alike = first_alike({name: schedules[name] for name in sorted(every, key=lambda name: name not in listed)})
    twins = {name: alike[name] for name in every if name not in listed and alike[name] != name}
    names = [name for name in every if name not in twins]
    rows: list[Row] = []
    for metric in metrics:
        here: list[Row] = []
        for workload in workloads:
            runs = {}
            for name in names:
                values = _values(found[workload, name], metric)
                if not np.isnan(values).any():
                    without = [run.without.get(metric.name, []) for run in found[workload, name]]
                    runs[name] = Runs.of(values.tolist(), without)
            if baseline in runs:
                here += [_judged_row(metric, workload, n, own, runs[baseline], baseline) for n, own in runs.items()]
        rows += here
        rows += _over_all(metric, here, names, len(workloads), baseline)
    same = [f"{name} makes the schedules of {other}, and is listed once" for name, other in twins.items()]
    kept = [replace(run, without={}) for run in outcomes if run.contender in names]
    lines = [*reading, *same]
    return PolicyComparison(baseline=baseline, rows=rows, outcomes=kept, setup=dict(setup or {}), reading=lines)


def first_alike(schedules: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Of each policy the first one whose runs have the same schedules, which may be itself."""
    first: dict[tuple[str, ...], str] = {}
    return {name: first.setdefault(each, name) for name, each in schedules.items()}


def times_as_long(own: Sequence[float], baseline: Sequence[float], least: float = 1.0) -> list[float]:
    """Longest waits over the baseline's on the same copies; those below `least` seconds count as that long."""
    return [max(mine, least) / max(theirs, least) for mine, theirs in zip(own, baseline, strict=True)]


_VAGUE = 100.0  # times as much as the least that a ratio may be


def _judged_row(metric: Metric, workload: str, name: str, own: Runs, base: Runs, baseline: str) -> Row:
    compared = not is_recorded(name) and not is_recorded(baseline)
    changed = change(own, base) if compared else None
    if changed is not None and 1 + changed.high > _VAGUE * (1 + changed.low):
        changed = None  # of next to nothing a share says nothing
    apart = changed or difference(own, base)
    return Row(
        metric=metric.name,
        workload=workload,
        contender=name,
        runs=len(own.values),
        score=estimate(own).within(metric.least, metric.most),
        improvement=None,
        change=changed,
        verdict=_verdict(name, baseline, apart if own.sure else None, 0.0, metric.better),
    )


def _over_all(metric: Metric, rows: Sequence[Row], names: Sequence[str], workloads: int, baseline: str) -> list[Row]:
    """A row for each contender that has a change on every one of several workloads."""
    made = []
    for name in names if workloads > 1 else ():
        contender_rows = [row for row in rows if row.contender == name]
        logs = [np.log1p(np.array(row.change)) for row in contender_rows if row.change is not None]
        if len(logs) < workloads:
            continue
        value = float(np.mean([log[0] for log in logs]))
        half = math.sqrt(sum(float(log[2] - log[0]) ** 2 for log in logs)) / workloads
        ratio = Estimate(*(exponential(value + side * half) for side in (0, -1, 1)))
        made.append(
            Row(
                metric=metric.name,
                workload=ALL,
                contender=name,
                runs=sum(row.runs for row in contender_rows),
                score=ratio,
                improvement=None,
                change=Estimate(*(each - 1 for each in ratio)),
                verdict=_verdict(name, baseline, ratio, 1.0, metric.better),
            )
        )
    return made


# Episodes of a workload, each under every policy: means with intervals, in which those that share jobs count together.

EpisodeMetrics = Mapping[str, Mapping[str, Floats]]  # of each policy and metric, the episodes' values (E,)
EpisodeMeans = Mapping[str, Mapping[str, Estimate]]  # of each policy and metric


def episode_means(metrics: EpisodeMetrics, first: Ints, jobs: int) -> EpisodeMeans:
    """Means over the episodes; policies by waiting time.

    Args:
        metrics: of each policy and metric, the episodes' values (E,).
        first: (E,) the episodes' first jobs.
        jobs: of the workload; the last is followed by the first.
    """
    from decision.rl.envs.environment import RANGES

    found = {}
    for policy, columns in metrics.items():
        windows = [Windows(first, int(columns["arrived"].max()), jobs, circular=True)]
        means = found[policy] = dict.fromkeys(columns, Estimate(math.nan, math.nan, math.nan))
        for name, values in columns.items():
            if not np.isnan(values).any():
                mean = bootstrap_mean(values[:, None], np.random.default_rng(0), windows)
                means[name] = mean.within(*RANGES.get(name, (0.0, math.inf)))
    return dict(sorted(found.items(), key=lambda item: item[1]["waiting_time"].value))


def few_episodes(metrics: EpisodeMetrics, first: Ints, jobs: int) -> str:
    """That the episodes are worth too few independent ones, as of `episode_means`; "" where they are enough."""
    longest = max(int(columns["arrived"].max()) for columns in metrics.values())
    number = Windows(first, longest, jobs, circular=True).independent
    enough = len(first) == 1 or number >= FEW_BLOCKS
    return "" if enough else few_blocks(number, "the episodes", "episodes (--placed)")
