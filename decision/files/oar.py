"""Exports of the batch scheduler OAR as workloads: a table of jobs as CSV, or JSON."""

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from decision.model.columns import labelled
from decision.model.errors import InputError
from decision.model.reshape import refuse_empty
from decision.model.trace import Reading, Trace
from decision.model.workload import Job, Workload

from .profiles import INT32_MAX, delay_profiles
from .text import DECODE_ERRORS, explain_text, found_text, read_blocks, read_bytes

# The records of OAR's exports: a job of an export, whatever the format and the names of its fields.
#
# Times are seconds since 1970, 0 where something has not happened. A resource is what OAR schedules: on many clusters a
# core, not a host.

# OAR's commands and its REST API name the same things differently
_ID = ("job_id", "Job_Id", "id")
_SUBMISSION = ("submission_time", "submissionTime")
_START = ("start_time", "startTime")
_STOP = ("stop_time", "stopTime")
_WALLTIME = ("walltime",)
_RESOURCES = ("resources", "assigned_resources")
_COUNT = ("resource_count",)
_USER = ("user", "owner", "job_user")
_QUEUE = ("queue", "queue_name")

_LONGEST_LINE = 16 << 20  # bytes: the resources of a job on a million cores
_DELIMITERS = ",;\t"

ROW_PLACE = ", line "

Fields = Mapping[str, Any]


class Record(msgspec.Struct, frozen=True):
    """What an export says about a job."""

    id: str
    submission: float  # seconds since 1970
    start: float  # seconds since 1970, 0 if it never started
    stop: float  # seconds since 1970, 0 if it did not end
    walltime: float  # seconds, inf if there is none
    size: int  # resources
    resources: Sequence[str]  # their ids, where the export names them
    user: str
    queue: str
    place: str  # where in the file, for an error: ", line 3"


def csv_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of a table with a header. Raises InputError."""
    data = read_bytes(path, _LONGEST_LINE)
    if not data.strip():
        raise InputError(f"{path}: the file is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: text that is not UTF-8; is it the right file?") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")
    csv.field_size_limit(_LONGEST_LINE)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(rows)]
        for names in (_ID, _SUBMISSION, _START, _STOP):
            if not set(names) & set(header):
                mistake = f"the column {names[0]!r} is missing; the first line must name the columns"
                raise InputError(f"{path}, line 1: {mistake}")
        if not set(_RESOURCES + _COUNT) & set(header):
            raise InputError(f"{path}, line 1: there is neither a column 'resources' nor 'resource_count'; add one")
        for row in rows:
            place = f"{ROW_PLACE}{rows.line_num}"
            if len(row) not in (0, len(header)):
                raise InputError(f"{path}{place}: {len(row)} values for {len(header)} columns; is the file complete?")
            if row:
                yield _record(dict(zip(header, row, strict=True)), path, place)
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: not CSV: {error}") from None


def is_oar_table(path: str | os.PathLike[str]) -> bool:
    """Whether a CSV file has the columns of an export, or is not a file that could be asked. Raises InputError."""
    first = next(iter(read_blocks(path, _LONGEST_LINE)), b"").partition(b"\n")[0].decode("utf-8", "replace")
    names = {name.strip().strip('"\ufeff') for name in re.split("[,;\t]", first)}
    return bool(names & set(_SUBMISSION)) or len(names) < 2 or "\0" in first


def json_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of a JSON export. Raises InputError."""
    data = read_bytes(path)
    try:
        content = msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not JSON: {explain_text(error, data)}") from None
    # jobs by id, ``{"8": {...}}``, the same under ``jobs``, or a list, alone or under ``items``
    if isinstance(content, dict):
        content = content.get("jobs", content.get("items", content))
    if not isinstance(content, dict | list):
        raise InputError(f"{path}: must be jobs by id, or a list of jobs{found_text(content)}")
    jobs = content.items() if isinstance(content, dict) else (("", fields) for fields in content)
    for number, (key, fields) in enumerate(jobs, 1):
        place = f": job {key!r}" if key else f": job number {number}"
        if not isinstance(fields, dict):
            raise InputError(f"{path}{place}: must be an object {{...}}{found_text(fields)}")
        yield _record({"job_id": key, **fields} if key else fields, path, place)


def _record(fields: Fields, path: str | os.PathLike[str], place: str) -> Record:
    where = f"{path}{place}"
    # ``2 3 4``, ``[2, 3, 4]`` or ``[{"id": 2}, ...]``; empty if unknown
    name, listed = _find(fields, _RESOURCES)
    if listed is not None and not isinstance(listed, str | list):
        raise InputError(f"{where}, field {name!r}: must be a list of resources{found_text(listed)}")
    items = listed.split() if isinstance(listed, str) else listed or []
    resources = [str(item.get("id", item)) if isinstance(item, dict) else str(item) for item in items]
    count = _number(fields, _COUNT, where, default=float(len(resources)))
    if not resources and (count % 1 or count > INT32_MAX):
        reason = f"must be a whole number of at most {INT32_MAX}"
        raise InputError(f"{where}, field 'resource_count': {reason}; found {count:g}")
    walltime = _number(fields, _WALLTIME, where, default=0.0)
    name, job_id = _find(fields, _ID)
    if job_id is None:
        raise InputError(f"{where}: the field {name!r} is missing; add it")
    if isinstance(job_id, bool) or not isinstance(job_id, int | str) or not str(job_id).strip():
        raise InputError(f"{where}, field {name!r}: must be a whole number or text{found_text(job_id)}")
    if "!" in str(job_id):
        raise InputError(f"{where}, field {name!r}: must not contain '!'{found_text(job_id)}")
    return Record(
        id=str(job_id).strip(),
        submission=_number(fields, _SUBMISSION, where),
        start=_number(fields, _START, where),
        stop=_number(fields, _STOP, where),
        walltime=walltime if walltime > 0 else math.inf,
        size=len(resources) or int(count),
        resources=resources,
        user=_label(fields, _USER),
        queue=_label(fields, _QUEUE),
        place=place,
    )


def _find(fields: Fields, names: Sequence[str]) -> tuple[str, Any]:
    """The first of these fields that is there, and its value; None where there is none of them."""
    return next(((name, fields[name]) for name in names if name in fields), (names[0], None))


def _number(fields: Fields, names: Sequence[str], where: str, default: float | None = None) -> float:
    name, value = _find(fields, names)
    if default is None and name not in fields:
        raise InputError(f"{where}: the field {name!r} is missing; add it")
    if value in (None, ""):
        return default or 0.0
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{where}, field {name!r}: must be a number of at least 0{found_text(value)}")
    return number


def _label(fields: Fields, names: Sequence[str]) -> str:
    value = _find(fields, names)[1]
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


_NAMED = 5  # lines of a reason whose numbers are kept


_REASONS = ("that never started", "that did not end", "that ended when they started, or before", "without resources")


def load_oar(path: str | os.PathLike[str], name: str = "w0") -> Workload:
    """Read an export: one job per record that ran, in order of submission, one delay profile per distinct run time.

    The first submission is 0 s. A job's size is the number of its resources; the machine has as many as the jobs used.

    A CSV file has a header with the columns ``job_id``, ``submission_time``, ``start_time``, ``stop_time`` and
    ``resources`` (ids separated by spaces) or ``resource_count``; ``walltime`` (seconds), ``user`` and ``queue`` where
    known. JSON has the same fields, or those of OAR's commands: it is what ``oarstat --gantt "FROM, TO" -J`` prints;
    that of ``oarstat -J`` and of the REST API serves too where it has stop times and resources.

    Args:
        path: the export; ``.json`` or else CSV.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job ran; one line with file, line or job, and field.
    """
    read = json_records if Path(path).suffix.lower() == ".json" else csv_records
    records = list(read(path))
    jobs: list[Record] = []
    seen: set[str] = set()
    dropped = dict.fromkeys(_REASONS, 0)
    lines: dict[str, tuple[int, ...]] = dict.fromkeys(_REASONS, ())  # the first of them, in a table
    for record in records:
        if record.id in seen:
            raise InputError(f"{path}{record.place}: job {record.id!r} is there twice; make ids unique")
        seen.add(record.id)
        wrong = (record.start <= 0, record.stop <= 0, record.stop <= record.start, record.size < 1)
        if not any(wrong):
            jobs.append(record)
            continue
        why = _REASONS[wrong.index(True)]
        dropped[why] += 1
        if record.place.startswith(ROW_PLACE):
            lines[why] = (*lines[why], int(record.place.removeprefix(ROW_PLACE)))[:_NAMED]
    jobs.sort(key=lambda record: record.submission)
    first = jobs[0].submission if jobs else 0.0
    names, profiles = delay_profiles(np.array([job.stop - job.start for job in jobs], np.float64))
    # as large as what the jobs used; where resources are not named, as the largest job
    named = {resource for record in jobs for resource in record.resources}
    workload = Workload(
        name=name,
        jobs=tuple(
            Job(
                id=f"{name}!{record.id}",
                submit_time=record.submission - first,
                size=record.size,
                walltime=record.walltime,
                profile=profile,
                user=record.user,
                extra={"queue": record.queue} if record.queue else None,
            )
            for record, profile in zip(jobs, names, strict=True)
        ),
        profiles=profiles,
        nb_res=max(len(named), max((record.size for record in jobs), default=1)),
        path=str(path),
        dropped={why: count for why, count in dropped.items() if count},
        dropped_lines={why: places for why, places in lines.items() if places},
        unix_start=first,
        trace=_trace(jobs, name),
        reading=Reading(
            format="oar",
            records=len(records),
            unit="resources",
            unit_reason="the format counts resources",
            hosts_from="distinct resources" if any(job.resources for job in jobs) else "largest job",
            requested=sum(math.isfinite(job.walltime) for job in jobs),
            clock="UTC",
        ),
    )
    refuse_empty(workload)
    return workload


def _trace(records: Sequence[Record], name: str) -> Trace:
    """What happened to the jobs."""
    size = np.array([record.size for record in records], np.float64)
    nodes = labelled([" ".join(record.resources) for record in records])
    return Trace(
        id=[f"{name}!{record.id}" for record in records],
        wait=np.array([max(0.0, record.start - record.submission) for record in records], np.float64),
        recorded={"size": size, "nodes": nodes} if any(nodes.used()) else {"size": size},
        request={"partition": queue} if any((queue := labelled([r.queue for r in records])).used()) else {},
    )
