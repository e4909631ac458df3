"""Point estimates of repeated runs, and how sure they are.

The definitions are those of Agarwal, Schwarzer, Castro, Courville and Bellemare, Deep reinforcement learning at the
edge of the statistical precipice (NeurIPS 2021), and of their library rliable: scores are (n, T), n runs of each of T
tasks; an interval holds 95 % of a statistic's values over bootstrap samples, which draw runs with replacement within
each task (stratified) and independently between tasks and between the two that are compared.

That is right for runs that share nothing. Where runs are windows of one log, blocks of neighbours are drawn together
(`decision.experiments.statistics`), the same of the two that are compared, and the samples' standard deviation makes
the interval, because the percentiles of few blocks hold the truth too seldom: Student's, of the logarithm where all
scores are positive, and Wilson's for a probability. `decision reproduce coverage` measures how often they hold the
truth.

A bootstrap sample is kept as how often it has each run. So the statistics are sums with weights, many samples at a
time, and nothing is sorted or compared twice.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from decision.model.record import Floats, Ints

# How much windows of one log tell, where they share jobs: blocks of neighbours, drawn together.
#
# Windows that share jobs have much the same scores, so that many windows of a log tell no more than its jobs do. In the
# order of their first jobs their scores are a series, and the circular block bootstrap draws so many neighbours
# together (Politis and Romano 1992); the last are neighbours of the first.
#
# The length of a block is chosen by the rule of Politis and White (Econometric Reviews 23, 2004, corrected by Patton,
# Politis and White in 28, 2009), and is at least three times the number of neighbours that share jobs with a window, or
# up to 12.6 times, where windows that share no jobs are alike all the same, as in loads that go up and down slowly
# (with twice, means were covered in 87 to 90 % where the load has a memory of two windows). Such a block still misses
# dependence across its ends: of windows whose correlation falls evenly to zero over that number, it sees the known
# share `seen` of the variance. Intervals are widened for that, and for the few blocks, by Student's distribution with a
# degree of freedom less than there are blocks. Blocks that overlap tell their own spread as well as 1.5 times as many
# that do not (Kuensch, Annals of Statistics 17, 1989); means of skewed scores need the wider interval all the same, so
# that the degrees count so for ranks only.

_LEAST = 3  # times the neighbours that share jobs: a block's least length
_LONGER = 12  # times as many more, by the correlation of windows that share no jobs
_MOST_ALIKE = 0.8  # what is taken for that correlation at most
FEW_BLOCKS = 5  # with fewer, intervals say little
OVERLAPPING = 1.5  # degrees of freedom by block, where what is averaged is not skewed


class Windows(NamedTuple):
    """Where the n windows of a log lie."""

    first: Ints  # (n,) number of the first job of each
    length: int  # jobs in each
    jobs: int  # of the log
    circular: bool = False  # whether the log's first job follows its last

    @property
    def overlap(self) -> int:
        """How many neighbours, in order, share jobs with a window; at least 1, itself."""
        places = self.jobs if self.circular else self.jobs - self.length + 1
        return max(1, math.ceil(len(self.first) * self.length / places))

    @property
    def independent(self) -> float:
        """How many windows that share no jobs these are worth, at most."""
        return len(self.first) / self.overlap


class Blocks(NamedTuple):
    """How the windows of a log are drawn together for one statistic."""

    order: Ints  # (n,) the windows by their first jobs
    length: int  # windows in a block
    number: float  # of independent blocks
    seen: float  # share of the variance that blocks see, in (0, 1]


def find_blocks(influence: Floats, windows: Windows) -> Blocks:
    """The blocks for a statistic.

    Args:
        influence: (n,) what each window adds to the statistic, up to a factor.
        windows: the n windows.
    """
    order, overlap = np.argsort(windows.first, kind="stable"), windows.overlap
    wanted = block_length(influence[order])
    if overlap > 1:
        wanted = max(wanted, _LEAST * overlap)
        # How alike windows are that share no jobs and are up to twice as far apart: their mean correlation. Deviations
        # from a series' own mean are less alike than those from the true one, by the variance of that mean, which is
        # added.
        n, centred, alike = len(influence), influence[order] - influence.mean(), 0.0
        distances, variance = range(overlap, min(2 * overlap, n)), float(centred @ centred) / n
        if variance > 0 and distances:
            apart = float(np.mean([centred[: n - k] @ centred[k:] / (n - k) for k in distances]))
            blocks = _blocks_of(wanted, order, overlap)
            of_mean = min(block_deviation(influence, blocks) ** 2 / blocks.seen, variance / 2)
            alike = min(max((apart + of_mean) / (variance + of_mean), 0.0), _MOST_ALIKE)
        wanted = max(wanted, math.ceil((_LEAST + _LONGER * alike) * overlap))
    return _blocks_of(wanted, order, overlap)


def _blocks_of(wanted: int, order: Ints, overlap: int) -> Blocks:
    n = len(order)
    length = max(1, min(wanted, n // 2))
    # The variance of a mean over blocks over its true one, for correlations of ``1 - k / overlap`` at distance k
    distance = np.arange(1 - overlap, overlap)
    correlation = 1 - np.abs(distance) / overlap
    seen = float(np.sum(np.maximum(0, 1 - np.abs(distance) / length) * correlation) / np.sum(correlation))
    return Blocks(order, length, n / wanted, seen)


def block_length(series: Floats) -> int:
    """Politis and White's length of a circular block for the mean of a series (n,), at least 1.

    The autocovariances count up to twice the distance from which on several in a row are no more than chance.
    """
    n = len(series)
    centred = series - series.mean()
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = min(math.ceil(math.sqrt(n)) + in_a_row, n - 1)
    covariance = np.array([centred[: n - k] @ centred[k:] for k in range(most + 1)]) / n
    if n < 2 * in_a_row or covariance[0] <= 1e-12 * np.square(series).mean():
        return 1
    chance = 2 * math.sqrt(math.log10(n) / n)
    # The distance after which so many correlations in a row are chance; at least 1
    large = np.abs(covariance[1:] / covariance[0]) >= chance
    quiet = (start for start in range(len(large) - in_a_row + 1) if not large[start : start + in_a_row].any())
    reach = max(1, next(quiet, int(np.max(np.flatnonzero(large), initial=0)) + 1))
    distances = np.arange(-(bandwidth := min(2 * reach, most)), bandwidth + 1)
    window = np.minimum(1, 2 * (1 - np.abs(distances) / bandwidth))
    weighted = window * covariance[np.abs(distances)]
    spectrum, slope = weighted.sum(), (np.abs(distances) * weighted).sum()
    if spectrum <= 0:
        return 1
    best = (1.5 * (slope / spectrum) ** 2 * n) ** (1 / 3)  # 2 G^2 / D with D = 4/3 g(0)^2
    return max(1, min(math.ceil(best), math.ceil(min(3 * math.sqrt(n), n / 3))))


def few_blocks(number: float, what: str, shorter: str) -> str:
    """A warning that so many independent blocks are too few."""
    worth = f"{what} are worth {number:.1f} independent ones"
    return f"{worth}, too few for intervals to rely on; take shorter {shorter} or a longer log"


def block_deviation(series: Floats, blocks: Blocks) -> float:
    """The standard deviation of the mean of a series (n,) over circular block bootstrap samples, in closed form."""
    n, length = len(series), blocks.length
    sums = np.cumsum(np.concatenate([[0.0], np.tile(series[blocks.order], 2)]))
    return float(np.std(sums[length : length + n] - sums[:n]) / math.sqrt(n * length))


class Precision(NamedTuple):
    """How a bootstrap's standard deviation becomes an interval."""

    blocks: float  # independent ones, of all logs together
    widening: float  # the standard error over the standard deviation
    deviations: float  # half of the interval, in standard errors


def precision(logs: Sequence[Blocks], confidence: float) -> Precision:
    """Of a statistic over one or several logs."""
    numbers = [max(blocks.number, 2.0) for blocks in logs]
    variance = np.mean([m / (m - 1) / blocks.seen for m, blocks in zip(numbers, logs, strict=True)])
    return Precision(sum(numbers), math.sqrt(variance), student(sum(numbers) - len(numbers), confidence))


def draw_blocks(samples: int, blocks: Blocks, rng: np.random.Generator) -> Floats:
    """How often each of so many bootstrap samples has each window: (samples, n), whole numbers with the sum n."""
    n, length = len(blocks.order), blocks.length
    begin = rng.integers(0, n, (samples, -(-n // length), 1))
    place = ((begin + np.arange(length)).reshape(samples, -1)[:, :n]) % n
    drawn = blocks.order[place] + n * np.arange(samples)[:, None]
    return np.bincount(drawn.ravel(), minlength=samples * n).reshape(samples, n).astype(np.float64)


def student(degrees: float, share: float) -> float:
    """Student's t: within how many standard errors of zero so large a share lies.

    With ``t = sqrt(degrees) * tan(x)`` the density of x is proportional to ``cos(x) ** (degrees - 1)``.
    """
    x = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(x) ** (degrees - 1)
    below = np.cumsum(density) - density / 2 - density[0] / 2
    return math.sqrt(degrees) * math.tan(float(np.interp(share, below / below[-1], x)))


def wilson(share: float, error: float, blocks: float, deviations: float) -> tuple[float, float]:
    """Wilson's interval of a probability (JASA 22, 1927), for as many independent trials as its error says.

    Args:
        share: the estimate.
        error: its standard error; 0 where it can only be 0 or 1.
        blocks: independent trials where there is no error.
        deviations: half of the interval, in standard errors.
    """
    trials = share * (1 - share) / error**2 if error > 0 else blocks
    square = deviations**2 / trials
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


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
    if positive:  # of the logarithm
        return Estimate(value, value * math.exp(-half), value * exponential(half))
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
