"""A case in its folder: written, and loaded again.

``CASE`` has ``case.json``, the ``slurm.conf`` as it was given (with what it includes), and ``platform.xml`` and
``workload.json`` for all other commands.
"""

from pathlib import Path

import msgspec

from decision.files.json_text import json_bytes
from decision.files.profiles import workload_lines
from decision.files.simgrid.write_platform import write_platform
from decision.files.text import read_bytes, write_files
from decision.model.errors import InputError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, Workload

from .case import VERSION, Case
from .conf import Conf
from .jobs import SlurmJob
from .text import read_hosts

# A case as the engine takes it: a platform of equal hosts, and a workload with the recorded runtimes.

_HOST_SPEED = 1e9  # flop/s; jobs take seconds, so it decides nothing


def engine_hosts(case: Case) -> list[str]:
    """The node of each host of the engine: hosts are the nodes themselves, or their cores where jobs share nodes."""
    return [node.name for node in case.nodes for _ in range(1 if case.linear else node.cores)]


def case_platform(case: Case) -> Platform:
    """The platform: a host for each node, or for each core of it where jobs share nodes.

    Names sort as their numbers, because Batsim numbers hosts by name.
    """
    nodes = engine_hosts(case)
    width = len(str(len(nodes)))
    hosts = (
        Host(
            id=number,
            name=f"h{number:0{width}d}-{node}",
            pstates=(PowerState(speed=_HOST_SPEED),),
            properties={"server": node},
        )
        for number, node in enumerate(nodes)
    )
    return Platform(hosts=tuple(hosts))


def engine_size(case: Case, job: SlurmJob) -> int:
    """The hosts of the engine that a job takes: its nodes, or its cores where jobs share nodes."""
    if case.linear:
        return max(job.nodes, len(read_hosts(job.hosts)))
    threads = max(node.threads for node in case.nodes)
    return max(1, -(-max(job.cpus, job.cpus_had) // threads))


def case_workload(case: Case) -> Workload:
    """The jobs as a workload: submission from the first one on, the recorded run time, hosts as the platform has.

    Jobs that were cancelled while they waited are left out.
    """
    begin, most = case.begin, len(engine_hosts(case))
    profiles: dict[str, Delay] = {}
    jobs = []
    for job in case.jobs:
        if not job.started and job.state not in ("PENDING", "RUNNING"):
            continue
        seconds = max(1.0, job.runtime if job.started else min(job.limit, 1e7))
        name = f"{seconds:g}s"
        profiles[name] = Delay(seconds)
        jobs.append(
            Job(
                id=f"slurm!{job.id}",
                submit_time=float(job.submitted - begin),
                size=min(engine_size(case, job), most),
                walltime=max(job.limit, seconds),
                profile=name,
                user=job.user,
            )
        )
    return Workload(name="slurm", jobs=jobs, profiles=profiles, nb_res=most, unix_start=float(begin))


CASE_FILE = "case.json"


def write_case(case: Case, conf: Conf, folder: Path) -> None:
    """Write a case to a folder, all of its files or none.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents = {folder / CASE_FILE: [msgspec.json.format(json_bytes(case), indent=1)]}
    contents[folder / "workload.json"] = list(workload_lines(case_workload(case)))
    contents |= _conf_copies(conf, folder)
    write_files(contents)
    write_platform(folder / "platform.xml", case_platform(case))


def _conf_copies(conf: Conf, folder: Path) -> dict[Path, list[bytes]]:
    first, *others = conf.files
    copies = {folder / "slurm.conf": [Path(first).read_bytes()]}
    for name in others:
        copies[folder / Path(name).name] = [Path(name).read_bytes()]
    return copies


def load_case(folder: Path) -> Case:
    """A case from its folder.

    Raises:
        InputError: if it is none, or made by another version.
    """
    path = folder / CASE_FILE
    if not path.is_file():
        raise InputError(f"{folder}: there is no {CASE_FILE} in it; make it with decision slurm read")
    try:
        case = msgspec.json.decode(read_bytes(path), type=Case)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a case of this version ({error}); make it again: decision slurm read") from None
    if case.version != VERSION:
        raise InputError(f"{path}: version {case.version}, not {VERSION}; make it again: decision slurm read")
    asked = {name for job in case.jobs for name in job.partition.split(",")} - {p.name for p in case.partitions}
    listed = {name for partition in case.partitions for name in partition.nodes} - {node.name for node in case.nodes}
    if unknown := asked | listed:
        raise InputError(f"{path}: it has no partition or node {min(unknown)!r}; make it again: decision slurm read")
    return msgspec.structs.replace(case, folder=str(folder))
