"""What is shown of a training: its progress while it runs, and its curve."""

import csv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .progress import Pace, has_bars, paced
from .tables import number, simple_table
from .terminal import stderr, stdout

if TYPE_CHECKING:
    pass


@contextmanager
def learning(steps: int) -> Iterator[Callable[[int, float, Mapping[str, float]], None]]:
    """Show a training on stderr; the yielded function takes steps, steps/s and the curves' newest values.

    Where stderr is not a terminal, it is a line a minute.
    """
    columns = (
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    validated, pace = "", Pace("training", "steps")
    bars = Progress(*columns, console=stderr(), transient=True, disable=not has_bars())
    with bars as bar, paced(pace):
        task = bar.add_task("validating", total=steps)

        def show(done: int, rate: float, row: Mapping[str, float]) -> None:
            nonlocal validated
            if shown := [text.format(number(row[name])) for name, text in _SHOWN.items() if name in row]:
                validated = f"validation: {', '.join(shown)}"
            text = ", ".join(part for part in (f"{rate:,.0f} steps/s" if rate else "", validated) if part)
            pace.set(min(done, steps), steps, text)
            bar.update(task, completed=min(done, steps), description=text)

        yield show


def read_curve(path: Path) -> list[dict[str, float]]:
    """The rows of ``progress.csv``; nan where there is no value."""
    with path.open(newline="") as file:
        return [{name: float(value or "nan") for name, value in row.items()} for row in csv.DictReader(file)]


def print_curve(rows: list[dict[str, float]], parts: int = 8) -> None:
    """A training's curve in a few rows: before the first step, then the mean over each part of it.

    Of the validation each row has the newest values.
    """
    known = rows[0] if rows else {}
    columns = [each for each in _AVERAGED if each[0] in known or each[0] not in _OF_PRICES]
    averaged = [(name, scale) for name, _, scale in columns]
    headers = [">steps", *(text for name, text in _VALIDATED.items() if name in known)]
    headers += [">episodes", *(text for _, text, _ in columns)] if "episodes" in known else []
    headers += [text for name, text, _ in _MEANS if name in known]
    table = simple_table(*headers)
    first = [row for row in rows if not row["steps"]]
    for part in (*([first] if first else []), *_split(rows[len(first) :], parts)):
        table.add_row(f"{int(part[-1]['steps']):,}", *_curve_cells(part, averaged))
    stdout().print(table)


_VALIDATED = {
    "validation_waiting_time": ">validation\nwait, s",
    "validation_bounded_slowdown": ">validation\nslowdown",
    "validation_value_share": ">validation\nvalue share",
    "validation_violated_share": ">validation\nviolated share",
}
_SHOWN = {  # of these, while it learns
    "validation_waiting_time": "wait {} s",
    "validation_bounded_slowdown": "slowdown {}",
    "validation_value_share": "value share {}",
}
_OF_PRICES = ("hops", "stretch")  # curves that others do not have
_MEANS = (  # column of the curves, header, digits; mean over iterations
    ("reward", ">reward", 4),
    ("entropy", ">entropy\nnats", 3),
    ("agreement", ">agreement", 3),
    ("agreement_of_choices", ">where there\nis a choice", 3),
)
_AVERAGED = (  # column of the curves, header, scale; mean over episodes
    ("hops", ">hops", 1),
    ("stretch", ">stretch", 1),
    ("waiting_time", ">wait\ns", 1),
    ("queue_length", ">queue\njobs", 1),
    ("utilization", ">util.\n%", 100),
)


def _split(rows: list[dict[str, float]], parts: int) -> Iterator[list[dict[str, float]]]:
    bounds = sorted({round(len(rows) * k / parts) for k in range(parts + 1)})
    for begin, end in pairwise(bounds):
        yield rows[begin:end]


def _curve_cells(rows: list[dict[str, float]], averaged: list[tuple[str, int]]) -> Iterator[str]:
    for name in (each for each in _VALIDATED if each in rows[0]):
        known = [row[name] for row in rows if not isnan(row[name])]
        yield number(known[-1]) if known else "-"
    if "episodes" in rows[0]:
        yield from _episode_cells(rows, averaged)
    for name, _, digits in _MEANS:
        if name in rows[0]:
            mean = sum(row[name] for row in rows) / len(rows)
            yield "-" if isnan(mean) else f"{mean:.{digits}f}"


def _episode_cells(rows: list[dict[str, float]], averaged: list[tuple[str, int]]) -> Iterator[str]:
    episodes = [0 if isnan(row["episodes"]) else int(row["episodes"]) for row in rows]
    yield f"{sum(episodes):,}"
    for name, scale in averaged:
        measured = sum(episodes) if name in rows[0] else 0  # some schedulers have no such curve
        total = sum(n * row[name] for n, row in zip(episodes, rows, strict=True) if n and measured)
        yield number(scale * total / measured) if measured else "-"
