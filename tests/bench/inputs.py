"""Workloads and platforms to measure with."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from decision.files import load_events, load_swf
from decision.files.generate.events import SupplyModel, green_power, supply_lines
from decision.files.generate.grid5000 import find_cluster
from decision.files.generate.paper_workloads import (
    PUBLISHED_TRACES,
    GreenModel,
    green_workload,
    grid5000_days,
    predicted_runtimes,
)
from decision.files.generate.platforms import Wanted, grid5000_cluster
from decision.model.demand import runtimes
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, MachineEvent, Workload

NB_HOSTS = 256
NB_JOBS = 10_000


def platform(nb_hosts: int) -> Platform:
    """Equal hosts of one pstate."""
    return Platform(hosts=tuple(Host(id=i, name=f"n{i:06d}", pstates=(PowerState(1e9),)) for i in range(nb_hosts)))


def workload(swf: Path | None) -> Workload:
    """The log, or one that we make of the size of lublin_256: walltimes exact, hosts busy, a hundred jobs waiting."""
    return _log(swf) if swf else made(NB_JOBS, NB_HOSTS, load=0.93, seed=1, overestimate=1.0)


def _log(swf: Path) -> Workload:
    """A log whose jobs without a requested time have their run time for one: a backfilling needs walltimes."""
    return load_swf(swf, missing_walltime="runtime")


def packing_jobs() -> Workload:
    """WL2_RNDa of Takizawa, Nomura and Matsuba, whose jobs say how long they run: they are right."""
    jobs = predicted_runtimes(np.random.default_rng(0), "WL2", "RND", "a")
    said = zip(jobs.jobs, runtimes(jobs).tolist(), strict=True)
    return msgspec.structs.replace(jobs, jobs=[msgspec.structs.replace(job, estimate=run) for job, run in said])


def days_of(cluster: str, days: int = 300) -> tuple[Platform, Workload]:
    """Servers that sleep, and the first days like those of a cluster in DeepScheduling."""
    wanted = Wanted(cluster=find_cluster(cluster), by_core=True, power=True)
    made = grid5000_days(np.random.default_rng(0), PUBLISHED_TRACES[cluster], slice(0, days))
    return grid5000_cluster(wanted), made


def green_jobs(hosts: int, nb_jobs: int = 10_000) -> tuple[Workload, list[MachineEvent]]:
    """Jobs of a green datacenter whose value grows with their QoS, and an intermittent supply."""
    most = max(hosts // 2, 1)
    jobs = green_workload(
        np.random.default_rng(0), nb_jobs, GreenModel(hosts=hosts, most_hosts=most, price_by_qos=True)
    )
    model = SupplyModel(hosts=hosts, steps=int(jobs.jobs[-1].submit_time / 60) + 30)
    rng = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "supply.txt"
        path.write_bytes(supply_lines(rng, green_power(rng, model), model))
        return jobs, load_events(path, supply=True)


def columns(nb_jobs: int, nb_hosts: int, load: float, seed: int, overestimate: float = 5.0) -> list[np.ndarray]:
    """Submission, size, walltime and runtime of the jobs that `made` makes."""
    rng = np.random.default_rng(seed)
    largest = int(np.log2(nb_hosts))
    size = 2 ** np.minimum(rng.geometric(0.35, nb_jobs) - 1, largest)
    run = np.round(np.exp(rng.uniform(np.log(10), np.log(40_000), nb_jobs)))
    wall = np.round(run * rng.uniform(1.0, overestimate, nb_jobs))
    gap = float(np.mean(size * run)) / (nb_hosts * load)
    return [np.cumsum(np.round(rng.exponential(gap, nb_jobs))), size, wall, run]


def made(nb_jobs: int, nb_hosts: int, load: float, seed: int, overestimate: float = 5.0, users: int = 0) -> Workload:
    """Delay jobs of power-of-two sizes and log-uniform runtimes at an offered load, walltimes up to so many times.

    They belong to so many users, to none where that is 0.
    """
    user = [f"u{n}" for n in np.random.default_rng(seed).integers(users, size=nb_jobs)] if users else [""] * nb_jobs
    submit, size, wall, run = columns(nb_jobs, nb_hosts, load, seed, overestimate)
    jobs = [
        Job(id=f"w0!{i}", submit_time=t, size=int(n), walltime=w, profile=f"d{r:g}", user=user[i])
        for i, (t, n, w, r) in enumerate(zip(submit.tolist(), size, wall.tolist(), run.tolist(), strict=True))
    ]
    return Workload(name="w0", jobs=jobs, profiles={f"d{r:g}": Delay(r) for r in set(run.tolist())}, nb_res=nb_hosts)


def with_users(swf: Path | None) -> Workload:
    """The log, or one that we make as `workload` does, with users and walltimes up to five times too long."""
    return _log(swf) if swf else made(NB_JOBS, NB_HOSTS, load=0.93, seed=1, users=100)
