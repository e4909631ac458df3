"""What Launchpad's paper claims, and how each claim is held against values of rollouts.

Values are shares of the submitted value, S seeds by R rollouts, the same rollouts for all that is compared. Compared
are interquartile means (IQM). An interval holds 95 % of the differences over bootstrap samples, which draw seeds, and
of each seed rollouts, the same for both sides.

The paper's figures have no numbers in its text, only that its intervals are within 0.015 to 0.023: what differs by
no more than 0.023 counts as equal, in every claim on values and on agreement.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from decision.analysis.statistics import Estimate, middle_mean
from decision.model.record import Floats

from ..verdicts import Kind

WITHIN = 0.023
_LEVELS = (0.025, 0.975)


class _Claim(NamedTuple):
    """That one mean is above, below, equal to or no worse than another."""

    name: str  # C1 to C7
    own: str
    kind: Kind
    other: str
    hosts: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.own} {_WORDS[self.kind]} {self.other}"


_WORDS = {Kind.ABOVE: "above", Kind.BELOW: "below", Kind.EQUAL: "equal to", Kind.NO_WORSE: "no worse than"}


class MeanDifference(Estimate):
    """Of two means, and its interval."""

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


_ALL, _SMALL = (10, 30, 50, 100), (10, 30)
CLAIMS = (
    *(_Claim("C1", "QoS", Kind.ABOVE, other, _ALL) for other in ("SJF", "FCFS", "HVF")),
    *(_Claim("C1", "SJF", Kind.ABOVE, other, _ALL) for other in ("FCFS", "HVF")),
    _Claim("C2", "BC_qos", Kind.EQUAL, "QoS", _ALL),
    _Claim("C2", "BC_combo", Kind.BELOW, "QoS", _ALL),
    _Claim("C2", "BC_qos_sjf", Kind.BELOW, "QoS", _ALL),
    _Claim("C3", "Offline_combo", Kind.ABOVE, "BC_combo", _SMALL),
    _Claim("C3", "BC_qos", Kind.ABOVE, "BC_qos_sjf", _SMALL),
    _Claim("C3", "BC_qos", Kind.ABOVE, "BC_combo", _SMALL),
    _Claim("C3", "Offline_combo", Kind.EQUAL, "Offline_qos_sjf", _SMALL),
    _Claim("C3", "Offline_combo", Kind.EQUAL, "Offline_qos", _SMALL),
    _Claim("C4", "Offline_combo", Kind.ABOVE, "BC_combo", (50,)),
    _Claim("C4", "Offline_combo", Kind.ABOVE, "QoS", (50,)),
    _Claim("C5", "Offline_combo", Kind.NO_WORSE, "BC_qos", _ALL),
    _Claim("C6", "Online", Kind.EQUAL, "BC_qos", _SMALL),
    _Claim("C6", "Online", Kind.EQUAL, "Offline_combo", _SMALL),
    _Claim("C6", "Online", Kind.BELOW, "BC_qos", (50,)),
    _Claim("C6", "Online", Kind.BELOW, "Offline_combo", (50,)),
    _Claim("C7", "Offline+Online_qos", Kind.NO_WORSE, "BC_qos", (100,)),
    _Claim("C7", "Offline+Online_qos", Kind.NO_WORSE, "Offline_combo", (100,)),
)
PUBLISHED_AGREEMENT = {  # table 1
    "BC": {"qos": 0.95, "qos_sjf": 0.99, "combo": 0.98},
    "Offline": {"qos": 0.91, "qos_sjf": 0.91, "combo": 0.87},
    "Offline+Online": {"qos": 0.21, "qos_sjf": 0.21, "combo": 0.17},
}
PUBLISHED_ORDER = ("BC", "Offline", "Offline+Online", "Online")  # C9: the shortest training first
PUBLISHED_FIT = {  # table 2: which method suits which data; the text has the crosses alone, so the rest are ticks
    "high": {"BC": True, "Offline": True, "Offline+Online": True},
    "medium": {"BC": False, "Offline": True, "Offline+Online": True},
    "low": {"BC": False, "Offline": False, "Offline+Online": True},
    "none": {"BC": False, "Offline": False, "Offline+Online": False, "Online": True},
}
QUALITIES = {"high": ("qos",), "medium": ("qos_sjf", "combo"), "low": ("random",), "none": ("",)}


def spread(values: Floats, samples: int) -> MeanDifference:
    """The IQM of (S, R) values, and its interval."""
    return mean_difference(values, np.zeros_like(values), samples)


def mean_difference(own: Floats, other: Floats, samples: int) -> MeanDifference:
    """The IQM of (S, R) values minus that of others on the same rollouts."""
    return paired(own, other, lambda one, two: middle_mean(one) - middle_mean(two), samples)


def paired(own: Floats, other: Floats, statistic: Callable[[Floats, Floats], float], samples: int) -> MeanDifference:
    """A statistic of two arrays (S, R), and its interval."""
    rng, (seeds, rollouts) = np.random.default_rng(0), own.shape
    drawn = []
    for _ in range(samples):
        at = rng.integers(seeds, size=(seeds, 1)), rng.integers(rollouts, size=(seeds, rollouts))
        drawn.append(statistic(own[at], other[at]))
    low, high = np.quantile(drawn, _LEVELS).tolist()
    return MeanDifference(statistic(own, other), low, high)


def common(own: Mapping[int, Floats], other: Mapping[int, Floats]) -> tuple[Floats, Floats]:
    """(S, R) values of both, of the seeds that both have."""
    seeds = sorted(own.keys() & other.keys())
    return np.array([own[seed] for seed in seeds]), np.array([other[seed] for seed in seeds])
