"""Accounting files of PBS, LSF and Grid Engine, and Slurm's jobcomp/filetxt: one event or job a line.

PBS, Torque and PBS Pro: the record ``E`` is a job's end, and the last of an id and a start counts; a slot ``n/0*0`` is
one core. LSF: ``JOB_FINISH`` of lsb.acct, whose lists say their lengths. SGE and UGE: 43 fields or more with colons
between them; UGE's times are milliseconds.
"""

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from .records import Account, Clock, Columns, Entry, known_time, line_parts, megabytes, read_entries, seconds_of
from .sacct import job_columns_of

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


# --- Slurm's jobcomp/filetxt, and what scontrol -o show job prints ----------------------------------------------------

_PAIR = re.compile(r"(\w[\w:/]*)=(.*?)(?=\s+\w[\w:/]*=|\s*$)")
_FILETXT = {  # sacct's columns, and what they are called here
    **{"jobid": ("ArrayJob", "JobId"), "submit": ("SubmitTime",), "start": ("StartTime",), "end": ("EndTime",)},
    **{"state": ("JobState",), "nnodes": ("NodeCnt", "NumNodes"), "ncpus": ("ProcCnt", "NumCPUs")},
    **{"alloctres": ("AllocTRES", "Tres", "TRES"), "user": ("UserId",), "group": ("GroupId",), "account": ("Account",)},
    **{"partition": ("Partition",), "qos": ("QOS",), "nodelist": ("NodeList",), "cluster": ("Cluster",)},
    **{"timelimit": ("TimeLimit",), "dependency": ("Dependency",)},
}


def is_filetxt(line: str) -> bool:
    """Whether a line is a job of Slurm's jobcomp/filetxt."""
    return line.startswith("JobId=") and " EndTime=" in line


def read_filetxt(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of Slurm's jobcomp/filetxt; as `decision.files.accounting.sacct.read_sacct`."""
    for number, lines in line_parts(path):
        records = [(at, line) for at, line in enumerate(lines, number) if line.strip()]
        account.records += len(records)
        odd = [at for at, line in records if not is_filetxt(line)]
        account.leave_out("malformed", odd, "there is no JobId= and EndTime=")
        rows = []
        for _, line in (record for record in records if is_filetxt(record[1])):
            pairs = dict(_PAIR.findall(line))
            if "ArrayJobId" in pairs:
                pairs["ArrayJob"] = f"{pairs['ArrayJobId']}_{pairs.get('ArrayTaskId', '')}"
            row = {name: next((pairs[key] for key in keys if pairs.get(key)), "") for name, keys in _FILETXT.items()}
            row |= {name: row[name].partition("(")[0] for name in ("user", "group")}  # name(number)
            row["cluster"] = row["cluster"].removeprefix("unknown")
            row["dependency"] = row["dependency"].removeprefix("(null)")
            if row["timelimit"].isdecimal():  # minutes
                row["timelimit"] += ":00"
            rows.append(row)
        if rows:
            texts = {name: [row[name] for row in rows] for name in _FILETXT}
            yield from job_columns_of(np.array([at for at, line in records if is_filetxt(line)]), texts, account, clock)
