"""What a workload asks of its machine: the run times of its jobs, and the offered load."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .columns import DelayProfiles, JobColumns
from .columns import worth_rows as rows_of_worth
from .errors import ConfigError
from .record import BatteryTable, Context, Floats, RateTable, SupplyTable, WorthTable
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
)

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
            said = np.flatnonzero(~np.isnan(given[:, [VALUE, DEADLINE]]).all(axis=1))
            ids += [workload.jobs[row].id for row in said.tolist()]
            rows.append(given[said])
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
    said = [(event.timestamp, event.value) for event in events if event.type == kind]
    if not said:
        return None
    time, rate = zip(*sorted(said, key=itemgetter(0)), strict=True)
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


def told(estimate: Floats | float) -> Floats:
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
        own = workload.jobs.estimate
        return np.full(len(workload.jobs), math.nan) if own is None else own
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
