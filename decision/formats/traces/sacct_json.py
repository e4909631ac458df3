"""What ``sacct --json`` prints, as the texts that ``sacct --parsable2`` would print of the same jobs.

Its objects have a job's times, resources and states as objects, too. Fields are those that Open XDMoD's reader of the
same files knows; newer versions of Slurm wrap numbers as ``{"set": true, "infinite": false, "number": 5}``. Times are
seconds since 1970, whatever the machine's clock.
"""

import codecs
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from decision.formats.files import read_bytes
from decision.formats.json_text import DECODE_ERRORS, explain_text
from decision.model.errors import InputError

from .account import Account
from .records import Columns
from .sacct_columns import Texts, job_columns_of
from .values import Clock

_COMMAND = "sacct -a -X -D --json"
_SAME = ("user", "account", "group", "partition", "qos", "constraints")  # called alike in both
_MOMENTS = {"submit": "submission", "eligible": "eligible", "start": "start", "end": "end"}


def read_sacct_json(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The records of jobs that ran, as `decision.formats.traces.sacct.read_sacct`; numbered from 1 in their order."""
    for numbers, columns in sacct_json_records(path, account):
        yield from job_columns_of(np.array(numbers), columns, account, clock)


def sacct_json_records(path: str | os.PathLike[str], account: Account) -> Iterator[tuple[list[int], Texts]]:
    """All jobs, as `decision.formats.traces.sacct.sacct_records`; numbered from 1 in their order.

    Raises:
        InputError: if the file cannot be read or has no list of jobs.
    """
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        content = msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not JSON: {explain_text(error, data)}; make it with: {_COMMAND}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(jobs, list):
        raise InputError(f"{path}: the field 'jobs' is missing or no list; make it with: {_COMMAND}")
    numbers, rows = [], []
    for number, job in enumerate(jobs, 1):
        account.records += 1
        try:
            rows.append(_texts(job))
            numbers.append(number)
        except (KeyError, TypeError, ValueError, AttributeError):
            account.leave_out("malformed", [number])
    if rows:
        yield numbers, {name: [row[name] for row in rows] for name in rows[0]}


def _texts(job: Mapping[str, Any]) -> dict[str, str]:
    """A job's columns. Raises KeyError, TypeError, ValueError or AttributeError where its fields are no job's."""
    time, tres, reservation = (job.get(name) or {} for name in ("time", "tres", "reservation"))
    required, state = job.get("required") or {}, job.get("state")
    asked, allocated = _tres(tres.get("requested")), _tres(tres.get("allocated"))
    cores = str(_whole(required.get("CPUs") or required.get("cpus")) or "")
    return {
        "jobidraw": str(_number(job["job_id"])),
        "jobid": _job_id(job),
        "state": _first(state.get("current", "") if isinstance(state, dict) else state),
        "nnodes": allocated.get("node") or str(_whole(job.get("allocation_nodes")) or 1),
        "ncpus": allocated.get("cpu", cores),
        "reqcpus": cores or "1",
        "flags": ",".join(job.get("flags") or ()),
        "reqtres": _listed(asked),
        "alloctres": _listed(allocated),
        "reqmem": asked.get("mem", ""),
        "priority": str(_whole(job.get("priority")) or ""),
        "reservation": str(reservation.get("name") or ""),
        "reason": str(state.get("reason") or "") if isinstance(state, dict) else "",
        "submitline": str(job.get("submit_line") or ""),
        "nodelist": str(job.get("nodes") or ""),
        **_times(time),
        **{name: str(job.get(name) or "") for name in _SAME},
    }


def _job_id(job: Mapping[str, Any]) -> str:
    """``5``; ``5_2`` of a task of an array, ``5+1`` of a part of a job whose parts start together."""
    array, parts, number = job.get("array") or {}, job.get("het") or {}, _number(job["job_id"])
    base, task, first = _whole(array.get("job_id")), _whole(array.get("task_id")), _whole(parts.get("job_id"))
    if base and task is not None:
        return f"{base}_{task}"
    return f"{first}+{number - first}" if first else str(number)


def _times(time: Mapping[str, Any]) -> dict[str, str]:
    limit, elapsed = _whole(time.get("limit")), _whole(time["elapsed"])
    return {
        "timelimitraw": "UNLIMITED" if limit is None else str(limit),
        "elapsedraw": str(elapsed or 0),
        "suspended": str(_whole(time.get("suspended")) or 0),
        **{name: str(_whole(time.get(key)) or "Unknown") for name, key in _MOMENTS.items()},
    }


def _number(value: Any) -> int:
    found = _whole(value)
    if found is None:
        raise ValueError(value)
    return found


def _whole(value: Any) -> int | None:
    """A whole number, alone or wrapped; None where it is not set, or infinite. Raises TypeError or ValueError."""
    if isinstance(value, dict):
        return _whole(value.get("number")) if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, bool):
        return None
    if float(value) % 1:
        raise ValueError(value)
    return int(value)


def _first(value: Any) -> str:
    """A state, which newer versions have as a list of states and flags."""
    return str(value[0]) if isinstance(value, list) and value else str(value or "")


def _tres(found: Any) -> dict[str, str]:
    """Trackable resources by name, with amounts as text; memory in megabytes."""
    counts = {}
    for row in found if isinstance(found, list) else ():
        name = f"{row['type']}/{row['name']}" if row.get("name") else str(row["type"])
        counts[name] = f"{_whole(row.get('count')) or 0}{'M' if name == 'mem' else ''}"
    return counts


def _listed(resources: Mapping[str, str]) -> str:
    return ",".join(f"{name}={count}" for name, count in resources.items())
