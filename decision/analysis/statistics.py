"""Point estimates of repeated runs, and how sure they are.

The definitions are those of Agarwal, Schwarzer, Castro, Courville and Bellemare, Deep reinforcement learning at the
edge of the statistical precipice (NeurIPS 2021), and of their library rliable: scores are (n, T), n runs of each of T
tasks; an interval holds 95 % of a statistic's values over bootstrap samples, which draw runs with replacement within
each task (stratified) and independently between tasks and between the two that are compared.

A bootstrap sample is kept as how often it has each run. So the statistics are sums with weights, many samples at a
time, and nothing is sorted or compared twice.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from decision.model.record import Floats

CONFIDENCE = 0.95
SAMPLES = 5000  # of the bootstrap
_TRIM = 0.25  # share of the scores that the interquartile mean leaves out at either end
_CHUNK = 2_000_000  # counts in memory at a time
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")  # of equal values

Weighted = Callable[..., Floats]  # counts (samples, n, T) of one or two sets of scores -> values (samples,)


class Estimate(NamedTuple):
    """A statistic and its interval."""

    value: float
    low: float
    high: float


def interquartile_mean(scores: Floats, rng: np.random.Generator) -> Estimate:
    """The mean of what is left of all n * T scores without the lowest and the highest ``int(n * T / 4)``.

    Args:
        scores: (n, T).
        rng: draws the bootstrap samples.
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

    return _estimate(statistic, [_shape(scores)], rng)


def bootstrap_mean(scores: Floats, rng: np.random.Generator) -> Estimate:
    """The mean of all scores, (n, T)."""
    return _estimate(lambda counts: np.tensordot(counts, scores) / scores.size, [_shape(scores)], rng)


def probability_of_improvement(scores: Floats, baseline: Floats, rng: np.random.Generator) -> Estimate:
    """The mean over tasks of ``P(X < Y)`` for a run X and a baseline's run Y: how likely the lower score is X's.

    Ties count one half: per task it is Mann and Whitney's U / (n * k).

    Args:
        scores: (n, T), the lower the better.
        baseline: (k, T).
        rng: draws the bootstrap samples.
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

    return _estimate(statistic, [_shape(scores), _shape(baseline)], rng)


def _estimate(statistic: Weighted, shapes: list[tuple[int, int]], rng: np.random.Generator) -> Estimate:
    """The statistic of the scores themselves, each counted once, and its interval."""
    value = statistic(*(np.ones((1, *shape)) for shape in shapes))
    step = max(1, _CHUNK // sum(runs * tasks for runs, tasks in shapes))
    values = [
        statistic(*(_counts(min(step, SAMPLES - begin), *shape, rng) for shape in shapes))
        for begin in range(0, SAMPLES, step)
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
