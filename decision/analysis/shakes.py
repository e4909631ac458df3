"""Intervals from blocks of time and from shaken copies of a whole log together.

The variance of a metric, or of its ratio to the baseline's on the same copies, is that over blocks of neighbours in
time (`decision.analysis.blocks`), by the jackknife, plus that of the mean over copies. The interval is Student's, with
Satterthwaite's degrees of freedom, of the logarithm where all is positive.

A log ends once, so late starts, and whatever else is of a whole run, vary over copies alone. The longest wait's
interval is of such weeks as these; what a longer log would have is not known.
"""

import math
from typing import NamedTuple

import numpy as np

from decision.model.record import Floats

from .blocks import Windows, block_deviation, find_blocks, precision, student
from .statistics import CONFIDENCE, Estimate, exponential


class Runs(NamedTuple):
    """A metric of a policy on c shaken copies."""

    values: Floats  # (c,)
    without: Floats  # (c, blocks) without the jobs of each block; (c, 0) where it is of a whole run


def estimate(own: Runs) -> Estimate:
    """The mean over copies, with its interval."""
    mean = float(own.values.mean())
    half = _half(own.values, _pseudo_values(mean, own.without.mean(axis=0)))
    if mean > 0 and (own.values > 0).all():
        return Estimate(mean, mean * math.exp(-half / mean), mean * exponential(half / mean))
    return Estimate(mean, mean - half, mean + half)


def change(own: Runs, baseline: Runs) -> Estimate | None:
    """The ratio of the means over copies minus 1, paired by copy and block; None where the baseline's is 0."""
    mean, base = float(own.values.mean()), float(baseline.values.mean())
    if mean == base and np.array_equal(own.values, baseline.values) and np.array_equal(own.without, baseline.without):
        return Estimate(0.0, 0.0, 0.0)
    if base <= 0 or mean < 0:
        return None
    if mean == 0:
        return Estimate(-1.0, -1.0, -1.0)
    log = math.log(mean / base)
    lefts = [np.maximum(each.without.mean(axis=0), 1e-12) for each in (own, baseline)]
    half = _half(own.values / mean - baseline.values / base, _pseudo_values(log, np.log(lefts[0] / lefts[1])))
    return Estimate(*(exponential(log + side * half) - 1 for side in (0, -1, 1)))


def difference(own: Runs, baseline: Runs) -> Estimate:
    """The difference of the means over copies, paired likewise."""
    return estimate(Runs(own.values - baseline.values, own.without - baseline.without))


def _pseudo_values(whole: float, without: Floats) -> Floats:
    """The jackknife's, of each block left out (n,)."""
    return len(without) * whole - (len(without) - 1) * without


def _half(copies: Floats, blocks: Floats) -> float:
    """Half of the interval of a mean.

    Args:
        copies: (c,) of each copy.
        blocks: (n,) the jackknife's values.
    """
    parts = []  # variance and its degrees of freedom
    if len(copies) > 1:
        parts.append((float(copies.var(ddof=1)) / len(copies), len(copies) - 1.0))
    if len(blocks) > 1 and np.ptp(blocks) > 0:
        together = find_blocks(blocks, Windows(np.arange(len(blocks)), 1, len(blocks)))
        error = precision([together], CONFIDENCE).widening * block_deviation(blocks, together)
        parts.append((error**2, max(together.number - 1, 1.0)))
    variance = sum(each for each, _ in parts)
    if variance <= 0:
        return 0.0
    degrees = variance**2 / sum(each**2 / free for each, free in parts)
    return student(degrees, CONFIDENCE) * math.sqrt(variance)


_NOTHING = 1e-6  # seconds and the like: what subtractions of times leave


def rounded(found: Estimate) -> tuple[str, str, str]:
    """Value and ends of the interval as texts, to the last digit that is above a thirtieth of half of the interval.

    So half of an interval has one digit, or two where it begins with 1 or 2; and no value has more than four digits.
    """
    if max(map(abs, found)) < _NOTHING:
        return "0", "0", "0"
    half = (found.high - found.low) / 2
    places = 3 - math.floor(math.log10(abs(found.value) or 1.0))
    if half > 0 and math.isfinite(half):
        places = min(places, -math.floor(math.log10(half / 3)))
    return tuple(f"{round(each, places):,.{max(places, 0)}f}" for each in found)  # type: ignore[return-value]
