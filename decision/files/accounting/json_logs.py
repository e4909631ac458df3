"""Logs of batch systems as JSON: of Slurm, Grid Engine, HTCondor and Flux, and the trace of Microsoft's Philly.

Slurm: ``sacct --json``, whose objects have a job's times, resources and states as objects, too. Fields are those that
Open XDMoD's reader of the same files knows; newer versions wrap numbers as ``{"set": true, "infinite": false, "number":
5}``. Grid Engine of Open Cluster Scheduler: ``accounting.jsonl``, a job a line, with microseconds. HTCondor:
``condor_history -json`` or ``-jsonl``. Flux: ``flux jobs -a --json``, or a job a line. Philly: ``cluster_job_log``,
where each attempt of a job is a job that ended.
"""

import codecs
import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np

from decision.files.text import DECODE_ERRORS, explain_text, read_bytes
from decision.model.errors import InputError

from .event_logs import sge_id, sge_limit, sge_time
from .records import Account, Clock, Columns, Entry, from_entries, known_time, read_entries
from .sacct import Texts, job_columns_of

_SACCT = "make it with: sacct -a -X -D --json"
_SAME = ("cluster", "user", "account", "group", "partition", "qos", "constraints")  # called alike in both
_MOMENTS = {"submit": "submission", "eligible": "eligible", "start": "start", "end": "end"}


def read_sacct_json(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of ``sacct --json``, as `decision.files.accounting.sacct.read_sacct`; numbered from 1 in their order."""
    for numbers, columns in sacct_json_records(path, account):
        yield from job_columns_of(np.array(numbers), columns, account, clock)


def sacct_json_records(path: str | os.PathLike[str], account: Account) -> Iterator[tuple[list[int], Texts]]:
    """All jobs, as `decision.files.accounting.sacct.sacct_records`; numbered from 1 in their order.

    Raises:
        InputError: if the file cannot be read or has no list of jobs.
    """
    jobs = _jobs(path, _SACCT)
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
    # ``5``; ``5_2`` of a task of an array, ``5+1`` of a part of a job whose parts start together
    array, parts, number = job.get("array") or {}, job.get("het") or {}, _number(job["job_id"])
    base, task, first = _whole(array.get("job_id")), _whole(array.get("task_id")), _whole(parts.get("job_id"))
    job_id = f"{first}+{number - first}" if first else str(number)
    limit = _whole(time.get("limit"))
    # newer versions have a list of states and flags
    current = state.get("current", "") if isinstance(state, dict) else state
    current = current[0] if isinstance(current, list) and current else current or ""
    return {
        "jobidraw": str(number),
        "jobid": f"{base}_{task}" if base and task is not None else job_id,
        "state": str(current),
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
        "timelimitraw": "UNLIMITED" if limit is None else str(limit),
        "elapsedraw": str(_whole(time["elapsed"]) or 0),
        "suspended": str(_whole(time.get("suspended")) or 0),
        **{name: str(_whole(time.get(key)) or "Unknown") for name, key in _MOMENTS.items()},
        **{name: str(job.get(name) or "") for name in _SAME},
    }


def _number(value: Any) -> int:
    number = _whole(value)
    if number is None:
        raise ValueError(value)
    return number


def _whole(value: Any) -> int | None:
    """A whole number, alone or wrapped; None where it is not set, or infinite. Raises TypeError or ValueError."""
    if isinstance(value, dict):
        return _whole(value.get("number")) if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, bool):
        return None
    if float(value) % 1:
        raise ValueError(value)
    return int(value)


def _tres(resources: Any) -> dict[str, str]:
    """Trackable resources by name, with amounts as text; memory in megabytes."""
    counts = {}
    for row in resources if isinstance(resources, list) else ():
        name = f"{row['type']}/{row['name']}" if row.get("name") else str(row["type"])
        counts[name] = f"{_whole(row.get('count')) or 0}{'M' if name == 'mem' else ''}"
    return counts


def _listed(resources: Mapping[str, str]) -> str:
    return ",".join(f"{name}={count}" for name, count in resources.items())


def _jobs(path: str | os.PathLike[str], how: str) -> list[Any]:
    """The objects of a file: a list, the list of the field "jobs", or an object a line.

    Raises:
        InputError: if the file cannot be read or has no list of jobs; it says `how` to make it.
    """
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        content = msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        try:
            return [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]
        except DECODE_ERRORS:
            raise InputError(f"{path}: not JSON: {explain_text(error, data)}; {how}") from None
    is_job = isinstance(content, dict) and "jobs" not in content and how != _SACCT
    jobs = [content] if is_job else content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(jobs, list):
        raise InputError(f"{path}: the field 'jobs' is missing or no list; {how}")
    return jobs


# --- Grid Engine ----------------------------------------------------------------------------------------------------


def read_sge_json(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of ``accounting.jsonl`` of Grid Engine; as `decision.files.accounting.sacct.read_sacct`."""
    return read_entries(path, account, _sge_json)


def _sge_json(line: str) -> "Entry | str | None":
    job = msgspec.json.decode(line)
    if not isinstance(job, dict) or "job_number" not in job:
        return "other_event"
    if str(job.get("pe_taskid") or "NONE") != "NONE":
        return "step"
    submit, start, end = (sge_time(str(job.get(name) or 0)) for name in ("submission_time", "start_time", "end_time"))
    used = (job.get("usage") or {}).get("usage") or {}
    return {
        "id": sge_id(str(int(job["job_number"])), str(job.get("task_number") or 0)),
        "submit": submit,
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": sge_limit(str(job.get("category") or "")),
        "cores": float(int(job.get("slots") or 1)),
        "memory": float(used.get("maxvmem") or math.nan) / 2**20,
        "user": str(job.get("owner") or ""),
        "group": str(job.get("group") or ""),
        "account": str(job.get("project") or "").replace("NONE", ""),
        "partition": str(job.get("qname") or ""),
        "state": "COMPLETED" if not job.get("failed") and not job.get("exit_status") else "FAILED",
    }


# --- HTCondor, Flux, Philly: an object has all of a job --------------------------------------------------------------

_Job = Mapping[str, Any]
_CONDOR_DONE, _CONDOR_ENDED = 4, (3, 4)  # JobStatus: completed; and removed


def read_condor(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of ``condor_history -json`` with their last start; as `decision.files.accounting.sacct.read_sacct`."""
    return _read(path, account, lambda job: iter([_condor(job)]), "make it with: condor_history -json")


def read_flux(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of ``flux jobs -a --json``; as `decision.files.accounting.sacct.read_sacct`."""
    return _read(path, account, lambda job: iter([_flux(job)]), "make it with: flux jobs -a --json")


def read_philly(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The attempts of Philly's jobs, each submitted when the one before it ended; as `read_condor`."""
    return _read(path, account, partial(_philly, clock=clock), "unpack it again")


def _read(
    path: str | os.PathLike[str], account: Account, records_of: Callable[[_Job], Iterator[Entry]], how: str
) -> Iterator[Columns]:
    def entries() -> Iterator[tuple[int, Entry | str]]:
        for number, job in enumerate(_jobs(path, how), 1):
            try:
                found: list[Entry | str] = list(records_of(job))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                found = [f"malformed: {type(error).__name__} {error}"]
            for entry in found:
                yield number, entry

    return from_entries(entries(), account)


def _condor(job: _Job) -> Entry:
    # an attribute that is not set is left out; a job that was removed has no CompletionDate
    ended = job.get("JobStatus", _CONDOR_DONE) in _CONDOR_ENDED
    start = _date(job, "JobCurrentStartDate", "JobStartDate")
    end = _date(job, "CompletionDate", "EnteredCurrentStatus") if ended else math.nan
    hosts = {str(job[name]).rpartition("@")[2] for name in ("LastRemoteHost", "RemoteHost") if job.get(name)}
    return {
        "id": f"{int(job['ClusterId'])}.{int(job.get('ProcId') or 0)}",
        "cluster": str(job.get("GlobalJobId") or "").partition("#")[0],  # the schedd that gave the number
        "submit": _date(job, "QDate"),
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": _amount(job, "AllowedJobDuration"),
        "cores": _amount(job, "RequestCpus", 1.0),
        "gpus": _amount(job, "RequestGpus"),
        "asked_memory": _amount(job, "RequestMemory"),
        "user": str(job.get("Owner") or ""),
        "account": str(job.get("AccountingGroup") or job.get("AcctGroup") or ""),
        "node_list": ",".join(sorted(hosts)),
        "state": "COMPLETED" if job.get("JobStatus", _CONDOR_DONE) == _CONDOR_DONE else "CANCELLED",
    }


def _flux(job: _Job) -> Entry:
    start, end = _date(job, "t_run"), _date(job, "t_cleanup", "t_inactive")
    limit = _amount(job, "duration")
    return {
        "id": str(job["id"]),
        "submit": _date(job, "t_submit"),
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": limit if limit > 0 else math.nan,  # 0: none
        "nodes": _amount(job, "nnodes"),
        "cores": _amount(job, "ncores", _amount(job, "ntasks")),
        "user": str(job.get("username") or job.get("userid") or ""),
        "account": str(job.get("bank") or job.get("project") or ""),
        "partition": str(job.get("queue") or ""),
        "node_list": str(job.get("nodelist") or ""),
        "state": str(job.get("result") or "").replace("CANCELED", "CANCELLED"),
    }


_PHILLY_STATES = {"Pass": "COMPLETED", "Killed": "CANCELLED", "Failed": "FAILED"}


def _philly(job: _Job, clock: Clock) -> Iterator[Entry]:
    submit, attempts = job["submitted_time"], job["attempts"]
    if not attempts:
        yield {"id": str(job["jobid"]), "submit": _moment(submit, clock), "cores": 1.0}
    for number, attempt in enumerate(attempts):
        start, end, detail = attempt.get("start_time"), attempt.get("end_time"), attempt.get("detail") or []
        begun, ended = _moment(start, clock), _moment(end, clock)
        last = number == len(attempts) - 1
        yield {
            "id": str(job["jobid"]) + (f".{number}" if number else ""),
            "submit": _moment(submit, clock),
            "start": begun,
            "end": ended,
            "run": ended - begun,
            "nodes": float(len(detail)),
            "gpus": float(sum(len(machine["gpus"]) for machine in detail)),
            "user": str(job.get("user") or ""),
            "partition": str(job.get("vc") or ""),
            "node_list": ",".join(str(machine["ip"]) for machine in detail),
            "state": _PHILLY_STATES.get(str(job.get("status")), "") if last else "FAILED",
        }
        submit = end


def _moment(text: Any, clock: Clock) -> float:
    """Seconds since 1970 of a date of Philly's; nan of None."""
    if text in (None, "", "None"):
        return math.nan
    seconds, bad = clock.read([str(text).replace(" ", "T")])
    if bad[0]:
        raise ValueError(f"{text!r} is no time")
    return float(seconds[0])


def _date(job: _Job, *names: str) -> float:
    """The first of these times that has come, seconds since 1970; nan where none has."""
    times = (known_time(str(job[name])) for name in names if job.get(name) is not None)
    return next((time for time in times if not math.isnan(time)), math.nan)


def _amount(job: _Job, name: str, default: float = math.nan) -> float:
    """A number; the default where it is left out, or is an expression that nobody has evaluated."""
    value = job.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default
