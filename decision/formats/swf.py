"""Logs in the Standard Workload Format 2.2 (Feitelson's Parallel Workloads Archive).

One line per job, 18 numbers, -1 where unknown; header comments start with ``;``. Logs are records of real
machines and have odd lines; those that no simulation could use are left out, counted by reason in
`Workload.dropped`.
"""

import codecs
import datetime
import os
import re
from collections import Counter
from collections.abc import Mapping
from zoneinfo import ZoneInfo

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.model.dates import LAST_DATE
from decision.model.errors import InputError
from decision.model.reshape import Filters, Walltimes, reshape
from decision.model.workload import Job, Profile, Workload

from .files import read_bytes
from .profiles import INT32_MAX, delay_profiles

Table = NDArray[np.float64]

_FIELDS = 18
REQUESTED_TIME = 9  # field of the standard, counted from 1
_ID, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _STATUS = 0, 1, 3, 4, 7, 10
_USER = 11
_EXTRA = {"group": 12, "executable": 13, "queue": 14}
_PARTIAL = (2, 3, 4)  # status of the parts of a job that was checkpointed; the job has a line of its own
_LONGEST_LINE = 1 << 20  # bytes


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
    table, dropped, data = read_log(path)
    header = read_header(data)
    machine = nodes or machine_size(header)
    jobs_read, profiles = _jobs(table[np.argsort(table[:, _SUBMIT], kind="stable")], name, time_field)
    workload = Workload(
        name=name,
        jobs=jobs_read,
        profiles=profiles,
        nb_res=machine or int(requested_sizes(table).max(initial=1)),
        path=str(path),
        description=origin(header),
        dropped=dict(dropped),
        unix_start=unix_start(header),
        time_zone=time_zone(header),
    )
    return reshape(workload, replace(filters, nodes=machine))


def read_log(path: str | os.PathLike[str]) -> tuple[Table, Counter[str], bytes]:
    """The log's usable lines as rows of 18 numbers, how many others there are by reason, and the whole file.

    Raises:
        InputError: if the file cannot be read.
    """
    data = read_bytes(path, _LONGEST_LINE).removeprefix(codecs.BOM_UTF8)
    _check_text(data, path)
    table, malformed = _parse(data)
    table, dropped = _sift(table)
    if malformed:
        dropped[f"not {_FIELDS} numbers (the first is line {_first_malformed(data)})"] = malformed
    return table, dropped, data


def _check_text(data: bytes, path: str | os.PathLike[str]) -> None:
    if not data:
        raise InputError(f"{path}: the file is empty")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")


def _parse(data: bytes) -> tuple[Table, int]:
    """All lines of numbers as a table of 18 columns, and how many lines are not that."""
    lines = [line for line in map(_decoded, data.splitlines()) if line and not line.startswith(";")]
    table = np.concatenate([np.empty((0, _FIELDS)), *_tables(lines)])
    return table, len(lines) - len(table)


def _first_malformed(data: bytes) -> int:
    """The number, from 1, of the first line that is neither a comment nor 18 numbers."""
    lines = enumerate(map(_decoded, data.splitlines()), 1)
    return next(number for number, line in lines if line and not line.startswith(";") and not len(_tables([line])))


def _decoded(line: bytes) -> str:
    return line.decode("latin-1").strip()


def _tables(lines: list[str]) -> list[Table]:
    """The lines of 18 numbers; others are looked for by halves, since most logs have few of them or none."""
    if not lines:
        return []
    try:
        table = np.loadtxt(lines, comments=None, ndmin=2)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1] == _FIELDS:
        return [table]
    half = len(lines) // 2
    return [*_tables(lines[:half]), *_tables(lines[half:])] if half else []


def requested_sizes(table: Table) -> Table:
    requested = table[:, _REQUESTED]
    return np.where(requested > 0, requested, table[:, _ALLOCATED])


def _sift(table: Table) -> tuple[Table, Counter[str]]:
    """The usable lines, and how many others there are, each under the first reason that holds."""
    size = requested_sizes(table)
    reasons = {
        "with a field that is not a finite number": ~np.isfinite(table).all(axis=1),
        "parts of a checkpointed job (status 2, 3 or 4)": np.isin(table[:, _STATUS], _PARTIAL),
        "with a negative submission time": table[:, _SUBMIT] < 0,
        "with an unknown or zero run time": table[:, _RUN] <= 0,
        "with an unknown or zero size": size < 1,
        "with a fractional size or job number": (size != np.floor(size)) | (table[:, _ID] != np.floor(table[:, _ID])),
        f"larger than {INT32_MAX} hosts": size > INT32_MAX,
    }
    usable = np.ones(len(table), bool)
    dropped: Counter[str] = Counter()
    for reason, bad in reasons.items():
        _drop(usable, usable & bad, reason, dropped)
    _drop(usable, _repeated(table[:, _ID], usable), "with a job number seen before", dropped)
    return table[usable], dropped


def _repeated(ids: Table, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which usable lines repeat the job number of an earlier usable line."""
    rows = np.flatnonzero(usable)
    _, first = np.unique(ids[rows], return_index=True)
    repeated = usable.copy()
    repeated[rows[first]] = False
    return repeated


def _drop(usable: NDArray[np.bool_], bad: NDArray[np.bool_], reason: str, dropped: Counter[str]) -> None:
    if bad.any():
        dropped[reason] = int(bad.sum())
        usable &= ~bad


def _jobs(table: Table, name: str, time_field: int) -> tuple[tuple[Job, ...], dict[str, Profile]]:
    """Each line's job, and the profiles of all."""
    profile_names, profiles = delay_profiles(table[:, _RUN])
    jobs = tuple(
        Job(
            id=f"{name}!{number}",
            submit_time=submit,
            size=size,
            walltime=walltime,
            profile=profile,
            user=user,
            extra=extra,
        )
        for number, submit, size, walltime, profile, user, extra in zip(
            _texts(table[:, _ID]),
            table[:, _SUBMIT].tolist(),
            requested_sizes(table).astype(np.int64).tolist(),
            _walltimes(table, time_field).tolist(),
            profile_names,
            labels(table[:, _USER]),
            _extras(table),
            strict=True,
        )
    )
    return jobs, profiles


def _texts(numbers: Table) -> list[str]:
    return [f"{number:.0f}" for number in numbers.tolist()]


def labels(numbers: Table) -> list[str]:
    """Numbers of users, groups and the like as text; unknown ones (-1) are empty."""
    distinct, which = np.unique(numbers, return_inverse=True)
    labels = [text if number >= 0 else "" for number, text in zip(distinct.tolist(), _texts(distinct), strict=True)]
    return [labels[i] for i in which.tolist()]


def _extras(table: Table) -> list[dict[str, str] | None]:
    """Each job's group, executable and queue, as far as they are known; jobs with the same share one."""
    columns = {name: labels(table[:, column]) for name, column in _EXTRA.items()}
    rows = list(zip(*columns.values(), strict=True))
    extras = {row: {name: text for name, text in zip(_EXTRA, row, strict=True) if text} or None for row in set(rows)}
    return [extras[row] for row in rows]


def _walltimes(table: Table, time_field: int) -> Table:
    requested = table[:, time_field - 1]
    return np.where(requested > 0, requested, table[:, _RUN])


_COMMENT = re.compile(rb"^[ \t]*;[ \t]*(\w+):[ \t]*([^\r\n]*)", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_ORIGIN = ("Computer", "Installation", "Acknowledge")

Header = Mapping[str, str]


def read_header(data: bytes) -> Header:
    """The comments by key; the first of each."""
    found: dict[str, str] = {}
    for match in _COMMENT.finditer(data):
        found.setdefault(match[1].decode("ascii", "replace"), match[2].decode("utf-8", "replace").strip())
    return found


def machine_size(header: Header) -> int | None:
    """MaxProcs, or else MaxNodes, or None."""
    for key in ("MaxProcs", "MaxNodes"):
        size = _number(header, key)
        if size and size >= 1:
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
