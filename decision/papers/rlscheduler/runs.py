"""RLScheduler's table of average bounded slowdowns: reproduced, and what the same heuristics do by the right rules.

Zhang, Dai, He, Bao and Xie, RLScheduler: an automated HPC batch job scheduler using reinforcement learning (SC 2020):
ten random sequences of 1,024 jobs of the logs Lublin-1 and Lublin-2 on 256 hosts, five heuristics, with and without
backfilling. Learned policies are compared with these figures to this day. The logs are ``lublin_256.swf`` and
``lublin_256_2.swf`` (there: ``lublin_256_new2``) of the program that the authors published.

By `rules` all twenty figures come out to 0.005 %. FCFS without backfilling is the one heuristic whose rules
are the usual ones, and there both simulators agree to the last digit. All others change: `_NOTES` says why.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision.analysis.comparison_text import figure
from decision.analysis.statistics import Estimate, bootstrap_mean
from decision.compiling.jit import is_warm
from decision.runs.inputs import writable_folder
from decision.runs.tasks import run_tasks
from decision.simulation.simulate import simulate_episode

from ..findings import Findings, Parts, ResultTable
from ..verdicts import Kind, judge
from .parts import ORDERS_BY_WAIT, STARTS, TABLE_ORDERS, Rules, parts_of, simulate_part

_MARGIN = 1e-4  # of a mean bounded slowdown: figures are published with two decimals
_SEQUENCES = 1000  # random ones, for the intervals
_LOGS = {"Lublin-1": "lublin_256.swf", "Lublin-2": "lublin_256_2.swf"}
_PUBLISHED = {  # by trace and whether there is backfilling, in the order of TABLE_ORDERS
    ("Lublin-1", False): (7273.77, 19753.53, 22274.74, 277.35, 258.37),
    ("Lublin-1", True): (235.82, 133.87, 307.23, 73.31, 75.07),
    ("Lublin-2", False): (7842.47, 9523.18, 11265.31, 787.89, 698.34),
    ("Lublin-2", True): (247.61, 318.35, 379.59, 91.99, 148.25),
}
_NOTES = """\
Mean bounded slowdowns (runtimes under 10 s count as 10 s), averaged over sequences of 1,024 jobs. Left: as published, \
and by the rules of RLScheduler's simulator on its ten sequences; no figure is off by more than {deviation:.4%}. \
A figure "holds" where it comes out to 0.01 %, and is else refuted; that learned policies are better was not tried. \
Right: standard rules on the same ten sequences, and on {sequences:,} random ones with 95 % bootstrap intervals \
(sequences of one log overlap: the intervals are about this log, not about others).

Why they differ. FCFS without backfilling has the same rules on both sides, and the same figures. The published WFP3 \
and UNICEP take the start of a queued job to be -1, so that its "waiting time" is minus its submission time: fixed \
orders that favour long jobs. With true waiting times, and otherwise RLScheduler's rules, they come without \
backfilling to {waits}. The rest is commitment: there the chosen job blocks until it starts, and a shorter one that \
arrives meanwhile cannot overtake it, which costs every order but FCFS a multiple of its slowdown. Backfilling there \
takes jobs in order of arrival whatever the order, only if they end strictly before a shadow time that is computed \
once, and none on hosts that the reservation leaves over; EASY looks again at every event, in the policy's own order. \
For FCFS neither rule is better on both logs. On Lublin-1, SJF, F1 and UNICEP do better without backfilling by \
standard rules than any published figure with it: who beats the published heuristics need not beat these."""


class _Line(NamedTuple):
    """A heuristic on a trace: bounded slowdowns, averaged over jobs and then over sequences."""

    trace: str
    backfilling: bool
    order: str
    published: float
    reproduced: float  # by RLScheduler's rules, on its ten sequences
    true_waits: float  # by its rules but for the waiting times, on the same; nan for orders without them
    standard: float  # by standard rules, on the same
    mean: Estimate  # by standard rules, over many random sequences

    @property
    def deviation(self) -> float:
        """``reproduced / published - 1``."""
        return self.reproduced / self.published - 1

    def verdict(self, found: float) -> str:
        """Whether that is the published figure; one of ten given sequences has no interval."""
        off = found / self.published - 1
        return judge(Kind.EQUAL, Estimate(off, off, off), _MARGIN).value


def reproduce_rlscheduler(data: Path, parts: Parts) -> Findings:
    """Compute both tables.

    Raises:
        InputError: if a log is not in the folder or is another one.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    lines = simulate_lines(data, parts)
    deviation = max(abs(line.deviation) for line in lines)
    waits = ", ".join(
        f"{line.true_waits:,.0f} ({line.order}, {line.trace})"
        for line in lines
        if line.order in ORDERS_BY_WAIT and not line.backfilling
    )
    notes = _NOTES.format(deviation=deviation, sequences=_SEQUENCES, waits=waits)
    return Findings((_theirs(lines), _ours(lines)), notes, side_by_side=True)


def simulate_lines(data: Path, parts: Parts, sequences: int = _SEQUENCES) -> list[_Line]:
    """Simulate all sequences; arguments and errors as `reproduce_rlscheduler`."""
    paths = {name: data / file for name, file in _LOGS.items()}
    tasks = [part for path in paths.values() for part in parts_of(path, sequences)]
    first = [] if is_warm(simulate_episode) else [next(part for part in tasks if part.rules == "standard")]
    kept = writable_folder(parts.folder)
    results = run_tasks(simulate_part, tasks, kept / "runs", first=first, progress=parts.progress, **parts.how)
    slowdowns: dict[Any, list[float]] = {}
    for part, result in zip(tasks, results, strict=True):
        key = part.trace, part.backfilling, part.order, part.rules, part.starts == STARTS
        slowdowns.setdefault(key, []).extend(result["bounded_slowdowns"])
    return [
        _line(name, path, backfilling, order, slowdowns)
        for name, path in paths.items()
        for backfilling in (False, True)
        for order in TABLE_ORDERS
    ]


def _line(name: str, path: Path, backfilling: bool, order: str, slowdowns: dict[Any, list[float]]) -> _Line:
    def ten(rules: Rules) -> float:
        return math.fsum(slowdowns[path, backfilling, order, rules, True]) / len(STARTS)

    drawn = np.array(slowdowns[path, backfilling, order, "standard", False])[:, None]
    return _Line(
        trace=name,
        backfilling=backfilling,
        order=order,
        published=_PUBLISHED[name, backfilling][TABLE_ORDERS.index(order)],
        reproduced=ten("rlscheduler"),
        true_waits=ten("true waits") if order in ORDERS_BY_WAIT else math.nan,
        standard=ten("standard"),
        mean=bootstrap_mean(drawn, np.random.default_rng(0)),
    )


# --- The tables -------------------------------------------------------------------------------------------------------


def _theirs(lines: Sequence[_Line]) -> ResultTable:
    def cells(line: _Line) -> tuple[str, ...]:
        return f"  {line.order}", f"{line.published:,.2f}", f"{line.reproduced:,.2f}", line.verdict(line.reproduced)

    return ResultTable("RLScheduler's rules", ("", "published", "here", "verdict"), _grouped(lines, cells, _group))


def _ours(lines: Sequence[_Line]) -> ResultTable:
    def cells(line: _Line) -> tuple[str, ...]:
        value, low, high = map(figure, line.mean)
        return f"{line.standard:,.2f}", line.verdict(line.standard), value, f"{low} - {high}"

    columns = ("same ten", "verdict", "random", "95 %")
    return ResultTable("standard rules", columns, _grouped(lines, cells, lambda line: ""))


def _group(line: _Line) -> str:
    return f"{line.trace} backfill" if line.backfilling else line.trace


def _grouped(
    lines: Sequence[_Line], cells: Callable[[_Line], tuple[str, ...]], name: Callable[[_Line], str]
) -> list[tuple[str, ...]]:
    """A row for each heuristic, and one before each group of them."""
    rows = []
    for line in lines:
        row = cells(line)
        if line.order == TABLE_ORDERS[0]:
            rows.append((name(line), *("" for _ in row[1:])))
        rows.append(row)
    return rows
