"""Logs in the Standard Workload Format 2.2 (Feitelson's Parallel Workloads Archive).

One line per job, 18 numbers, -1 where unknown; header comments start with ``;``. Logs are records of real
machines and have odd lines; those that no simulation could use are left out, counted by reason in
`Workload.dropped`, with the numbers of the first of them.
"""

import codecs
import datetime
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.model.columns import DelayProfiles, JobColumns, Labelled, narrow, numbered, small
from decision.model.dates import LAST_DATE
from decision.model.errors import InputError
from decision.model.reshape import Filters, Walltimes, reshape
from decision.model.workload import Workload

from .files import read_blocks
from .profiles import INT32_MAX, delay_profiles

Table = NDArray[np.float64]
Lines = NDArray[np.int64]  # numbers of lines, from 1
Columns = dict[str, NDArray[Any]]  # (n,) or (n, 18) by name
Header = Mapping[str, str]

_FIELDS = 18
REQUESTED_TIME = 9  # field of the standard, counted from 1
_ID, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _STATUS = 0, 1, 3, 4, 7, 10
_USER = 11
_EXTRA = {"group": 12, "executable": 13, "queue": 14}
_PARTIAL = (2, 3, 4)  # status of the parts of a job that was checkpointed; the job has a line of its own
_LONGEST_LINE = 1 << 20  # bytes
_MALFORMED = f"not {_FIELDS} numbers"
_REPEATED = "with a job number seen before"
_NAMED = 5  # lines of a reason whose numbers are kept


def load_swf(
    path: str | os.PathLike[str],
    *,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    time_field: int = REQUESTED_TIME,
    shift: bool = False,
    name: str = "w0",
) -> Workload:
    """Read a log: one job per usable line, in order of submission, one delay profile per distinct run time.

    A job's size is the number of processors requested, or allocated where that is unknown; its walltime is the
    requested time, or the run time where that is unknown. A job that ran for longer than its walltime is stopped at
    its walltime, as Batsim does. The options are those of `decision.model.reshape.Filters`.

    Args:
        path: the log.
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: hosts of the platform; by default the header's MaxProcs or MaxNodes, or else the largest job.
        walltime: ``requested`` as above; ``runtime`` is the run time (perfect estimates); ``none`` leaves jobs without.
        time_field: the field with the requested time, counted from 1; 9 in the standard, others in some logs.
        shift: let the first job kept come at 0 s.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job is left.
        ConfigError: if an option is out of range.
    """
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, shift=shift)
    log = _Log(path)
    fields = _joined([{**_fields(table, time_field), "line": narrow(lines)} for table, lines in log.tables()])
    jobs_read, profiles = _jobs(_in_order(log.without_repeats(fields)), name)
    machine = nodes or machine_size(log.header)
    workload = Workload(
        name=name,
        jobs=jobs_read,
        profiles=profiles,
        nb_res=machine or int(jobs_read.size.max(initial=1)),
        path=str(path),
        description=origin(log.header),
        dropped=log.dropped,
        dropped_lines=log.dropped_lines,
        unix_start=unix_start(log.header),
        time_zone=time_zone(log.header),
    )
    return reshape(workload, replace(filters, nodes=machine))


def read_log(path: str | os.PathLike[str]) -> Table:
    """The log's usable lines as rows of 18 numbers.

    Raises:
        InputError: if the file cannot be read.
    """
    log = _Log(path)
    tables, lines = zip(*log.tables(), strict=True)
    table = np.concatenate(tables)
    columns: Columns = {"number": table[:, _ID], "line": np.concatenate(lines), "table": table}
    return log.without_repeats(columns)["table"]


class _Log:
    """A log, read in parts so that it never stands in memory as text."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self.dropped: dict[str, int] = {}  # lines that were left out, by reason
        self.dropped_lines: dict[str, tuple[int, ...]] = {}  # the first of them
        self.header: Header = {}

    def tables(self) -> Iterator[tuple[Table, Lines]]:
        """Usable lines as rows of 18 numbers, and which lines they are; some may have the same job number.

        Raises:
            InputError: if the file is empty or no text.
        """
        newlines = count = 0
        for part, block in enumerate(read_blocks(self._path, _LONGEST_LINE)):
            text = block if part else block.removeprefix(codecs.BOM_UTF8)
            _check_text(text, newlines, self._path)
            self.header = {**read_header(text), **self.header}
            lines = text.splitlines()
            table, numbers, malformed = _parse(lines, count)
            usable = np.ones(len(table), bool)
            for reason, bad in _reasons(table).items():
                self._drop(reason, numbers[usable & bad])
                usable &= ~bad
            self._drop(_MALFORMED, malformed)
            newlines += text.count(b"\n")
            count += len(lines)
            yield table[usable], numbers[usable]
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

    def _drop(self, reason: str, lines: Lines) -> None:
        """Leave out these lines."""
        if len(lines):
            self.dropped[reason] = self.dropped.get(reason, 0) + len(lines)
            self.dropped_lines[reason] = (*self.dropped_lines.get(reason, ()), *lines[:_NAMED].tolist())[:_NAMED]


def _check_text(block: bytes, lines: int, path: str | os.PathLike[str]) -> None:
    """Refuse a part of the file that is not text; `lines` come before it."""
    if b"\0" in block:
        line = lines + block.count(b"\n", 0, block.index(b"\0")) + 1
        raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")


def _parse(lines: list[bytes], before: int) -> tuple[Table, Lines, Lines]:
    """All lines of numbers as a table of 18 columns, which lines these are, and which are neither that nor comments.

    Args:
        lines: a part of the file.
        before: how many lines come before it.
    """
    texts = list(map(_decoded, lines))
    said = np.flatnonzero([bool(text) and text[0] != ";" for text in texts])
    parts = _tables([texts[at] for at in said] if len(said) < len(texts) else texts)
    is_row = np.zeros(len(said), bool)
    for first, table in parts:
        is_row[first : first + len(table)] = True
    numbers = said + before + 1
    return np.concatenate([np.empty((0, _FIELDS)), *(table for _, table in parts)]), numbers[is_row], numbers[~is_row]


def _decoded(line: bytes) -> str:
    return line.decode("latin-1").strip()


def _tables(lines: list[str], first: int = 0) -> list[tuple[int, Table]]:
    """The lines of 18 numbers, in parts, each with the index of its first line, counted from `first`.

    Other lines are looked for by halves, since most logs have few of them or none.
    """
    if not lines:
        return []
    try:
        table = np.loadtxt(lines, comments=None, ndmin=2)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1] == _FIELDS:
        return [(first, table)]
    half = len(lines) // 2
    return [*_tables(lines[:half], first), *_tables(lines[half:], first + half)] if half else []


def requested_sizes(table: Table) -> Table:
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


def _fields(table: Table, time_field: int) -> Columns:
    """What the jobs of a table have."""
    requested = table[:, time_field - 1]
    columns = {
        "number": table[:, _ID],
        "submit": table[:, _SUBMIT],
        "run": table[:, _RUN],
        "size": requested_sizes(table),
        "walltime": np.where(requested > 0, requested, table[:, _RUN]),
        "user": table[:, _USER],
        **{name: table[:, column] for name, column in _EXTRA.items()},
    }
    return {name: narrow(column) for name, column in columns.items()}


def _joined(tables: list[Columns]) -> Columns:
    """The columns of all tables, which are taken from them."""
    return {name: np.concatenate([table.pop(name) for table in tables]) for name in list(tables[0])}


def _in_order(columns: Columns) -> Columns:
    """By submission; at one time in the order of the log."""
    if (np.diff(columns["submit"]) >= 0).all():
        return columns
    order = np.argsort(columns["submit"], kind="stable")
    return {name: columns.pop(name)[order] for name in list(columns)}


def _jobs(columns: Columns, name: str) -> tuple[JobColumns, DelayProfiles]:
    """The jobs, and the profiles of all."""
    profile, profiles = delay_profiles(columns.pop("run"))
    jobs = JobColumns(
        id=numbered(name, columns["number"]),
        submit_time=columns["submit"].astype(np.float64),
        size=columns["size"].astype(np.int32),
        walltime=columns["walltime"].astype(np.float64),
        profile=profile,
        user=labels(columns["user"]),
        extra=_extras(columns),
    )
    return jobs, profiles


def labels(numbers: Table) -> Labelled[str]:
    """Numbers of users, groups and the like as text; unknown ones (-1) are empty."""
    distinct, which = np.unique(numbers, return_inverse=True)
    texts = [f"{number:.0f}" if number >= 0 else "" for number in distinct.tolist()]
    return Labelled(texts, small(which))


def _extras(columns: Columns) -> Labelled[Mapping[str, str] | None]:
    """Each job's group, executable and queue, as far as they are known."""
    known = [labels(columns.pop(name)) for name in _EXTRA]
    sizes = [len(column.labels) for column in known]
    distinct, which = np.unique(np.ravel_multi_index([column.codes for column in known], sizes), return_inverse=True)
    codes = np.unravel_index(distinct, sizes)
    rows = zip(*(Labelled(k.labels, code) for k, code in zip(known, codes, strict=True)), strict=True)
    extras = [{name: text for name, text in zip(_EXTRA, row, strict=True) if text} or None for row in rows]
    return Labelled(extras, small(which))


_COMMENT = re.compile(rb"^[ \t]*;[ \t]*(\w+):[ \t]*([^\r\n]*)", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_ORIGIN = ("Computer", "Installation", "Acknowledge")


def read_header(data: bytes) -> dict[str, str]:
    """The comments by key; the first of each."""
    found: dict[str, str] = {}
    for match in _COMMENT.finditer(data):
        found.setdefault(match[1].decode("ascii", "replace"), match[2].decode("utf-8", "replace").strip())
    return found


def machine_size(header: Header) -> int | None:
    """MaxProcs, or else MaxNodes, or None; a number that no machine has is not known."""
    for key in ("MaxProcs", "MaxNodes"):
        size = _number(header, key)
        if size and 1 <= size <= INT32_MAX:
            return int(size)
    return None


def unix_start(header: Header) -> float | None:
    """UnixStartTime in seconds since 1970, or None."""
    start = _number(header, "UnixStartTime")
    return start if start is not None and 0 <= start <= LAST_DATE else None


def time_zone(header: Header) -> float:
    """Seconds that the machine's clock was ahead of UTC when the log began.

    TimeZoneString names a zone; the number TimeZone is deprecated (it does not know of summer time) and is used where
    the name is missing or unknown to this computer. Without either it is UTC.
    """
    zone = _named_zone(header.get("TimeZoneString", ""))
    start = unix_start(header)
    if zone is not None and start is not None:
        offset = datetime.datetime.fromtimestamp(start, zone).utcoffset()
        return offset.total_seconds() if offset else 0.0
    seconds = _number(header, "TimeZone")
    return seconds if seconds is not None and abs(seconds) < 86_400 else 0.0


def origin(header: Header) -> str:
    """Which machine the log is of, and whom to thank for it."""
    return "; ".join(f"{key}: {header[key]}" for key in _ORIGIN if header.get(key))


def _named_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):  # a name that is unknown here, or that is none
        return None


def _number(header: Header, key: str) -> float | None:
    """A header's number, or None where there is none; a note may follow it."""
    match = _NUMBER.match(header.get(key, ""))
    return float(match[0]) if match else None
