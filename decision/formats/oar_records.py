"""The records of OAR's exports: a job of an export, whatever the format and the names of its fields.

Times are seconds since 1970, 0 where something has not happened. A resource is what OAR schedules: on many clusters a
core, not a host.
"""

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from decision.model.errors import InputError

from .files import read_blocks, read_bytes
from .json_text import DECODE_ERRORS, explain_text, found_text
from .profiles import INT32_MAX

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
    text = _text(read_bytes(path, _LONGEST_LINE), path)
    csv.field_size_limit(_LONGEST_LINE)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(rows)]
        _check_columns(header, path)
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


def _check_columns(header: Sequence[str], path: str | os.PathLike[str]) -> None:
    for names in (_ID, _SUBMISSION, _START, _STOP):
        if not set(names) & set(header):
            raise InputError(
                f"{path}, line 1: the column {names[0]!r} is missing; the first line must name the columns"
            )
    if not set(_RESOURCES + _COUNT) & set(header):
        raise InputError(f"{path}, line 1: there is neither a column 'resources' nor 'resource_count'; add one")


def _text(data: bytes, path: str | os.PathLike[str]) -> str:
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
    return text


def json_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of a JSON export. Raises InputError."""
    data = read_bytes(path)
    try:
        content = msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not JSON: {explain_text(error, data)}") from None
    for number, (key, fields) in enumerate(_jobs(content, path), 1):
        place = f": job {key!r}" if key else f": job number {number}"
        if not isinstance(fields, dict):
            raise InputError(f"{path}{place}: must be an object {{...}}{found_text(fields)}")
        yield _record({"job_id": key, **fields} if key else fields, path, place)


def _jobs(content: Any, path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    """Jobs with their keys: ``{"8": {...}}``, the same under ``jobs``, or a list, alone or under ``items``."""
    if isinstance(content, dict):
        content = content.get("jobs", content.get("items", content))
    if isinstance(content, dict):
        yield from content.items()
    elif isinstance(content, list):
        yield from (("", fields) for fields in content)
    else:
        raise InputError(f"{path}: must be jobs by id, or a list of jobs{found_text(content)}")


def _record(fields: Fields, path: str | os.PathLike[str], place: str) -> Record:
    where = f"{path}{place}"
    resources = _resources(fields, where)
    count = _number(fields, _COUNT, where, default=float(len(resources)))
    walltime = _number(fields, _WALLTIME, where, default=0.0)
    return Record(
        id=_id(fields, where),
        submission=_number(fields, _SUBMISSION, where),
        start=_number(fields, _START, where),
        stop=_number(fields, _STOP, where),
        walltime=walltime if walltime > 0 else math.inf,
        size=len(resources) if resources else _whole(count, where),
        resources=resources,
        user=_label(fields, _USER),
        queue=_label(fields, _QUEUE),
        place=place,
    )


def _whole(count: float, where: str) -> int:
    if count % 1 or count > INT32_MAX:
        reason = f"must be a whole number of at most {INT32_MAX}"
        raise InputError(f"{where}, field 'resource_count': {reason}; found {count:g}")
    return int(count)


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


def _id(fields: Fields, where: str) -> str:
    name, value = _find(fields, _ID)
    if value is None:
        raise InputError(f"{where}: the field {name!r} is missing; add it")
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
        raise InputError(f"{where}, field {name!r}: must be a whole number or text{found_text(value)}")
    if "!" in str(value):
        raise InputError(f"{where}, field {name!r}: must not contain '!'{found_text(value)}")
    return str(value).strip()


def _resources(fields: Fields, where: str) -> list[str]:
    """The ids of a job's resources, from ``2 3 4``, ``[2, 3, 4]`` or ``[{"id": 2}, ...]``; empty if unknown."""
    name, value = _find(fields, _RESOURCES)
    if value is None:
        return []
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, list):
        raise InputError(f"{where}, field {name!r}: must be a list of resources{found_text(value)}")
    return [str(item.get("id", item)) if isinstance(item, dict) else str(item) for item in value]


def _label(fields: Fields, names: Sequence[str]) -> str:
    value = _find(fields, names)[1]
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
