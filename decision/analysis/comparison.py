"""Many runs of several policies, boiled down: how good each is, how sure that is, and whether it beats a baseline."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.record import Floats

from .measures import Metric
from .statistics import Estimate, interquartile_mean, probability_of_improvement

ALL = "all"  # the name of the rows over all workloads
LEAST_RUNS = 4  # per workload: with fewer no rank test could tell anything apart at 5 %

Verdict = Literal["better", "worse", "open", "baseline"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to."""

    workload: str
    contender: str  # the policy, with its engine where several are compared
    first_job: int  # of the window, in order of submission
    seed: int  # of the policy
    metrics: dict[str, float]  # by name, those that have a value; see `decision.analysis.measures`


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's standing in one metric on one workload, or on all."""

    metric: str
    workload: str
    contender: str
    runs: int
    score: Estimate  # interquartile mean, in the metric's unit; over all workloads as a multiple of the baseline's
    improvement: Estimate  # probability that a run is better than one of the baseline's
    verdict: Verdict


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison: what tables and reports are made of."""

    baseline: str
    rows: list[Row]
    outcomes: list[Outcome]
    setup: dict[str, str] = {}  # how it was run, for people: what was chosen, and as what


def compare(
    outcomes: Sequence[Outcome],
    metrics: Sequence[Metric],
    baseline: str,
    *,
    seed: int = 0,
    setup: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare contenders with a baseline, metric by metric.

    Statistics are those of `decision.analysis.statistics`; a verdict is "better" or "worse" where the interval of the
    probability of improvement leaves one half out and there are at least `LEAST_RUNS` runs. All contenders ran on the
    same windows, which these statistics make no use of: they err on the careful side. Over several workloads scores are
    divided by the baseline's interquartile mean on the same workload, and workloads are the tasks.

    Args:
        outcomes: the runs; every contender has the same on every workload.
        metrics: what is compared.
        baseline: the contender that the others are compared with.
        seed: of the bootstrap.
        setup: how they were run, which is passed on.

    Raises:
        ConfigError: if there is no such baseline, or a metric has no value in some run.
    """
    names = list(dict.fromkeys(outcome.contender for outcome in outcomes))
    if baseline not in names:
        raise ConfigError(f"the baseline {baseline!r} is not compared (compared are {', '.join(names)})")
    workloads = list(dict.fromkeys(outcome.workload for outcome in outcomes))
    rows = []
    for metric in metrics:
        scores = {name: _scores(outcomes, workloads, name, metric) for name in names}
        for at, workload in enumerate(workloads):
            rows += _rows(metric, workload, {n: s[:, [at]] for n, s in scores.items()}, baseline, seed)
        if len(workloads) > 1 and (scale := _typical(scores[baseline])).all():
            rows += _rows(metric, ALL, {n: s / scale for n, s in scores.items()}, baseline, seed)
    return Comparison(baseline=baseline, rows=rows, outcomes=list(outcomes), setup=dict(setup or {}))


def _scores(outcomes: Sequence[Outcome], workloads: Sequence[str], name: str, metric: Metric) -> Floats:
    """(runs, workloads) of a contender."""
    of = [outcome for outcome in outcomes if outcome.contender == name]
    columns = [
        [outcome.metrics.get(metric.name, math.nan) for outcome in of if outcome.workload == w] for w in workloads
    ]
    scores = np.array(columns).T
    if np.isnan(scores).any():
        advice = "; simulate energy with --energy" if "energy" in metric.name or metric.name == "switches" else ""
        raise ConfigError(f"metric {metric.name} has no value in some run of {name}{advice}; choose other metrics")
    return scores


def _typical(scores: Floats) -> Floats:
    return np.array([interquartile_mean(column[:, None], np.random.default_rng(0)).value for column in scores.T])


def _rows(metric: Metric, workload: str, scores: dict[str, Floats], baseline: str, seed: int) -> list[Row]:
    return [
        _row(metric, workload, name, own, scores[baseline], "baseline" if name == baseline else None, seed)
        for name, own in scores.items()
    ]


def _row(
    metric: Metric, workload: str, name: str, own: Floats, other: Floats, verdict: Verdict | None, seed: int
) -> Row:
    sign = 1 if metric.better == "lower" else -1
    improvement = probability_of_improvement(sign * own, sign * other, np.random.default_rng(seed))
    return Row(
        metric=metric.name,
        workload=workload,
        contender=name,
        runs=own.size,
        score=interquartile_mean(own, np.random.default_rng(seed)),
        improvement=improvement,
        verdict=verdict or _verdict(improvement, len(own)),
    )


def _verdict(improvement: Estimate, runs: int) -> Verdict:
    if runs < LEAST_RUNS or improvement.low <= 0.5 <= improvement.high:
        return "open"
    return "better" if improvement.low > 0.5 else "worse"
