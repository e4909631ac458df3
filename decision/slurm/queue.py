"""The queue of a moment: what ``squeue --json``, ``scontrol show job`` or ``squeue -o`` prints, as jobs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from decision.model.errors import InputError

from .case import Case
from .conf import read_text
from .jobs import SlurmJob, read_job, read_options
from .nodes import read_records
from .records import RecordRow
from .text import is_nothing, read_date, read_duration, read_hosts, read_minutes, write_date

# What to type, so that all is there
SQUEUE_FORMAT = "%i|%u|%a|%P|%q|%T|%V|%S|%l|%D|%C|%m|%N|%r|%E|%Q|%M"
SQUEUE = f'squeue -a -r -t PD,R,S,CG -o "{SQUEUE_FORMAT}"'
_WAITS, _RUNS = ("PENDING", "PD"), ("RUNNING", "R", "SUSPENDED", "S", "COMPLETING", "CG", "CONFIGURING", "CF")
# squeue(1), the headers of -o, by sacct's names
_HEADERS = {
    **{"JOBID": "JobID", "USER": "User", "ACCOUNT": "Account", "PARTITION": "Partition", "QOS": "QOS"},
    **{"STATE": "State", "ST": "State", "SUBMIT_TIME": "Submit", "START_TIME": "Start", "TIME_LIMIT": "Timelimit"},
    **{"NODES": "NNodes", "CPUS": "NCPUS", "MIN_MEMORY": "mem", "NODELIST": "NodeList", "REASON": "Reason"},
    **{"DEPENDENCY": "dependency", "PRIORITY": "Priority", "TIME": "ran", "FEATURES": "Constraints"},
    **{"RESERVATION": "Reservation", "REQ_NODES": "nodelist", "EXC_NODES": "exclude", "LICENSES": "licenses"},
    **{"TRES_PER_NODE": "gres", "NODELIST(REASON)": "NodeList", "ELIGIBLE_TIME": "Eligible"},
}
_NEEDED = ("JobID", "User", "Partition", "State", "Submit", "Start", "Timelimit", "NNodes", "NCPUS", "NodeList")


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that run or wait at a moment, by submission."""

    jobs: tuple[SlurmJob, ...]
    reasons: Mapping[str, str]  # by job: why it waits, as Slurm says
    priorities: Mapping[str, float]  # by job: its priority now
    at: int  # seconds since 1970, as far as the file says it; 0 where it does not
    notes: tuple[str, ...] = ()  # what contradicts the case, and was left out


def read_queue(path: Path, case: Case, zone: ZoneInfo | None = None) -> Queue:
    """The queue of a cluster whose case is known.

    Raises:
        InputError: if it is no queue, or a line cannot be read.
    """
    text = read_text(path)
    if text.lstrip().startswith("{"):
        entries, at = _json_entries(text, path)
    elif "JobId=" in text:
        entries, at = _shown_entries(path)
    else:
        entries, at = _printed_entries(text, path)
    accounts, qualities = {each.account for each in case.associations}, {each.name for each in case.qualities}
    jobs, reasons, priorities, notes = [], {}, {}, []
    for number, entry in enumerate(entries, 1):
        job = _job_of(entry, f"{path}, job {number}", zone)
        if job is None:
            continue
        if fault := _contradiction(job, case):
            notes.append(f"job {job.id} is left out: {fault}")
            continue
        # what the case does not know of it, though it can be simulated
        if accounts and job.account and job.account not in accounts:
            notes.append(f"account {job.account} is unknown to the case: it has one share")
        unknown = [name for name in job.qos.split(",") if qualities and not is_nothing(name) and name not in qualities]
        notes += [f"QOS {name} is unknown to the case: it counts for nothing" for name in unknown]
        if job.started and (ran := entry.get("ran", "")) and not at:
            at = job.start + round(read_duration(ran))
        jobs.append(job)
        if not job.started:
            reasons[job.id] = entry.get("Reason", "")
            if entry.get("Priority", "").replace(".", "", 1).isdigit():
                priorities[job.id] = float(entry["Priority"])
    if not jobs:
        raise InputError(f"{path}: no job of this cluster runs or waits in it; make it with: {SQUEUE}")
    jobs.sort(key=lambda job: job.submit)
    return Queue(jobs=tuple(jobs), reasons=reasons, priorities=priorities, at=at, notes=tuple(dict.fromkeys(notes)))


def new_job(options: str, at: int, case: Case, user: str = "") -> SlurmJob:
    """A job that is not submitted yet, from the options of sbatch.

    Raises:
        InputError: if they cannot be read, or ask for what the cluster has not.
    """
    line = options if options.split(" ", 1)[0] in ("sbatch", "srun", "salloc") else f"sbatch {options}"
    asked = read_options(line)
    tasks, per_task = asked.get("ntasks", ""), asked.get("cpus-per-task", "1")
    nodes = asked.get("nodes", "1").partition("-")[0]
    if not all(text.isdigit() for text in (nodes, per_task, tasks or "1")):
        raise InputError(f"a new job, {options!r}: a number of nodes, tasks or cpus is not a number")
    cpus = int(tasks or asked.get("ntasks-per-node", "1") if tasks else asked.get("ntasks-per-node", "1"))
    cpus = (cpus if tasks else cpus * int(nodes)) * int(per_task)
    default = next((p.name for p in case.partitions if p.default), case.partitions[0].name)
    fields = {
        "JobID": "new",
        "User": asked.get("uid", user),
        "Account": asked.get("account", ""),
        "Partition": asked.get("partition", default),
        "QOS": asked.get("qos", ""),
        "State": "PENDING",
        "Submit": write_date(at),
        "Start": "Unknown",
        "End": "Unknown",
        "Timelimit": asked.get("time", ""),
        "NNodes": nodes,
        "NCPUS": str(max(cpus, int(nodes))),
        "ReqCPUS": str(max(cpus, int(nodes))),
        "SubmitLine": line,
    }
    if fields["Timelimit"]:
        fields["TimelimitRaw"] = str(_seconds_of(fields["Timelimit"], "a new job") / 60)
    job = read_job(RecordRow({key.lower(): value for key, value in fields.items()}, "a new job"), "new", None)
    if fault := _contradiction(job, case):
        raise InputError(f"a new job, {options!r}: {fault}")
    return job


def _seconds_of(text: str, place: str) -> float:
    try:
        return read_minutes(text)
    except ValueError:
        raise InputError(f"{place}: {text!r} is not a time limit like 30 or 2:00:00") from None


def _contradiction(job: SlurmJob, case: Case) -> str:
    """Why the case cannot have the job; empty if it can."""
    partitions, nodes = {p.name for p in case.partitions}, {node.name for node in case.nodes}
    if unknown := set(job.partition.split(",")) - partitions:
        return f"the case has no partition {min(unknown)}"
    named = set(read_hosts(job.hosts)) | set(read_hosts(job.nodelist))
    if unknown := named - nodes:
        return f"the case has no node {min(unknown)}; read it again"
    # a job that no partition of its own can ever hold would wait for ever in every future
    room = max(len(p.nodes) for p in case.partitions if p.name in job.partition.split(","))
    return f"it asks for {job.nodes} nodes, and its partition has {room}" if job.nodes > room else ""


def _job_of(entry: Mapping[str, str], place: str, zone: ZoneInfo | None) -> SlurmJob | None:
    """A job that runs or waits; None for any other."""
    state = entry.get("State", "").upper()
    waits = state in _WAITS
    if not waits and state not in _RUNS:
        return None
    options = {
        # squeue adds the state of each: afterok:12(unfulfilled)
        "dependency": re.sub(r"\([^)]*\)", "", entry.get("dependency", "")),
        **{name: entry.get(name, "") for name in ("nodelist", "exclude", "licenses", "ntasks-per-node", "gres")},
        **{name: entry.get(name, "") for name in ("cpus-per-task", "mem", "mem-per-cpu", "nodes")},
    }
    line = " ".join(f"--{name}={value}" for name, value in options.items() if not is_nothing(value) and value != "0")
    if entry.get("exclusive"):
        line += " --exclusive"
    if entry.get("hold"):
        line += " --hold"
    fields = {
        **{key.lower(): value for key, value in entry.items()},
        "nodelist": "" if waits else entry.get("NodeList", ""),
        "start": "Unknown" if waits else entry.get("Start", ""),
        "end": "Unknown",
        "state": "PENDING" if waits else "RUNNING",
        "submitline": f"sbatch {line} script",
        "eligible": entry.get("Eligible") or entry["Submit"],
    }
    limit = entry.get("Timelimit", "")
    if not is_nothing(limit) and limit.upper() not in ("UNLIMITED", "INFINITE", "NOT_SET", "PARTITION_LIMIT"):
        fields["timelimitraw"] = str(_seconds_of(limit, place) / 60)
    else:
        fields["timelimitraw"] = "UNLIMITED"
    name = entry["JobID"]
    return read_job(RecordRow(fields, place), entry.get("JobIDRaw", name), zone)


# The three ways in which a queue is printed, by sacct's names of columns.


def _printed_entries(text: str, path: Path) -> tuple[list[dict[str, str]], int]:
    """What ``squeue -o`` prints with its line of headers; columns between | or between spaces."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: it is empty; make it with: {SQUEUE}")
    mark = "|" if "|" in lines[0] else None
    names = [_HEADERS.get(name.strip().upper(), name.strip()) for name in lines[0].split(mark)]
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(f"{path}, line 1: the columns {', '.join(missing)} are missing; make it with: {SQUEUE}")
    entries = []
    for number, line in enumerate(lines[1:], 2):
        values = [value.strip() for value in line.split(mark)]
        if len(values) != len(names):
            raise InputError(f"{path}, line {number}: {len(values)} columns, and the headers are {len(names)}")
        entries.append(dict(zip(names, values, strict=True)))
    return entries, 0


# scontrol show job, by sacct's names
_SHOWN = {
    **{"jobid": "JobIDRaw", "account": "Account", "qos": "QOS", "jobstate": "State", "reason": "Reason"},
    **{"submittime": "Submit", "eligibletime": "Eligible", "starttime": "Start", "timelimit": "Timelimit"},
    **{"partition": "Partition", "priority": "Priority", "numcpus": "NCPUS", "nodelist": "NodeList"},
    **{"features": "Constraints", "dependency": "dependency", "reqnodelist": "nodelist", "excnodelist": "exclude"},
    **{"licenses": "licenses", "cpus/task": "cpus-per-task", "reservation": "Reservation", "runtime": "ran"},
    **{"minmemorynode": "mem", "minmemorycpu": "mem-per-cpu", "trespernode": "gres"},
}


def _shown_entries(path: Path) -> tuple[list[dict[str, str]], int]:
    entries = []
    for fields in read_records(path, "JobId"):
        entry = {name: fields.get(key, "") for key, name in _SHOWN.items()}
        entry = {name: "" if value in ("(null)", "N/A") else value for name, value in entry.items()}
        array, task = fields.get("arrayjobid", ""), fields.get("arraytaskid", "")
        entry["JobID"] = f"{array}_{task}" if array and task else entry["JobIDRaw"]
        entry["User"] = fields.get("userid", "").partition("(")[0]
        entry["NNodes"] = fields.get("numnodes", "1").partition("-")[0]
        # a job that waits has a planned StartTime, and no nodes
        wanted = fields.get("reqtres", fields.get("tres", ""))
        entry["ReqTRES"] = "" if wanted == "(null)" else wanted
        entry["ReqCPUS"] = entry["NCPUS"]
        entry["exclusive"] = "1" if fields.get("oversubscribe", fields.get("shared", "")) in ("NO", "0") else ""
        entries.append(entry)
    return entries, 0


def _json_entries(text: str, path: Path) -> tuple[list[dict[str, str]], int]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: it is no JSON ({error}); make it with: squeue -a --json") from None
    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        raise InputError(f"{path}: it has no list of jobs; make it with: squeue -a --json")
    entries = []
    # numbers are plain up to 22.05, later objects with "set" and "number"
    for job in jobs:
        state = job.get("job_state", "")
        if isinstance(state, Sequence) and not isinstance(state, str):
            state = state[0] if state else ""
        number = {name: _number(job.get(name)) for name in job}
        array, task = number.get("array_job_id"), number.get("array_task_id")
        name = str(job.get("job_id", ""))
        limit = number.get("time_limit")
        entry = {
            "JobIDRaw": name,
            "JobID": f"{array:.0f}_{task:.0f}" if array and task is not None else name,
            "User": str(job.get("user_name", "")),
            "Account": str(job.get("account", "")),
            "Partition": str(job.get("partition", "")),
            "QOS": str(job.get("qos", "")),
            "State": str(state),
            "Submit": _date(number.get("submit_time")),
            "Eligible": _date(number.get("eligible_time")),
            "Start": _date(number.get("start_time")),
            "Timelimit": "UNLIMITED" if limit is None else f"{limit:.0f}",
            "NNodes": f"{number.get('node_count') or 1:.0f}",
            "NCPUS": f"{number.get('cpus') or 1:.0f}",
            "ReqCPUS": f"{number.get('cpus') or 1:.0f}",
            "NodeList": str(job.get("nodes", "") or ""),
            "Reason": str(job.get("state_reason", "") or ""),
            "Priority": f"{number.get('priority') or 0:.0f}",
            "dependency": str(job.get("dependency", "") or ""),
            "Constraints": str(job.get("features", "") or ""),
            "ReqTRES": str(job.get("tres_req_str", "") or ""),
            "nodelist": str(job.get("required_nodes", "") or ""),
            "exclude": str(job.get("excluded_nodes", "") or ""),
            "licenses": str(job.get("licenses", "") or ""),
            "cpus-per-task": f"{number.get('cpus_per_task') or 1:.0f}",
            "Reservation": str(job.get("resv_name", "") or ""),
            "hold": "1" if job.get("hold") else "",
        }
        for name, key in (("mem", "memory_per_node"), ("mem-per-cpu", "memory_per_cpu")):
            if value := number.get(key):
                entry[name] = f"{value:.0f}M"
        entries.append(entry)
    return entries, int(_number(document.get("last_update")) or 0)


def _number(value: Any) -> float | None:
    """A number as plain or as an object; None where it is not set, infinite, or none."""
    if isinstance(value, Mapping):
        return float(value["number"]) if value.get("set") and not value.get("infinite") else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _date(seconds: float | None) -> str:
    return f"{seconds:.0f}" if seconds else "Unknown"


def known_ids(jobs: Iterable[SlurmJob]) -> set[str]:
    """The ids of jobs that are known."""
    return {job.id for job in jobs}


def when(text: str, zone: ZoneInfo | None, field: str) -> int:
    """A moment as Slurm writes dates. Raises InputError."""
    try:
        return read_date(text, zone)
    except ValueError:
        raise InputError(f"{field} is {text!r}, not a date like 2026-03-02T08:05:47", field=field) from None
