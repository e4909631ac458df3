"""Platforms and workloads described: groups of equal hosts and the use of each pstate; statistics of the jobs."""

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from decision.model.dates import hours, weekdays
from decision.model.demand import Floats, offered_load, sizes, submit_times, walltimes
from decision.model.platform import Host, Platform, PowerState
from decision.model.record import Ints
from decision.model.workload import Workload

_OF_ONE_HOST = ("role", "server")  # properties that do not make a host another kind


class PstateUse(msgspec.Struct, frozen=True):
    """A pstate and what it is for."""

    number: int
    state: PowerState
    use: str  # "computing", "asleep", "falling asleep" or "waking up"

    @property
    def seconds(self) -> float | None:
        """How long a switch takes; None where the pstate is not a switch."""
        return 1 / self.state.speed if self.use in _SWITCHES else None


_SWITCHES = ("falling asleep", "waking up")


def host_groups(platform: Platform) -> list[list[Host]]:
    """Compute and storage hosts, those together that differ in name and server only; in the order of ids."""
    groups: dict[object, list[Host]] = {}
    for host in platform.hosts + platform.storage:
        properties = tuple(sorted((k, v) for k, v in host.properties.items() if k not in _OF_ONE_HOST))
        stores = host.id >= len(platform.hosts)
        key = (stores, host.pstates, host.sleep, host.initial_pstate, host.has_power, properties)
        groups.setdefault(key, []).append(host)
    return list(groups.values())


def pstate_uses(host: Host) -> Iterator[PstateUse]:
    """All pstates of a host in order."""
    off = {sleep.switch_off for sleep in host.sleep}
    on = {sleep.switch_on for sleep in host.sleep}
    for number, state in enumerate(host.pstates):
        use = "asleep" if number in host.sleep_pstates else "computing"
        use = "falling asleep" if number in off else "waking up" if number in on else use
        yield PstateUse(number, state, use)


class SevenFigures(Struct, frozen=True, kw_only=True):
    """A distribution in seven figures; all nan where there is nothing to describe."""

    least: float
    quarter: float  # a quarter of the values is at most this
    median: float
    three_quarters: float
    most_of: float  # 95 of 100 values are at most this
    largest: float
    mean: float


class WorkloadFigures(Struct, frozen=True, kw_only=True):
    """What a workload is like. Shares are of all jobs and in [0, 1] unless they say otherwise."""

    jobs: int
    nb_res: int
    span: float  # seconds from the first submission to the last
    load: float  # offered load (see `decision.model.demand.offered_load`)
    size: SevenFigures  # hosts
    serial: float  # share of jobs of one host
    powers: float  # share of powers of two among jobs of more than one host
    runtime: SevenFigures  # seconds
    gap: SevenFigures  # seconds between a submission and the next
    limited: float  # share of jobs with a walltime
    walltime: SevenFigures  # seconds, of those that have one
    accuracy: SevenFigures  # of those: run time / walltime, 1 where the walltime stops the job
    exact: float  # share of those that end just at their walltime
    stopped: float  # share of those that their walltime stops
    by_hour: Floats  # (24,) share of jobs submitted in each hour of the day
    by_weekday: Floats  # (7,) share of jobs submitted on each weekday, from Monday
    jobs_by_user: Ints  # (U,) jobs of each user, most first
    area_by_user: Floats  # (U,) host-seconds of each, in the same order


def workload_figures(workload: Workload, runtimes: Floats) -> WorkloadFigures:
    """All of it.

    Args:
        workload: at least one job.
        runtimes: how long each job takes, (J,) seconds (see `decision.model.demand.runtimes`).
    """
    size, submitted, limit = sizes(workload), np.sort(submit_times(workload)), walltimes(workload)
    limited = np.isfinite(limit)
    limit, run = limit[limited], runtimes[limited]
    # Jobs and host-seconds of each user, by number of jobs; jobs without a user are left out
    named = [job.user for job in workload.jobs]
    known, area = np.array([bool(user) for user in named], bool), size * np.minimum(runtimes, walltimes(workload))
    users, user = np.unique([user for user in named if user], return_inverse=True)
    jobs_by_user: Ints = np.bincount(user, minlength=len(users)).astype(np.int64)
    area_by_user: Floats = np.bincount(user, weights=area[known], minlength=len(users)).astype(np.float64)
    most = np.argsort(-jobs_by_user, kind="stable")
    return WorkloadFigures(
        jobs=len(size),
        nb_res=workload.nb_res,
        span=float(submitted[-1] - submitted[0]),
        load=offered_load(workload, runtimes),
        size=seven_figures(size),
        serial=float((size == 1).mean()),
        powers=share(np.log2(size[size > 1]) % 1 == 0),
        runtime=seven_figures(runtimes),
        gap=seven_figures(np.diff(submitted)),
        limited=float(limited.mean()),
        walltime=seven_figures(limit),
        accuracy=seven_figures(np.minimum(run / limit, 1.0)),
        exact=share(run == limit),
        stopped=share(run > limit),
        by_hour=np.bincount(hours(workload), minlength=24) / len(size),
        by_weekday=np.bincount(weekdays(workload), minlength=7) / len(size),
        jobs_by_user=jobs_by_user[most],
        area_by_user=area_by_user[most],
    )


def seven_figures(values: Floats) -> SevenFigures:
    """The seven figures of some values."""
    if not len(values):
        return SevenFigures(**dict.fromkeys(SevenFigures.__struct_fields__, np.nan))
    quantiles = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)).tolist()
    return SevenFigures(**dict(zip(SevenFigures.__struct_fields__, [*quantiles, float(values.mean())], strict=True)))


def share(holds: NDArray[np.bool_]) -> float:
    """In how many cases something holds, relative to all; nan without cases."""
    return float(holds.mean()) if len(holds) else np.nan
