"""What a reproduction returns, and how one of many parts does them."""

import base64
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from decision.formats.files import write_files
from decision.runs.chunks import CachedTask, task_key
from decision.runs.store import Result
from decision.runs.tasks import How, run_tasks


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
    others: How = {}  # how `run_tasks` does them, but for the processes

    @property
    def how(self) -> How:
        """How `run_tasks` does them."""
        return {"processes": self.processes, **self.others}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    header, *body = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return [header, f"|{'---|' * len(columns)}", *body]


class FilePart(CachedTask, Protocol):
    """A part that leaves files."""

    @property
    def written(self) -> Sequence[Path]:
        """The files, of different names."""


_P = TypeVar("_P", bound=FilePart)


class _Kept(NamedTuple):
    """A part, and what does it."""

    work: Callable[[Any], None]
    part: FilePart

    @property
    def title(self) -> str:
        return str(self.part.written[0])

    def definition(self) -> dict[str, Any]:
        return self.part.definition()


def finish(work: Callable[[_P], None], runs: Sequence[_P], parts: Parts, folder: Path) -> None:
    """Do the parts that have no result of these sources, and write the files of all.

    Args:
        work: what does a part; a function that another process can import. It writes the part's files, and where its
            folder is not this one's, as on another machine, they are written here again.
        runs: the parts.
        parts: how.
        folder: keeps the results.

    Raises:
        RunsFailedError: if parts have failed, when all others are done and written.
    """
    heard: list[int] = []

    def progress(done: int, of: int) -> None:
        heard.append(done)
        if len(heard) > 1:  # the first says what was there
            parts.progress(done, of)

    results = run_tasks(_files_of, [_Kept(work, run) for run in runs], folder / "runs", progress=progress, **parts.how)
    for run, result in zip(runs, results, strict=True):
        for path in run.written:
            content = base64.b64decode(result[path.name])
            if not path.exists() or path.read_bytes() != content:
                write_files({path: [content]})


def _files_of(kept: _Kept) -> Result:
    """Do a part; the content of its files by name."""
    kept.work(kept.part)
    return {path.name: base64.b64encode(path.read_bytes()).decode() for path in kept.part.written}


def training_folder(part: FilePart) -> Path:
    """Where a part trains, so that it goes on after an interruption; another one for other sources."""
    first = part.written[0]
    return first.with_name(f"{first.stem}-{task_key(part)[:8]}")
