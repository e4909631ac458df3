"""A comparison written down: tables in Markdown, marks, how to read them; and its files, CSV, Markdown and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from decision.experiments.audit import standing_text
from decision.experiments.comparison import ALL, LEAST_RUNS, PolicyComparison, Row, rounded
from decision.experiments.metric_list import METRICS, metric_named
from decision.experiments.statistics import FEW_BLOCKS, Estimate, few_blocks
from decision.files.text import json_bytes, read_bytes, utf8, write_files
from decision.model.errors import ConfigError, InputError
from decision.model.record import SHORTEST_RUNTIME
from decision.model.table import Table, csv_text

MARKS = {"better": "▲", "worse": "▼", "open": "", "baseline": "", "not comparable": ""}


def markdown(comparison: PolicyComparison) -> str:
    """The comparison as Markdown tables, one per metric and workload, and how to read them; above, all at a glance."""
    lines: list[str] = []
    for workload, metrics, rows in at_a_glance(comparison) if comparison.judged or comparison.single else ():
        units = [metric_named(name).unit for name in metrics]
        names = [f">{name}{f' ({unit})' if unit else ''}" for name, unit in zip(metrics, units, strict=True)]
        lines += Table(workload, ("policy", *names), rows).markdown(2)
    for each in metric_tables(comparison):
        lines += each.markdown(3)
    return "\n".join([*lines, *(f"- {line}" for line in notes(comparison)), ""])


def notes(comparison: PolicyComparison) -> list[str]:
    """How to read the tables, one line each."""
    runs, blocks = comparison.rows[0].runs, comparison.rows[0].blocks
    if comparison.judged:
        runs = max(row.runs for row in comparison.rows if row.workload != ALL)
        marks = "▲ ▼: better or worse, its interval leaves no change out"
        lines = [
            f"whole logs, {runs:,} shaken {'copy' if runs == 1 else 'copies'} of each under each policy; estimate: the "
            "mean over copies, without digits that are noise",
            f"change: against {comparison.baseline} on the same copies; {marks}",
            "late starts, and what is of a whole run such as energy: intervals of copies alone, since a log ends once",
        ]
    elif comparison.single:
        lines = ["one run of each policy on each workload: no intervals, and nothing is marked"]
    else:
        drawn = "stratified bootstrap (Agarwal et al. 2021)"
        if blocks is not None:
            drawn = "windows that share jobs are drawn together (circular block bootstrap, Politis and White 2004)"
        lines = [
            f"{runs:,} runs of each policy on each workload; IQM: their interquartile mean; intervals: 95 %, {drawn}",
            f"P(better): probability that a run is better than one of {comparison.baseline}; "
            "▲ ▼: its interval is above or below one half",
        ]
        if runs < LEAST_RUNS:
            lines.append(f"with fewer than {LEAST_RUNS} runs nothing is marked")
    if any(row.metric == "bounded_slowdown" for row in comparison.rows):
        bound = f"{SHORTEST_RUNTIME:g} s"
        lines.append(f"bounded slowdown: mean over jobs; runtimes under {bound} count as {bound}")
    if any(row.workload == ALL for row in comparison.rows):
        multiples = f"{ALL}: scores as multiples of {comparison.baseline}'s IQM on the same workload"
        lines.append(_ALL_JUDGED if comparison.judged else multiples)
    return [*lines, *comparison.reading, *map(standing_text, comparison.recorded)]


_ALL_JUDGED = f"{ALL}: geometric mean over workloads of the ratio to the baseline"


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


def latex_table(comparison: PolicyComparison, metric: str | None = None) -> str:
    """A table for a paper, with booktabs: a row per policy, a column per metric, an estimate with its interval each.

    Raises:
        ConfigError: if the comparison has no such metric.
    """
    metrics = list(dict.fromkeys(row.metric for row in comparison.rows))
    if metric is not None and metric not in metrics:
        raise ConfigError(f"metric: {metric} is not compared (compared are {', '.join(metrics)})", field="metric")
    metrics = metrics if metric is None else [metric]
    found = {(row.workload, row.contender, row.metric): row for row in comparison.rows}
    heads = [f"{name.replace('_', ' ')}{f' ({unit})' if (unit := metric_named(name).unit) else ''}" for name in metrics]
    lines = []
    for workload in dict.fromkeys(row.workload for row in comparison.rows):
        policies = dict.fromkeys(row.contender for row in comparison.rows if row.workload == workload)
        rows = []
        for policy in policies:
            texts = [policy]
            for row in (found.get((workload, policy, name)) for name in metrics):
                value, low, high = ("--", "", "") if row is None else rounded(row.score)
                if row is not None:
                    value = figure(row.score.value) if comparison.single else f"{value} [{low}, {high}]"
                texts.append(value)
            rows.append(texts)
        lines += Table(workload, ("policy", *(f">{head}" for head in heads)), rows).latex()
    return "\n".join(lines)


def heading(metric: str, workload: str) -> str:
    """The title of a table: what is measured, in which unit, which way is better."""
    known = metric_named(metric)
    unit = "" if workload == ALL or not known.unit else f" ({known.unit})"
    return f"{metric}{unit} on {workload}, {known.better} is better"


def figure(value: float) -> str:
    """A number of four digits, or with its thousands apart; millions and more as M, G or T."""
    for least, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= least:
            return f"{value / least:#.4g} {letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.4g}"


def metric_tables(comparison: PolicyComparison) -> list[Table]:
    """A table of each metric on each workload; none of single runs, which have no intervals."""
    found = [] if comparison.single else tables(comparison)
    return [Table(heading(metric, log), headers(rows), list(map(cells, rows))) for metric, log, rows in found]


def at_a_glance(comparison: PolicyComparison) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Of each workload: its name, the metrics, and a row of texts for each policy, its name first; marks last."""
    found = {(row.workload, row.contender, row.metric): row for row in comparison.rows if row.workload != ALL}
    for workload in dict.fromkeys(row.workload for row in comparison.rows if row.workload != ALL):
        keys = [key for key in found if key[0] == workload]
        policies, metrics = (list(dict.fromkeys(key[at] for key in keys)) for at in (1, 2))
        rows = []
        for policy in policies:
            texts = [policy]
            for row in (found.get((workload, policy, metric)) for metric in metrics):
                if row is None:
                    texts.append("-")
                elif comparison.single:
                    texts.append(figure(row.score.value))
                else:
                    texts.append(f"{rounded(row.score)[0]} {MARKS[row.verdict]}".rstrip())
            rows.append(texts)
        yield workload, metrics, rows


def headers(rows: Sequence[Row]) -> tuple[str, ...]:
    """What the cells of rows are, the columns of a `Table`."""
    if rows[0].improvement is None:
        return ("policy", ">estimate", ">95 %", ">change", ">95 %", "")
    return ("policy", ">IQM", ">95 %", ">P(better)", ">95 %", "")


def cells(row: Row) -> list[str]:
    """A row as texts, of `headers`: contender, score, and what it is against the baseline, with intervals; mark."""
    chance = row.improvement
    if chance is None:
        value, low, high = rounded(row.score)
        beside = [row.verdict, ""]
        if row.verdict not in ("baseline", "not comparable"):
            beside = ["-", ""]
            if row.change is not None:
                share, least, most = (100 * each for each in row.change)
                beside = [f"{share:+.0f} %", f"{least:+,.0f} to {most:+,.0f} %"]
        return [row.contender, value, f"{low} to {high}", *beside, MARKS[row.verdict]]
    better = [row.verdict, ""]
    if row.verdict not in ("baseline", "not comparable"):
        better = [f"{chance.value:.2f}", f"{chance.low:.2f} to {chance.high:.2f}"]
    interval = f"{figure(row.score.low)} to {figure(row.score.high)}"
    return [row.contender, figure(row.score.value), interval, *better, MARKS[row.verdict]]


# The files of a comparison: CSV for programs, Markdown for people, and JSON, from which the report is drawn.

CONTENTS = "comparison.json"  # what `read_comparison` reads


def write_comparison(folder: Path, comparison: PolicyComparison) -> list[Path]:
    """Write ``comparison.csv`` (the rows), ``runs.csv`` (each run), ``comparison.md`` and ``comparison.json``.

    Raises:
        ConfigError: if they cannot be written; none is then.
    """
    # A row for each run, with all metrics of the catalogue and the user's own
    names = dict.fromkeys((*METRICS, *(name for run in comparison.outcomes for name in run.metrics)))
    runs = []
    for run in comparison.outcomes:
        own = {"workload": run.workload, "policy": run.contender, "first_job": run.first_job}
        metrics = {name: run.metrics.get(name) for name in names}
        runs.append({**own, "copy": run.copy, "seed": run.seed, **metrics})
    contents = {
        folder / "comparison.csv": csv_text(map(row_values, comparison.rows)),
        folder / "runs.csv": csv_text(runs),
        folder / "comparison.md": markdown(comparison),
        folder / CONTENTS: json_bytes(comparison).decode(),
    }
    write_files({path: [utf8(text)] for path, text in contents.items()})
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


def row_values(row: Row) -> Mapping[str, object]:
    """The values of a row of ``comparison.csv``, in the order of its header."""
    return {
        "metric": row.metric,
        "workload": row.workload,
        "policy": row.contender,
        "runs": row.runs,
        **_named("estimate", row.score),
        **(_named("change", row.change) if row.improvement is None else _named("improvement", row.improvement)),
        "verdict": row.verdict,
        "blocks": row.blocks,
    }


def _named(name: str, found: Estimate | None) -> Mapping[str, float | None]:
    values = (None, None, None) if found is None else found
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
