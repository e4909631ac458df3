"""Logs of batch systems with an event or a job a line, or as JSON.

A line each: accounting files of PBS, LSF and Grid Engine. PBS, Torque and PBS Pro: the
record ``E`` is a job's end, and the last of an id and a start counts; a slot ``n/0*0`` is one core. LSF: ``JOB_FINISH``
of lsb.acct, whose lists say their lengths. SGE and UGE: 43 fields or more with colons between them; UGE's times are
milliseconds.

JSON: Slurm's ``sacct --json``, whose objects have a job's times, resources and states as objects, too. Fields are those
that Open XDMoD's reader of the same files knows; newer versions wrap numbers as ``{"set": true, "infinite": false,
"number": 5}``. Grid Engine of Open Cluster Scheduler: ``accounting.jsonl``, a job a line, with microseconds. HTCondor:
``condor_history -json`` or ``-jsonl``. Flux: ``flux jobs -a --json``, or a job a line. Philly, Microsoft's trace:
``cluster_job_log``, where each attempt of a job is a job that ended.
"""

import codecs
import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from decision.files.text import DECODE_ERRORS, explain_text, read_bytes
from decision.model.errors import InputError

from .records import Account, Clock, Columns, Entry, from_entries, known_time, megabytes, read_entries, seconds_of
from .sacct import Texts, job_columns_of

PBS_LINE = re.compile(r"(?:\d{8}:\s*)?\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;(\w);([^;]*);(.*)", re.DOTALL)
_PBS_FIELD = re.compile(r"(\S+?)=((?:\"[^\"]*\"|'[^']*'|\S)*)")
_LSF_FIELD = re.compile(r'"((?:[^"]|"")*)"(?= |$)|(\S+)')
_UNIX_MILLISECONDS, _UNIX_MICROSECONDS = 1e11, 1e14
SGE_FIELDS = 43
_CATEGORY = 39  # of them: what a job asked for, whose limits may have colons (h_rt=02:00:00)
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")
_TASK = re.compile(r"NONE||\d+\.[A-Za-z][^=,\s]*")  # of a parallel job: its number and host
_HARD_LIMIT = re.compile(r"(?:^|[\s,])h_rt=([\d:]+)")
_LSF_DONE = 64  # status bits of lsb.acct: JOB_STAT_DONE
_LSF_RUSAGE = 19  # numbers


def read_pbs(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The ends of jobs in an accounting log of PBS; as `decision.files.accounting.sacct.read_sacct`."""
    return read_entries(path, account, _pbs)


def read_lsf(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of LSF's lsb.acct; as `decision.files.accounting.sacct.read_sacct`."""
    return read_entries(path, account, _lsf)


def read_sge(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of an accounting file of Grid Engine; as `decision.files.accounting.sacct.read_sacct`."""
    return read_entries(path, account, _sge)


# --- PBS ------------------------------------------------------------------------------------------------------------


def _pbs(line: str) -> "Entry | str | None":
    match = PBS_LINE.fullmatch(line.strip())
    if match is None:
        return "malformed"
    kind, job, text = match.groups()
    if kind != "E":
        return "other_event"
    fields = {name: value.strip("\"'") for name, value in _PBS_FIELD.findall(text)}
    nodes = _pbs_nodes(fields)
    asked = _asked_nodes(fields) if not nodes else (math.nan, math.nan)
    number, _, server = job.partition(".")
    limit = fields.get("Resource_List.walltime", "")
    start, end = known_time(fields.get("start", "0")), known_time(fields.get("end", "0"))
    return {
        "id": number,
        "cluster": server,
        "submit": known_time(fields.get("ctime") or fields.get("qtime") or "0"),
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": seconds_of(limit) if limit else math.nan,
        "nodes": float(len(nodes)) if nodes else asked[0],
        "cores": float(sum(nodes.values())) if nodes else asked[1],
        "memory": megabytes(fields.get("resources_used.mem", ""), "K"),
        "asked_memory": megabytes(fields.get("Resource_List.mem", ""), "K"),
        "gpus": _count(fields, "Resource_List.ngpus"),
        "user": fields.get("user", ""),
        "group": fields.get("group", ""),
        "account": fields.get("account", ""),
        "partition": fields.get("queue", ""),
        "dependency": fields.get("depend", ""),
        "node_list": ",".join(nodes),
        "state": "COMPLETED" if fields.get("Exit_status", "0") == "0" else "FAILED",
    }


def _asked_nodes(fields: dict[str, str]) -> tuple[float, float]:
    """Nodes and cores that a job asked for, of one without exec_host: ``1:ppn=28+2:ppn=4``, or ``2:ncpus=16``."""
    text = fields.get("Resource_List.nodes") or fields.get("Resource_List.select") or ""
    nodes = cores = 0
    for part in text.split("#")[0].split("+") if text else ():
        first, *words = part.split(":")
        count = int(first) if first.isdecimal() else 1  # or the name of a node
        each = [word.partition("=")[2] for word in words if word.startswith(("ppn=", "ncpus="))]
        nodes += count
        cores += count * (int(each[0]) if each else 1)
    found = float(nodes) if nodes else _count(fields, "Resource_List.nodect")
    return found, float(cores) if nodes else _count(fields, "Resource_List.ncpus")


def _count(fields: dict[str, str], name: str) -> float:
    text = fields.get(name, "")
    return float(text) if text.isdecimal() else math.nan


def _pbs_nodes(fields: dict[str, str]) -> dict[str, int]:
    """Cores by node, of exec_host or else exec_vnode."""
    nodes: dict[str, int] = {}
    hosts = fields.get("exec_host", "")
    for part in hosts.split("+") if hosts else ():
        name, slash, slots = part.partition("/")
        if not name:
            raise ValueError(hosts)
        nodes.setdefault(name, 0)
        for slot in slots.split(",") if slash else ("0",):  # n/0+n/1, n/0-3,5 and n/0*13; n/0*0 is one core
            first, dash, last = slot.partition("-")
            if "*" in slot:
                cores = max(1, int(slot.partition("*")[2]))
            else:
                cores = int(last) - int(first) + 1 if dash else int(first) * 0 + 1
            if cores < 1:
                raise ValueError(slot)
            nodes[name] += cores
    if not hosts:  # (n1:ncpus=16:mem=4kb)+(n2:ncpus=8)
        vnodes = re.findall(r"([^\s()+:]+)(?::[^\s()+:]*)*?:ncpus=(\d+)", fields.get("exec_vnode", ""))
        for name, count in vnodes:
            nodes[name] = nodes.get(name, 0) + int(count)
    return nodes


# --- LSF ------------------------------------------------------------------------------------------------------------


def _lsf(line: str) -> "Entry | str | None":
    if line.startswith("#"):
        return None
    fields = _lsf_fields(line.strip())
    if fields[0] != "JOB_FINISH":
        return "other_event" if fields[0].isidentifier() and fields[0].isupper() else "malformed"
    ended, submit, start = known_time(fields[2]), known_time(fields[7]), known_time(fields[10])
    int(fields[3])
    at = 22
    at += 1 + int(fields[at])  # hosts that were asked for
    count = int(fields[at])
    if count < 0 or at + count + 1 > len(fields):
        return "malformed"
    hosts: dict[str, int] = {}  # slots by host, of ``host`` repeated or ``16*host``
    for text in fields[at + 1 : at + 1 + count]:
        slots, star, name = text.rpartition("*")
        hosts[name] = hosts.get(name, 0) + (int(slots) if star else 1)
    status = int(fields[at + 1 + count])
    usage = at + 1 + count + 4
    if len(fields) < usage + _LSF_RUSAGE + 2:
        return "malformed"
    for number in fields[usage : usage + _LSF_RUSAGE]:
        float(number)
    index = fields[usage + 25] if len(fields) > usage + 25 else "0"
    return {
        "id": fields[3] + (f"[{index}]" if index.isdecimal() and index != "0" else ""),
        "submit": submit,
        "start": start,
        "end": ended,
        "run": ended - start,
        "walltime": _lsf_limit(fields, usage + _LSF_RUSAGE),
        "nodes": float(len(hosts)) if hosts else math.nan,
        "cores": float(sum(hosts.values())) if hosts else float(fields[6]),
        "user": fields[11],
        "account": fields[usage + _LSF_RUSAGE + 1] if len(fields) > usage + _LSF_RUSAGE + 1 else "",
        "partition": fields[12],
        "dependency": fields[14],
        "node_list": ",".join(hosts),
        "state": "COMPLETED" if status & _LSF_DONE else "FAILED",
    }


def _lsf_fields(line: str) -> list[str]:
    """Fields with blanks between them; texts are quoted, with doubled quotes in them."""
    fields, at = [], 0
    while at < len(line):
        match = _LSF_FIELD.match(line, at)
        if match is None:
            raise ValueError(line)
        fields.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
        while at < len(line) and line[at] == " ":
            at += 1
    return fields


def _lsf_limit(fields: Sequence[str], user: int) -> float:
    """The run limit, seconds, which newer versions have after the list of hosts' use; nan where there is none."""
    # mailUser projectName exitStatus maxNumProcessors loginShell timeEvent idx maxRMem maxRSwap inFileSpool
    # commandSpool rsvId sla exceptMask additionalInfo exitInfo warningAction warningPeriod chargedSAAP licenseProject
    # app postExec runtimeEstimation jobGroup requeueValues options2 notify lastResize rsvId description submitExt*
    at = user + 30
    try:
        at += 1 + 2 * int(fields[at])
        at += 1 + 6 * int(fields[at])  # of each host: name, memory, swap, user time, system time, nothing more
        numbers = list(itertools.takewhile(lambda field: field.removeprefix("-").isdecimal(), fields[at:]))
        limit = float(numbers[-3])  # then the mean and the largest memory
    except (IndexError, ValueError):
        return math.nan
    return limit if limit > 0 else math.nan


# --- Grid Engine ----------------------------------------------------------------------------------------------------


def sge_fields(line: str) -> list[str] | None:
    """The fields of a line of Grid Engine's accounting; None where it is not such a line."""
    fields = line.rstrip("\n").split(":")
    extra = 0
    while len(fields) - extra >= SGE_FIELDS:  # a job's name may have colons; what follows is numbers
        rest = fields[5 + extra :]
        if rest[0].isdecimal() and all(part.lstrip("-").isdecimal() for part in rest[2:6]):
            fields = [*fields[:4], ":".join(fields[4 : 5 + extra]), *rest]
            # so may the category, behind which are a number, a task or NONE, and a number
            for end in range(_CATEGORY + 1, len(fields) - 2):
                waited, task, memory = fields[end : end + 3]
                if _NUMBER.fullmatch(waited) and _TASK.fullmatch(task) and _NUMBER.fullmatch(memory):
                    return [*fields[:_CATEGORY], ":".join(fields[_CATEGORY:end]), *fields[end:]]
            return fields
        extra += 1
    return None


def _sge(line: str) -> "Entry | str | None":
    if line.startswith("#"):
        return None
    fields = sge_fields(line)
    if fields is None:
        return "malformed"
    if len(fields) > 41 and fields[41] not in ("NONE", ""):
        return "step"  # a task of a parallel job, which has a line of its own
    submit, start, end = (sge_time(text) for text in fields[8:11])
    return {
        "id": sge_id(fields[5], fields[35]),
        "submit": submit,
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": sge_limit(fields[_CATEGORY]),
        "cores": float(int(fields[34])),
        "memory": megabytes(fields[42], "") if len(fields) > 42 else math.nan,
        "user": fields[3],
        "group": fields[2],
        "account": "" if fields[31] == "NONE" else fields[31],
        "partition": fields[0],
        "state": "COMPLETED" if fields[11] == fields[12] == "0" else "FAILED",
    }


def sge_time(text: str) -> float:
    """Seconds since 1970 of seconds, milliseconds or microseconds; nan of 0."""
    time = known_time(text)
    return time * (1e-6 if time > _UNIX_MICROSECONDS else 1e-3 if time > _UNIX_MILLISECONDS else 1.0)


def sge_id(job: str, task: str) -> str:
    return job + (f"[{task}]" if task.isdecimal() and task != "0" else "")


def sge_limit(category: str) -> float:
    limit = _HARD_LIMIT.search(category)
    return seconds_of(limit[1]) if limit else math.nan


# --- JSON -----------------------------------------------------------------------------------------------------------

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
