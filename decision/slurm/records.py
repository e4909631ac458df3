"""Lines of sacct, as text with columns in any order or as JSON, as fields by sacct's names."""

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from decision.model.errors import InputError

from .conf import read_text
from .text import read_date

_COLUMNS = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "ElapsedRaw"),
    *("TimelimitRaw", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList", "Priority"),
    *("Reason", "Flags", "Constraints", "Reservation", "Suspended", "SubmitLine"),
)
SACCT = f"sacct -a -P -X -D -S 2026-03-02 -E now -o {','.join(_COLUMNS)}"
_SACCT_JSON = "sacct -a -X -D --json"
_NEEDED = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("Start",),
    ("End",),
    ("State",),
    ("TimelimitRaw", "Timelimit"),
    ("NNodes", "AllocNodes", "ReqNodes", "ReqTRES"),
    ("ReqCPUS", "NCPUS", "AllocCPUS", "ReqTRES"),
)

Fields = Mapping[str, str]  # by sacct's names in lower case


class RecordRow(msgspec.Struct, frozen=True):
    """A line, and where it stands."""

    fields: Fields
    place: str

    def text(self, *names: str) -> str:
        """The first of these columns that is there."""
        return next((self.fields[name.lower()] for name in names if name.lower() in self.fields), "")

    def date(self, name: str, zone: ZoneInfo | None) -> int:
        """Seconds since 1970, `NEVER` where there is no date. Raises InputError."""
        text = self.text(name)
        try:
            return read_date(text, zone)
        except ValueError:
            raise InputError(f"{self.place}: {name} is {text!r}, not a date like 2026-03-02T08:05:47") from None


def read_rows(path: Path) -> list[RecordRow]:
    """All lines of ``sacct -P`` or ``sacct --json``.

    Raises:
        InputError: naming the line, and the columns that are missing.
    """
    text = read_text(path)
    rows = list(_json_rows(text, path) if text.lstrip()[0] in "{[" else _text_rows(text, path))
    if not rows:
        raise InputError(f"{path}, line 1: no job follows; is it the whole of what sacct printed?")
    return rows


def _text_rows(text: str, path: Path) -> Iterator[RecordRow]:
    header, *lines = text.splitlines()
    columns = [name.strip().lower() for name in header.split("|")]
    if columns[-1] == "":  # sacct -p ends lines with |
        columns.pop()
    _check(columns, path)
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        values = line.split("|")
        if columns[-1] == "submitline" and len(values) > len(columns):
            values = [*values[: len(columns) - 1], "|".join(values[len(columns) - 1 :])]
        if len(values) == len(columns) + 1 and values[-1] == "":
            values.pop()
        if len(values) != len(columns):
            found = f"{len(values)} values for {len(columns)} columns"
            raise InputError(f"{path}, line {number}: {found}; is the file complete, and SubmitLine the last column?")
        yield RecordRow(dict(zip(columns, values, strict=True)), f"{path}, line {number}")


def _check(columns: list[str], path: Path) -> None:
    missing = [names[0] for names in _NEEDED if not any(name.lower() in columns for name in names)]
    if missing:
        what = "is not a table of sacct -P" if len(columns) < 2 else f"the columns {', '.join(missing)} are missing"
        raise InputError(f"{path}, line 1: {what}; make it with: {SACCT}")


def _json_rows(text: str, path: Path) -> Iterator[RecordRow]:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not JSON: {error}; make it with: {_SACCT_JSON}") from None
    jobs = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(jobs, list):
        raise InputError(f"{path}: there is no list 'jobs' in it; make it with: {_SACCT_JSON}")
    for number, job in enumerate(jobs, 1):
        if not isinstance(job, dict) or "job_id" not in job:
            raise InputError(f"{path}: job number {number} has no job_id; make it with: {_SACCT_JSON}")
        yield RecordRow(_from_json(job), f"{path}: job number {number}")


def _from_json(job: Mapping[str, Any]) -> Fields:
    required, array, tres, state, reservation = (
        job.get(name) or {} for name in ("required", "array", "tres", "state", "reservation")
    )
    base, task = array.get("job_id") or 0, _value(array.get("task_id"))
    same = {name: name for name in ("user", "account", "partition", "qos", "constraints")}
    texts = {**same, "nodelist": "nodes", "submitline": "submit_line"}
    return {
        "jobidraw": str(job["job_id"]),
        "jobid": f"{base}_{task}" if base and task is not None else str(job["job_id"]),
        "state": _first(state.get("current", "")),
        "nnodes": str(job.get("allocation_nodes") or 1),
        "reqcpus": str(required.get("CPUs") or required.get("cpus") or 1),
        "flags": ",".join(job.get("flags") or ()),
        "reqtres": _tres(tres.get("requested")),
        "alloctres": _tres(tres.get("allocated")),
        "priority": str(_value(job.get("priority")) or ""),
        "reservation": str(reservation.get("name") or ""),
        "reason": str(state.get("reason") or ""),
        **_times(job.get("time") or {}),
        **{name: str(job.get(key) or "") for name, key in texts.items()},
    }


def _times(times: Mapping[str, Any]) -> Fields:
    limit = _value(times.get("limit"))
    moments = {"submit": "submission", "eligible": "eligible", "start": "start", "end": "end"}
    return {
        "timelimitraw": "UNLIMITED" if limit is None else str(limit),
        "elapsedraw": str(times.get("elapsed") or 0),
        "suspended": str(_value(times.get("suspended")) or 0),
        **{name: _seconds(_value(times.get(key))) for name, key in moments.items()},
    }


def _value(found: Any) -> Any:
    """A number of Slurm's JSON: plain, or ``{"set": true, "infinite": false, "number": 5}``; None where not set."""
    if not isinstance(found, dict):
        return found
    return found.get("number") if found.get("set") and not found.get("infinite") else None


def _seconds(number: Any) -> str:
    """Seconds since 1970 as a date: the text keeps what JSON's zero means."""
    if not number:
        return "Unknown"
    return datetime.datetime.fromtimestamp(int(number), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _first(found: Any) -> str:
    return str(found[0]) if isinstance(found, list) and found else str(found or "")


def _tres(found: Any) -> str:
    rows = found if isinstance(found, list) else []
    names = ((f"{row['type']}/{row['name']}" if row.get("name") else str(row.get("type")), row) for row in rows)
    return ",".join(f"{name}={row.get('count')}{'M' if name == 'mem' else ''}" for name, row in names)
