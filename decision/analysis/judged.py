"""A comparison of policies over whole logs, each on shaken copies: estimates, and changes against a baseline."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from .comparison import ALL, MeasuredRun, PolicyComparison, Row, Verdict, is_recorded, score_error
from .metric_list import METRICS, Metric
from .shakes import Runs, change, difference, estimate
from .statistics import Estimate, exponential

_Runs = dict[tuple[str, str], list[MeasuredRun]]  # by workload and policy


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
    found: _Runs = {}
    for run in outcomes:
        found.setdefault((run.workload, run.contender), []).append(run)
    workloads, every = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    names, twins = _distinct(found, workloads, every, {*named, baseline})
    rows: list[Row] = []
    for metric in metrics:
        here: list[Row] = []
        for workload in workloads:
            runs = {name: _runs(found[workload, name], metric, name) for name in names}
            base = runs[baseline]
            if base is not None:
                here += [_row(metric, workload, n, own, base, baseline) for n, own in runs.items() if own is not None]
        rows += here
        rows += _over_all(here, names, len(workloads))
    same = [f"{name} makes the schedules of {other}, and is listed once" for name, other in twins.items()]
    kept = [replace(run, without={}) for run in outcomes if run.contender in names]
    lines = [*reading, *same]
    return PolicyComparison(baseline=baseline, rows=rows, outcomes=kept, setup=dict(setup or {}), reading=lines)


def _distinct(
    found: _Runs, workloads: Sequence[str], names: Sequence[str], named: Collection[str]
) -> tuple[list[str], dict[str, str]]:
    """The policies that have rows, and of each other one the one that makes the same schedules."""
    of = {name: tuple(run.schedule for workload in workloads for run in found[workload, name]) for name in names}
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(names, key=lambda name: name not in named):
        first.setdefault(of[name], name)
    twins = {name: first[of[name]] for name in names if name not in named and first[of[name]] != name}
    return [name for name in names if name not in twins], twins


def _runs(outcomes: Sequence[MeasuredRun], metric: Metric, name: str) -> Runs | None:
    """The metric of a contender's runs of a workload; None where what really happened has none."""
    values = np.array([run.metrics.get(metric.name, math.nan) for run in outcomes])
    if np.isnan(values).any():
        if is_recorded(name):
            return None
        raise score_error(metric, name)
    without = [run.without.get(metric.name, []) for run in outcomes]
    blocks = min(map(len, without))
    return Runs(values, np.array([each[:blocks] for each in without], np.float64).reshape(len(values), blocks))


_VAGUE = 100.0  # times as much as the least that a ratio may be


def _row(metric: Metric, workload: str, name: str, own: Runs, base: Runs, baseline: str) -> Row:
    compared = not is_recorded(name) and not is_recorded(baseline)
    changed = change(own, base) if compared else None
    if changed is not None and 1 + changed.high > _VAGUE * (1 + changed.low):
        changed = None  # of next to nothing a share says nothing
    apart = changed or difference(own, base)
    verdict: Verdict = "open" if compared else "not comparable"
    if compared and name == baseline:
        verdict = "baseline"
    elif compared and not apart.low <= 0 <= apart.high and sure(own):
        verdict = "better" if (apart.value < 0) == (metric.better == "lower") else "worse"
    return Row(
        metric=metric.name,
        workload=workload,
        contender=name,
        runs=len(own.values),
        score=estimate(own).within(metric.least, metric.most),
        improvement=None,
        change=changed,
        verdict=verdict,
    )


def sure(own: Runs) -> bool:
    """Whether there is an interval at all."""
    return len(own.values) > 1 or own.without.shape[1] > 1


def _over_all(rows: Sequence[Row], names: Sequence[str], workloads: int) -> list[Row]:
    """A row for each contender that has a change on every one of several workloads."""
    made = []
    for name in names if workloads > 1 else ():
        own = [row for row in rows if row.contender == name]
        logs = [np.log1p(np.array(row.change)) for row in own if row.change is not None]
        if len(logs) < workloads:
            continue
        value = float(np.mean([log[0] for log in logs]))
        half = math.sqrt(sum(float(log[2] - log[0]) ** 2 for log in logs)) / workloads
        ratio = Estimate(*(exponential(value + side * half) for side in (0, -1, 1)))
        verdict: Verdict = own[0].verdict if own[0].verdict == "baseline" else "open"
        if verdict == "open" and not ratio.low <= 1 <= ratio.high:
            lower = METRICS[own[0].metric].better == "lower"
            verdict = "better" if (value < 0) == lower else "worse"
        made.append(
            Row(
                metric=own[0].metric,
                workload=ALL,
                contender=name,
                runs=sum(row.runs for row in own),
                score=ratio,
                improvement=None,
                change=Estimate(*(each - 1 for each in ratio)),
                verdict=verdict,
            )
        )
    return made
