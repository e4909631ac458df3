"""Accounting files of PBS, LSF and Grid Engine: one event or job a line.

PBS, Torque and PBS Pro: the record ``E`` is a job's end, and the last of an id and a start counts; a slot ``n/0*0`` is
one core. LSF: ``JOB_FINISH`` of lsb.acct, whose lists say their lengths. SGE and UGE: 43 fields or more with colons
between them; UGE's times are milliseconds.
"""

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence

from .records import Account, Columns, Entry, known_time, read_entries
from .values import Clock, megabytes, seconds_of

PBS_LINE = re.compile(r"(?:\d{8}:\s*)?\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;(\w);([^;]*);(.*)", re.DOTALL)
_PBS_FIELD = re.compile(r"(\S+?)=((?:\"[^\"]*\"|'[^']*'|\S)*)")
_LSF_FIELD = re.compile(r'"((?:[^"]|"")*)"(?= |$)|(\S+)')
_UNIX_MILLISECONDS = 1e11
SGE_FIELDS = 43
_LIMIT = re.compile(r"(?<=[hs]_rt=)\d+(:\d+){1,2}")  # whose colons part no fields
_HARD_LIMIT = re.compile(r"(?:^|[\s,])h_rt=(\d+)")
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
    nodes = _pbs_nodes(fields.get("exec_host", ""))
    limit = fields.get("Resource_List.walltime", "")
    start, end = known_time(fields.get("start", "0")), known_time(fields.get("end", "0"))
    return {
        "id": job.partition(".")[0],
        "submit": known_time(fields.get("ctime") or fields.get("qtime") or "0"),
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": seconds_of(limit) if limit else math.nan,
        "nodes": float(len(nodes)) if nodes else _count(fields, "Resource_List.nodect"),
        "cores": float(sum(nodes.values())) if nodes else _count(fields, "Resource_List.ncpus"),
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


def _count(fields: dict[str, str], name: str) -> float:
    text = fields.get(name, "")
    return float(text) if text.isdecimal() else math.nan


def _pbs_nodes(text: str) -> dict[str, int]:
    """Cores by node, of ``n/0+n/1``, ``n/0-3,5`` and ``n/0*13``."""
    nodes: dict[str, int] = {}
    for part in text.split("+") if text else ():
        name, slash, slots = part.partition("/")
        if not name:
            raise ValueError(text)
        nodes[name] = nodes.get(name, 0) + (sum(map(_slots, slots.split(","))) if slash else 1)
    return nodes


def _slots(text: str) -> int:
    """Cores of ``0``, ``0-3`` or ``0*13``; of ``0*0`` one."""
    if "*" in text:
        return max(1, int(text.partition("*")[2]))
    first, dash, last = text.partition("-")
    slots = int(last) - int(first) + 1 if dash else int(first) * 0 + 1
    if slots < 1:
        raise ValueError(text)
    return slots


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
    hosts = _lsf_hosts(fields[at + 1 : at + 1 + count])
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


def _lsf_hosts(texts: Sequence[str]) -> dict[str, int]:
    """Slots by host, of ``host`` repeated or ``16*host``."""
    hosts: dict[str, int] = {}
    for text in texts:
        count, star, name = text.rpartition("*")
        hosts[name] = hosts.get(name, 0) + (int(count) if star else 1)
    return hosts


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
            return [*fields[:4], ":".join(fields[4 : 5 + extra]), *rest]
        extra += 1
    return None


def _sge(line: str) -> "Entry | str | None":
    if line.startswith("#"):
        return None
    fields = sge_fields(_LIMIT.sub(lambda match: f"{seconds_of(match[0]):.0f}", line))
    if fields is None:
        return "malformed"
    if len(fields) > 41 and fields[41] not in ("NONE", ""):
        return "step"  # a task of a parallel job, which has a line of its own
    scale = 1e-3 if float(fields[8]) > _UNIX_MILLISECONDS else 1.0
    submit, start, end = (known_time(text) * scale for text in fields[8:11])
    limit = _HARD_LIMIT.search(fields[39])
    task = fields[35]
    return {
        "id": fields[5] + (f"[{task}]" if task.isdecimal() and task != "0" else ""),
        "submit": submit,
        "start": start,
        "end": end,
        "run": end - start,
        "walltime": float(limit[1]) if limit else math.nan,
        "cores": float(int(fields[34])),
        "memory": megabytes(fields[42], "") if len(fields) > 42 else math.nan,
        "user": fields[3],
        "group": fields[2],
        "account": "" if fields[31] == "NONE" else fields[31],
        "partition": fields[0],
        "state": "COMPLETED" if fields[11] == fields[12] == "0" else "FAILED",
    }
