"""What jobs do while they run: wait, compute, or compute and communicate, each for as long as it was recorded."""

import math
from typing import Literal

import msgspec
from msgspec.structs import replace

from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.workload import Delay, ParallelHomogeneous, Profile, Workload

Kind = Literal["delay", "computation", "parallel"]

TEN_GIGABIT = 1.25e9  # byte/s


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of jobs that run for T seconds on n hosts.

    - ``delay``: T seconds whatever the hosts.
    - ``computation``: each host computes T * `speed` flop, so T seconds at that speed and longer at a lower one.
    - ``parallel``: the same computation, and each host sends to each other one ``comm_ratio * T * bandwidth / (n - 1)``
      bytes. Over links of `bandwidth` byte/s each way, one per host, that takes comm_ratio * T seconds. Batsim's
      parallel tasks compute and communicate at once, so a job that shares no link still takes T seconds; jobs that
      compete for a network with less to offer take longer, the more so the higher the ratio.

    Raises:
        ConfigError: if a value is missing, out of range, or of no use to the kind.
    """

    kind: Kind
    speed: float | None = None  # flop/s of a host; also the speed at which jobs that compute already were recorded
    comm_ratio: float | None = None  # the share of its run time for which a job keeps its links busy, in [0, 1]
    bandwidth: float = TEN_GIGABIT  # byte/s

    def __post_init__(self) -> None:
        if self.kind not in ("delay", "computation", "parallel"):
            reason = f"must be delay, computation or parallel; found {self.kind!r}"
            raise ConfigError(f"kind of jobs: {reason}", field="profile")
        if self.kind != "delay" and self.speed is None:
            reason = f"jobs of kind {self.kind} need the hosts' speed"
            raise ConfigError(f"{reason}; give it, like 11.77Gf", field="speed")
        if (self.kind == "parallel") != (self.comm_ratio is not None):
            raise ConfigError(
                "communication ratio: give it for jobs of kind parallel, and only for them", field="comm_ratio"
            )
        if self.comm_ratio is not None and not 0 <= self.comm_ratio <= 1:
            reason = f"must be a share of the run time, from 0 to 1; found {self.comm_ratio:g}"
            raise ConfigError(f"communication ratio: {reason}", field="comm_ratio")
        if not 0 < self.bandwidth < math.inf:
            raise ConfigError(f"bandwidth: must be above 0; found {self.bandwidth:g}", field="bandwidth")


def as_tasks(workload: Workload, tasks: Tasks) -> Workload:
    """The same jobs with profiles of another kind, one per distinct run time (and size, where that matters).

    Raises:
        ConfigError: if the run time of a job is not known (see `decision.model.demand.runtimes`) or is 0.
    """
    profiles: dict[str, Profile] = {}
    jobs = []
    for job, seconds in zip(workload.jobs, runtimes(workload, tasks.speed).tolist(), strict=True):
        if seconds <= 0:
            raise ConfigError(f"{workload.path}: job {job.id!r} computes nothing; leave it out or keep its profile")
        exit_code = workload.profiles[job.profile].exit_code
        name = _name(tasks.kind, seconds, job.size, exit_code)
        if name not in profiles:
            profiles[name] = _profile(tasks, seconds, job.size, exit_code)
        jobs.append(replace(job, profile=name))
    return replace(workload, jobs=tuple(jobs), profiles=profiles, profile_sources={})


def _name(kind: Kind, seconds: float, size: int, exit_code: int) -> str:
    """``delay60``, ``computation60``, ``parallel60x4``; those that fail end with their exit code, ``delay60!1``."""
    name = f"{kind}{seconds:.17g}" + (f"x{size}" if kind == "parallel" else "")
    return f"{name}!{exit_code}" if exit_code else name


def _profile(tasks: Tasks, seconds: float, size: int, exit_code: int) -> Profile:
    if tasks.kind == "delay":
        return Delay(seconds, exit_code)
    sent = (tasks.comm_ratio or 0.0) * seconds * tasks.bandwidth
    to_each = sent / (size - 1) if size > 1 else 0.0
    return ParallelHomogeneous(seconds * (tasks.speed or 0.0), to_each, exit_code)
