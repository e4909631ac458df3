"""Forecasts of starts beside what happened: whether intervals hold, and who forecasts best.

Measures are those of Gneiting and Raftery (2007): coverage of central intervals, the mean pinball loss of quantiles,
and how wide intervals are. Jobs that wait at one moment have much in common, so intervals of the measures are made from
blocks of moments.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I8

from .history import KnownJobs

KEPT_LEVELS = np.array([0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975])  # of the quantiles that are kept
COVERED = {50: (3, 5), 80: (2, 6), 95: (0, 8)}  # percent: places of the interval's ends in KEPT_LEVELS
_PINBALL = (2, 3, 4, 5, 6)  # places of those whose loss is counted: 0.1, 0.25, 0.5, 0.75, 0.9
MEDIAN = 4
WAIT_CLASSES = {
    "minutes": (0.0, 3600.0),
    "hours": (3600.0, 86_400.0),
    "days": (86_400.0, np.inf),
}  # seconds that were left
_BLOCKS = 20
_RESAMPLES = 400


class Cases(NamedTuple):
    """Jobs that waited at moments, by time of the moment."""

    moment: I8  # (n,) number of the moment
    at: F8  # (n,) seconds, the moment
    waited: F8  # (n,) seconds until then
    left: F8  # (n,) seconds until it started really

    def among(self, name: str) -> np.ndarray:
        """(n,) whether each is of a class."""
        low, high = WAIT_CLASSES[name]
        return (self.left >= low) & (self.left < high)


class Score(NamedTuple):
    """How good quantiles are; an interval of 95 % stands behind each."""

    cases: int
    covered: dict[int, tuple[float, float, float]]  # by percent: share, and from where to where it may be
    pinball: tuple[float, float, float]  # seconds
    error: tuple[float, float, float]  # seconds: the median absolute error of the median
    width: float  # seconds: of the middle interval of 80 %


def score_quantiles(cases: Cases, quantiles: F8, rows: np.ndarray | None = None) -> Score:
    """Judge quantiles (n, len(KEPT_LEVELS)) of the seconds that jobs still wait; a point repeats one value."""
    chosen = np.arange(len(cases.left)) if rows is None else np.flatnonzero(rows)
    left, quantiles, moment = cases.left[chosen], quantiles[chosen], cases.moment[chosen]
    inside = {
        each: (left >= quantiles[:, low] - 1.0) & (left <= quantiles[:, high] + 1.0)
        for each, (low, high) in COVERED.items()
    }
    loss = pinball(left, quantiles).mean(1) if len(left) else np.zeros(0)
    error = np.abs(left - quantiles[:, MEDIAN])
    numbers, of = np.unique(moment, return_inverse=True)
    count = min(_BLOCKS, len(numbers))  # of blocks of moments that follow each other
    blocks = [np.flatnonzero(of * count // len(numbers) == block) for block in range(count)]
    return Score(
        cases=len(left),
        covered={each: _with_interval(held.astype(float), blocks, np.mean) for each, held in inside.items()},
        pinball=_with_interval(loss, blocks, np.mean),
        error=_with_interval(error, blocks, np.median),
        width=float(np.median(quantiles[:, COVERED[80][1]] - quantiles[:, COVERED[80][0]])) if len(left) else np.nan,
    )


def pinball(left: F8, quantiles: F8) -> F8:
    """(n, 5) losses in seconds of the quantiles 0.1, 0.25, 0.5, 0.75 and 0.9."""
    levels = KEPT_LEVELS[list(_PINBALL)]
    off = left[:, None] - quantiles[:, _PINBALL]
    return np.maximum(levels * off, (levels - 1) * off)


def _with_interval(
    values: F8, blocks: Sequence[I8], measure: Callable[[F8], float | np.floating]
) -> tuple[float, float, float]:
    """A measure of all values, and its 2.5 and 97.5 % among blocks that are drawn again."""
    if not len(values):
        return np.nan, np.nan, np.nan
    rng = np.random.default_rng(0)
    drawn = [
        float(measure(values[np.concatenate([blocks[i] for i in rng.integers(0, len(blocks), len(blocks))])]))
        for _ in range(_RESAMPLES)
    ]
    return float(measure(values)), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


_WARM = 0.1  # of the jobs, before the first moment


def moments_of(log: KnownJobs, count: int, seed: int, skipped: frozenset[str] = frozenset()) -> F8:
    """Times at which jobs wait, spread evenly over all such times after the first tenth of the jobs."""
    rng = np.random.default_rng(seed)
    chosen = np.isfinite(log.start) & (log.start > log.submit + 1)
    chosen[: int(len(log) * _WARM)] = False
    chosen &= np.array([name not in skipped for name in log.id]) if skipped else True
    order = np.argsort(log.submit[chosen])
    begin, end = log.submit[chosen][order], np.maximum.accumulate(log.start[chosen][order])
    if not len(begin):
        return np.zeros(0)
    begin = np.maximum(begin, np.concatenate([[-np.inf], end[:-1]]))
    length = np.maximum(0.0, end - begin)
    total = np.cumsum(length)
    places = (np.arange(count) + rng.random(count)) / count * total[-1]
    which = np.searchsorted(total, places)
    return begin[which] + places - (total[which] - length[which])
