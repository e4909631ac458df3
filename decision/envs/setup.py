"""What an environment is made of, from the options that a user gives."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from decision.features import Encoder, make_encoder
from decision.features.encoder import PER_CORE
from decision.formats import load_platform, load_swf, load_workload
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Workload

from .tally import Rules
from .trace import Trace, make_trace

ARRIVALS = 4  # times the jobs to be placed: when so many have come, an episode is given up
EQUAL = (1 / 3, 1 / 3, 1 / 3)

Source = str | os.PathLike[str]


class Setup(msgspec.Struct, frozen=True):
    """All that environments of one kind share."""

    platform: Platform
    trace: Trace
    rules: Rules
    encoder: Encoder


def make_setup(
    workload: Workload | Source,
    platform: Platform | Source | None = None,
    *,
    encoder: Encoder | str = PER_CORE,
    head: int = 20,
    tail: int = 0,
    pools: int = 20,
    max_runtime: float | None = None,
    max_wait: float | None = None,
    base: str = "sjf",
    jobs: int | None = 1000,
    online: bool = True,
    weights: Sequence[float] = EQUAL,
) -> Setup:
    """Read files and check options.

    Args:
        workload: the jobs, or a file of them (``.swf`` or Batsim's JSON).
        platform: the hosts, or a file of them; without it, as many equal hosts as the workload was made for.
        encoder: ``dbf``, ``dbf-pools``, ``rlscheduler``, ``inspector``, or a finished one, which has what follows up
            to `base`.
        head: window slots for the first jobs of the queue.
        tail: and for the last.
        pools: with ``dbf-pools``: how many numbers describe the cluster.
        max_runtime: seconds that count as 1; by default the longest walltime of the workload.
        max_wait: likewise for waiting; by default as `max_runtime` with DBF, else 12 hours.
        base: with ``inspector``: the order that is inspected, ``sjf`` or ``f1``.
        jobs: how many an episode places; None for all of the workload.
        online: whether jobs go on to arrive, the trace beginning again at its end; if not, only `jobs` come.
        weights: w1, w2 and w3 of the reward, for idle cores, queue length and waiting time.

    Raises:
        ConfigError: if something cannot be read, does not fit, or makes no sense.
    """
    if not isinstance(workload, Workload):
        workload = _read_workload(Path(workload))
    if platform is None:
        platform = equal_hosts(workload.nb_res)
    elif not isinstance(platform, Platform):
        platform = load_platform(platform)
    _check_jobs(workload, platform)
    cores = len(platform.hosts)
    if isinstance(encoder, str):
        window = {"head": head, "tail": tail, "pools": pools, "max_runtime": max_runtime, "max_wait": max_wait}
        encoder = make_encoder(cores, [workload], name=encoder, base=base, **window)  # type: ignore[arg-type]
    encoder.check_cores(cores, platform.path or "the platform")
    rules = _make_rules(len(workload.jobs), jobs, online, weights)
    return Setup(platform, make_trace(workload, platform, rules.arrivals), rules, encoder)


def equal_hosts(hosts: int) -> Platform:
    """A platform of so many hosts of one power state."""
    return Platform(hosts=tuple(Host(id=i, name=f"host{i:06}", pstates=(PowerState(1e9),)) for i in range(hosts)))


def _read_workload(path: Path) -> Workload:
    return load_swf(path) if path.suffix.lower() == ".swf" else load_workload(path)


def _check_jobs(workload: Workload, platform: Platform) -> None:
    """Refuse what no policy of these environments could start."""
    where, hosts = workload.path or f"workload {workload.name}", len(platform.hosts)
    if not workload.jobs:
        raise ConfigError(f"{where}: there are no jobs; an environment needs some")
    for job in workload.jobs:
        if job.size > hosts:
            has = f"{platform.path or 'the platform'} has {hosts}"
            raise ConfigError(f"{where}: job {job.id}: 'res' is {job.size} hosts, but {has}")
        if not 0 < job.walltime < np.inf:
            raise ConfigError(f"{where}: job {job.id} has no 'walltime', and observations need one; give it one")


def _make_rules(trace_jobs: int, jobs: int | None, online: bool, weights: Sequence[float]) -> Rules:
    if len(weights) != 3 or not all(0 <= weight <= 1 for weight in weights):
        raise ConfigError(f"weights: must be three numbers between 0 and 1; found {weights}")
    jobs = trace_jobs if jobs is None else jobs
    if jobs < 1:
        raise ConfigError(f"jobs: an episode must place at least 1; found {jobs}")
    return Rules(jobs, ARRIVALS * jobs if online else jobs, int(online), trace_jobs, *map(float, weights))
