"""On which day, and when, each job of `grid5000_days` is submitted, so that the published shares are met."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decision.model.dates import DAY, SEQUENTIAL
from decision.model.record import Floats, Ints

from ..jobs import HOUR_WEIGHTS

Flags = NDArray[np.bool_]

_FEWEST = (2, 3, 4, 5, 8)  # submissions of a day of each group, such that its share can fall into the group's fifth
_SPREAD, _FURTHEST = 0.8, 2.5  # of the logarithm of submissions per day; and its bound, in standard deviations
_MOST_APART = 240  # submissions of a day that are not sequential: a day has room for 288
_MOST = (270, 360, 540, 1080, 10_000)  # submissions of a day of each group, so that no more need be apart
_MOST_BUSY = 0.5  # share of a day's time that bursts may last


def submissions(
    rng: np.random.Generator, groups: Sequence[int], nb_jobs: int, sequential: float, busy: Floats
) -> tuple[Ints, Ints, Ints]:
    """Days, seconds within the day, and numbers of the burst of all jobs, each (J,), in order of submission.

    Args:
        rng: where choices come from.
        groups: days whose share of sequential submissions is in each fifth.
        nb_jobs: submissions in all.
        sequential: share of them that are sequential.
        busy: (D,) how busy each day is for its weekday, in order of days.
    """
    group = rng.permutation(np.repeat(np.arange(len(groups)), groups))
    spread = np.clip(rng.normal(0.0, 1.0, len(group)), -_FURTHEST, _FURTHEST) * _SPREAD
    place = rng.random(len(group))  # of the share within its fifth
    counts, close = _calibrated(group, busy * np.exp(spread), place, nb_jobs, sequential)
    day = np.repeat(np.arange(len(group)), counts)
    follows = _choose(rng, day, counts, close)
    return day, _seconds(rng, day, counts, follows), np.cumsum(~follows) - 1


def _calibrated(group: Ints, weight: Floats, place: Floats, nb_jobs: int, sequential: float) -> tuple[Ints, Ints]:
    """Submissions and sequential ones of each day: busier groups have more, by the factor that gives the share."""
    low, high = 1.0, 8.0
    for _ in range(50):
        factor = (low + high) / 2
        counts = _share_out(group, weight * factor**group, nb_jobs)
        close = _sequential_ones(group, place, counts)
        low, high = (factor, high) if close.sum() < sequential * nb_jobs else (low, factor)
    return counts, close


def _share_out(group: Ints, weight: Floats, nb_jobs: int) -> Ints:
    """Submissions of each day: at least its group's fewest, the others by weight; the sum is right."""
    fewest, most = np.array(_FEWEST)[group], np.array(_MOST)[group]
    more = weight / weight.sum() * (nb_jobs - fewest.sum())
    for _ in range(20):  # what is cut goes to the other days
        more = np.minimum(more, most - fewest)
        more *= (nb_jobs - fewest.sum()) / more.sum()
    counts = np.floor(np.cumsum(more) + 1e-9).astype(np.int64)
    counts[-1] = nb_jobs - fewest.sum()
    return fewest + np.diff(counts, prepend=0)


def _sequential_ones(group: Ints, place: Floats, counts: Ints) -> Ints:
    """How many of each day's submissions are sequential: a share within the group's fifth."""
    wanted = np.rint((group + place) / len(_FEWEST) * counts).astype(np.int64)
    least = -(-group * counts // len(_FEWEST))
    most = -(-(group + 1) * counts // len(_FEWEST)) - 1
    return np.clip(wanted, np.maximum(least, counts - _MOST_APART), np.minimum(most, counts - 1))


def _choose(rng: np.random.Generator, day: Ints, counts: Ints, close: Ints) -> Flags:
    """(J,) which submissions are sequential: `close` of each day's, never its first."""
    first = np.cumsum(counts) - counts
    draw = rng.random(len(day))
    draw[first] = 2.0
    order = np.lexsort((draw, day))
    rank = np.empty(len(day), np.int64)
    rank[order] = np.arange(len(day)) - first[day]
    return rank < close[day]


def _seconds(rng: np.random.Generator, day: Ints, counts: Ints, follows: Flags) -> Ints:
    """(J,) whole seconds within the day, ascending in it.

    Bursts begin when people work. The time that bursts last, and the five minutes that keep them apart, are taken
    out of the day before their beginnings are drawn, and put back after: so no two bursts become one.
    """
    first = np.cumsum(counts) - counts
    gaps = np.where(follows, SEQUENTIAL * rng.random(len(day)) ** 3, 0.0)  # mostly a few seconds
    apart = np.where(follows, 0.0, SEQUENTIAL)
    apart[first] = 0.0
    separate = np.bincount(day, apart)
    lasting = np.bincount(day, gaps)
    room = DAY - 1.0 - separate
    gaps = np.floor(gaps * np.minimum(1.0, _MOST_BUSY * room / np.maximum(lasting, 1.0))[day])
    free = room - np.bincount(day, gaps)
    hours = np.concatenate(([0.0], np.cumsum(HOUR_WEIGHTS))) / sum(HOUR_WEIGHTS)
    begins = np.floor(np.interp(rng.random(len(day)), hours, np.arange(25) / 24) * free[day])
    starts = _sorted_within(day, begins, follows)
    passed = np.cumsum(gaps + apart)
    return (starts + passed - (passed - gaps - apart)[first][day]).astype(np.int64)


def _sorted_within(day: Ints, begins: Floats, follows: Flags) -> Floats:
    """The beginnings of bursts in ascending order in each day, each repeated for the burst's submissions."""
    heads = np.flatnonzero(~follows)
    ordered = begins[heads][np.lexsort((begins[heads], day[heads]))]
    return ordered[np.cumsum(~follows) - 1]
