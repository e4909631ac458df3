"""Whole logs, shaken: changes against a baseline, with intervals from blocks of time and from shaken copies together.

A policy's run of a copy comes to sums over the jobs of each block of time (`TIME_BLOCKS`). The change of a mean is the
logarithm of its ratio to the baseline's, on the same copies. Its variance is the sum of that over blocks of neighbours
in time (`decision.analysis.blocks`), and of that of the mean over copies.
"""

import math
from collections.abc import Sequence

import numpy as np

from decision.model.record import Floats

from .blocks import Windows, block_deviation, find_blocks, precision, student
from .statistics import Estimate

CONFIDENCE = 0.95
WEEK = 604_800.0  # seconds
FEW_WEEKS = 8  # with fewer, blocks of time are days


def block_seconds(span: float) -> float:
    """How long a block of time is in a log of so many seconds: a week, or a day where there are few weeks."""
    return WEEK if span >= FEW_WEEKS * WEEK else WEEK / 7


def change_of_mean(own: Floats, baseline: Floats, jobs: Floats) -> Estimate:
    """The ratio of means minus 1, with its interval.

    Args:
        own: (copies, blocks) sums over each block's jobs.
        baseline: (copies, blocks) of the baseline.
        jobs: (blocks,) how many jobs each block has.
    """
    ratios = np.log(np.maximum(own.sum(axis=1), 1e-9) / np.maximum(baseline.sum(axis=1), 1e-9))
    value, copies, n = float(ratios.mean()), len(ratios), len(jobs)
    if not np.any(own != baseline):
        return Estimate(0.0, 0.0, 0.0)
    variance, deviations = float(ratios.var(ddof=1)) / copies if copies > 1 else 0.0, 2.0
    if n > 1:
        means = (own.mean(axis=0), baseline.mean(axis=0))
        influence = n * (means[0] / max(means[0].sum(), 1e-9) - means[1] / max(means[1].sum(), 1e-9))
        blocks = find_blocks(influence, Windows(np.arange(n), 1, n))
        exact = precision([blocks], CONFIDENCE)
        variance += (exact.widening * block_deviation(influence, blocks)) ** 2
        deviations = exact.deviations
    half = deviations * math.sqrt(variance)
    return Estimate(*(math.exp(value + side * half) - 1 for side in (0, -1, 1)))


def mean_over_copies(values: Sequence[float]) -> Estimate:
    """The mean of one number by copy, with Student's interval over the copies alone."""
    numbers = np.array(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Estimate(mean, mean, mean)
    half = student(len(numbers) - 1, CONFIDENCE) * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    return Estimate(mean, mean - half, mean + half)


def rounded(estimate: Estimate) -> float:
    """The value without the digits that are noise: to the place of the first digit of half of the interval."""
    half = (estimate.high - estimate.low) / 2
    if not half > 0 or not math.isfinite(half):
        return float(f"{estimate.value:.4g}")
    return round(estimate.value, -math.floor(math.log10(half)))
