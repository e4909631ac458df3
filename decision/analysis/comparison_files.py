"""A comparison as files: CSV for programs, Markdown for people, JSON for whoever draws a report from it."""

import csv
import io
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

import msgspec

from decision.formats.files import read_bytes, write_files
from decision.model.errors import InputError

from .comparison import ALL, LEAST_RUNS, Comparison, Outcome, Row
from .measures import METRICS
from .metrics import BOUND
from .statistics import Estimate

MARKS = {"better": "▲", "worse": "▼", "open": "", "baseline": ""}
CONTENTS = "comparison.json"  # what `read_comparison` reads


def write_comparison(folder: Path, comparison: Comparison) -> list[Path]:
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


def read_comparison(folder: Path) -> Comparison:
    """What `write_comparison` wrote.

    Raises:
        InputError: if it cannot be read.
    """
    path = folder / CONTENTS
    try:
        return msgspec.json.decode(read_bytes(path), type=Comparison)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: no comparison ({error}); write it anew with decision compare") from None


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown tables, one per metric and workload, and how to read them."""
    return "\n".join([*_tables(comparison), *(f"- {line}" for line in notes(comparison)), ""])


def notes(comparison: Comparison) -> list[str]:
    """How to read the tables, one line each."""
    runs = comparison.rows[0].runs
    lines = [
        f"{runs:,} runs of each policy on each workload; IQM: their interquartile mean; intervals: 95 %, stratified "
        "bootstrap (Agarwal et al. 2021)",
        f"P(better): probability that a run is better than one of {comparison.baseline}; "
        "▲ ▼: its interval is above or below one half",
    ]
    if any(row.metric == "bounded_slowdown" for row in comparison.rows):
        lines.append(f"bounded slowdown: mean over jobs; runtimes under {BOUND:g} s count as {BOUND:g} s")
    if any(row.workload == ALL for row in comparison.rows):
        lines.append(f"{ALL}: scores as multiples of {comparison.baseline}'s IQM on the same workload")
    if runs < LEAST_RUNS:
        lines.append(f"with fewer than {LEAST_RUNS} runs nothing is marked")
    return lines


def tables(comparison: Comparison) -> list[tuple[str, str, list[Row]]]:
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


def _tables(comparison: Comparison) -> list[str]:
    lines = []
    for metric, workload, rows in tables(comparison):
        lines += [f"### {heading(metric, workload)}", ""]
        lines += ["| policy | IQM | 95 % | P(better) | 95 % | |", "|---|--:|--:|--:|--:|---|", *map(_line, rows), ""]
    return lines


def _line(row: Row) -> str:
    return "| " + " | ".join(cells(row)) + " |"


def cells(row: Row) -> list[str]:
    """A row as texts: contender, IQM and interval, probability of improvement and interval, mark."""
    chance = row.improvement
    better = ["baseline", ""]
    if row.verdict != "baseline":
        better = [f"{chance.value:.2f}", f"{chance.low:.2f} to {chance.high:.2f}"]
    return [row.contender, figure(row.score.value), _interval(row.score), *better, MARKS[row.verdict]]


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
    }


def _run_cells(outcome: Outcome) -> Mapping[str, object]:
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
