"""Logs in the Standard Workload Format 2.2 (Feitelson's Parallel Workloads Archive), and in the Grid Workload Format.

One line per job, 18 numbers, -1 where unknown; header comments start with ``;``. Some logs have more fields, ``;`` or
tabs between them, or names in fields 12 to 16. The Grid Workload Format has the same first 16 fields, 29 in all, and
comments that start with ``#``. Logs are records of real machines and have odd lines; those that no simulation could
use are left out, counted by reason in `Workload.dropped`, with the numbers of the first of them.
"""

import codecs
import datetime
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision import __version__
from decision.model.columns import DelayProfiles, JobColumns, Labelled, Texts, coded, joined, narrow, numbered
from decision.model.computer import return_freed_memory
from decision.model.dates import LAST_DATE
from decision.model.demand import Floats, recorded, use_of
from decision.model.errors import InputError
from decision.model.reshape import Filters, Walltimes, at_most, refuse_empty, reshape, too_large
from decision.model.trace import Field, Reading, Trace, of_jobs, says
from decision.model.workload import Workload

from .batsim_json import label
from .profiles import INT32_MAX, delay_profiles
from .text import is_plain_number, read_blocks, utf8, write_files

Header = Mapping[str, str]
Table = NDArray[np.float64]
Lines = NDArray[np.int64]  # numbers of lines, from 1
Codes = NDArray[np.int32]  # of texts that follow the numbers of a line
Columns = dict[str, NDArray[Any]]  # (n,) or (n, 18) by name
REQUESTED_TIME = 9  # field of the standard, counted from 1


def load_swf(
    path: str | os.PathLike[str],
    *,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    missing_walltime: str = "none",
    time_field: int = REQUESTED_TIME,
    shift: bool = False,
    grid: bool = False,
    name: str = "w0",
) -> Workload:
    """Read a log: one job per usable line, in order of submission, one delay profile per distinct run time.

    A job's size is the number of processors requested, or allocated where that is unknown; its walltime is the
    requested time, and none where that is unknown. A job that ran for longer than its walltime is stopped at
    its walltime, as Batsim does. The options are those of `decision.model.reshape.Filters`.

    Args:
        path: the log.
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: hosts of the platform; by default the header's MaxProcs or MaxNodes, a file PATH.machines, or else the
            peak of what was in use, as far as starts are known.
        walltime: ``requested`` as above; ``runtime`` is the run time (perfect estimates); ``none`` leaves jobs without.
        missing_walltime: of jobs without a requested time: ``none``, ``runtime`` or ``longest``.
        time_field: the field with the requested time, counted from 1; 9 in the standard, others in some logs.
        shift: let the first job kept come at 0 s.
        grid: the log is in the Grid Workload Format.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job is left.
        ConfigError: if an option is out of range.
    """
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, missing=missing_walltime, shift=shift)
    return reshape(read_swf(path, machine=nodes, time_field=time_field, grid=grid, name=name), filters)


def read_swf(
    path: str | os.PathLike[str],
    *,
    machine: int | None = None,
    time_field: int = REQUESTED_TIME,
    grid: bool = False,
    name: str = "w0",
) -> Workload:
    """Read a log as `load_swf` does, without any of its filters but that for jobs larger than the machine.

    Args:
        path: the log.
        machine: its hosts; as the log says by default.
        time_field: the field with the requested time, counted from 1.
        grid: the log is in the Grid Workload Format.
        name: the workload's name.

    Raises:
        InputError: if the file cannot be read or no job is left.
    """
    log = LogLines(path, grid)
    parts = [
        {**job_columns(table, time_field), "rest": rest, "line": narrow(lines)} for table, rest, lines in log.tables()
    ]
    # tables are taken from `parts`, and columns from the tables, so that no column stands in memory twice
    columns = {name: joined([part.pop(name) for part in parts]) for name in list(parts[0])}
    columns = log.without_repeats(columns)
    if not (np.diff(columns["submit"]) >= 0).all():  # by submission; at one time in the order of the log
        order = np.argsort(columns["submit"], kind="stable")
        columns = {name: columns.pop(name)[order] for name in list(columns)}
    return_freed_memory()
    lines = columns.pop("line")
    ids = numbered(name, columns["number"])
    trace, has_limit = log.trace(ids, columns), np.isfinite(columns["walltime"])
    jobs, profiles = _jobs(columns, ids, log.labels)
    workload = Workload(
        name=name,
        jobs=jobs,
        profiles=profiles,
        nb_res=int(jobs.size.max(initial=1)),
        path=str(path),
        description="; ".join(f"{key}: {log.header[key]}" for key in _ORIGIN if log.header.get(key)),
        dropped=log.dropped,
        dropped_lines=log.dropped_lines,
        unix_start=unix_start(log.header),
        time_zone=time_zone(log.header),
        trace=trace,
    )
    hosts, source, notes = (machine, "given", ()) if machine else _machine(log.header, workload)
    large = jobs.size > hosts
    reading = Reading(
        format="gwf" if grid else "swf",
        records=log.records,
        unit="processors",
        unit_reason="the format counts processors",
        hosts_from=source,
        requested=int(has_limit[~large].sum()),
    )
    if large.any():
        known = {**log.dropped_lines, too_large(hosts): tuple(sorted(lines[large].tolist())[:_NAMED])}
        workload = replace(workload, dropped_lines=known)
    workload = at_most(replace(workload, reading=reading, notes=notes), hosts)
    refuse_empty(workload)
    return workload


def _machine(header: Header, workload: Workload) -> tuple[int, str, tuple[str, ...]]:
    """The number of hosts, where it is from, and what is to be said of it."""
    if stated := machine_size(header):
        return stated, "header", ()
    beside = Path(f"{workload.path}.machines")  # Alea's file of clusters: id, name, nodes, processors of each
    try:
        rows = [line.split() for line in beside.read_text("utf-8", "replace").splitlines() if line.strip()]
        if listed := sum(int(row[2]) * int(row[3]) for row in rows):
            return listed, beside.name, ()
    except (OSError, ValueError, IndexError):
        pass  # there is none
    jobs, largest = recorded(workload), workload.nb_res
    if jobs is not None:
        peak = max(int(use_of(jobs).hosts.max()), largest)
        why = "no header says how many hosts the machine had"
        return peak, "peak of recorded use", (f"{why}; {peak:,}, the peak of what was in use",)
    why = "neither a header nor recorded starts say how many hosts the machine had"
    return largest, "largest job", (f"warning: {why}; {largest:,}, the largest job (give it with --machine)",)


def _jobs(columns: Columns, ids: Texts, labels: Callable[[Table], Labelled[str]]) -> tuple[JobColumns, DelayProfiles]:
    """The jobs, and the profiles of all."""
    profile, profiles = delay_profiles(columns.pop("run"))
    # each job's group, executable and queue, as far as they are known: one mapping for all jobs of the same ones
    known = [labels(columns.pop(name)) for name in TEXT_FIELDS]
    sizes = [len(column.labels) for column in known]
    number = np.zeros(len(ids), np.min_scalar_type(math.prod(sizes)))  # of a job's three texts among all that could be
    for column, size in zip(known, sizes, strict=True):
        number *= size
        number += column.codes
    numbers, which = coded(number)
    codes = np.unravel_index(numbers, sizes)
    rows = zip(*(Labelled(k.labels, code) for k, code in zip(known, codes, strict=True)), strict=True)
    extras = [{name: text for name, text in zip(TEXT_FIELDS, row, strict=True) if text} or None for row in rows]
    jobs = JobColumns(
        id=ids,
        submit_time=columns["submit"].astype(np.float64),
        size=columns["size"].astype(np.int32),
        walltime=columns["walltime"].astype(np.float64),
        profile=profile,
        user=labels(columns["user"]),
        extra=Labelled[Mapping[str, str] | None](extras, which),
    )
    return jobs, profiles


# What the comments above a log in the Standard Workload Format say: the machine, and when and where the log began.

_COMMENT = re.compile(rb"^[ \t]*[;#][ \t]*(\w+):[ \t]*([^\r\n]*)", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MACHINE = re.compile(rb"[;#][ \t]*(UnixStartTime|MaxProcs|MaxNodes|Computer|Version|MaxJobs|MaxRecords):")
_ORIGIN = ("Computer", "Installation", "Acknowledge")  # which machine the log is of, and whom to thank for it


def read_header(data: bytes) -> dict[str, str]:
    """The comments by key; the first of each."""
    comments: dict[str, str] = {}
    for match in _COMMENT.finditer(data):
        comments.setdefault(match[1].decode("ascii", "replace"), match[2].decode("utf-8", "replace").strip())
    return comments


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
    name, start = header.get("TimeZoneString", ""), unix_start(header)
    try:
        zone = ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):  # a name that is unknown here, or that is none
        zone = None
    if zone is not None and start is not None:
        offset = datetime.datetime.fromtimestamp(start, zone).utcoffset()
        return offset.total_seconds() if offset else 0.0
    seconds = _number(header, "TimeZone")
    return seconds if seconds is not None and abs(seconds) < 86_400 else 0.0


def _number(header: Header, key: str) -> float | None:
    """A header's number, or None where there is none; a note may follow it."""
    match = _NUMBER.match(header.get(key, ""))
    return float(match[0]) if match else None


# The lines of a log in the Standard Workload Format, or in the Grid Workload Format, as tables of numbers.

_FIELDS = 18
GRID_FIELDS = 29  # of the Grid Workload Format
_GRID_SHARED = 16  # of them, the first are those of the standard
_ID, _SUBMIT, _WAIT, _RUN, _ALLOCATED, _REQUESTED, _STATUS, _USER, _PARTITION = 0, 1, 2, 3, 4, 7, 10, 11, 15
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
            if b"\0" in text:
                line = newlines + text.count(b"\n", 0, text.index(b"\0")) + 1
                mistake = "a zero byte, so this is not a text file; is it the right file?"
                raise InputError(f"{self._path}, line {line}: {mistake}")
            lines = text.splitlines()
            if b";" in text or b"#" in text:
                self.header = {**read_header(text), **self.header}
                self._refuse_second_header(lines, count)
            table, rest, numbers, malformed = self._parse(lines, count)
            # a line that is wrong in several ways is counted once, under the first reason
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

    def _refuse_second_header(self, lines: list[bytes], before: int) -> None:
        """Refuse a machine's comments behind jobs: two logs that were put together, with times from two beginnings."""
        has_jobs = self.records > 0
        for number, line in enumerate(lines, before + 1):
            text = line.strip()
            if text[:1] in (b";", b"#"):
                if has_jobs and (match := _MACHINE.match(text)):
                    key = match[1].decode()
                    why = f"{key} behind jobs begins the header of a second log, whose times begin elsewhere"
                    raise InputError(f"{self._path}, line {number}: {why}; split the file there")
            else:
                has_jobs = has_jobs or bool(text)

    def without_repeats(self, columns: Columns) -> Columns:
        """The first row of each job number; of columns ``number``, ``line``, and others."""
        if (np.diff(columns["number"]) > 0).all():  # as in nearly all logs
            return columns
        repeated = np.ones(len(columns["number"]), bool)
        repeated[np.unique(columns["number"], return_index=True)[1]] = False
        self._drop(_REPEATED, columns["line"][repeated])
        return {name: column[~repeated] for name, column in columns.items()}

    def labels(self, numbers: Table) -> Labelled[str]:
        """Numbers of users, groups and the like as text; unknown ones (-1) are empty."""
        names = {number: text for text, number in self._names.items()}
        values, which = coded(numbers)
        texts = [f"{number:.0f}" if number >= 0 else names.get(number, "") for number in values.tolist()]
        return Labelled(texts, which)

    def trace(self, ids: Sequence[str], columns: Columns) -> Trace:
        """What was recorded besides the jobs; takes its columns out of `columns`."""
        taken = {name: columns.pop(name) for name in list(columns) if name.startswith(("recorded ", "request "))}
        recorded: dict[str, Field] = {name: _known(taken.pop(f"recorded {name}")) for name in _RECORDED}
        request: dict[str, Field] = {name: _known(taken.pop(f"request {name}")) for name in _REQUEST}
        asked = taken.pop("request walltime")
        request["walltime"] = np.where((asked <= 0) & (asked != -1), asked, np.nan)
        request["partition"] = self.labels(taken.pop("request partition"))
        states, which = coded(taken.pop("recorded state"))
        texts = [STATES.get(state, "" if state == -1 else f"{state:.0f}") for state in states.tolist()]
        recorded["state"] = Labelled(texts, which)
        recorded["fields"] = Labelled(list(self._rests), columns.pop("rest"))
        return Trace(
            id=ids,
            wait=_known(columns.pop("wait")),
            recorded={name: field for name, field in recorded.items() if says(field)},
            request={name: field for name, field in request.items() if says(field)},
        )

    def _drop(self, reason: str, lines: Lines) -> None:
        """Count lines as left out for this reason, and keep the numbers of the first of them."""
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
        records = np.flatnonzero([bool(text) and text[0] not in ";#" for text in texts])
        rows = [texts[at] for at in records] if len(records) < len(texts) else texts
        numbers = records + before + 1
        # nearly all logs are plain numbers, which NumPy reads at once; others are read line by line
        table = np.empty((0, 0 if self._grid else _FIELDS))
        if rows and not self._grid:
            with suppress(ValueError):
                table = np.loadtxt(rows, comments=None, ndmin=2)
        if table.shape == (len(rows), _FIELDS):
            self._usual = self._usual or _FIELDS
            return table, np.zeros(len(rows), np.int32), numbers, numbers[:0]
        table, rest, is_row = self._parse_each(rows)
        return table, rest, numbers[is_row], numbers[~is_row]

    def _parse_each(self, rows: list[str]) -> tuple[Table, Codes, np.ndarray]:
        """The lines of numbers one by one, what follows, and which lines these are."""
        split = []
        for text in rows:
            fields = text.split()
            if len(fields) < _FIELDS or ";" in text:
                parted = [field.strip() for field in text.split(";")]
                fields = parted if len(parted) >= _FIELDS else text.partition(";")[0].split()
            split.append(fields)
        if split and not self._usual:
            ((count, lines_of_it),) = Counter(map(len, split)).most_common(1)
            self._usual = count if lines_of_it > _MOSTLY * len(split) else 0
        parsed = [self._row(fields) for fields in split]
        usable = [row for row in parsed if row is not None]
        table = np.array([numbers for numbers, _ in usable], np.float64).reshape(-1, _FIELDS)
        return table, np.array([rest for _, rest in usable], np.int32), np.array([*map(bool, parsed)], bool)

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
    unknown = numbers == -1
    if unknown.all():
        return np.broadcast_to(np.nan, len(numbers))
    return np.where(unknown, np.nan, numbers) if unknown.any() else numbers


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
    return {name: joined([narrow(column)]) for name, column in columns.items()}


# Workloads as logs in the Standard Workload Format 2.2, written.

_STATUS_OF = {"COMPLETED": 1, "CANCELLED": 5, "DEADLINE": 5}  # the standard's status by state; of others 0: failed


def write_swf(path: str | os.PathLike[str], workload: Workload, runtimes: Floats) -> None:
    """Write a workload as a log, with what was recorded of its jobs; other jobs' waiting times are unknown.

    Lines come in order of submission. Job numbers are the jobs' names where all of these are numbers, or else counted
    from 1; users, groups, executables and queues likewise, with the names in the header.

    Args:
        path: the file.
        workload: the jobs.
        runtimes: how long each takes, (J,) seconds (see `decision.model.demand.runtimes`).

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({Path(path): swf_lines(workload, runtimes)})


def swf_lines(workload: Workload, runtimes: Floats) -> Iterator[bytes]:
    """The content of the file that `write_swf` writes."""
    order = np.argsort([job.submit_time for job in workload.jobs], kind="stable").tolist()
    jobs = [workload.jobs[i] for i in order]
    numbers, names = _numbers([job.name for job in jobs])
    notes = ["Note: jobs are numbered from 1"] if names else []
    labels = {"user": [job.user for job in jobs]}
    labels |= {name: [label((job.extra or {}).get(name)) for job in jobs] for name in TEXT_FIELDS}
    columns = []
    for kind, texts in labels.items():
        column, names = _numbers(texts)
        columns.append(column)
        notes += [f"Note: {kind} {number} is {name!r}" for name, number in names.items()]
    beside = _Beside(workload, order)
    notes += [f"Note: partition {number} is {name!r}" for name, number in beside.partitions.items()]
    head = ["Version: 2.2", f"Conversion: decision {__version__}", f"MaxJobs: {len(jobs)}", f"MaxRecords: {len(jobs)}"]
    if workload.unix_start is not None:
        head += [f"UnixStartTime: {_text(workload.unix_start)}", f"TimeZone: {_text(workload.time_zone)}"]
    head += [f"MaxNodes: {workload.nb_res}", f"MaxProcs: {workload.nb_res}"]
    head += [f"Note: {line}" for line in workload.description.splitlines() if line.strip()]
    yield from (utf8(f"; {line}\n") for line in (*head, *notes))
    rows = zip(numbers, jobs, runtimes[order].tolist(), *columns, strict=True)
    for at, (number, job, runtime, user, *names_of_job) in enumerate(rows):
        walltime = beside.walltime[at] if job.walltime == np.inf else _text(job.walltime)
        allocated, requested = beside.sizes(at, job.size)
        fields = (
            *(number, _text(job.submit_time), beside.wait[at], _text(runtime), allocated, beside.cpu_time[at]),
            *(beside.used_memory[at], requested, walltime, beside.memory[at]),
            *(beside.status(at, workload.profiles[job.profile].exit_code), user, *names_of_job),
            *(beside.partition[at], beside.preceding[at], beside.think_time[at]),
        )
        yield f"{' '.join(map(str, fields))} {beside.rest[at]}".rstrip().encode() + b"\n"


class _Beside:
    """What a log's fields say that jobs do not, from the jobs' records; -1 where it is not known.

    Args:
        workload: the jobs.
        order: in which they are written.
    """

    def __init__(self, workload: Workload, order: Sequence[int]) -> None:
        jobs = len(workload.jobs)
        self._is_recorded = workload.trace is not None
        trace = of_jobs(workload.trace or Trace(id=[""] * jobs, wait=np.full(jobs, np.nan)), workload.jobs)

        def numbers(part: str, name: str) -> list[str]:
            return [_text(-1.0 if number != number else number) for number in trace.number(part, name)[order].tolist()]

        def texts(part: str, name: str) -> list[str]:
            return list(trace.texts(part, name).take(np.array(order, np.int64)))

        self.wait = [_text(-1.0 if wait != wait else wait) for wait in trace.wait[order].tolist()]
        self.allocated, self.requested = numbers("recorded", "size"), numbers("request", "size")
        self.cpu_time, self.used_memory = numbers("recorded", "cpu_time"), numbers("recorded", "memory")
        self.walltime, self.memory = numbers("request", "walltime"), numbers("request", "memory")
        self.think_time = numbers("request", "think_time")
        self.state, self.rest = texts("recorded", "state"), texts("recorded", "fields")
        self.partition, self.partitions = _numbers(texts("request", "partition"))
        self.preceding = numbers("request", "dependency")

    def sizes(self, at: int, size: int) -> tuple[str, str]:
        """Hosts allocated and requested, as they were recorded of a job whose size is still the same."""
        requested, allocated = self.requested[at], self.allocated[at]
        if (float(requested) if float(requested) > 0 else float(allocated)) == size:
            return allocated, requested
        return "-1", str(size)

    def status(self, at: int, exit_code: int) -> str:
        """The standard's status of a job."""
        state = self.state[at]
        if not state:
            return "-1" if self._is_recorded else str(0 if exit_code else 1)
        return state if state.isdigit() else str(_STATUS_OF.get(state, 0))


def _numbers(texts: Sequence[str]) -> tuple[list[int], Mapping[str, int]]:
    """A number for each text, -1 for none, and what the numbers mean where the texts are no numbers themselves."""
    named = [text for text in dict.fromkeys(texts) if text]
    if all(map(is_plain_number, named)):
        return [int(text) if text else -1 for text in texts], {}
    names = {text: number for number, text in enumerate(named, 1)}
    return [names.get(text, -1) for text in texts], names


def _text(value: float) -> str:
    """A number as it is read again, without decimals where it has none."""
    return f"{value:.0f}" if value % 1 == 0 else repr(value)
