"""What can be known of waits without a scheduler: how long like jobs waited, and what the queue is like."""

import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.dates import DAY

from .history import HOUR, SEVEN_DAYS, UNDER_WAY, WAITS, KnownJobs
from .judge import KEPT_LEVELS

_FOUR_WEEKS = 4 * SEVEN_DAYS
_FEWEST = 8  # like jobs that are enough


def like_jobs(log: KnownJobs, at: float, rows: I8) -> F8:
    """Waits of like jobs that started in the last four weeks: half or twice the size and limit, else the size, else
    all; of them those that waited longer than the job already has."""
    recent = np.flatnonzero((log.start <= at) & (log.start > at - _FOUR_WEEKS))
    waits = (log.start - log.submit)[recent]
    size, limit = _octaves(log.size)[recent], _octaves(log.limit)[recent]
    sizes, limits = _octaves(log.size), _octaves(log.limit)
    quantiles = np.zeros((len(rows), len(KEPT_LEVELS)))
    for place, row in enumerate(rows.tolist()):
        waited = at - log.submit[row]
        longer = waits > waited
        same_size = longer & (np.abs(size - sizes[row]) <= 1)
        alike = same_size & (np.abs(limit - limits[row]) <= 1)
        for chosen in (alike, same_size, longer):
            if chosen.sum() >= _FEWEST or chosen is longer:
                break
        found = waits[chosen] - waited
        quantiles[place] = np.quantile(found, KEPT_LEVELS) if len(found) else waited
    return quantiles


def _octaves(values: F8 | I8) -> F8:
    return np.floor(np.log2(np.clip(values, 1, 1e9)))


def queue_features(log: KnownJobs, at: float, rows: I8) -> F8:
    """What is known of the queue at a moment, for each job.

    Returns:
        (n, 10) hosts, limit (seconds, 30 days without one), seconds waited, jobs ahead in order of submission and their
        hosts x limits, jobs that run, their hosts, their hosts x the rest of their limits, hour and weekday.
    """
    states = log.states(at)
    waiting, running = np.flatnonzero(states == WAITS), np.flatnonzero(states == UNDER_WAY)
    limit = np.minimum(log.limit, 30 * DAY)
    work = log.size[waiting] * limit[waiting]
    left = np.maximum(0.0, log.start[running] + limit[running] - at)
    ahead = np.searchsorted(waiting, rows)
    before = np.concatenate([[0.0], np.cumsum(work)])[ahead]
    shared = (len(running), log.size[running].sum(), (log.size[running] * left).sum(), at / HOUR % 24, at / DAY % 7)
    own = np.column_stack([log.size[rows], limit[rows], at - log.submit[rows], ahead, before])
    return np.column_stack([own, np.repeat([shared], len(rows), axis=0)]).astype(float)
