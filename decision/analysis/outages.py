"""Intervals in which a machine looks out of order: nothing started, jobs that fitted waited, and few were running."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.model.record import Floats
from decision.model.usage import Recorded, Use, fitted, use_of

_LEAST = 3600.0  # seconds without a start
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
        if end - begin < _LEAST:
            continue
        quiet = _first_quiet(running, begin, end, few)
        if end - quiet < _LEAST:
            continue
        waited = jobs.size[(jobs.submit <= end - _LEAST) & (jobs.start >= end)]
        free = machine - float(use.hosts[np.searchsorted(use.time, quiet, side="right") - 1])
        if len(waited) and waited.min() <= free:
            found.append(Outage(quiet, end, int(free)))
    return found


def _median(running: Use) -> float:
    """The median over time."""
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
