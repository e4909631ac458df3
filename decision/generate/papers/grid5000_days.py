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
log-normal; walltimes are round and mostly too long (`decision.generate.habits`).
"""

import datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.dates import DAY
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.workload import Workload

from ..habits import DAY_WEIGHTS, times_of_area, zipf_users
from ..jobs import workload_of
from .bursts import SEQUENTIAL, submissions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GROUPS = 5


class Trace(msgspec.Struct, frozen=True, kw_only=True):
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
TRACES = {
    "orion": Trace(
        nodes=4,
        cores_per_node=12,
        first=datetime.date(2012, 10, 1),
        last=_END,
        jobs=66_005,
        sequential=0.397,
        utilization=0.627,
        groups=(659, 777, 496, 129, 28),
    ),
    "graphite": Trace(
        nodes=4,
        cores_per_node=16,
        first=datetime.date(2013, 12, 1),
        last=_END,
        jobs=60_786,
        sequential=0.560,
        utilization=0.473,
        groups=(487, 705, 427, 149, 24),
    ),
    "econome": Trace(
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


def grid5000_days(rng: np.random.Generator, trace: Trace, days: slice | None = None) -> Workload:
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


def figures(workload: Workload, cores: int) -> Figures:
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


def _dates(rng: np.random.Generator, trace: Trace) -> Ints:
    """The days with submissions, ascending, counted from the trace's first; weekends are often without."""
    count = (trace.last - trace.first).days + 1
    weights = _busy(trace, np.arange(count))
    return np.sort(rng.choice(count, trace.days, replace=False, p=weights / weights.sum()))


def _busy(trace: Trace, dates: Ints) -> Floats:
    """How busy each day is for its day of the week."""
    return np.array(DAY_WEIGHTS)[(dates + trace.first.weekday()) % 7]


def _bursts(rng: np.random.Generator, trace: Trace, burst: Ints) -> tuple[Ints, Ints, Floats]:
    """The user, size and relative run time of each job (J,), given the number of its burst."""
    count = int(burst.max()) + 1
    users = zipf_users(rng, _NB_USERS, count)
    nodes = np.minimum(rng.geometric(1 - _FEWER_NODES, count), trace.nodes)
    some = rng.integers(1, trace.cores_per_node, count)
    cores = np.where(rng.random(count) < _SOME_CORES, some, nodes * trace.cores_per_node)
    medians = rng.normal(0.0, _SIGMA_USER, _NB_USERS)[users] + rng.normal(0.0, _SIGMA_BURST, count)
    shape = np.exp(medians[burst] + rng.normal(0.0, _SIGMA_JOB, len(burst)))
    return users[burst], cores[burst], shape
