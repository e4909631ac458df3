"""The lines of a log in the Standard Workload Format, or in the Grid Workload Format, as tables of numbers."""

import codecs
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.model.column import Labelled, narrow, small
from decision.model.errors import InputError
from decision.model.trace import Field, Trace, says

from .files import read_blocks
from .profiles import INT32_MAX
from .swf_header import Header, read_header

Table = NDArray[np.float64]
Lines = NDArray[np.int64]  # numbers of lines, from 1
Codes = NDArray[np.int32]  # of texts that follow the numbers of a line
Columns = dict[str, NDArray[Any]]  # (n,) or (n, 18) by name

_FIELDS = 18
GRID_FIELDS = 29  # of the Grid Workload Format
_GRID_SHARED = 16  # of them, the first are those of the standard

_ID, _SUBMIT, _WAIT, _RUN, _ALLOCATED, _REQUESTED, _STATUS = 0, 1, 2, 3, 4, 7, 10
_USER, _PARTITION = 11, 15
TEXT_FIELDS = {"group": 12, "executable": 13, "queue": 14}
_NAMES = range(_USER, _PARTITION + 1)  # fields that may be texts
_FIRST_NAME = -1e9  # the number that stands for the first of them; the next is lower by one
_RECORDED = {"size": _ALLOCATED, "cpu_time": 5, "memory": 6}
_REQUEST = {"size": _REQUESTED, "memory": 9, "dependency": 16, "think_time": 17}
STATES = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}  # by the standard's status
_PARTIAL = (2, 3, 4)  # status of the parts of a job that was checkpointed; the job has a line of its own
_MOSTLY = 0.9  # of a log's lines have the usual number of fields
_LONGEST_LINE = 1 << 20  # bytes
_MALFORMED = f"not {_FIELDS} numbers"
_REPEATED = "with a job number seen before"
_NAMED = 5  # lines of a reason whose numbers are kept


class LogLines:
    """A log, read in parts so that it never stands in memory as text."""

    def __init__(self, path: str | os.PathLike[str], grid: bool = False) -> None:
        self._path, self._grid = path, grid
        self._names: dict[str, float] = {}  # numbers that stand for texts in fields of numbers
        self._rests: dict[str, int] = {"": 0}  # fields after the 18th
        self._usual = 0  # fields of nearly all lines; 0 where there is no such number
        self.records = 0
        self.dropped: dict[str, int] = {}  # lines that were left out, by reason
        self.dropped_lines: dict[str, tuple[int, ...]] = {}  # the first of them
        self.header: Header = {}

    def tables(self) -> Iterator[tuple[Table, Codes, Lines]]:
        """Usable lines as rows of 18 numbers, what follows them, and which lines they are; job numbers may repeat.

        Raises:
            InputError: if the file is empty or no text.
        """
        newlines = count = 0
        for part, block in enumerate(read_blocks(self._path, _LONGEST_LINE)):
            text = block if part else block.removeprefix(codecs.BOM_UTF8)
            _check_text(text, newlines, self._path)
            if b";" in text or b"#" in text:
                self.header = {**read_header(text), **self.header}
            lines = text.splitlines()
            table, rest, numbers, malformed = self._parse(lines, count)
            usable = np.ones(len(table), bool)
            for reason, bad in _reasons(table).items():
                self._drop(reason, numbers[usable & bad])
                usable &= ~bad
            self._drop(_MALFORMED, malformed)
            self.records += len(table) + len(malformed)
            newlines += text.count(b"\n")
            count += len(lines)
            yield table[usable], rest[usable], numbers[usable]
        if not count:
            raise InputError(f"{self._path}: the file is empty")

    def without_repeats(self, columns: Columns) -> Columns:
        """The first row of each job number; of columns ``number``, ``line``, which is taken out, and others."""
        lines = columns.pop("line")
        _, first = np.unique(columns["number"], return_index=True)
        if len(first) == len(lines):
            return columns
        repeated = np.ones(len(lines), bool)
        repeated[first] = False
        self._drop(_REPEATED, lines[repeated])
        return {name: column[~repeated] for name, column in columns.items()}

    def labels(self, numbers: Table) -> Labelled[str]:
        """Numbers of users, groups and the like as text; unknown ones (-1) are empty."""
        names = {number: text for text, number in self._names.items()}
        distinct, which = np.unique(numbers, return_inverse=True)
        texts = [f"{number:.0f}" if number >= 0 else names.get(number, "") for number in distinct.tolist()]
        return Labelled(texts, small(which))

    def trace(self, ids: Sequence[str], columns: Columns) -> Trace:
        """What was recorded besides the jobs; takes its columns out of `columns`."""
        taken = {name: columns.pop(name) for name in list(columns) if name.startswith(("recorded ", "request "))}
        recorded: dict[str, Field] = {name: _known(taken.pop(f"recorded {name}")) for name in _RECORDED}
        request: dict[str, Field] = {name: _known(taken.pop(f"request {name}")) for name in _REQUEST}
        asked = taken.pop("request walltime")
        request["walltime"] = np.where((asked <= 0) & (asked != -1), asked, np.nan)
        request["partition"] = self.labels(taken.pop("request partition"))
        states, which = np.unique(taken.pop("recorded state"), return_inverse=True)
        texts = [STATES.get(state, "" if state == -1 else f"{state:.0f}") for state in states.tolist()]
        recorded["state"] = Labelled(texts, small(which))
        recorded["fields"] = Labelled(list(self._rests), columns.pop("rest"))
        wait = columns.pop("wait").astype(np.float64)
        return Trace(
            id=ids,
            wait=np.where(wait == -1, np.nan, wait),
            recorded={name: field for name, field in recorded.items() if says(field)},
            request={name: field for name, field in request.items() if says(field)},
        )

    def _drop(self, reason: str, lines: Lines) -> None:
        """Leave out these lines."""
        if len(lines):
            self.dropped[reason] = self.dropped.get(reason, 0) + len(lines)
            self.dropped_lines[reason] = (*self.dropped_lines.get(reason, ()), *lines[:_NAMED].tolist())[:_NAMED]

    def _parse(self, lines: list[bytes], before: int) -> tuple[Table, Codes, Lines, Lines]:
        """All lines of numbers as a table of 18 columns, what follows, which lines these are, and which are neither.

        Args:
            lines: a part of the file; comments are left out.
            before: how many lines come before it.
        """
        texts = [line.decode("utf-8", "replace").strip() for line in lines]
        said = np.flatnonzero([bool(text) and text[0] not in ";#" for text in texts])
        rows = [texts[at] for at in said] if len(said) < len(texts) else texts
        numbers = said + before + 1
        table = _numbers(rows) if not self._grid else np.empty((0, 0))
        if table.shape == (len(rows), _FIELDS):
            self._usual = self._usual or _FIELDS
            return table, np.zeros(len(rows), np.int32), numbers, numbers[:0]
        table, rests, is_row = self._parse_each(rows)
        return table, rests, numbers[is_row], numbers[~is_row]

    def _parse_each(self, rows: list[str]) -> tuple[Table, Codes, np.ndarray]:
        """The lines of numbers one by one, what follows, and which lines these are."""
        split = [self._split(text) for text in rows]
        if split and not self._usual:
            count, lines_of_it = Counter(map(len, split)).most_common(1)[0]
            self._usual = count if lines_of_it > _MOSTLY * len(split) else 0
        parsed = [self._row(fields) for fields in split]
        found = [row for row in parsed if row is not None]
        table = np.array([row[0] for row in found], np.float64).reshape(-1, _FIELDS)
        rests = np.array([row[1] for row in found], np.int32)
        return table, rests, np.array([row is not None for row in parsed], bool)

    def _split(self, text: str) -> list[str]:
        fields = text.split()
        if len(fields) < _FIELDS or ";" in text:
            parted = [field.strip() for field in text.split(";")]
            fields = parted if len(parted) >= _FIELDS else text.partition(";")[0].split()
        return fields

    def _row(self, fields: list[str]) -> tuple[list[float], int] | None:
        """The 18 numbers of a line and the code of what follows them; None where it is not that.

        Where nearly all lines have as many fields as each other, one with another number of them is not shifted.
        """
        if len(fields) < (GRID_FIELDS if self._grid else _FIELDS) or (self._usual and len(fields) != self._usual):
            return None
        shared = _GRID_SHARED if self._grid else _FIELDS
        try:
            row = [self._name(field) if at in _NAMES else float(field) for at, field in enumerate(fields[:shared])]
        except ValueError:
            return None
        rest = " ".join(fields[shared:])
        return [*row, *[-1.0] * (_FIELDS - shared)], self._rests.setdefault(rest, len(self._rests))

    def _name(self, field: str) -> float:
        """A number, or one that stands for the text."""
        try:
            return float(field)
        except ValueError:
            return self._names.setdefault(field, _FIRST_NAME - len(self._names)) if field else -1.0


def _known(numbers: Table) -> Table:
    """Numbers with nan for the unknown, -1."""
    return np.where(numbers == -1, np.nan, numbers.astype(np.float64))


def _numbers(lines: list[str]) -> Table:
    """The lines as a table of numbers; empty where they are no such table."""
    try:
        return np.loadtxt(lines, comments=None, ndmin=2) if lines else np.empty((0, _FIELDS))
    except ValueError:
        return np.empty((0, 0))


def _check_text(block: bytes, lines: int, path: str | os.PathLike[str]) -> None:
    """Refuse a part of the file that is not text; `lines` come before it."""
    if b"\0" in block:
        line = lines + block.count(b"\n", 0, block.index(b"\0")) + 1
        raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")


def requested_sizes(table: Table) -> Table:
    """Processors that jobs asked for, (n,), or else had."""
    requested = table[:, _REQUESTED]
    return np.where(requested > 0, requested, table[:, _ALLOCATED])


def _reasons(table: Table) -> dict[str, NDArray[np.bool_]]:
    """Which lines no simulation could use, by reason; the first that holds counts."""
    size = requested_sizes(table)
    return {
        "with a field that is not a finite number": ~np.isfinite(table).all(axis=1),
        "parts of a checkpointed job (status 2, 3 or 4)": np.isin(table[:, _STATUS], _PARTIAL),
        "with a negative submission time": table[:, _SUBMIT] < 0,
        "with an unknown or zero run time": table[:, _RUN] <= 0,
        "with an unknown or zero size": size < 1,
        "with a fractional size or job number": (size != np.floor(size)) | (table[:, _ID] != np.floor(table[:, _ID])),
        f"larger than {INT32_MAX} hosts": size > INT32_MAX,
    }


def job_columns(table: Table, time_field: int) -> Columns:
    """What the jobs of a table have."""
    requested = table[:, time_field - 1]
    columns = {
        "number": table[:, _ID],
        "submit": table[:, _SUBMIT],
        "wait": table[:, _WAIT],
        "run": table[:, _RUN],
        "size": requested_sizes(table),
        "walltime": np.where(requested > 0, requested, np.inf),
        "user": table[:, _USER],
        "recorded state": table[:, _STATUS],
        "request partition": table[:, _PARTITION],
        "request walltime": requested,
        **{f"recorded {name}": table[:, column] for name, column in _RECORDED.items()},
        **{f"request {name}": table[:, column] for name, column in _REQUEST.items()},
        **{name: table[:, column] for name, column in TEXT_FIELDS.items()},
    }
    return {name: narrow(column) for name, column in columns.items()}
