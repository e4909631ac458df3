"""A job from a line of sacct: what it asked for by its fields and its command line."""

import math
import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from decision.model.errors import InputError

from .jobs import Need, SlurmJob
from .records import RecordRow
from .submit_line import read_options, unknown_options
from .text import MINUTE, NEVER, is_nothing, read_duration, read_hosts, read_memory, read_minutes, read_tres

_DEPENDENCY = re.compile(r"(afterany|afterok|afternotok|aftercorr|after)((?::[\d_]+(?:\+\d+)?)+)")
_LARGEST = 1e9  # number of anything that a job asks for
_ARRAY_LIMIT = re.compile(r"%(\d+)")


def read_job(row: RecordRow, job_id: str, zone: ZoneInfo | None) -> SlurmJob:
    options = read_options(row.text("SubmitLine"))
    submit, start, end = (row.date(name, zone) for name in ("Submit", "Start", "End"))
    hosts = row.text("NodeList")
    never_ran = is_nothing(hosts) and "nodelist" in row.fields
    state = row.text("State").split(" ")[0].rstrip("+").upper()
    if never_ran or state == "PENDING":
        start = NEVER
    eligible = row.date("Eligible", zone) if "eligible" in row.fields else submit
    switches, switch_wait = _switches(row, options.get("switches", ""))
    _check_hosts(row, hosts, options.get("nodelist", ""), options.get("exclude", ""))
    needs, any_need, singleton = _needs(options.get("dependency", ""), options.get("job-name", ""))
    shown = row.text("JobID")
    array, _, task = shown.partition("_")
    waits = needs or singleton or row.text("Reason") in ("JobArrayTaskLimit", "Dependency")
    return SlurmJob(
        id=job_id,
        submit=submit,
        start=start,
        end=end,
        begin=eligible if eligible > submit + 1 and not waits and not task else NEVER,
        runtime=_runtime(row, start, end),
        limit=_limit(row),
        state=state,
        user=row.text("User"),
        account=row.text("Account"),
        partition=row.text("Partition"),
        qos=row.text("QOS"),
        held="hold" in options or row.text("Reason").startswith("JobHeld"),
        runs_once="no-requeue" in options,
        runs_again="requeue" in options,
        nice=_whole(options.get("nice", "0").replace("yes", "100"), row, "--nice"),
        features=options.get("constraint") or row.text("Constraints"),
        nodelist=options.get("nodelist", ""),
        exclude=options.get("exclude", ""),
        switches=switches,
        switch_wait=switch_wait,
        licenses=options.get("licenses", ""),
        reservation=row.text("Reservation") or options.get("reservation", ""),
        array=array if task else "",
        task=int(task) if task.isdigit() else 0,
        array_limit=_array_limit(options.get("array", "")) if task else 0,
        needs=needs,
        any_need=any_need,
        singleton=singleton,
        hosts="" if never_ran else hosts,
        options=tuple(sorted(unknown_options(options))),
        priority=_priority(row),
        reason=row.text("Reason"),
        by_backfill="SchedBackfill" in row.text("Flags"),
        **_sizes(row, options),
    )


def _check_hosts(row: RecordRow, *lists: str) -> None:
    """Refuse what is not a list of hosts."""
    for text in lists:
        try:
            read_hosts(text)
        except ValueError:
            raise InputError(f"{row.place}: {text!r} is not a list of hosts; write it as n[1-16] or n1,n2") from None


def _switches(row: RecordRow, text: str) -> tuple[int, float]:
    """The leaf switches of ``--switches=COUNT[@TIME]``, and the seconds for which the job waits for so few."""
    count, _, time = text.partition("@")
    try:
        number = int(count or 0)
        if not 0 <= number <= _LARGEST:
            raise ValueError(count)
        return number, read_minutes(time) if time else math.inf
    except ValueError:
        raise InputError(f"{row.place}: switches is {text!r}, not a number like 1 or 1@30:00") from None


def _sizes(row: RecordRow, options: Mapping[str, str]) -> dict[str, Any]:
    """Nodes, cpus, memory and generic resources that a job asks for."""
    asked, had = read_tres(row.text("ReqTRES")), read_tres(row.text("AllocTRES"))
    cpus = _whole(row.text("ReqCPUS") or asked.get("cpu") or row.text("NCPUS", "AllocCPUS"), row, "ReqCPUS")
    least, most = _nodes(row, options, asked)
    per_task = _whole(options.get("cpus-per-task", "1"), row, "--cpus-per-task")
    cpus_had = _whole(row.text("NCPUS", "AllocCPUS") or had.get("cpu") or "0", row, "NCPUS")
    memory, per_cpu = _memory(row, options, asked, cpus, least)
    gres = {name.removeprefix("gres/"): int(float(number)) for name, number in asked.items() if "gres/" in name}
    gres = {name: count for name, count in gres.items() if ":" not in name} or gres
    return {
        "billing": float(_whole(had.get("billing") or asked.get("billing") or "0", row, "billing")),
        "nodes": least,
        "nodes_max": most,
        "cpus": max(1, cpus),
        "cpus_per_task": max(1, per_task),
        "tasks_per_node": _whole(options.get("ntasks-per-node", "0"), row, "--ntasks-per-node"),
        "memory": memory,
        "memory_per_cpu": per_cpu,
        "gres": gres,
        "gres_in_all": True,
        "exclusive": options.get("exclusive", "no") in ("yes", "node", ""),
        "cpus_had": cpus_had,
    }


def _nodes(row: RecordRow, options: Mapping[str, str], asked: Mapping[str, str]) -> tuple[int, int]:
    """The fewest and the most nodes that a job takes; 0 where there is no most."""
    had = _whole(row.text("NNodes", "AllocNodes", "ReqNodes") or "1", row, "NNodes")
    if "nodes" in options:
        first, dash, last = options["nodes"].partition("-")
        if first.isdigit() and (not dash or last.isdigit()):
            return max(1, int(first)), int(last) if dash else int(first)
    if "node" in asked:
        least = max(1, int(float(asked["node"])))
        given = least > 1 and not options  # without its command line nobody knows whether it asked for them
        return least, least if given else 0
    return max(1, had), 0 if options else max(1, had)


def _memory(
    row: RecordRow, options: Mapping[str, str], asked: Mapping[str, str], cpus: int, nodes: int
) -> tuple[float, bool]:
    """Megabytes, and whether they are per cpu."""
    try:
        if "mem-per-cpu" in options:
            return read_memory(options["mem-per-cpu"]), True
        if "mem" in options:
            return read_memory(options["mem"]), False
        if options or "mem" not in asked:
            return _old_memory(row.text("ReqMem"))
        return read_memory(asked["mem"]) / max(1, cpus), True
    except ValueError:
        raise InputError(f"{row.place}: an amount of memory that is not a number; write it as 4000M or 4G") from None


def _old_memory(text: str) -> tuple[float, bool]:
    """ReqMem before Slurm 21.08: ``4000Mc`` per cpu, ``4000Mn`` per node; nothing of newer ones, which is a total."""
    if text.endswith(("c", "n")) and text[:-1]:
        return read_memory(text), text.endswith("c")
    return 0.0, False


def _runtime(row: RecordRow, start: int, end: int) -> float:
    if "elapsedraw" in row.fields or "elapsed" in row.fields:
        text = row.text("ElapsedRaw", "Elapsed")
        try:
            suspended = "" if is_nothing(row.text("Suspended")) else row.text("Suspended")
            return read_duration(text or "0") + read_duration(suspended or "0")
        except ValueError:
            raise InputError(f"{row.place}: Elapsed is {text!r}, not seconds or 1-02:03:04") from None
    return float(max(0, end - start)) if NEVER not in (start, end) else 0.0


def _limit(row: RecordRow) -> float:
    name = "TimelimitRaw" if "timelimitraw" in row.fields else "Timelimit"
    text = row.text(name)
    if is_nothing(text):
        return math.inf
    try:
        return read_minutes(text)
    except ValueError:
        raise InputError(f"{row.place}: {name} is {text!r}, not minutes or 1-02:03:04") from None


def _whole(text: str, row: RecordRow, name: str) -> int:
    try:
        number = read_memory(text) if text[-1:] in "KMG" and text else float(text or 0)
        if abs(number) > _LARGEST:
            raise ValueError(text)
        return int(number)
    except ValueError:
        raise InputError(f"{row.place}: {name} is {text!r}, not a whole number") from None


def _priority(row: RecordRow) -> float:
    text = row.text("Priority")
    return float(text) if text.replace(".", "", 1).isdigit() else math.nan


def _needs(text: str, name: str) -> tuple[tuple[Need, ...], bool, str]:
    """What ``--dependency`` says: the jobs, whether one is enough, and the name if it is a singleton."""
    needs = []
    for kind, jobs in _DEPENDENCY.findall(text):
        for job in filter(None, jobs.split(":")):
            number, _, minutes = job.partition("+")
            needs.append(Need(kind, number, float(minutes or 0) * MINUTE))
    return tuple(needs), "?" in text, name if "singleton" in text else ""


def _array_limit(text: str) -> int:
    found = _ARRAY_LIMIT.search(text)
    return int(found[1]) if found else 0
