"""Accounting records of jobs that ran, as columns: what every reader of a batch system's log makes."""

import codecs
import math
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.files.text import read_blocks
from decision.model.columns import Labelled, small
from decision.model.errors import InputError
from decision.model.record import Floats, Ints

# What became of each record of a file: a job, a part of one, or left out for a reason.

REASONS = {
    "step": "steps of jobs",
    "never_started": "that never started",
    "not_ended": "that did not end",
    "no_time": "with an unknown or zero run time",
    "no_size": "with an unknown or zero size",
    "repeat": "of a job seen before",
    "malformed": "whose fields do not fit",
    "other_event": "of another kind than a job's end",
    "partial": "of parts of a job",
    "other_cluster": "of another cluster",
    "too_large": "larger than the machine",
}
_SHOWN = 60  # characters of a line that does not fit
NAMED = 5  # lines of a reason whose numbers are kept


class LeftOut(msgspec.Struct):
    """Records that became no jobs, for one reason."""

    count: int = 0
    lines: list[int] = []  # the first of them


class Account(msgspec.Struct):
    """The records of one or more files: all are jobs, joined with another one to a job, or left out."""

    records: int = 0
    joined: int = 0
    left_out: dict[str, LeftOut] = {}  # by `REASONS`
    lost: dict[str, int] = {}  # what a workload cannot say, with how many jobs it is true of
    misfit: str = ""  # of the first record whose fields do not fit: which, and why

    def leave_out(self, reason: str, lines: Iterable[int], why: str = "") -> None:
        """Count records as left out; `lines` are where they stand, and `why` says it of the first of them."""
        numbers = [int(line) for line in lines]
        if numbers:
            if why and not self.misfit:
                self.misfit = f"line {numbers[0]:,}: {why}"
            entry = self.left_out.setdefault(reason, LeftOut())
            entry.count += len(numbers)
            entry.lines = sorted([*entry.lines, *numbers])[:NAMED]

    def lose(self, feature: str, jobs: int) -> None:
        """Count jobs of which something cannot be said."""
        if jobs:
            self.lost[feature] = self.lost.get(feature, 0) + int(jobs)


NUMBERS = (
    *("submit", "start", "end"),  # seconds since 1970, nan where unknown
    *("wait", "run", "walltime", "suspended"),  # seconds; a walltime is nan where none was requested
    *("nodes", "cores", "gpus"),  # allocated
    *("memory", "asked_memory"),  # MB in all
)
TEXTS = ("cluster", "user", "account", "group", "partition", "qos", "state", "node_list", "dependency", "reason")

Columns = Mapping[str, Sequence[Any] | Floats]  # of equal length: line, id, part_of, and any of `NUMBERS` and `TEXTS`


class Records:
    """Columns that grow part by part; texts of which many are equal are kept once."""

    def __init__(self) -> None:
        self.line = array("q")
        self.id: list[str] = []
        self.part_of: list[str] = []  # the job that starts together with others as one; "" for a job by itself
        self._numbers = {name: array("d") for name in NUMBERS}
        self._codes = {name: array("i") for name in TEXTS}
        self._labels: dict[str, dict[str, int]] = {name: {"": 0} for name in TEXTS}

    def __len__(self) -> int:
        return len(self.id)

    def add(self, columns: Columns) -> None:
        """Add records; a column that is not there is unknown."""
        count = len(columns["id"])
        self.line.frombytes(np.asarray(columns["line"], np.int64).tobytes())
        self.id.extend(columns["id"])
        self.part_of.extend(columns.get("part_of", [""] * count))
        for name, numbers in self._numbers.items():
            values = columns.get(name)
            known = np.full(count, np.nan) if values is None else np.asarray(values, np.float64)
            numbers.frombytes(known.tobytes())
        for name, codes in self._codes.items():
            labels, texts = self._labels[name], columns.get(name, ("",) * count)
            for text in dict.fromkeys(texts):
                labels.setdefault(text, len(labels))
            codes.extend(map(labels.__getitem__, texts))

    def number(self, name: str) -> Floats:
        """The column of one of `NUMBERS`, (n,), in its unit."""
        return np.array(self._numbers[name])

    def text(self, name: str) -> Labelled[str]:
        """The column of one of `TEXTS`, (n,), empty where it is not known."""
        return Labelled(list(self._labels[name]), small(np.array(self._codes[name])))


def usable(columns: Columns, account: Account) -> Iterator[Columns]:
    """The records that ran, of columns that have at least line, id, submit, start, end and run; others are counted."""
    lines = np.asarray(columns["line"])
    good = np.ones(len(lines), bool)
    submit, start, end, run = (np.asarray(columns[name], float) for name in ("submit", "start", "end", "run"))
    size = np.fmax(_column(columns, "nodes", lines), _column(columns, "cores", lines))
    with np.errstate(invalid="ignore"):
        for reason, wrong in (
            ("no_time", np.isnan(submit)),
            ("never_started", np.isnan(start)),
            ("not_ended", np.isnan(end)),
            ("no_time", ~(run > 0)),
            ("no_size", ~(np.fmax(size, _column(columns, "gpus", lines)) >= 1)),
        ):
            account.leave_out(reason, lines[good & wrong].tolist())
            good &= ~wrong
    columns = {"wait": start - submit, **columns}
    if good.all():
        yield columns
    elif good.any():
        keep = good.tolist()
        yield {name: list(compress(values, keep)) for name, values in columns.items()}


def _column(columns: Columns, name: str, lines: np.ndarray) -> Floats:
    values = columns.get(name)
    return np.full(len(lines), np.nan) if values is None else np.asarray(values, float)


class RecordTable(NamedTuple):
    """Jobs in order of submission. Columns of length n."""

    line: Ints
    id: list[str]
    numbers: dict[str, Floats]
    texts: dict[str, Labelled[str]]

    def take(self, rows: Ints) -> "RecordTable":
        """The jobs of these rows."""
        return RecordTable(
            self.line[rows],
            [self.id[row] for row in rows.tolist()],
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.texts.items()},
        )


# The lines of a text file, in parts, so that a large file never stands in memory.

_LONGEST_LINE = 16 << 20  # bytes: the nodes of a job, or a script in one line


def line_parts(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Parts of some megabytes: the number of the first line, from 1, and the lines without their ends.

    Bytes that are no UTF-8 become ``\\ufffd``.

    Raises:
        InputError: if the file cannot be read, is empty or is not text.
    """
    number = 1
    for part, block in enumerate(read_blocks(path, _LONGEST_LINE)):
        text = block if part else block.removeprefix(codecs.BOM_UTF8)
        if b"\0" in text:
            line = number + text.count(b"\n", 0, text.index(b"\0"))
            raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")
        lines = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        yield number, lines
        number += len(lines)
    if number == 1:
        raise InputError(f"{path}: the file is empty")


# Accounting files with a job or an event a line: what each line is, and columns of the jobs that ran.

Entry = dict[str, Any]  # a job's columns
# of a line: the job, why it is none ("step", "malformed: ..."), or None where it is a comment
Reader = Callable[[str], "Entry | str | None"]


def read_entries(path: str | os.PathLike[str], account: Account, read: Reader) -> Iterator[Columns]:
    """The jobs of a file, line by line."""
    for number, lines in line_parts(path):
        entries: list[tuple[int, Entry | str | None]] = []
        for at, line in enumerate(lines, number):
            try:
                entries.append((at, read(line) if line.strip() else None))
            except (ValueError, IndexError, KeyError, OverflowError, TypeError):
                entries.append((at, f"malformed: {line.strip()[:_SHOWN]!r}"))
        yield from from_entries(entries, account)


def from_entries(entries: Iterable[tuple[int, "Entry | str | None"]], account: Account) -> Iterator[Columns]:
    """Columns of jobs that ran, from what each line or record is."""
    jobs: list[Entry] = []
    lines: list[int] = []
    for line, entry in entries:
        if entry is None:
            continue
        account.records += 1
        if isinstance(entry, str):
            reason, _, why = entry.partition(": ")
            account.leave_out(reason, [line], why)
        else:
            jobs.append(entry)
            lines.append(line)
    if jobs:
        names = dict.fromkeys(name for job in jobs for name in job)
        texts = ("id", "part_of", *TEXTS)
        columns: dict[str, Any] = {
            name: [job.get(name, "" if name in texts else math.nan) for job in jobs] for name in names
        }
        yield from usable({"line": np.array(lines), **columns}, account)


def known_time(text: str) -> float:
    """Seconds since 1970; nan for 0 and below, which say that something has not happened."""
    seconds = float(text)
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds if seconds > 0 else math.nan
