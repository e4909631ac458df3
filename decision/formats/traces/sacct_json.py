"""What ``sacct --json`` prints: one object of jobs, with their times, resources and states as objects, too.

Fields are those that Open XDMoD's reader of the same files knows; newer versions of Slurm wrap numbers as
``{"set": true, "infinite": false, "number": 5}``.
"""

import codecs
import math
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from decision.formats.files import read_bytes
from decision.formats.json_text import DECODE_ERRORS, explain_text
from decision.model.errors import InputError

from .account import Account
from .entries import Entry, from_entries
from .records import Columns
from .sacct_columns import UNFINISHED
from .values import Clock

_MINUTE = 60.0


def read_sacct_json(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The records of jobs that ran, as `decision.formats.traces.sacct.read_sacct`; numbered from 1 in their order."""
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        content = msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not JSON: {explain_text(error, data)}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise InputError(f"{path}: the field 'jobs' is missing or no list; is it what sacct prints as JSON?")
    yield from from_entries(((number, _entry(job)) for number, job in enumerate(jobs, 1)), account)


def _entry(job: Any) -> "Entry | str":
    try:
        return _read(job)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "malformed"


def _read(job: dict[str, Any]) -> Entry:
    time, allocated = job["time"], _resources(job, "allocated")
    run, start, end = _number(time["elapsed"]), _moment(time["start"]), _moment(time.get("end"))
    state = _first(job["state"]["current"]) if isinstance(job["state"], dict) else _first(job["state"])
    nodes = job.get("nodes") or ""
    if nodes in ("None assigned", "None") and not run > 0:
        start = math.nan
    if state in UNFINISHED:
        end = math.nan
    array, parts = job.get("array") or {}, job.get("het") or {}
    number, part_of = str(_whole(job["job_id"])), _number(parts.get("job_id"))
    if (of := _number(array.get("job_id"))) > 0:
        number = f"{of:.0f}_{_number(array.get('task_id')):.0f}"
    limit, suspended = time.get("limit"), _number(time.get("suspended"))
    return {
        "id": number,
        "part_of": f"{part_of:.0f}" if part_of > 0 else "",
        "submit": _moment(time["submission"]),
        "start": start,
        "end": math.nan if math.isnan(end) else start + run,
        "run": run,
        "suspended": suspended,
        "walltime": _number(limit) * _MINUTE if _number(limit) > 0 else math.nan,
        "nodes": allocated.get("node", _number(job.get("allocation_nodes"))),
        "cores": allocated.get("cpu", _number((job.get("required") or {}).get("CPUs"))),
        "gpus": allocated.get("gres/gpu", math.nan),
        "asked_memory": _resources(job, "requested").get("mem", math.nan),
        **{name: str(job.get(name) or "") for name in ("user", "account", "group", "partition", "qos")},
        "node_list": "" if nodes in ("None assigned", "None") else str(nodes),
        "state": state,
    }


def _whole(value: Any) -> int:
    number = _number(value)
    if number % 1:
        raise ValueError(value)
    return int(number)


def _first(value: Any) -> str:
    """A state, which newer versions have as a list of states and flags."""
    return str(value[0]) if isinstance(value, list) else str(value)


def _number(value: Any) -> float:
    """A number, alone or wrapped; nan where it is not set, or infinite."""
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set") and not value.get("infinite") else math.nan
    if value is None or isinstance(value, bool):
        return math.nan
    return float(value)


def _moment(value: Any) -> float:
    seconds = _number(value)
    return seconds if seconds > 0 else math.nan


def _resources(job: dict[str, Any], kind: str) -> dict[str, float]:
    """Counts of trackable resources by name, ``gres/gpu`` with all its types."""
    found: dict[str, float] = {}
    for each in (job.get("tres") or {}).get(kind) or ():
        name = "gres/gpu" if each["type"] == "gres" and str(each.get("name", "")).startswith("gpu") else each["type"]
        count = _number(each["count"])
        if ":" not in str(each.get("name") or "") or name not in found:
            found[name] = count
    return found
