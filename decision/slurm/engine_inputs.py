"""A case as the engine takes it: a platform of equal hosts, and a workload with the recorded runtimes."""

from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, Workload

from .case import Case
from .jobs import SlurmJob
from .text import read_hosts

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
