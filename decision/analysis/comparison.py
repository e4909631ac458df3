"""Comparison of policies over many runs: scores with intervals, the probability of beating a baseline, and its files.

The files are CSV for programs, Markdown for people, and JSON, from which the report is drawn.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from .shakes import rounded
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
    recorded: list[Standing] = []  # of each workload, where what really happened stands beside the policies
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
    """The comparison as Markdown tables, one per metric and workload, and how to read them; above, all at a glance."""
    glance = _glance(comparison) if comparison.judged or comparison.single else []
    several = [] if comparison.single else _tables(comparison)
    return "\n".join([*glance, *several, *(f"- {line}" for line in notes(comparison)), ""])


def notes(comparison: PolicyComparison) -> list[str]:
    """How to read the tables, one line each."""
    lines = _judged_notes(comparison) if comparison.judged else _run_notes(comparison)
    if any(row.metric == "bounded_slowdown" for row in comparison.rows):
        bound = f"{SHORTEST_RUNTIME:g} s"
        lines.append(f"bounded slowdown: mean over jobs; runtimes under {bound} count as {bound}")
    if any(row.workload == ALL for row in comparison.rows):
        multiples = f"{ALL}: scores as multiples of {comparison.baseline}'s IQM on the same workload"
        lines.append(_ALL_JUDGED if comparison.judged else multiples)
    return [*lines, *comparison.reading, *map(standing_text, comparison.recorded)]


_ALL_JUDGED = f"{ALL}: geometric mean over workloads of the ratio to the baseline"


def _judged_notes(comparison: PolicyComparison) -> list[str]:
    runs = max(row.runs for row in comparison.rows if row.workload != ALL)
    marks = "▲ ▼: better or worse, its interval leaves no change out"
    return [
        f"whole logs, {runs:,} shaken {'copy' if runs == 1 else 'copies'} of each under each policy; estimate: the "
        "mean over copies, without digits that are noise",
        f"change: against {comparison.baseline} on the same copies; {marks}",
        "late starts, and what is of a whole run such as energy: intervals of copies alone, since a log ends once",
    ]


def _run_notes(comparison: PolicyComparison) -> list[str]:
    runs, blocks = comparison.rows[0].runs, comparison.rows[0].blocks
    if comparison.single:
        return ["one run of each policy on each workload: no intervals, and nothing is marked"]
    drawn = "stratified bootstrap (Agarwal et al. 2021)"
    if blocks is not None:
        drawn = "windows that share jobs are drawn together (circular block bootstrap, Politis and White 2004)"
    lines = [
        f"{runs:,} runs of each policy on each workload; IQM: their interquartile mean; intervals: 95 %, {drawn}",
        f"P(better): probability that a run is better than one of {comparison.baseline}; "
        "▲ ▼: its interval is above or below one half",
    ]
    return [*lines, f"with fewer than {LEAST_RUNS} runs nothing is marked"] if runs < LEAST_RUNS else lines


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
        lines += [_line(headers(rows)), "|---|--:|--:|--:|--:|---|", *(_line(cells(row)) for row in rows), ""]
    return lines


def _glance(comparison: PolicyComparison) -> list[str]:
    lines = []
    for workload, metrics, rows in at_a_glance(comparison):
        names = ["policy", *(f"{name}{f' ({METRICS[name].unit})' if METRICS[name].unit else ''}" for name in metrics)]
        lines += [f"## {workload}", "", _line(names), "|---" + "|--:" * len(metrics) + "|", *map(_line, rows), ""]
    return lines


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def at_a_glance(comparison: PolicyComparison) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Of each workload: its name, the metrics, and a row of texts for each policy, its name first; marks beside."""
    found = {(row.workload, row.contender, row.metric): row for row in comparison.rows if row.workload != ALL}
    for workload in dict.fromkeys(row.workload for row in comparison.rows if row.workload != ALL):
        own = [key for key in found if key[0] == workload]
        policies, metrics = (list(dict.fromkeys(key[at] for key in own)) for at in (1, 2))
        rows = [
            [policy, *(_glanced(found.get((workload, policy, metric)), comparison.single) for metric in metrics)]
            for policy in policies
        ]
        yield workload, metrics, rows


def _glanced(row: Row | None, single: bool) -> str:
    if row is None:
        return "-"
    return figure(row.score.value) if single else f"{rounded(row.score)[0]} {MARKS[row.verdict]}".rstrip()


def headers(rows: Sequence[Row]) -> tuple[str, ...]:
    """What the cells of rows are."""
    if rows[0].improvement is None:
        return ("policy", "estimate", "95 %", "change", "95 %", "")
    return ("policy", "IQM", "95 %", "P(better)", "95 %", "")


def cells(row: Row) -> list[str]:
    """A row as texts, of `headers`: contender, score, and what it is against the baseline, with intervals; mark."""
    chance = row.improvement
    if chance is None:
        value, low, high = rounded(row.score)
        beside = [row.verdict, ""]
        if row.verdict not in ("baseline", "not comparable"):
            beside = ["-", ""] if row.change is None else [_percent(row.change.value), _percents(row.change)]
        return [row.contender, value, f"{low} to {high}", *beside, MARKS[row.verdict]]
    better = [row.verdict, ""]
    if row.verdict not in ("baseline", "not comparable"):
        better = [f"{chance.value:.2f}", f"{chance.low:.2f} to {chance.high:.2f}"]
    return [row.contender, figure(row.score.value), _interval(row.score), *better, MARKS[row.verdict]]


def _percent(share: float) -> str:
    return f"{100 * share:+.0f} %"


def _percents(change: Estimate) -> str:
    return f"{100 * change.low:+,.0f} to {100 * change.high:+,.0f} %"


def _interval(estimate: Estimate) -> str:
    return f"{figure(estimate.low)} to {figure(estimate.high)}"


def _cells(row: Row) -> Mapping[str, object]:
    return {
        "metric": row.metric,
        "workload": row.workload,
        "policy": row.contender,
        "runs": row.runs,
        **_named("estimate" if row.improvement is None else "iqm", row.score),
        **(_named("change", row.change) if row.improvement is None else _named("improvement", row.improvement)),
        "verdict": row.verdict,
        "blocks": row.blocks,
    }


def _named(name: str, found: Estimate | None) -> Mapping[str, float | None]:
    values = (None, None, None) if found is None else found
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _run_cells(outcome: MeasuredRun) -> Mapping[str, object]:
    return {
        "workload": outcome.workload,
        "policy": outcome.contender,
        "first_job": outcome.first_job,
        "copy": outcome.copy,
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
