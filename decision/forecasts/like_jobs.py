"""The forecast that needs no scheduler: how long like jobs waited in the last four weeks."""

import numpy as np

from decision.compiling.bundle import F8, I8

from .history import SEVEN_DAYS, KnownJobs
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
    said = np.zeros((len(rows), len(KEPT_LEVELS)))
    for place, row in enumerate(rows.tolist()):
        waited = at - log.submit[row]
        longer = waits > waited
        same_size = longer & (np.abs(size - sizes[row]) <= 1)
        alike = same_size & (np.abs(limit - limits[row]) <= 1)
        for chosen in (alike, same_size, longer):
            if chosen.sum() >= _FEWEST or chosen is longer:
                break
        found = waits[chosen] - waited
        said[place] = np.quantile(found, KEPT_LEVELS) if len(found) else waited
    return said


def _octaves(values: F8 | I8) -> F8:
    return np.floor(np.log2(np.clip(values, 1, 1e9)))
