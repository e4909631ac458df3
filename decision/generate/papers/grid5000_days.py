"""Days like those of three clusters of Grid'5000, as DeepScheduling describes its traces (its Table 1).

The traces themselves are not public. Published are, for orion, graphite and econome: cores, months, jobs, the share
of sequential submissions (less than 5 minutes after the one before), the utilization, and how many days fall into
each of five groups "as function of the occurrences of sequential job submissions on that day", of the days with at
least two submissions. All of it is met.

Read so: a day's first submission is never sequential, since days are used one by one. The five groups are fifths of
a day's share of sequential submissions: that fits the table, where the jobs' share is above the days' mean share,
because busy days have more of them; the calibration finds by how much. The utilization is the core-seconds that jobs
run, of those that the cores have on these days.

Not published and chosen: work days are busier than weekends, hours follow office hours; a burst of sequential
submissions is of one user, of one size and of similar run times; sizes are cores, or whole nodes; run times are
log-normal; walltimes are round and mostly too long (`decision.generate.jobs`).
"""

import datetime
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.dates import DAY
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints
from decision.model.workload import Workload

from ..jobs import DAY_WEIGHTS, HOUR_WEIGHTS, times_of_area, workload_of, zipf_users

Flags = NDArray[np.bool_]

SEQUENTIAL = 300.0  # seconds; closer submissions are sequential

_FEWEST = (2, 3, 4, 5, 8)  # submissions of a day of each group, such that its share can fall into the group's fifth
_SPREAD, _FURTHEST = 0.8, 2.5  # of the logarithm of submissions per day; and its bound, in standard deviations
_MOST_APART = 240  # submissions of a day that are not sequential: a day has room for 288
_MOST = (270, 360, 540, 1080, 10_000)  # submissions of a day of each group, so that no more need be apart
_MOST_BUSY = 0.5  # share of a day's time that bursts may last


def submissions(
    rng: np.random.Generator, groups: Sequence[int], nb_jobs: int, sequential: float, busy: Floats
) -> tuple[Ints, Ints, Ints]:
    """Days, seconds within the day, and numbers of the burst of all jobs, each (J,), in order of submission.

    Args:
        rng: where choices come from.
        groups: days whose share of sequential submissions is in each fifth.
        nb_jobs: submissions in all.
        sequential: share of them that are sequential.
        busy: (D,) how busy each day is for its weekday, in order of days.
    """
    group = rng.permutation(np.repeat(np.arange(len(groups)), groups))
    spread = np.clip(rng.normal(0.0, 1.0, len(group)), -_FURTHEST, _FURTHEST) * _SPREAD
    place = rng.random(len(group))  # of the share within its fifth
    counts, close = _calibrated(group, busy * np.exp(spread), place, nb_jobs, sequential)
    day = np.repeat(np.arange(len(group)), counts)
    follows = _choose(rng, day, counts, close)
    return day, _seconds(rng, day, counts, follows), np.cumsum(~follows) - 1


def _calibrated(group: Ints, weight: Floats, place: Floats, nb_jobs: int, sequential: float) -> tuple[Ints, Ints]:
    """Submissions and sequential ones of each day: busier groups have more, by the factor that gives the share."""
    low, high = 1.0, 8.0
    for _ in range(50):
        factor = (low + high) / 2
        counts = _share_out(group, weight * factor**group, nb_jobs)
        close = _sequential_ones(group, place, counts)
        low, high = (factor, high) if close.sum() < sequential * nb_jobs else (low, factor)
    return counts, close


def _share_out(group: Ints, weight: Floats, nb_jobs: int) -> Ints:
    """Submissions of each day: at least its group's fewest, the others by weight; the sum is right."""
    fewest, most = np.array(_FEWEST)[group], np.array(_MOST)[group]
    more = weight / weight.sum() * (nb_jobs - fewest.sum())
    for _ in range(20):  # what is cut goes to the other days
        more = np.minimum(more, most - fewest)
        more *= (nb_jobs - fewest.sum()) / more.sum()
    counts = np.floor(np.cumsum(more) + 1e-9).astype(np.int64)
    counts[-1] = nb_jobs - fewest.sum()
    return fewest + np.diff(counts, prepend=0)


def _sequential_ones(group: Ints, place: Floats, counts: Ints) -> Ints:
    """How many of each day's submissions are sequential: a share within the group's fifth."""
    wanted = np.rint((group + place) / len(_FEWEST) * counts).astype(np.int64)
    least = -(-group * counts // len(_FEWEST))
    most = -(-(group + 1) * counts // len(_FEWEST)) - 1
    return np.clip(wanted, np.maximum(least, counts - _MOST_APART), np.minimum(most, counts - 1))


def _choose(rng: np.random.Generator, day: Ints, counts: Ints, close: Ints) -> Flags:
    """(J,) which submissions are sequential: `close` of each day's, never its first."""
    first = np.cumsum(counts) - counts
    draw = rng.random(len(day))
    draw[first] = 2.0
    order = np.lexsort((draw, day))
    rank = np.empty(len(day), np.int64)
    rank[order] = np.arange(len(day)) - first[day]
    return rank < close[day]


def _seconds(rng: np.random.Generator, day: Ints, counts: Ints, follows: Flags) -> Ints:
    """(J,) whole seconds within the day, ascending in it.

    Bursts begin when people work. The time that bursts last, and the five minutes that keep them apart, are taken
    out of the day before their beginnings are drawn, and put back after: so no two bursts become one.
    """
    first = np.cumsum(counts) - counts
    gaps = np.where(follows, SEQUENTIAL * rng.random(len(day)) ** 3, 0.0)  # mostly a few seconds
    apart = np.where(follows, 0.0, SEQUENTIAL)
    apart[first] = 0.0
    separate = np.bincount(day, apart)
    lasting = np.bincount(day, gaps)
    room = DAY - 1.0 - separate
    gaps = np.floor(gaps * np.minimum(1.0, _MOST_BUSY * room / np.maximum(lasting, 1.0))[day])
    free = room - np.bincount(day, gaps)
    hours = np.concatenate(([0.0], np.cumsum(HOUR_WEIGHTS))) / sum(HOUR_WEIGHTS)
    begins = np.floor(np.interp(rng.random(len(day)), hours, np.arange(25) / 24) * free[day])
    starts = _sorted_within(day, begins, follows)
    passed = np.cumsum(gaps + apart)
    return (starts + passed - (passed - gaps - apart)[first][day]).astype(np.int64)


def _sorted_within(day: Ints, begins: Floats, follows: Flags) -> Floats:
    """The beginnings of bursts in ascending order in each day, each repeated for the burst's submissions."""
    heads = np.flatnonzero(~follows)
    ordered = begins[heads][np.lexsort((begins[heads], day[heads]))]
    return ordered[np.cumsum(~follows) - 1]


GROUPS = 5


class PublishedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What is published of a cluster's trace."""

    nodes: int
    cores_per_node: int
    first: datetime.date
    last: datetime.date
    jobs: int
    sequential: float  # share of the jobs
    utilization: float
    groups: tuple[int, ...]  # days

    @property
    def cores(self) -> int:
        """Cores of the cluster: the workload's hosts."""
        return self.nodes * self.cores_per_node

    @property
    def days(self) -> int:
        """Days with at least two submissions."""
        return sum(self.groups)


_END = datetime.date(2019, 10, 31)
PUBLISHED_TRACES = {
    "orion": PublishedTrace(
        nodes=4,
        cores_per_node=12,
        first=datetime.date(2012, 10, 1),
        last=_END,
        jobs=66_005,
        sequential=0.397,
        utilization=0.627,
        groups=(659, 777, 496, 129, 28),
    ),
    "graphite": PublishedTrace(
        nodes=4,
        cores_per_node=16,
        first=datetime.date(2013, 12, 1),
        last=_END,
        jobs=60_786,
        sequential=0.560,
        utilization=0.473,
        groups=(487, 705, 427, 149, 24),
    ),
    "econome": PublishedTrace(
        nodes=22,
        cores_per_node=16,
        first=datetime.date(2014, 4, 1),
        last=_END,
        jobs=66_557,
        sequential=0.668,
        utilization=0.576,
        groups=(259, 520, 504, 271, 39),
    ),
}

_NB_USERS = 120
_SIGMA_USER, _SIGMA_BURST, _SIGMA_JOB = 0.7, 1.2, 0.4  # spread of the logarithm of run times
_LONGEST = 62 * 3600.0  # seconds: a weekend
_SOME_CORES, _FEWER_NODES = 0.35, 0.5  # share of bursts on less than a node; of those on n + 1 nodes to those on n


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What can be compared with the published table."""

    jobs: int
    days: int  # with at least two submissions
    sequential: float  # share of the jobs
    utilization: float
    groups: tuple[int, ...]  # days


def grid5000_days(rng: np.random.Generator, trace: PublishedTrace, days: slice | None = None) -> Workload:
    """The jobs of a trace's days, or of some of the days that have any, on the cluster's cores.

    Times are seconds since midnight of the first of those days; `unix_start` says which day that was.

    Args:
        rng: where choices come from.
        trace: what is to be met.
        days: which of the days with submissions, counted from 0; a part meets the figures only roughly.

    Raises:
        ConfigError: if `days` leaves none.
    """
    wanted = np.arange(trace.days)[days or slice(None)]
    if not len(wanted):
        raise ConfigError(f"no day is left; the trace has {trace.days:,} days with submissions, counted from 0")
    dates = _dates(rng, trace)
    day, within, burst = submissions(rng, trace.groups, trace.jobs, trace.sequential, _busy(trace, dates))
    users, cores, shape = _bursts(rng, trace, burst)
    area = trace.utilization * trace.cores * DAY * trace.days
    lasting, limits = times_of_area(rng, shape, cores, area, _LONGEST)
    kept = (day >= wanted[0]) & (day <= wanted[-1])
    begin = int(dates[wanted[0]])
    workload = workload_of(
        ((dates[day] - begin) * DAY + within)[kept].astype(np.float64),
        cores[kept],
        lasting[kept],
        trace.cores,
        walltimes=limits[kept],
        users=[f"u{user:03d}" for user in users[kept].tolist()],
    )
    midnight = datetime.datetime.combine(trace.first, datetime.time(), datetime.UTC).timestamp() + begin * DAY
    return msgspec.structs.replace(workload, unix_start=midnight)


def trace_figures(workload: Workload, cores: int) -> Figures:
    """The table's figures of a workload whose 0 s is a midnight and whose jobs are in order of submission."""
    submit = submit_times(workload)
    areas = sizes(workload) * np.minimum(runtimes(workload), walltimes(workload))
    day = submit // DAY
    sequential = np.concatenate(([False], (np.diff(submit) < SEQUENTIAL) & (np.diff(day) == 0)))
    _, which, counts = np.unique(day, return_inverse=True, return_counts=True)
    used = counts >= 2
    share = np.bincount(which, sequential)[used] / counts[used]
    groups = np.bincount(np.minimum((share * GROUPS).astype(np.int64), GROUPS - 1), minlength=GROUPS)
    kept = used[which]
    return Figures(
        jobs=int(kept.sum()),
        days=int(used.sum()),
        sequential=float(sequential[kept].mean()),
        utilization=float(areas[kept].sum() / (cores * DAY * used.sum())),
        groups=tuple(groups.tolist()),
    )


def _dates(rng: np.random.Generator, trace: PublishedTrace) -> Ints:
    """The days with submissions, ascending, counted from the trace's first; weekends are often without."""
    count = (trace.last - trace.first).days + 1
    weights = _busy(trace, np.arange(count))
    return np.sort(rng.choice(count, trace.days, replace=False, p=weights / weights.sum()))


def _busy(trace: PublishedTrace, dates: Ints) -> Floats:
    """How busy each day is for its day of the week."""
    return np.array(DAY_WEIGHTS)[(dates + trace.first.weekday()) % 7]


def _bursts(rng: np.random.Generator, trace: PublishedTrace, burst: Ints) -> tuple[Ints, Ints, Floats]:
    """The user, size and relative run time of each job (J,), given the number of its burst."""
    count = int(burst.max()) + 1
    users = zipf_users(rng, _NB_USERS, count)
    nodes = np.minimum(rng.geometric(1 - _FEWER_NODES, count), trace.nodes)
    some = rng.integers(1, trace.cores_per_node, count)
    cores = np.where(rng.random(count) < _SOME_CORES, some, nodes * trace.cores_per_node)
    medians = rng.normal(0.0, _SIGMA_USER, _NB_USERS)[users] + rng.normal(0.0, _SIGMA_BURST, count)
    shape = np.exp(medians[burst] + rng.normal(0.0, _SIGMA_JOB, len(burst)))
    return users[burst], cores[burst], shape
