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
submissions is of one user, of one size and of similar walltimes; sizes are cores, or whole nodes. Walltimes are round
and log-normal, shorter on days with many submissions and for jobs on many nodes. What a job uses of its walltime has
the quantiles of real jobs of Grid'5000's taurus: 1 % or less of it for one in ten, 30 % in the median, and three in ten
are stopped by it. What then lacks of the utilization is in reservations for the night: the last submission of a day,
for half of the nodes or more.
"""

import datetime

import msgspec
import numpy as np

from decision.model.dates import DAY, GROUPS, SEQUENTIAL
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints
from decision.model.workload import Workload

from ..jobs import DAY_WEIGHTS, workload_of, zipf_users
from .grid5000_submissions import submissions
from .grid5000_traces import PublishedTrace

_NB_USERS = 120
_WALLTIMES = 60.0 * np.array(  # seconds
    (
        *(1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300),
        *(360, 480, 600, 720, 840, 960, 1200, 1440, 2160, 2880, 3720),
    )
)
_OVERRUN = 60.0  # seconds that jobs lack that are stopped by their walltime: three in ten
_USE = (
    (0.0, 0.05, 0.1, 0.25, 0.5, 0.65, 0.7),
    (0.001, 0.004, 0.01, 0.03, 0.3, 0.7, 1.0),
)  # quantiles of the used share of the walltime; 1 from 0.7 on
_MEDIAN_USE = 0.3
_NIGHT_SPREAD = 0.4  # of the logarithm of walltimes of reservations for the night
_SHORTEST_NIGHT, _LONGEST_NIGHT = 3600.0, 62 * 3600.0  # seconds; the longest is a weekend


class TraceFigures(msgspec.Struct, frozen=True, kw_only=True):
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
    users, cores, limits, use = _bursts(rng, trace, day, burst)
    _reserve_nights(rng, trace, day, burst, cores, limits, use)
    lasting = np.where(use < 1.0, np.maximum(np.rint(use * limits / 60.0), 1.0) * 60.0, limits + _OVERRUN)
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


def trace_figures(workload: Workload, cores: int) -> TraceFigures:
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
    return TraceFigures(
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


def _bursts(
    rng: np.random.Generator, trace: PublishedTrace, day: Ints, burst: Ints
) -> tuple[Ints, Ints, Floats, Floats]:
    """The user, size, walltime and used share of it, of each job (J,), given its day and the number of its burst."""
    habits, count = trace.habits, int(burst.max()) + 1
    users = zipf_users(rng, _NB_USERS, count)
    nodes = np.minimum(rng.geometric(1 - habits.wider, count), trace.nodes)
    some = rng.integers(1, trace.cores_per_node, count)
    cores = np.where(rng.random(count) < habits.parts, some, nodes * trace.cores_per_node)
    long = rng.normal(0.0, habits.user_spread, _NB_USERS)[users] + rng.normal(0.0, habits.burst_spread, count)
    long -= habits.haste * np.log(np.maximum(cores / trace.cores_per_node, 1.0))
    crowd = np.bincount(day)[day]
    each = long[burst] + rng.normal(0.0, habits.job_spread, len(burst))
    each -= habits.crowding * np.log(crowd / np.median(crowd))
    wanted = np.clip(habits.typical * np.exp(each), _WALLTIMES[0], _WALLTIMES[-1])
    limits = _WALLTIMES[np.searchsorted(_WALLTIMES, wanted * (1 - 1e-9))]
    place = np.where(rng.random(len(burst)) < habits.alike, rng.random(count)[burst], rng.random(len(burst)))
    use = np.exp(np.interp(place, _USE[0], np.log(_USE[1])))
    return users[burst], cores[burst], limits, use


def _reserve_nights(
    rng: np.random.Generator, trace: PublishedTrace, day: Ints, burst: Ints, cores: Ints, limits: Floats, use: Floats
) -> None:
    """Let days end with a reservation for the night, so that the area of all jobs is right; changes the last three."""
    last = np.append(day[1:] != day[:-1], True) & np.append(True, burst[1:] != burst[:-1])
    night = np.flatnonzero(last & (rng.random(len(day)) < trace.habits.nights))
    least = max(trace.nodes // 2, 1)
    cores[night] = rng.integers(least, trace.nodes + 1, len(night)) * trace.cores_per_node
    use[night] = np.where(use[night] < _MEDIAN_USE, 1.0, use[night])
    area = trace.utilization * trace.cores * DAY * trace.days
    others = np.ones(len(day), bool)
    others[night] = False
    left = area - (cores * np.maximum(np.rint(use * limits / 60.0), 1.0) * 60.0)[others].sum()
    shape = np.exp(rng.normal(0.0, _NIGHT_SPREAD, len(night)))
    low, high = 0.0, 1e9
    for _ in range(60):
        scale = (low + high) / 2
        lasts = np.clip(shape * scale, _SHORTEST_NIGHT, _LONGEST_NIGHT)
        low, high = (scale, high) if (lasts * use[night] * cores[night]).sum() < left else (low, scale)
    limits[night] = np.rint(lasts / 60.0) * 60.0
