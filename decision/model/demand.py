"""What can be asked of a workload: run times of its jobs, the offered load, users' sessions, and jobs as a table."""

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from .columns import DelayProfiles, JobColumns, columns_of
from .columns import worth_rows as rows_of_worth
from .errors import ConfigError, how_to_install
from .record import BatteryTable, Context, Floats, Ints, RateTable, SupplyTable, WorthTable
from .table import Table
from .trace import of_jobs
from .workload import (
    CARBON,
    POWER_SUPPLY,
    PRICE,
    Composed,
    Delay,
    MachineEvent,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
    Worth,
    used_profiles,
)

if TYPE_CHECKING:
    from pandas import DataFrame

VALUE, QOS, DEADLINE, EXPECTED = range(len(Worth.__struct_fields__))  # columns of `worths`


def runtimes(workload: Workload, speed: float | None = None) -> Floats:
    """How long each job takes on hosts of `speed` flop/s if nothing stops it: (J,) seconds.

    A delay takes its duration, a task its computation on the host that has most of it, and a composed profile the
    sum of its parts. Communication counts for nothing: it depends on the network and on the other jobs.

    Raises:
        ConfigError: if a job computes and `speed` is not given, or does what only Batsim can simulate.
    """
    if isinstance(workload.profiles, DelayProfiles) and workload.profiles.label(workload.jobs):
        return workload.profiles.durations[workload.jobs.profile.codes]
    delays = {name: profile.duration for name, profile in workload.profiles.items() if isinstance(profile, Delay)}
    others: dict[tuple[str, int], float] = {}
    for job in workload.jobs:
        if job.profile not in delays and (job.profile, job.size) not in others:
            others[job.profile, job.size] = _Seconds(workload, job.size, speed).of(job.profile)
    if not others:
        return np.array([delays[job.profile] for job in workload.jobs], np.float64)
    seconds = (others.get((job.profile, job.size)) or delays.get(job.profile, 0.0) for job in workload.jobs)
    return np.fromiter(seconds, np.float64, len(workload.jobs))


def read_estimate(value: Any) -> float:
    """Seconds that a job's field `estimate` says, which Batsim only forwards; nan where that is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def read_worth(fields: Mapping[str, Any], submit_time: float) -> Worth:
    """What a job's JSON object says of its worth; fields that are no numbers say nothing.

    Raises:
        ConfigError: naming the field, if a number makes no sense.
    """
    worth = Worth(*(read_estimate(fields.get(name)) for name in Worth.__struct_fields__))
    for name, wrong, advice in (
        ("value", worth.value < 0 or worth.value == math.inf, "must be finite and not below 0"),
        ("qos", worth.qos <= 0 or worth.qos > 100, "must be above 0 and at most 100 percent"),
        ("deadline", worth.deadline < submit_time, f"must not be before the submission at {submit_time:.12g} s"),
        ("expected", worth.expected <= 0, "must be above 0 seconds"),
    ):
        if wrong:
            raise ConfigError(f"field {name!r}: {advice}; found {getattr(worth, name):.12g}")
    return worth


def worths(workload: Workload) -> Floats | None:
    """What each job is worth, (J, 4) as `Worth`, nan where it does not say it; None where none says anything."""
    if isinstance(workload.jobs, JobColumns):
        return workload.jobs.worth
    return rows_of_worth([job.worth for job in workload.jobs])


def has_deadlines(workload: Workload) -> bool:
    """Whether a job has a deadline."""
    rows = worths(workload)
    return rows is not None and not bool(np.isnan(rows[:, DEADLINE]).all())


def worth_table(workloads: Sequence[Workload]) -> WorthTable | None:
    """The values and deadlines of all jobs that have one; None where none has."""
    ids: list[str] = []
    rows = []
    for workload in workloads:
        given = worths(workload)
        if given is not None:
            valued = np.flatnonzero(~np.isnan(given[:, [VALUE, DEADLINE]]).all(axis=1))
            ids += [workload.jobs[row].id for row in valued.tolist()]
            rows.append(given[valued])
    if not ids:
        return None
    together = np.concatenate(rows)
    return WorthTable(id=ids, value=together[:, VALUE].copy(), deadline=together[:, DEADLINE].copy())


def supply_table(events: Sequence[MachineEvent]) -> SupplyTable | None:
    """How many hosts have power from each time on; None where events do not say it."""
    supply = [(event.timestamp, event.hosts[0]) for event in events if event.type == POWER_SUPPLY]
    if not supply:
        return None
    time, hosts = zip(*sorted(supply, key=itemgetter(0)), strict=True)
    return SupplyTable(time=np.array(time, np.float64), hosts=np.array(hosts, np.float64))


def rate_table(events: Sequence[MachineEvent], kind: str) -> RateTable | None:
    """What a kWh emits or costs from each time on, by events of this type; None where there are none."""
    rates = [(event.timestamp, event.value) for event in events if event.type == kind]
    if not rates:
        return None
    time, rate = zip(*sorted(rates, key=itemgetter(0)), strict=True)
    return RateTable(time=np.array(time, np.float64), rate=np.array(rate, np.float64))


def context(
    workloads: Sequence[Workload], events: Sequence[MachineEvent], battery: BatteryTable | None = None
) -> Context:
    """What a run is measured by that Batsim's files do not say."""
    return Context(
        worth=worth_table(workloads),
        supply=supply_table(events),
        battery=battery,
        carbon=rate_table(events, CARBON),
        price=rate_table(events, PRICE),
    )


def usable_estimate(estimate: Floats | float) -> Floats:
    """Estimates as arrays of jobs have them: 0 where there is none, or one that no run time can be."""
    return np.where(np.greater(estimate, 0.0), estimate, 0.0)


class _Seconds:
    """Run times of a workload's profiles on `size` hosts."""

    def __init__(self, workload: Workload, size: int, speed: float | None) -> None:
        self._path = workload.path
        self._profiles: Mapping[str, Profile] = workload.profiles
        self._size = size
        self._speed = speed

    def of(self, name: str) -> float:
        match self._profiles[name]:
            case Delay(duration=duration):
                return duration
            case ParallelHomogeneous(flops=flops):
                return self._computing(flops, name)
            case ParallelHomogeneousTotal(flops=flops):
                return self._computing(flops / self._size, name)
            case Parallel(flops=amounts):
                return self._computing(max(amounts), name)
            case Composed(sequence=sequence, repeat=repeat):
                return repeat * sum(self.of(part) for part in sequence)
            case foreign:
                reason = f"only Batsim knows how long a profile of type {foreign.type!r} takes"
                raise ConfigError(f"{self._path}: profile {name!r}: {reason}; use delays or computations")

    def _computing(self, flops: float, name: str) -> float:
        if self._speed is None:
            reason = "it computes, and how fast is not known; give the hosts' speed, like 11.77Gf"
            raise ConfigError(f"{self._path}: profile {name!r}: {reason}", field="speed")
        return flops / self._speed


def sizes(workload: Workload) -> Floats:
    """Hosts that each job asks for, (J,)."""
    return _column(workload, "size")


def submit_times(workload: Workload) -> Floats:
    """When each job is submitted, (J,) seconds."""
    return _column(workload, "submit_time")


def estimates(workload: Workload) -> Floats:
    """What jobs say that they will run, (J,) seconds; nan where they say nothing."""
    if isinstance(workload.jobs, JobColumns):
        known = workload.jobs.estimate
        return np.full(len(workload.jobs), math.nan) if known is None else known
    return np.array([job.estimate for job in workload.jobs], np.float64)


def has_users(workload: Workload) -> bool:
    """Whether a job has a user."""
    if isinstance(workload.jobs, JobColumns):
        return any(workload.jobs.user.used())
    return any(job.user for job in workload.jobs)


def walltimes(workload: Workload) -> Floats:
    """Each job's walltime, (J,) seconds, inf where it has none."""
    return _column(workload, "walltime")


def _column(workload: Workload, field: str) -> Floats:
    if isinstance(workload.jobs, JobColumns):
        return np.array(getattr(workload.jobs, field), np.float64)
    return np.array([getattr(job, field) for job in workload.jobs], np.float64)


def offered_load(workload: Workload, runtimes: Floats) -> float:
    """``sum(size * min(runtime, walltime)) / (nb_res * (last submission - first submission))``.

    The share of the machine's time that the jobs would take if they ran as fast as they come. It is nan where all
    jobs come at once.
    """
    area = float((sizes(workload) * np.minimum(runtimes, walltimes(workload))).sum())
    span = float(np.ptp(submit_times(workload))) if workload.jobs else 0.0
    return area / (workload.nb_res * span) if span > 0 else math.nan


# How many hosts jobs used over time, as it was recorded: the peak, and what would have fitted next to it.

_FEW = 4.0  # times the events: beyond, all jobs of a size are counted at once


class Recorded(NamedTuple):
    """Jobs whose start was recorded. Columns of length n."""

    rows: np.ndarray  # of the workload's jobs
    submit: Floats  # seconds
    start: Floats  # seconds
    run: Floats  # seconds
    size: Floats  # hosts that were allocated, or asked for where that is not known


def recorded(workload: Workload, speed: float | None = None) -> Recorded | None:
    """The jobs whose start is known; None where there are none, or run times are not known."""
    trace = workload.trace
    if trace is None or np.isnan(trace.wait).all():
        return None
    try:
        run = runtimes(workload, speed)
    except ConfigError:
        return None
    if trace.id is not getattr(workload.jobs, "id", None):
        trace = trace.of([job.id for job in workload.jobs])
    rows = np.flatnonzero(~np.isnan(trace.wait))
    if not len(rows):
        return None
    allocated = trace.number("recorded", "size")
    size = np.where(allocated > 0, allocated, sizes(workload))
    submit = submit_times(workload)
    return Recorded(rows, submit[rows], (submit + trace.wait)[rows], run[rows], size[rows])


class Use(NamedTuple):
    """Hosts in use: ``hosts[i]`` from ``time[i]`` until ``time[i + 1]``, none before and after."""

    time: Floats  # (n,) seconds, ascending
    hosts: Floats  # (n,)

    def over(self, machine: float) -> float:
        """The share of the time from the first to the last event with more than `machine` hosts in use."""
        lasts = np.diff(self.time)
        return float(lasts[self.hosts[:-1] > machine].sum() / lasts.sum()) if len(lasts) and lasts.sum() else 0.0


def use_of(jobs: Recorded) -> Use:
    """What jobs used; at one instant ends come before starts."""
    times, where = np.unique(np.concatenate([jobs.start, jobs.start + jobs.run]), return_inverse=True)
    changes = np.bincount(where, weights=np.concatenate([jobs.size, -jobs.size]), minlength=len(times))
    return Use(times, np.cumsum(changes))


def fitted(jobs: Recorded, use: Use, machine: float, closed: Use | None = None) -> float:
    """The share of all waiting during which so many hosts were free as the waiting job had; nan without waiting.

    Nothing fits before the first start.

    Args:
        jobs: all of them.
        use: what they used.
        machine: hosts.
        closed: when hosts were out of order: 1 while nothing can start.
    """
    free = machine - use.hosts
    if closed is not None:
        at = np.searchsorted(closed.time, use.time, side="right") - 1
        free = np.where((at >= 0) & (closed.hosts[at] > 0), -1.0, free)
    fits = np.append(free[:-1], -1.0)  # the last event is an end, after which nobody waits
    begin = np.maximum(jobs.submit, use.time[0])
    end = np.maximum(jobs.start, begin)
    waiting = float(np.maximum(jobs.start - jobs.submit, 0.0).sum())
    if waiting <= 0:
        return float("nan")
    total = 0.0
    order = np.argsort(jobs.size, kind="stable")
    edges = np.flatnonzero(np.diff(jobs.size[order])) + 1
    for rows in np.split(order, edges):
        total += _fitting(begin[rows], end[rows], fits >= jobs.size[rows[0]], use.time)
    return float(min(1.0, total / waiting))


def _fitting(begin: Floats, end: Floats, fits: np.ndarray, time: Floats) -> float:
    """Seconds of all intervals during which it fits."""
    first, last = np.searchsorted(time, begin, side="right") - 1, np.searchsorted(time, end, side="right") - 1
    if (last - first).sum() > _FEW * len(time) or len(begin) > len(time):
        area = np.append(0.0, np.cumsum(np.where(fits[:-1], np.diff(time), 0.0)))
        return float((np.interp(end, time, area) - np.interp(begin, time, area)).sum())
    total = 0.0
    for a, b, i, j in zip(begin.tolist(), end.tolist(), first.tolist(), last.tolist(), strict=True):
        if i == j:
            total += (b - a) * bool(fits[i])
            continue
        inner = np.diff(time[i : j + 1]) * fits[i:j]
        total += float(inner.sum()) - (a - time[i]) * bool(fits[i]) + (b - time[j]) * bool(fits[j])
    return total


# Users' sessions: what a user sent without having seen an end meanwhile, and which ends were before the next one.
#
# Users submit when earlier jobs end, so a replay at fixed times sends jobs that nobody would have sent (Shmueli and
# Feitelson 2009; Zakay and Feitelson 2014). A user's next session begins with the first job that came after own jobs
# had ended since the one before; the think time is what passed since the last of these ends. Jobs of a session keep
# their distances in time.


class Session(NamedTuple):
    """What a user sent after own jobs had ended."""

    jobs: list[int]  # rows of the workload, in order of submission
    offsets: list[float]  # seconds of each after the first
    after: list[int]  # rows of the jobs whose ends it came after
    follows: int  # row of the last job that the user had sent before
    think: float  # seconds from the last of these ends to the first job


class Sessions(NamedTuple):
    """The jobs of a workload by when they come."""

    fixed: Ints  # rows of the jobs that come at their own times: each user's first session, and jobs without a user
    later: Sequence[Session]  # in order of their first submission in the log


def find_sessions(workload: Workload, speed: float | None = None) -> Sessions:
    """The sessions of a log, by its recorded ends.

    Args:
        workload: with recorded starts.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if no start is recorded, or no job has a user.
    """
    jobs = recorded(workload, speed)
    where = workload.path or f"workload {workload.name}"
    if jobs is None:
        raise ConfigError(f"{where}: no start of a job is recorded, so think times are not known", field="feedback")
    if not has_users(workload):
        raise ConfigError(f"{where}: jobs have no users, so there are no sessions", field="feedback")
    submit, end = submit_times(workload), np.full(len(workload.jobs), np.inf)
    end[jobs.rows] = jobs.start + jobs.run
    rows: dict[str, list[int]] = {}
    fixed: list[int] = []
    for row in np.argsort(submit, kind="stable").tolist():
        user = workload.jobs[row].user
        (rows.setdefault(user, []) if user else fixed).append(row)
    later: list[Session] = []
    for of_user in rows.values():
        first, *others = _of_user(np.array(of_user), submit, end)
        fixed += first.jobs
        later += others
    later.sort(key=lambda session: (submit[session.jobs[0]], session.jobs[0]))
    return Sessions(np.sort(np.array(fixed, np.int64)), later)


def _of_user(rows: Ints, submit: Floats, end: Floats) -> list[Session]:
    """The sessions of a user's jobs, which are in order of submission; nothing is before the first."""
    order = rows[np.argsort(end[rows], kind="stable")].tolist()
    ends, times = end[order].tolist(), submit[rows].tolist()
    sessions = [Session([], [], [], -1, 0.0)]
    seen, begin, before = 0, times[0], -1
    for row, time in zip(rows.tolist(), times, strict=True):
        now = seen
        while now < len(ends) and ends[now] <= time:
            now += 1
        if now > seen:
            sessions.append(Session([], [], order[seen:now], before, time - ends[now - 1]))
            seen, begin = now, time
        sessions[-1].jobs.append(row)
        sessions[-1].offsets.append(time - begin)
        before = row
    return sessions


def of_fixed(workload: Workload, sessions: Sessions) -> Workload:
    """The jobs that come at their own times, with what they do; what was recorded of them is left out."""
    jobs = [workload.jobs[row] for row in sessions.fixed.tolist()]
    used = used_profiles(workload.profiles, {job.profile for job in jobs})
    profiles = {name: workload.profiles[name] for name in workload.profiles if name in used}
    return replace(workload, jobs=jobs, profiles=profiles, trace=None)


# A workload's jobs as a table: a pandas DataFrame, and the small one that a notebook shows.

_SHOWN = 5  # jobs
_SAID = ("partition", "account", "group", "qos")


def job_frame(workload: Workload, speed: float | None) -> "DataFrame":
    """The table of jobs that `Workload.to_frame` returns."""
    if find_spec("pandas") is None:
        raise ConfigError(f"tables of jobs need pandas, which is not installed: {how_to_install('analysis')}")
    import pandas

    jobs = columns_of(workload.jobs)
    try:
        seconds = runtimes(workload, speed)
    except ConfigError:
        if speed is not None:
            raise
        seconds = np.full(len(workload.jobs), math.nan)
    columns: dict[str, Any] = {
        "id": [job.partition("!")[2] for job in jobs.id],
        "submit_time": jobs.submit_time,
        "size": jobs.size,
        "runtime": seconds,
        "walltime": jobs.walltime,
        "user": list(jobs.user),
        "profile": list(jobs.profile),
    }
    if workload.trace is not None:
        trace = of_jobs(workload.trace, workload.jobs)
        columns["recorded_wait"] = trace.wait
        columns |= {name: list(trace.texts("request", name)) for name in _SAID if name in trace.request}
    return pandas.DataFrame(columns)


def jobs_html(workload: Workload) -> str:
    """The first jobs, with how many there are."""
    rows = [
        (job.name, f"{job.submit_time:,.10g}", str(job.size), f"{job.walltime:,.10g}", job.profile, job.user)
        for job in workload.jobs[:_SHOWN]
    ]
    header = ("id", "submit_time", "size", "walltime", "profile", "user")
    return Table(f"{repr(workload).strip('<>')}; the first {len(rows)} of them", header, rows).html()
