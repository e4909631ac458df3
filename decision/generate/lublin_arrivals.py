"""The arrival process of the Lublin-Feitelson model: gamma gaps, stretched and squeezed by the hour of the day."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError

from .lublin_params import JobClass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY = 86_400  # seconds
_BUCKETS = 48  # half hours of a day
_BUCKET = DAY // _BUCKETS  # seconds
_FIRST = 11  # the day of the fitted gamma begins with this half hour, and goes round
_ROUNDS = 1000  # of drawing again what was above the limit


def arrivals(rng: np.random.Generator, jobs: JobClass, count: int) -> Floats:
    """(count,) submission times in whole seconds after a midnight, ascending.

    The gaps are those of a clock on which all half hours are equally busy; a half hour of that clock lasts
    the longer, the fewer jobs come at that time of the day.
    """
    shape = jobs.gap_shape * jobs.gap_all_day
    logs = draw_below(jobs.longest_gap, count, lambda places: rng.gamma(shape, jobs.gap_scale, len(places)))
    return np.floor(through_the_day(np.cumsum(np.exp(logs)), cycle(jobs)))


def cycle(jobs: JobClass) -> Floats:
    """(48,) how busy each half hour of the day is, from midnight; 1 on average.

    Raises:
        ConfigError: if no half hour is.
    """
    edges = np.arange(_BUCKETS + 1, dtype=np.float64) + (_FIRST - 0.5)
    weights = np.diff(_gamma_cdf(edges, jobs.cycle_shape, jobs.cycle_scale))
    if not weights.sum() > 0:
        raise ConfigError("cycle_shape and cycle_scale leave all arrivals outside the day; change one of them")
    return np.roll(weights, _FIRST - 1) / weights.mean()


def through_the_day(even: Floats, weights: Floats) -> Floats:
    """Times of an evenly busy clock, seconds, as times of a clock whose days have the cycle `weights`."""
    days, rest = np.divmod(even, DAY)
    busy = np.concatenate(([0.0], np.cumsum(weights * _BUCKET)))
    return days * DAY + np.interp(rest, busy, np.arange(_BUCKETS + 1) * float(_BUCKET))


def draw_below(limit: float, count: int, draw: Callable[[Ints], Floats]) -> Floats:
    """(count,) random values, drawn again while they are above the limit.

    Args:
        limit: the largest value.
        count: how many.
        draw: values for the given places.

    Raises:
        ConfigError: if nearly all are above.
    """
    above = np.arange(count)
    values = np.empty(count)
    for _ in range(_ROUNDS):
        values[above] = draw(above)
        above = above[values[above] > limit]
        if not len(above):
            return values
    raise ConfigError(f"times are hardly ever below their limit of exp({limit:g}) s; change shape, scale or limit")


def _gamma_cdf(values: Floats, shape: float, scale: float) -> Floats:
    """The distribution function of the gamma distribution, by its power series."""
    x = values / scale
    term = np.full_like(x, 1 / shape)
    total = term.copy()
    for k in range(1, int(2 * x.max()) + 200):  # terms shrink by half and more from 2 x on
        term *= x / (shape + k)
        total += term
    return total * np.exp(shape * np.log(x) - x - math.lgamma(shape))
