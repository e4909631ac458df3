"""Point estimates of repeated runs, and how sure they are.

The definitions are those of Agarwal, Schwarzer, Castro, Courville and Bellemare, Deep reinforcement learning at the
edge of the statistical precipice (NeurIPS 2021), and of their library rliable: scores are (n, T), n runs of each of T
tasks; an interval holds 95 % of a statistic's values over bootstrap samples, which draw runs with replacement within
each task (stratified) and independently between tasks and between the two that are compared.

That is right for runs that share nothing. Where runs are windows of one log, blocks of neighbours are drawn together
(`decision.analysis.blocks`), the same of the two that are compared, and the samples' standard deviation makes the
interval, because the percentiles of few blocks hold the truth too seldom: Student's, of the logarithm where all scores
are positive, and Wilson's for a probability. `decision reproduce coverage` measures how often they hold the truth.

A bootstrap sample is kept as how often it has each run. So the statistics are sums with weights, many samples at a
time, and nothing is sorted or compared twice.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from decision.model.record import Floats

from .blocks import OVERLAPPING, Blocks, Windows, block_deviation, draw_blocks, find_blocks, precision, student, wilson

CONFIDENCE = 0.95
_LARGEST = 709.0  # power of e in a float
_SAMPLES = 5000  # of the bootstrap
_TRIM = 0.25  # share of the scores that the interquartile mean leaves out at either end
_CHUNK = 2_000_000  # counts in memory at a time
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")  # of equal values

Weighted = Callable[..., Floats]  # counts (samples, n, T) of one or two sets of scores -> values (samples,)
Where = Sequence[Windows] | None  # of each task, where its runs are windows of a log


class Estimate(NamedTuple):
    """A statistic and its interval."""

    value: float
    low: float
    high: float

    def within(self, least: float, most: float) -> "Estimate":
        """The interval without what the statistic cannot be, so that it holds the truth as often as before."""
        return Estimate(self.value, min(max(self.low, least), self.value), max(min(self.high, most), self.value))


def exponential(power: float) -> float:
    """e to the power; inf where no float is so large, as of an interval that says nothing."""
    return math.exp(power) if power < _LARGEST else math.inf


def middle_mean(values: Floats) -> float:
    """The interquartile mean of values of any shape, without an interval."""
    ascending, aside = np.sort(values, axis=None), int(_TRIM * values.size)
    return float(ascending[aside : values.size - aside].mean())


def interquartile_mean(scores: Floats, rng: np.random.Generator, windows: Where = None) -> Estimate:
    """The mean of what is left of all n * T scores without the lowest and the highest ``int(n * T / 4)``.

    Args:
        scores: (n, T).
        rng: draws the bootstrap samples.
        windows: where the runs of each task lie.
    """
    flat = scores.ravel()
    order = np.argsort(flat, kind="stable")
    ascending = flat[order]
    low = int(_TRIM * len(flat))
    high = len(flat) - low

    def statistic(counts: Floats) -> Floats:
        upto = np.cumsum(counts.reshape(len(counts), -1)[:, order], axis=1)
        inside = np.diff(np.clip(upto, low, high), axis=1, prepend=low)
        return inside @ ascending / (high - low)

    if windows is None:
        return _estimate(statistic, [_shape(scores)], rng)
    inner = np.clip(scores, ascending[low], ascending[high - 1])
    return _block_estimate(statistic, _blocks(inner, windows), bool((scores > 0).all()), rng)


def bootstrap_mean(scores: Floats, rng: np.random.Generator, windows: Where = None) -> Estimate:
    """The mean of all scores, (n, T); arguments as of `interquartile_mean`."""

    def statistic(counts: Floats) -> Floats:
        return np.tensordot(counts, scores) / scores.size

    if windows is None:
        return _estimate(statistic, [_shape(scores)], rng)
    return _block_estimate(statistic, _blocks(scores, windows), bool((scores > 0).all()), rng)


def probability_of_improvement(
    scores: Floats, baseline: Floats, rng: np.random.Generator, windows: Where = None
) -> Estimate:
    """The mean over tasks of ``P(X < Y)`` for a run X and a baseline's run Y: how likely the lower score is X's.

    Ties count one half: per task it is Mann and Whitney's U / (n * k).

    Args:
        scores: (n, T), the lower the better.
        baseline: (k, T).
        rng: draws the bootstrap samples.
        windows: where the runs of each task lie, the same of both.
    """
    order = np.argsort(scores, axis=0, kind="stable")
    ascending = np.take_along_axis(scores, order, axis=0)
    # how many scores are below each of the baseline's, and how many are not above it
    below, upto = (
        [np.searchsorted(x, y, side) for x, y in zip(ascending.T, baseline.T, strict=True)] for side in _SIDES
    )

    def statistic(counts: Floats, others: Floats) -> Floats:
        per_task = []
        for t in range(scores.shape[1]):
            sums = np.cumsum(np.pad(counts[:, order[:, t], t], ((0, 0), (1, 0))), axis=1)
            wins = 0.5 * (sums[:, below[t]] + sums[:, upto[t]]) * others[:, :, t]
            per_task.append(wins.sum(axis=1) / (len(scores) * len(baseline)))
        return np.mean(per_task, axis=0)

    if windows is None:
        return _estimate(statistic, [_shape(scores), _shape(baseline)], rng)
    value = float(statistic(*(np.ones((1, *_shape(each))) for each in (scores, baseline)))[0])
    influence = (_wins(scores, baseline) + _wins(-baseline, -scores)) / len(scores)  # Hajek's projection
    blocks = _blocks(influence, windows)
    around = _block_estimate(lambda counts: np.tensordot(counts, influence) / influence.size, blocks, False, rng)
    exact = precision(blocks, CONFIDENCE)
    error = (around.high - around.value) / exact.deviations
    deviations = student(OVERLAPPING * exact.blocks - len(blocks), CONFIDENCE)  # ranks are not skewed
    certain = value in (0.0, 1.0)
    if error == 0 and not certain:  # all are ties
        return Estimate(value, value, value)
    return Estimate(value, *wilson(value, 0.0 if certain else error, exact.blocks, deviations))


def ratio_of_means(scores: Floats, baseline: Floats) -> Estimate:
    """The mean of jobs' scores over the mean of the baseline's, of one log's jobs (J,) in order of submission.

    The interval is Student's, of the ratio's logarithm to first order, with blocks of neighbours.
    """
    value = float(scores.mean() / baseline.mean())
    influence = scores / scores.mean() - baseline / baseline.mean()
    blocks = find_blocks(influence, Windows(np.arange(len(scores)), 1, len(scores)))
    exact = precision([blocks], CONFIDENCE)
    half = exact.deviations * exact.widening * block_deviation(influence, blocks)
    return Estimate(value, value * math.exp(-half), value * exponential(half))


def _wins(scores: Floats, baseline: Floats) -> Floats:
    """Of each score, how many of the baseline's are above it; ties count one half: (n, T)."""
    ascending = np.sort(baseline, axis=0)
    found = [
        [len(y) - 0.5 * (np.searchsorted(y, x, "left") + np.searchsorted(y, x, "right"))]
        for x, y in zip(scores.T, ascending.T, strict=True)
    ]
    return np.concatenate(found).T


def _blocks(influence: Floats, windows: Sequence[Windows]) -> list[Blocks]:
    """Of each task, for what its runs (n, T) add to the statistic."""
    return [find_blocks(column, each) for column, each in zip(influence.T, windows, strict=True)]


def _block_estimate(statistic: Weighted, logs: list[Blocks], positive: bool, rng: np.random.Generator) -> Estimate:
    """The statistic of the windows themselves, and Student's interval; of the logarithm where it is always positive."""
    runs = len(logs[0].order)
    value = float(statistic(np.ones((1, runs, len(logs))))[0])
    step = max(1, _CHUNK // (runs * len(logs)))
    values = np.concatenate(
        [
            statistic(np.stack([draw_blocks(min(step, _SAMPLES - begin), blocks, rng) for blocks in logs], axis=2))
            for begin in range(0, _SAMPLES, step)
        ]
    )
    exact = precision(logs, CONFIDENCE)
    deviation = float(np.log(values).std() if positive else values.std())
    if deviation < 1e-9 * (1.0 if positive else abs(value)):  # rounding
        return Estimate(value, value, value)
    half = exact.deviations * exact.widening * deviation
    return Estimate(value, value * math.exp(-half), value * exponential(half)) if positive else _around(value, half)


def _around(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half)


def _estimate(statistic: Weighted, shapes: list[tuple[int, int]], rng: np.random.Generator) -> Estimate:
    """The statistic of the scores themselves, each counted once, and its interval."""
    value = statistic(*(np.ones((1, *shape)) for shape in shapes))
    step = max(1, _CHUNK // sum(runs * tasks for runs, tasks in shapes))
    values = [
        statistic(*(_counts(min(step, _SAMPLES - begin), *shape, rng) for shape in shapes))
        for begin in range(0, _SAMPLES, step)
    ]
    tail = 50 * (1 - CONFIDENCE)  # percent at either end
    low, high = np.percentile(np.concatenate(values), [tail, 100 - tail])
    return Estimate(float(value[0]), float(low), float(high))


def _shape(scores: Floats) -> tuple[int, int]:
    runs, tasks = scores.shape
    return runs, tasks


def _counts(samples: int, runs: int, tasks: int, rng: np.random.Generator) -> Floats:
    """How often each of so many bootstrap samples has each run: (samples, runs, tasks), whole numbers."""
    drawn = rng.integers(0, runs, (samples, tasks, runs)) + runs * np.arange(samples * tasks).reshape(samples, tasks, 1)
    counts = np.bincount(drawn.ravel(), minlength=samples * tasks * runs)
    return counts.reshape(samples, tasks, runs).swapaxes(1, 2).astype(np.float64)
