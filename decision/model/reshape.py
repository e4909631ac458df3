"""Workloads from workloads: fewer jobs, other arrivals, other walltimes.

Every job that is left out is counted by reason in `Workload.dropped`: kept and dropped are always all. These
functions are part of the model so that readers, generators and conversions of workloads use the same ones.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from . import dates
from .columns import DelayProfiles, JobColumns
from .dates import Moment
from .demand import Floats, offered_load, runtimes, sizes, submit_times, walltimes
from .errors import ConfigError, InputError
from .filters import keep, matches
from .resample import at_load_by_users, at_sizes
from .workload import Delay, Workload

_LONGEST = 1e15  # seconds that simulations can last

Walltimes = Literal["requested", "runtime", "none"]
MISSING = ("none", "runtime", "longest")


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a workload, in the order in which it happens.

    Raises:
        ConfigError: if a value is out of range.
    """

    nodes: int | None = None  # leave out larger jobs; the workload is then for so many hosts
    begin: Moment | None = None  # leave out jobs submitted before
    end: Moment | None = None  # leave out jobs submitted then or later
    without: str = ""  # leave out the jobs that a filter names, as `decision.model.filters` has it
    jobs: slice | None = None  # keep these of the jobs still there, counted in order of submission
    walltime: Walltimes = "requested"  # as they are, or the run time (perfect estimates), or none
    missing: str = "none"  # what takes the place of a walltime that is not known: the run time, the longest, or nothing
    scale_sizes: int | None = None  # hosts of another machine, to which sizes are scaled
    load_by: str = "arrivals"  # "arrivals" stretches or squeezes them, "users" resamples users by whole weeks
    seed: int = 0  # of that
    load: float | None = None  # stretch or squeeze the arrivals to this offered load
    shift: bool = False  # let `begin`, or else the first submission, be 0 s
    speed: float | None = None  # flop/s of the hosts, for the run times of jobs that compute

    def __post_init__(self) -> None:
        if self.nodes is not None and self.nodes < 1:
            raise ConfigError(f"nodes: must be at least 1; found {self.nodes}")
        if self.walltime not in ("requested", "runtime", "none"):
            raise ConfigError(f"walltime: must be requested, runtime or none; found {self.walltime!r}")
        if self.load_by not in ("arrivals", "users"):
            raise ConfigError(f"load_by: must be arrivals or users; found {self.load_by!r}")
        if self.missing not in MISSING:
            raise ConfigError(f"missing_walltime: must be none, runtime or longest; found {self.missing!r}")
        if self.jobs is not None and self.jobs.step not in (None, 1):
            raise ConfigError(f"jobs: must be a range a:b without a step; found a step of {self.jobs.step}")
        if self.load is not None and not 0 < self.load < float("inf"):
            raise ConfigError(f"load: must be above 0; found {self.load:g}")


def reshape(workload: Workload, filters: Filters) -> Workload:
    """The workload with all that `filters` ask for.

    Raises:
        InputError: if no job is left.
        ConfigError: if a date is asked for and none is known, or a run time is needed and not known.
    """
    if filters.nodes is not None:
        workload = at_most(workload, filters.nodes)
    workload = _within(workload, filters.begin, filters.end)
    if filters.without:
        workload = keep(workload, ~matches(workload, filters.without), f"removed by {filters.without}")
    if filters.jobs is not None:
        workload = _range(workload, filters.jobs)
    refuse_empty(workload)
    begin = filters.begin.of(workload) if filters.begin else float(submit_times(workload).min())
    if filters.walltime != "requested":
        workload = _with_walltimes(workload, filters.walltime, filters.speed)
    elif filters.missing != "none":
        workload = fill_walltimes(workload, filters.missing, filters.speed)
    if filters.scale_sizes is not None:
        workload = at_sizes(workload, filters.scale_sizes)
    if filters.load is not None and filters.load_by == "users":
        workload = at_load_by_users(workload, filters.load, filters.seed, filters.speed)
    elif filters.load is not None:
        workload = at_load(workload, filters.load, filters.speed)
    return beginning(workload, begin) if filters.shift else workload


def refuse_empty(workload: Workload) -> None:
    """Refuse a workload without jobs. Raises InputError, with the reasons for which jobs were left out."""
    if not workload.jobs:
        why = f" (left out: {dropped_text(workload)})" if workload.dropped else ""
        raise InputError(f"{workload.path}: no usable job{why}; choose other jobs or another file")


def dropped_text(workload: Workload) -> str:
    """How many jobs and lines were left out, by reason: ``7 not 18 numbers (lines 2, 5, 6, 9, 11, ...), 1 ...``."""
    return ", ".join(f"{count:,} {reason}{_lines(workload, reason)}" for reason, count in workload.dropped.items())


def _lines(workload: Workload, reason: str) -> str:
    """The numbers of the lines that were left out for a reason, as far as they are known."""
    known = workload.dropped_lines.get(reason, ())
    if not known:
        return ""
    more = ", ..." if workload.dropped[reason] > len(known) else ""
    return f" (line{'s' * (len(known) > 1)} {', '.join(f'{number:,}' for number in known)}{more})"


def at_most(workload: Workload, nodes: int) -> Workload:
    """The jobs of at most `nodes` hosts, for a machine of so many."""
    return replace(keep(workload, sizes(workload) <= nodes, f"larger than {nodes} hosts"), nb_res=nodes)


def _within(workload: Workload, begin: Moment | None, end: Moment | None) -> Workload:
    if begin is not None:
        workload = keep(workload, submit_times(workload) >= begin.of(workload), f"submitted before {begin.text}")
    if end is not None:
        workload = keep(workload, submit_times(workload) < end.of(workload), f"submitted from {end.text} on")
    return workload


def _range(workload: Workload, jobs: slice) -> Workload:
    chosen = np.zeros(len(workload.jobs), bool)
    chosen[np.argsort(submit_times(workload), kind="stable")[jobs]] = True
    first, last = ("" if bound is None else bound for bound in (jobs.start, jobs.stop))
    return keep(workload, chosen, f"outside the range {first}:{last} of jobs")


def _with_walltimes(workload: Workload, policy: Walltimes, speed: float | None) -> Workload:
    limits = _perfect(workload, speed) if policy == "runtime" else np.full(len(workload.jobs), np.inf)
    return _with(workload, "walltime", limits)


def fill_walltimes(workload: Workload, missing: str, speed: float | None = None) -> Workload:
    """The workload with walltimes for jobs that have none: their run times, or the longest walltime of all jobs.

    Raises:
        ConfigError: if a run time is not known, or no job has a walltime that could be the longest.
    """
    limits = walltimes(workload)
    unknown = np.isinf(limits)
    if not unknown.any():
        return workload
    if missing == "runtime":
        return with_walltimes(workload, np.where(unknown, _perfect(workload, speed), limits))
    if unknown.all():
        none = "no job has a requested time, so none is the longest"
        raise ConfigError(f"{workload.path or 'the workload'}: {none}", field="missing_walltime")
    return with_walltimes(workload, np.where(unknown, limits[~unknown].max(), limits))


def with_walltimes(workload: Workload, seconds: Floats) -> Workload:
    """The same jobs with these walltimes, (J,), inf where there is none."""
    return _with(workload, "walltime", seconds)


def _perfect(workload: Workload, speed: float | None) -> Floats:
    """The run times; of jobs that compute a millionth more, since a simulator's rounding would stop some of them."""
    seconds = runtimes(workload, speed)
    profiles = workload.profiles
    if isinstance(profiles, DelayProfiles) or all(isinstance(profile, Delay) for profile in profiles.values()):
        return seconds
    computing = np.array([not isinstance(profiles[job.profile], Delay) for job in workload.jobs])
    return seconds * np.where(computing, 1 + 1e-6, 1.0)


def at_load(workload: Workload, load: float, speed: float | None = None) -> Workload:
    """The same jobs, further apart or closer together, such that their offered load is `load`.

    The time since the first submission is multiplied by one factor for all, so days get longer or shorter too.

    Args:
        workload: the jobs.
        load: offered load, as `decision.model.demand.offered_load` defines it.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if all jobs come at once or take no time, or would come at once or never.
    """
    now = offered_load(workload, runtimes(workload, speed))
    if not now > 0:
        raise ConfigError(f"load: the jobs of {workload.path} come all at once or take no time; no factor changes that")
    times = submit_times(workload)
    first = times.min()
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = first + (times - first) * (now / load)
    if not 0 < np.ptp(scaled) < _LONGEST:
        raise ConfigError(f"load: {load:g} puts the jobs of {workload.path} too close together or too far apart")
    later = _submitted(workload, scaled)
    return later if later.trace is None else replace(later, trace=later.trace.without_times())


def beginning(workload: Workload, seconds: float) -> Workload:
    """The same jobs with a clock that shows 0 at `seconds`."""
    unix_start = None if workload.unix_start is None else workload.unix_start + seconds
    return replace(_submitted(workload, submit_times(workload) - seconds), unix_start=unix_start)


def _submitted(workload: Workload, times: Floats) -> Workload:
    return _with(workload, "submit_time", times)


def _with(workload: Workload, field: str, values: Floats) -> Workload:
    """The same jobs with other values of a field, (J,)."""
    if isinstance(workload.jobs, JobColumns):
        return replace(workload, jobs=workload.jobs.replaced(**{field: values}))
    pairs = zip(workload.jobs, values.tolist(), strict=True)
    return replace(workload, jobs=tuple(replace(job, **{field: value}) for job, value in pairs))


def by_day(workload: Workload) -> Iterator[tuple[str, Workload]]:
    """Each day on which jobs are submitted: its name (see `dates.day_name`) and its jobs; 0 s is its midnight."""
    day_of = dates.days(workload)
    for day in np.unique(day_of).tolist():
        name = dates.day_name(workload, day)
        of_day = keep(workload, day_of == day, f"not of {name}")
        yield name, beginning(of_day, dates.midnight(workload, day))
