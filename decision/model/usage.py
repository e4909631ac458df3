"""How many hosts jobs used over time, as it was recorded: the peak, and what would have fitted next to it."""

from typing import NamedTuple

import numpy as np

from .demand import runtimes, sizes, submit_times
from .errors import ConfigError
from .record import Floats
from .workload import Workload

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
