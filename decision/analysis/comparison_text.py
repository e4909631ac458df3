"""A comparison in words: tables as Markdown and as cells, marks, and how to read them."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from decision.model.record import SHORTEST_RUNTIME

from .blocks import FEW_BLOCKS, few_blocks
from .comparison import ALL, LEAST_RUNS, PolicyComparison, Row
from .metric_list import METRICS
from .recorded import standing_text
from .shakes import rounded
from .statistics import Estimate

MARKS = {"better": "▲", "worse": "▼", "open": "", "baseline": "", "not comparable": ""}


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
    """Of each workload: its name, the metrics, and a row of texts for each policy, its name first; marks last."""
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
