"""Comparison of policies over many runs: scores with intervals, the probability of beating a baseline, and its files.

The files are CSV for programs, Markdown for people, and JSON, from which the report is drawn.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from decision.formats.files import read_bytes, write_files
from decision.model.errors import ConfigError, InputError
from decision.model.record import SHORTEST_RUNTIME, Floats

from .blocks import FEW_BLOCKS, Windows, few_blocks
from .metric_list import METRICS, Metric
from .recorded import RECORDED, Standing, standing_text
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


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's standing in one metric on one workload, or on all."""

    metric: str
    workload: str
    contender: str
    runs: int
    score: Estimate  # interquartile mean, in the metric's unit; over all workloads as a multiple of the baseline's
    improvement: Estimate  # probability that a run is better than one of the baseline's
    verdict: Verdict
    blocks: float | None = None  # independent blocks of windows, in the workload with least; None without windows


class PolicyComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison: what tables and reports are made of."""

    baseline: str
    rows: list[Row]
    outcomes: list[MeasuredRun]
    setup: dict[str, str] = {}  # how it was run, for people
    recorded: list[Standing] = []  # of each workload, where what really happened stands beside the policies


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
        needs_energy = "energy" in metric.name or metric.name in ("switches", "waste_bound")
        advice = "simulate energy, or choose other metrics" if needs_energy else "choose other metrics"
        raise ConfigError(
            f"metric {metric.name} has no value in some run of {name}; {advice}",
            field="energy" if needs_energy else "metrics",
        )
    return scores


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


MARKS = {"better": "▲", "worse": "▼", "open": "", "baseline": "", "not comparable": ""}
CONTENTS = "comparison.json"  # what `read_comparison` reads


def write_comparison(folder: Path, comparison: PolicyComparison) -> list[Path]:
    """Write ``comparison.csv`` (the rows), ``runs.csv`` (each run), ``comparison.md`` and ``comparison.json``.

    Raises:
        ConfigError: if they cannot be written; none is then.
    """
    contents = {
        folder / "comparison.csv": _csv(map(_cells, comparison.rows)),
        folder / "runs.csv": _csv(map(_run_cells, comparison.outcomes)),
        folder / "comparison.md": markdown(comparison),
        folder / CONTENTS: msgspec.json.encode(comparison).decode(),
    }
    write_files({path: [text.encode()] for path, text in contents.items()})
    return list(contents)


def read_comparison(folder: Path) -> PolicyComparison:
    """What `write_comparison` wrote.

    Raises:
        InputError: if it cannot be read.
    """
    path = folder / CONTENTS
    try:
        return msgspec.json.decode(read_bytes(path), type=PolicyComparison)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: not a comparison ({error}); run decision compare again") from None


def markdown(comparison: PolicyComparison) -> str:
    """The comparison as Markdown tables, one per metric and workload, and how to read them."""
    return "\n".join([*_tables(comparison), *(f"- {line}" for line in notes(comparison)), ""])


def notes(comparison: PolicyComparison) -> list[str]:
    """How to read the tables, one line each."""
    runs, blocks = comparison.rows[0].runs, comparison.rows[0].blocks
    drawn = "stratified bootstrap (Agarwal et al. 2021)"
    if blocks is not None:
        drawn = "windows that share jobs are drawn together (circular block bootstrap, Politis and White 2004)"
    lines = [
        f"{runs:,} runs of each policy on each workload; IQM: their interquartile mean; intervals: 95 %, {drawn}",
        f"P(better): probability that a run is better than one of {comparison.baseline}; "
        "▲ ▼: its interval is above or below one half",
    ]
    if any(row.metric == "bounded_slowdown" for row in comparison.rows):
        bound = f"{SHORTEST_RUNTIME:g} s"
        lines.append(f"bounded slowdown: mean over jobs; runtimes under {bound} count as {bound}")
    if any(row.workload == ALL for row in comparison.rows):
        lines.append(f"{ALL}: scores as multiples of {comparison.baseline}'s IQM on the same workload")
    if runs < LEAST_RUNS:
        lines.append(f"with fewer than {LEAST_RUNS} runs nothing is marked")
    return [*lines, *map(standing_text, comparison.recorded)]


def too_few_blocks(comparison: PolicyComparison) -> str:
    """That windows share so many jobs that intervals say little, and how many independent blocks there are; or ""."""
    known = [row for row in comparison.rows if row.blocks is not None]
    least = min(known, key=lambda row: row.blocks or 0.0, default=None)
    if least is None or least.blocks is None or least.blocks >= FEW_BLOCKS:
        return ""
    return few_blocks(least.blocks, f"the windows of {least.workload}", "windows (--length)")


def tables(comparison: PolicyComparison) -> list[tuple[str, str, list[Row]]]:
    """The rows in groups: metric, workload, rows."""
    return [(*key, list(rows)) for key, rows in groupby(comparison.rows, key=lambda row: (row.metric, row.workload))]


def heading(metric: str, workload: str) -> str:
    """The title of a table: what is measured, in which unit, which way is better."""
    known = METRICS[metric]
    unit = "" if workload == ALL or not known.unit else f" ({known.unit})"
    return f"{metric}{unit} on {workload}, {known.better} is better"


def figure(value: float) -> str:
    """A number of four digits, or with its thousands apart; millions and more as M, G or T."""
    for least, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= least:
            return f"{value / least:#.4g} {letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.4g}"


def _tables(comparison: PolicyComparison) -> list[str]:
    lines = []
    for metric, workload, rows in tables(comparison):
        lines += [f"### {heading(metric, workload)}", ""]
        lines += ["| policy | IQM | 95 % | P(better) | 95 % | |", "|---|--:|--:|--:|--:|---|", *map(_line, rows), ""]
    return lines


def _line(row: Row) -> str:
    return "| " + " | ".join(cells(row)) + " |"


def cells(row: Row) -> list[str]:
    """A row as texts: contender, IQM, probability of improvement, each with its interval if there are runs; mark."""
    chance = row.improvement
    better = [row.verdict, ""]
    if row.verdict not in ("baseline", "not comparable"):
        better = [f"{chance.value:.2f}", f"{chance.low:.2f} to {chance.high:.2f}" if row.runs > 1 else "-"]
    interval = _interval(row.score) if row.runs > 1 else "-"
    return [row.contender, figure(row.score.value), interval, *better, MARKS[row.verdict]]


def _interval(estimate: Estimate) -> str:
    return f"{figure(estimate.low)} to {figure(estimate.high)}"


def _cells(row: Row) -> Mapping[str, object]:
    return {
        "metric": row.metric,
        "workload": row.workload,
        "policy": row.contender,
        "runs": row.runs,
        "iqm": row.score.value,
        "iqm_low": row.score.low,
        "iqm_high": row.score.high,
        "improvement": row.improvement.value,
        "improvement_low": row.improvement.low,
        "improvement_high": row.improvement.high,
        "verdict": row.verdict,
        "blocks": row.blocks,
    }


def _run_cells(outcome: MeasuredRun) -> Mapping[str, object]:
    return {
        "workload": outcome.workload,
        "policy": outcome.contender,
        "first_job": outcome.first_job,
        "seed": outcome.seed,
        **{name: outcome.metrics.get(name) for name in METRICS},
    }


def _csv(rows: Iterable[Mapping[str, object]]) -> str:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
