"""Workloads from columns, and what generated workloads without a published model share.

Working hours, users' shares of the jobs, and run times with walltimes: the numbers are plausible and fitted to no log.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.model.dates import DAY
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints
from decision.model.workload import Delay, Job, ParallelHomogeneous, Profile, Workload, Worth

_NAME = "w0"


def workload_of(
    submit: Floats,
    sizes: Ints,
    runtimes: Floats,
    nb_hosts: int,
    *,
    walltimes: Floats | None = None,
    users: Sequence[str] | None = None,
    extras: Sequence[Mapping[str, Any] | None] | None = None,
    worth: Floats | None = None,
) -> Workload:
    """Jobs numbered from 0 that take their run time on any host, with one delay profile per distinct run time.

    Args:
        submit: (J,) submission times, seconds, ascending.
        sizes: (J,) requested hosts.
        runtimes: (J,) seconds, > 0.
        nb_hosts: hosts that the jobs are meant for.
        walltimes: (J,) seconds; jobs have none if absent.
        users: (J,) names; jobs have none if absent.
        extras: (J,) further fields of each job's JSON.
        worth: (J, 4) as `decision.model.workload.Worth`; jobs have none if absent.
    """
    count = len(submit)
    width = len(str(max(count - 1, 0)))
    distinct, which = np.unique(runtimes, return_inverse=True)
    names = [f"d{runtime!r}".removesuffix(".0") for runtime in distinct.tolist()]
    columns = (
        submit.tolist(),
        sizes.tolist(),
        [math.inf] * count if walltimes is None else walltimes.tolist(),
        which.tolist(),
        users or [""] * count,
        extras or [None] * count,
        [None] * count if worth is None else [Worth(*row) for row in worth.tolist()],
    )
    jobs = tuple(
        Job(
            id=f"{_NAME}!{number:0{width}d}",
            submit_time=at,
            size=size,
            walltime=limit,
            profile=names[profile],
            user=user,
            extra=extra,
            worth=value,
        )
        for number, (at, size, limit, profile, user, extra, value) in enumerate(zip(*columns, strict=True))
    )
    profiles: dict[str, Profile] = {name: Delay(run) for name, run in zip(names, distinct.tolist(), strict=True)}
    return Workload(name=_NAME, jobs=jobs, profiles=profiles, nb_res=nb_hosts)


DAY_WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.9, 0.35, 0.3)  # how busy Monday to Sunday are
HOUR_WEIGHTS = (2, 1, 1, 1, 1, 1, 2, 4, 8, 11, 12, 11, 8, 11, 12, 12, 11, 9, 7, 5, 4, 4, 3, 3)  # from midnight

_TOO_SHORT = 0.03  # share of jobs whose walltime stops them
_SHORTEST = 5.0  # seconds
_WALLTIMES = 60.0 * np.array([5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320])  # seconds


def zipf_users(rng: np.random.Generator, nb_users: int, count: int) -> Ints:
    """(count,) users from 0: few users submit most (Zipf's law)."""
    weights = 1 / np.arange(1, nb_users + 1)
    return rng.choice(nb_users, count, p=weights / weights.sum())


def times_of_area(
    rng: np.random.Generator, shape: Floats, sizes: Ints, area: float, longest: float
) -> tuple[Floats, Floats]:
    """Run times in whole seconds and round walltimes, most of them too long, a few too short.

    Args:
        rng: where choices come from.
        shape: (J,) how long jobs run, relative to each other.
        sizes: (J,) hosts.
        area: host-seconds that the jobs run in all, until their walltimes.
        longest: the longest run time, seconds.
    """
    factor = rng.uniform(1.1, 4.0, len(shape))
    factor[rng.random(len(shape)) < _TOO_SHORT] = 0.5
    scale = area / (shape * sizes).sum()
    for _ in range(50):  # cutting run times loses area; scale again until the area is right
        runtimes = np.clip(np.rint(shape * scale), _SHORTEST, longest)
        walltimes = _WALLTIMES[np.searchsorted(_WALLTIMES, np.minimum(runtimes * factor, _WALLTIMES[-1]))]
        scale *= area / (np.minimum(runtimes, walltimes) * sizes).sum()
    return runtimes, walltimes


# What jobs do while they run: wait, compute, or compute and communicate, each for as long as it was recorded.

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
        # ``delay60``, ``computation60``, ``parallel60x4``; those that fail end with their exit code, ``delay60!1``
        name = f"{tasks.kind}{seconds:.17g}" + (f"x{job.size}" if tasks.kind == "parallel" else "")
        name += f"!{exit_code}" if exit_code else ""
        if name not in profiles and tasks.kind == "delay":
            profiles[name] = Delay(seconds, exit_code)
        elif name not in profiles:
            sent = (tasks.comm_ratio or 0.0) * seconds * tasks.bandwidth
            to_each = sent / (job.size - 1) if job.size > 1 else 0.0
            profiles[name] = ParallelHomogeneous(seconds * (tasks.speed or 0.0), to_each, exit_code)
        jobs.append(replace(job, profile=name))
    return replace(workload, jobs=tuple(jobs), profiles=profiles, profile_sources={})


# A week of jobs for a small cluster: a plain model for demonstrations.
#
# Arrivals follow office hours and weekends; each user has typical job sizes and run times; run times are heavy-tailed;
# walltimes are round numbers that overestimate, and a few are too short. The numbers are plausible and fitted to no
# log: for comparisons that matter use a recorded log or a published model.

DAYS = 7

_NB_HOSTS, _NB_USERS = 16, 24
_LOAD = 0.9
_SIGMA_USER, _SIGMA_JOB = 0.8, 1.3  # spread of the logarithm of run times: between users, between a user's jobs
_LONGEST = 12 * 3600.0  # seconds


def week_workload(rng: np.random.Generator, nb_jobs: int = 1500) -> Workload:
    """Jobs with delay profiles for 16 hosts, which run nine tenths of what the hosts offer in the seven days."""
    # whole seconds from Monday to Sunday, counted from the first job
    weights = np.outer(DAY_WEIGHTS, HOUR_WEIGHTS).ravel()
    hours = rng.choice(len(weights), nb_jobs, p=weights / weights.sum())
    submit = np.sort(np.floor(3600 * (hours + rng.random(nb_jobs))))
    submit -= submit[0]
    users = zipf_users(rng, _NB_USERS, nb_jobs)
    # mostly powers of two around each user's own; one job in five any number of hosts
    largest = _NB_HOSTS.bit_length() - 1
    typical = rng.integers(0, largest + 1, _NB_USERS)
    power = np.clip(typical[users] + rng.choice((-1, 0, 0, 1), nb_jobs), 0, largest)
    anything = rng.integers(1, _NB_HOSTS + 1, nb_jobs)
    sizes = np.where(rng.random(nb_jobs) < 0.2, anything, 2**power)
    medians = rng.normal(0.0, _SIGMA_USER, _NB_USERS)
    shape = np.exp(medians[users] + rng.normal(0.0, _SIGMA_JOB, nb_jobs))
    runtimes, walltimes = times_of_area(rng, shape, sizes, _LOAD * _NB_HOSTS * DAYS * DAY, _LONGEST)
    names = [f"u{user:02d}" for user in users.tolist()]
    return workload_of(submit, sizes, runtimes, _NB_HOSTS, walltimes=walltimes, users=names)


def in_flops(workload: Workload, speed: float) -> Workload:
    """The same jobs computing instead of waiting: they take as long on hosts of `speed` flop/s, and draw power."""
    profiles: dict[str, Profile] = {
        name: ParallelHomogeneous(profile.duration * speed, 0.0, profile.exit_code)
        for name, profile in workload.profiles.items()
        if isinstance(profile, Delay)
    }
    return Workload(name=workload.name, jobs=workload.jobs, profiles=profiles, nb_res=workload.nb_res)
