"""How much windows of one log tell, where they share jobs: blocks of neighbours, drawn together.

Windows that share jobs have much the same scores, so that many windows of a log tell no more than its jobs do. In the
order of their first jobs their scores are a series, and the circular block bootstrap draws so many neighbours together
(Politis and Romano 1992); the last are neighbours of the first.

The length of a block is chosen by the rule of Politis and White (Econometric Reviews 23, 2004, corrected by Patton,
Politis and White in 28, 2009), and is at least three times the number of neighbours that share jobs with a window, or
up to 12.6 times, where windows that share no jobs are alike all the same, as in loads that go up and down slowly (with
twice, means were covered in 87 to 90 % where the load has a memory of two windows). Such a block still misses
dependence across its ends: of windows whose correlation falls evenly to zero over that number, it sees the known share
`seen` of the variance. Intervals are widened for that, and for the few blocks, by Student's distribution with a degree
of freedom less than there are blocks. Blocks that overlap tell their own spread as well as 1.5 times as many that do
not (Kuensch, Annals of Statistics 17, 1989); means of skewed scores need the wider interval all the same, so that the
degrees count so for ranks only.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.model.record import Floats, Ints

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
        alike = _alike_apart(influence, _blocks_of(wanted, order, overlap), overlap)
        wanted = max(wanted, math.ceil((_LEAST + _LONGER * alike) * overlap))
    return _blocks_of(wanted, order, overlap)


def _blocks_of(wanted: int, order: Ints, overlap: int) -> Blocks:
    n = len(order)
    length = max(1, min(wanted, n // 2))
    return Blocks(order, length, n / wanted, _seen(length, overlap))


def _alike_apart(influence: Floats, blocks: Blocks, overlap: int) -> float:
    """The mean correlation of windows that share no jobs and are up to twice as far apart, in [0, `_MOST_ALIKE`].

    Deviations from a series' own mean are less alike than those from the true one, by the variance of that mean, which
    is added.
    """
    n, centred = len(influence), influence[blocks.order] - influence.mean()
    distances = range(overlap, min(2 * overlap, n))
    variance = float(centred @ centred) / n
    if variance <= 0 or not distances:
        return 0.0
    apart = float(np.mean([centred[: n - k] @ centred[k:] / (n - k) for k in distances]))
    of_mean = min(block_deviation(influence, blocks) ** 2 / blocks.seen, variance / 2)
    return min(max((apart + of_mean) / (variance + of_mean), 0.0), _MOST_ALIKE)


def _seen(length: int, overlap: int) -> float:
    """The variance of a mean over blocks, over its true one, for correlations of ``1 - k / overlap`` at distance k."""
    distance = np.arange(1 - overlap, overlap)
    correlation = 1 - np.abs(distance) / overlap
    return float(np.sum(np.maximum(0, 1 - np.abs(distance) / length) * correlation) / np.sum(correlation))


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
    distances = np.arange(-(bandwidth := min(2 * _reach(covariance, chance, in_a_row), most)), bandwidth + 1)
    window = np.minimum(1, 2 * (1 - np.abs(distances) / bandwidth))
    weighted = window * covariance[np.abs(distances)]
    spectrum, slope = weighted.sum(), (np.abs(distances) * weighted).sum()
    if spectrum <= 0:
        return 1
    best = (1.5 * (slope / spectrum) ** 2 * n) ** (1 / 3)  # 2 G^2 / D with D = 4/3 g(0)^2
    return max(1, min(math.ceil(best), math.ceil(min(3 * math.sqrt(n), n / 3))))


def _reach(covariance: Floats, chance: float, in_a_row: int) -> int:
    """The distance after which so many correlations in a row are below `chance`; at least 1."""
    large = np.abs(covariance[1:] / covariance[0]) >= chance
    quiet = (start for start in range(len(large) - in_a_row + 1) if not large[start : start + in_a_row].any())
    return max(1, next(quiet, int(np.max(np.flatnonzero(large), initial=0)) + 1))


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
