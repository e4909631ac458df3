"""Workloads for another machine or at another load: sizes scaled, and users drawn again by whole weeks."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from .column import labelled
from .columns import JobColumns, columns_of
from .dates import DAY
from .demand import Floats, offered_load, runtimes, sizes, submit_times
from .errors import ConfigError
from .workload import Job, Workload

_WEEK = 7.0 * DAY
_MOST_USERS = 100  # times those that there are


def at_sizes(workload: Workload, hosts: int) -> Workload:
    """The same jobs for a machine of so many hosts: sizes times its hosts over those of now, rounded, at least 1."""
    if hosts < 1:
        raise ConfigError(f"scale_sizes: must be at least 1; found {hosts}", field="scale_sizes")
    before = sizes(workload)
    after = np.clip(np.floor(before * (hosts / workload.nb_res) + 0.5), 1, hosts).astype(np.int32)
    shares = f"powers of two were {powers(before)} of the sizes, and are {powers(after)}"
    said = f"sizes scaled from {workload.nb_res:,} to {hosts:,} hosts: {shares}"
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobColumns):
        jobs = workload.jobs.replaced(size=after, source=None)
    else:
        pairs = zip(workload.jobs, after.tolist(), strict=True)
        jobs = tuple(replace(job, size=size, source=None) for job, size in pairs)
    trace = None if workload.trace is None else workload.trace.without_times()
    return replace(workload, jobs=jobs, nb_res=hosts, trace=trace, notes=(*workload.notes, said))


def powers(size: NDArray[Any]) -> str:
    """The share of sizes that are powers of two, in percent."""
    whole = size.astype(np.int64)
    return f"{100 * float(((whole & (whole - 1)) == 0).mean()):.1f} %"


def at_load_by_users(workload: Workload, load: float, seed: int, speed: float | None = None) -> Workload:
    """Users drawn from those of a log, each with all of its jobs, moved by whole weeks, until the offered load is met.

    Daily and weekly cycles stay, and so do each user's sessions (Zakay and Feitelson 2013). Jobs that come after the
    log's last week come in its first one. A user may come twice; the last one is drawn where it brings the load nearer.

    Args:
        workload: jobs with users.
        load: offered load, as `decision.model.demand.offered_load` defines it.
        seed: of the draws.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if jobs have no users, or come within less than two weeks.
    """
    jobs = columns_of(workload.jobs)
    users, which = np.unique(list(jobs.user), return_inverse=True)
    submit = submit_times(workload)
    first = float(submit.min())
    weeks = math.ceil((float(submit.max()) - first) / _WEEK)
    if not any(users) or len(users) < 2:
        raise ConfigError(f"{workload.path}: jobs have no users, so users cannot be drawn", field="load_by")
    if weeks < 2:
        raise ConfigError(
            f"{workload.path}: its jobs come within two weeks, too few to move users by weeks", field="load"
        )
    area = np.bincount(which, weights=sizes(workload) * runtimes(workload, speed)).astype(np.float64)
    wanted = load / offered_load(workload, runtimes(workload, speed)) * float(area.sum())
    drawn = _draw(area, wanted, np.random.default_rng(seed))
    rng = np.random.default_rng([seed, 1])
    rows = [np.flatnonzero(which == user) for user in drawn]
    moved = [(submit[own] - first + _WEEK * rng.integers(weeks)) % (_WEEK * weeks) + first for own in rows]
    return _taken(workload, jobs, rows, moved)


def _draw(area: Floats, wanted: float, rng: np.random.Generator) -> list[int]:
    """Users in a random order, again and again, until their host-seconds are as near as possible to those wanted."""
    drawn: list[int] = []
    total = 0.0
    while len(drawn) < _MOST_USERS * len(area):
        for user in rng.permutation(len(area)).tolist():
            if abs(total + area[user] - wanted) <= abs(total - wanted):
                drawn.append(user)
                total += area[user]
        if total >= wanted or wanted - total < area.min():
            return drawn
    return drawn


def _taken(workload: Workload, jobs: JobColumns, rows: list[np.ndarray], moved: list[Floats]) -> Workload:
    """The jobs of these users at these times; a user's second copy is a user of its own."""
    if not rows:
        raise ConfigError(f"{workload.path}: the load is less than that of any of its users", field="load")
    seen: dict[str, int] = {}
    names: list[str] = []
    for own in rows:
        user = jobs.user[int(own[0])]
        seen[user] = seen.get(user, 0) + 1
        names += [user if seen[user] == 1 else f"{user}-{seen[user]}"] * len(own)
    chosen, times = np.concatenate(rows), np.concatenate(moved)
    order = np.argsort(times, kind="stable")
    taken = jobs.take(chosen[order])
    numbers = [f"{workload.name}!{number}" for number in range(1, len(order) + 1)]
    made = taken.replaced(
        id=labelled(numbers), submit_time=times[order], user=labelled([names[at] for at in order.tolist()]), source=None
    )
    return replace(workload, jobs=made, trace=None)


SHAKE = 60.0  # seconds, at most


def shake_of(submit: Floats) -> float:
    """By up to how many seconds `shaken` moves jobs that are submitted at these times (n,), seconds.

    A minute is the package's choice: far below the time in which users react to each other or to the machine, and far
    above the seconds in which one job's end meets another's arrival. Where jobs come more often than once a minute it
    is the mean time between two, so that a short log keeps its shape.
    """
    return min(SHAKE, float(np.ptp(submit)) / max(len(submit) - 1, 1)) if len(submit) else 0.0


def shaken(workload: Workload, copy: int) -> Workload:
    """A copy of the workload whose jobs are submitted later by a uniform random time of up to `shake_of` seconds each.

    Input shaking (Tsafrir, Ouaknine and Feitelson, MASCOTS 2007): what a schedule comes to can depend on a second, and
    the copies say by how much.

    Args:
        workload: jobs in any order.
        copy: its number, which alone says how jobs are moved; 0 moves none.
    """
    if copy == 0:
        return workload
    jobs = columns_of(workload.jobs)
    moved = jobs.submit_time + np.random.default_rng([copy, 20070]).uniform(0.0, 1.0, len(jobs)) * shake_of(
        jobs.submit_time
    )
    order = np.argsort(moved, kind="stable")
    return replace(workload, jobs=jobs.take(order).replaced(submit_time=moved[order], source=None), trace=None)
