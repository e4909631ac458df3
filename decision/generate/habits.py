"""What made workloads without a published model share: when people work, who submits, and how long jobs run.

The numbers are plausible and fitted to no log.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY_WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.9, 0.35, 0.3)  # how busy Monday to Sunday are
HOUR_WEIGHTS = (2, 1, 1, 1, 1, 1, 2, 4, 8, 11, 12, 11, 8, 11, 12, 12, 11, 9, 7, 5, 4, 4, 3, 3)  # from midnight

_TOO_SHORT = 0.03  # share of jobs whose walltime stops them
_SHORTEST = 5.0  # seconds
_WALLTIMES = 60.0 * np.array([5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320])  # seconds


def zipf_users(rng: np.random.Generator, nb_users: int, count: int) -> Ints:
    """(count,) users from 0: few users submit most (Zipf's law)."""
    weights = 1 / np.arange(1, nb_users + 1)
    return rng.choice(nb_users, count, p=weights / weights.sum())


def times_of_area(
    rng: np.random.Generator, shape: Floats, sizes: Ints, area: float, longest: float
) -> tuple[Floats, Floats]:
    """Run times in whole seconds and round walltimes, most of them too long, a few too short.

    Args:
        rng: where choices come from.
        shape: (J,) how long jobs run, relative to each other.
        sizes: (J,) hosts.
        area: host-seconds that the jobs run in all, until their walltimes.
        longest: the longest run time, seconds.
    """
    factor = rng.uniform(1.1, 4.0, len(shape))
    factor[rng.random(len(shape)) < _TOO_SHORT] = 0.5
    scale = area / (shape * sizes).sum()
    for _ in range(50):  # cutting run times loses area; scale again until the area is right
        runtimes = np.clip(np.rint(shape * scale), _SHORTEST, longest)
        walltimes = _WALLTIMES[np.searchsorted(_WALLTIMES, np.minimum(runtimes * factor, _WALLTIMES[-1]))]
        scale *= area / (np.minimum(runtimes, walltimes) * sizes).sum()
    return runtimes, walltimes
