"""What is odd in a log, proposed and not changed: flurries, empty days, changes of the machine, users of one burst.

A flurry is a surge of much alike jobs of one user (Tsafrir and Feitelson 2006): here jobs of a user with gaps of under
an hour, at least 500, at least half of all jobs that came meanwhile, four of five of one size.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from decision.model.dates import DAY, day_name, days, midnight
from decision.model.demand import Recorded, Use, fitted, recorded, runtimes, sizes, submit_times, use_of
from decision.model.record import Floats
from decision.model.workload import Workload

_GAP = 3600.0  # seconds between jobs of a flurry, at most
_LEAST = 500  # jobs
SHARE = 0.5  # of all jobs meanwhile
ALIKE = 0.8  # of the flurry's jobs: of one size
_HOUR = 3600.0
_STEP = 0.2  # of the peak: a change of a machine's use from one month to the next
_MONTH = 30 * DAY
_BURST = 7 * DAY


class Flurry(msgspec.Struct, frozen=True, kw_only=True):
    """A surge of jobs of one user."""

    user: str
    first: str  # job
    last: str  # job
    jobs: int
    hours: float
    share_of_jobs: float  # of all jobs of the log
    share_of_host_seconds: float
    alike: float  # share of its jobs that have the commonest size
    alike_in_time: float  # share of its jobs that have the commonest run time, to a minute


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """A user whose jobs all came within a week."""

    user: str
    jobs: int
    hours: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the peak of hosts in use from one 30 days to the next."""

    day: str
    before: int  # hosts
    after: int  # hosts


class Oddities(msgspec.Struct, frozen=True, kw_only=True):
    """What is odd in a log."""

    flurries: list[Flurry]
    days_without_jobs: list[str]
    changes: list[Step]
    over_machine: list[str]  # jobs that were given more hosts than the machine has
    bursts: list[Burst]

    def filters(self) -> list[str]:
        """The flurries as filters of the archive's language."""
        return [f"user={flurry.user} and (job>={flurry.first} and job<={flurry.last})" for flurry in self.flurries]


class _Jobs(NamedTuple):
    """Jobs in order of submission."""

    name: list[str]
    user: list[str]
    submit: Floats
    size: Floats
    run: Floats


def find_oddities(workload: Workload, speed: float | None = None) -> Oddities:
    """What is odd in a log.

    Args:
        workload: as it was read.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if a run time is not known.
    """
    order = np.argsort(submit_times(workload), kind="stable")
    listed = [workload.jobs[row] for row in order.tolist()]
    jobs = _Jobs(
        [job.name for job in listed],
        [job.user for job in listed],
        submit_times(workload)[order],
        sizes(workload)[order],
        runtimes(workload, speed)[order],
    )
    return Oddities(
        flurries=_flurries(jobs),
        days_without_jobs=_empty_days(workload),
        changes=_changes(workload),
        over_machine=_over(workload),
        bursts=_bursts(jobs),
    )


def _flurries(jobs: _Jobs) -> list[Flurry]:
    rows: dict[str, list[int]] = {}
    for row, user in enumerate(jobs.user):
        if user:
            rows.setdefault(user, []).append(row)
    found = []
    for user, own in rows.items():
        if len(own) < _LEAST:
            continue
        gaps = np.flatnonzero(np.diff(jobs.submit[own]) >= _GAP) + 1
        for part in np.split(np.array(own), gaps):
            if len(part) >= _LEAST and (flurry := _flurry(jobs, user, part)) is not None:
                found.append((int(part[0]), flurry))
    return [flurry for _, flurry in sorted(found, key=lambda pair: pair[0])]


def _flurry(jobs: _Jobs, user: str, rows: np.ndarray) -> Flurry | None:
    meanwhile = int(rows[-1] - rows[0]) + 1
    alike = Counter(jobs.size[rows].tolist()).most_common(1)[0][1] / len(rows)
    if len(rows) < SHARE * meanwhile or alike < ALIKE:
        return None
    minutes = np.round(jobs.run[rows] / 60.0).tolist()
    area = jobs.size * jobs.run
    return Flurry(
        user=user,
        first=jobs.name[rows[0]],
        last=jobs.name[rows[-1]],
        jobs=len(rows),
        hours=float(jobs.submit[rows[-1]] - jobs.submit[rows[0]]) / _HOUR,
        share_of_jobs=len(rows) / len(jobs.user),
        share_of_host_seconds=float(area[rows].sum() / area.sum()),
        alike=alike,
        alike_in_time=Counter(minutes).most_common(1)[0][1] / len(rows),
    )


def _empty_days(workload: Workload) -> list[str]:
    busy = np.unique(days(workload))
    return [day_name(workload, day) for day in range(int(busy[0]), int(busy[-1])) if day not in set(busy.tolist())]


def _changes(workload: Workload) -> list[Step]:
    """Steps of the peak in use, by 30 days."""
    jobs = recorded(workload)
    if jobs is None:
        return []
    use = use_of(jobs)
    first = midnight(workload, int(days(workload).min()))
    month = np.floor((use.time - first) / _MONTH).astype(np.int64)
    peaks = {int(each): float(use.hosts[month == each].max()) for each in np.unique(month) if each >= 0}
    found = []
    for each, peak in peaks.items():
        before = peaks.get(each - 1)
        if before and abs(peak - before) > _STEP * max(peaks.values()):
            name = day_name(workload, int(days(workload).min()) + 30 * each)
            found.append(Step(day=name, before=int(before), after=int(peak)))
    return found


def _over(workload: Workload) -> list[str]:
    jobs = recorded(workload)
    size = sizes(workload)
    if jobs is not None:
        size[jobs.rows] = np.maximum(size[jobs.rows], jobs.size)
    return [workload.jobs[row].name for row in np.flatnonzero(size > workload.nb_res).tolist()]


def _bursts(jobs: _Jobs) -> list[Burst]:
    users, which, counts = np.unique(jobs.user, return_inverse=True, return_counts=True)
    first = np.full(len(users), np.inf)
    last = np.full(len(users), -np.inf)
    np.minimum.at(first, which, jobs.submit)
    np.maximum.at(last, which, jobs.submit)
    rows = np.flatnonzero((counts >= _LEAST) & (last - first <= _BURST))
    return [
        Burst(user=str(users[row]), jobs=int(counts[row]), hours=float(last[row] - first[row]) / _HOUR)
        for row in rows.tolist()
        if users[row]
    ]


# Intervals in which a machine looks out of order: nothing started, jobs that fitted waited, and few were running.

_LEAST_OUTAGE = 3600.0  # seconds without a start
FEW = 0.5  # of the median of running jobs


class Outage(NamedTuple):
    """An interval, seconds of the workload."""

    begin: float
    end: float
    hosts: int  # that nothing used at the beginning


def find_outages(jobs: Recorded, machine: int) -> list[Outage]:
    """Intervals of an hour or more in which nothing started though a job that fitted waited, and few were running.

    Few are fewer than half the median over the time from the first start to the last end.
    """
    use, running = use_of(jobs), use_of(jobs._replace(size=np.ones(len(jobs.size))))
    few = FEW * _median(running)
    starts = np.unique(jobs.start)
    found = []
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin < _LEAST_OUTAGE:
            continue
        quiet = _first_quiet(running, begin, end, few)
        if end - quiet < _LEAST_OUTAGE:
            continue
        waited = jobs.size[(jobs.submit <= end - _LEAST_OUTAGE) & (jobs.start >= end)]
        free = machine - float(use.hosts[np.searchsorted(use.time, quiet, side="right") - 1])
        if len(waited) and waited.min() <= free:
            found.append(Outage(quiet, end, int(free)))
    return found


def _median(running: Use) -> float:
    """The median of running hosts over time, each value weighted by how long it held."""
    lasts = np.diff(running.time)
    order = np.argsort(running.hosts[:-1], kind="stable")
    passed = np.cumsum(lasts[order])
    return float(running.hosts[:-1][order][np.searchsorted(passed, passed[-1] / 2)]) if len(lasts) else 0.0


def _first_quiet(running: Use, begin: float, end: float, few: float) -> float:
    """Since when fewer jobs than `few` run until `end`; `end` if never."""
    first, last = np.searchsorted(running.time, [begin, end], side="right") - 1
    quiet = np.flatnonzero(running.hosts[first:last] < few)
    return max(begin, float(running.time[first + quiet[0]])) if len(quiet) else end


def fitted_beside(jobs: Recorded, machine: int, outages: Sequence[Outage]) -> tuple[float, float]:
    """The share of waiting next to enough free hosts, as it is, and where nothing fits during outages."""
    use = use_of(jobs)
    edges: Floats = np.array([time for each in outages for time in (each.begin, each.end)])
    if not len(edges):
        return fitted(jobs, use, machine), fitted(jobs, use, machine)
    times = np.union1d(use.time, edges)
    hosts = use.hosts[np.searchsorted(use.time, times, side="right") - 1]
    finer = Use(times, np.where(times < use.time[0], 0.0, hosts))
    closed = Use(edges, np.tile([1.0, 0.0], len(outages)))
    return fitted(jobs, use, machine), fitted(jobs, finer, machine, closed)
