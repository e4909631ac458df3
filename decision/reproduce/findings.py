"""What a reproduction returns, and how one of many parts does them."""

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from decision.runs.workers import workers

_T = TypeVar("_T")


class BudgetName(StrEnum):
    """How much is run, of those that know no other budget."""

    SMOKE = "smoke"
    STANDARD = "standard"
    FULL = "full"


class ResultTable(NamedTuple):
    """A table of texts, the first column of which names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Findings(NamedTuple):
    """What a reproduction found."""

    tables: tuple[ResultTable, ...]
    notes: str  # what the tables say, for a person
    side_by_side: bool = False  # whether the first column of the first table names the rows of all


class Parts(NamedTuple):
    """How a reproduction of many parts does them; finished parts are never repeated."""

    folder: Path  # of the finished parts and of the results
    processes: int = 1  # at a time
    progress: Callable[[int, int], None] = lambda done, of: None  # is called with how many parts of how many are done


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    header, *body = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return [header, f"|{'---|' * len(columns)}", *body]


def finish(work: Callable[[_T], None], runs: Sequence[_T], parts: Parts) -> None:
    """Do the runs, so many at a time; one that fails, or Ctrl-C, ends all.

    Args:
        work: what does a run; a function that another process can import.
        runs: that are missing.
        parts: how.
    """
    with workers(parts.processes) as pool:
        futures = [pool.submit(work, run) for run in runs]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            parts.progress(done, len(runs))
