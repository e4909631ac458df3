"""What a reproduction returns, and how one of many parts does them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from decision.runs.tasks import How


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
    others: How = {}  # how `run_tasks` does them, but for the processes

    @property
    def how(self) -> How:
        """How `run_tasks` does them."""
        return {"processes": self.processes, **self.others}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    header, *body = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return [header, f"|{'---|' * len(columns)}", *body]


def tables_markdown(tables: Sequence[ResultTable]) -> str:
    """Tables under their titles."""
    return "\n".join(
        line for each in tables for line in (f"## {each.title}", "", *markdown_table(each.columns, each.rows), "")
    )
