"""Comparison of policies over many runs: scores with intervals, and the probability of beating a baseline."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.record import Floats

from .blocks import Windows
from .groups import GroupFigures
from .metric_list import METRICS, Metric
from .recorded import RECORDED, Standing
from .statistics import Estimate, interquartile_mean, probability_of_improvement

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
    metrics: dict[str, float]  # by name, those that have a value; see `decision.analysis.metric_list`
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

    Statistics are those of `decision.analysis.statistics`; a verdict is "better" or "worse" where the interval of the
    probability of improvement leaves one half out and there are at least `LEAST_RUNS` runs, or independent blocks of
    windows. Windows of a workload that share jobs are drawn together, the same for the two that are compared. Over
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
    names = list(dict.fromkeys(outcome.contender for outcome in outcomes))
    if baseline not in names:
        raise ConfigError(f"the baseline {baseline!r} is not compared (compared are {', '.join(names)})")
    workloads = list(dict.fromkeys(outcome.workload for outcome in outcomes))
    where = None if windows is None else [_windows(outcomes, name, baseline, *windows) for name in workloads]
    rows = []
    for metric in metrics:
        scores = {name: _scores(outcomes, workloads, name, metric) for name in names}
        scores = {name: own for name, own in scores.items() if not np.isnan(own).any()}  # as of what has no placement
        if baseline not in scores:
            continue
        for at, workload in enumerate(workloads):
            one = {n: s[:, [at]] for n, s in scores.items()}
            rows += _rows(metric, workload, one, baseline, seed, where and where[at : at + 1])
        if len(workloads) > 1 and (scale := _typical(scores[baseline])).all():
            rows += _rows(metric, ALL, {n: s / scale for n, s in scores.items()}, baseline, seed, where)
    return PolicyComparison(baseline=baseline, rows=rows, outcomes=list(outcomes), setup=dict(setup or {}))


def _scores(outcomes: Sequence[MeasuredRun], workloads: Sequence[str], name: str, metric: Metric) -> Floats:
    """(runs, workloads) of a contender."""
    of = [outcome for outcome in outcomes if outcome.contender == name]
    columns = [
        [outcome.metrics.get(metric.name, math.nan) for outcome in of if outcome.workload == w] for w in workloads
    ]
    scores = np.array(columns).T
    if np.isnan(scores).any() and not is_recorded(name):
        raise score_error(metric, name)
    return scores


def score_error(metric: Metric, name: str) -> ConfigError:
    """That a metric has no value in some run of a contender."""
    needs_energy = "energy" in metric.name or metric.name in ("switches", "waste_bound")
    advice = "simulate energy, or choose other metrics" if needs_energy else "choose other metrics"
    return ConfigError(
        f"metric {metric.name} has no value in some run of {name}; {advice}",
        field="energy" if needs_energy else "metrics",
    )


def _windows(
    outcomes: Sequence[MeasuredRun], workload: str, contender: str, length: int, jobs: Mapping[str, int]
) -> Windows:
    """Where a contender's runs of a workload lie."""
    first = [run.first_job for run in outcomes if (run.workload, run.contender) == (workload, contender)]
    return Windows(np.array(first), length, jobs[workload])


def _typical(scores: Floats) -> Floats:
    return np.array([interquartile_mean(column[:, None], np.random.default_rng(0)).value for column in scores.T])


def _rows(
    metric: Metric, workload: str, scores: dict[str, Floats], baseline: str, seed: int, where: list[Windows] | None
) -> list[Row]:
    return [
        _row(metric, workload, name, own, scores[baseline], _given_verdict(name, baseline), seed, where)
        for name, own in scores.items()
    ]


def _given_verdict(name: str, baseline: str) -> Verdict | None:
    """The verdict of a contender whatever its scores are; None where these decide."""
    if is_recorded(name) or is_recorded(baseline):
        return "not comparable"
    return "baseline" if name == baseline else None


def _row(
    metric: Metric,
    workload: str,
    name: str,
    own: Floats,
    other: Floats,
    verdict: Verdict | None,
    seed: int,
    where: list[Windows] | None,
) -> Row:
    sign = 1 if metric.better == "lower" else -1
    improvement = probability_of_improvement(sign * own, sign * other, np.random.default_rng(seed), where)
    blocks = None if where is None else min(windows.independent for windows in where)
    return Row(
        metric=metric.name,
        workload=workload,
        contender=name,
        runs=own.size,
        score=interquartile_mean(own, np.random.default_rng(seed), where).within(*_range(metric, workload)),
        improvement=improvement,
        verdict=verdict or _verdict(improvement, len(own) if blocks is None else blocks),
        blocks=blocks,
    )


def _range(metric: Metric, workload: str) -> tuple[float, float]:
    """What a score can be; over all workloads it is a multiple."""
    return (0.0, math.inf) if workload == ALL else (metric.least, metric.most)


def _verdict(improvement: Estimate, runs: float) -> Verdict:
    if runs < LEAST_RUNS or improvement.low <= 0.5 <= improvement.high:
        return "open"
    return "better" if improvement.low > 0.5 else "worse"
