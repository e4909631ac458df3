"""What is known of the packing paper's claims: mean differences of utilization by pair of workloads, by one rule.

The paper counts cells of its tables; a count has no interval, and chance has nearly the same counts. So each claim is a
mean over the same cells here, pairs are drawn with replacement, and differences within `_MARGIN` count as equal.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from decision.analysis.statistics import bootstrap_mean

from ..findings import ResultTable
from ..verdicts import VERDICT_COLUMNS, Kind, verdicts
from .claims import METHODS, WORKLOADS

_MARGIN = 0.005  # of utilization: the paper prints two decimals


class Pair(NamedTuple):
    """What was found on a pair of workloads."""

    rules: Mapping[str, Mapping[str, float]]  # half, heuristic: utilization
    learned: Mapping[tuple[str, str, str], float]  # workload learned from, method, half

    def own(self, name: str, method: str) -> float:
        """On the half that it learned from."""
        return self.learned[name, method, f"{name}a"]

    def on(self, name: str, method: str, tested: str) -> float:
        """On a half b."""
        return self.learned[name, method, f"{tested}b"]

    def simple(self, half: str) -> float:
        """The better one of SJF and FCFS."""
        return max(self.rules[half]["SJF"], self.rules[half]["FCFS"])


def judged(pairs: list[Pair], as_written: bool) -> ResultTable:
    """Each claim with its difference, and what that says.

    Args:
        pairs: of the seeds.
        as_written: whether networks and trainings are the paper's.
    """
    rows = []
    for what, kind, cells in _CLAIMS:
        means = np.array([[np.mean(list(cells(pair)))] for pair in pairs])
        found = bootstrap_mean(means, np.random.default_rng(0))
        shown = f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
        rows.append((what, shown, *verdicts(kind, found, _MARGIN, as_written=as_written)))
    title = f"Claims: differences of utilization (95 %, by {len(pairs)} pairs); within {_MARGIN} they are equal"
    return ResultTable(title, ("claim", "found", *VERDICT_COLUMNS), rows)


def _against(own: Callable[[Pair, str, str], float], other: Callable[[Pair, str], float]) -> "_Cells":
    """Each network on its own half a against something there."""

    def cells(pair: Pair) -> Iterator[float]:
        return (own(pair, name, method) - other(pair, f"{name}a") for name in WORKLOADS for method in METHODS)

    return cells


def _elsewhere(pair: Pair) -> Iterator[float]:
    """Networks on another workload's half b against SJF and FCFS there; without WL1_050b, as in the paper."""
    for name, tested, method in _triples():
        if tested not in (name, "WL1_050"):
            yield pair.on(name, method, tested) - pair.simple(f"{tested}b")


def _own_workload(pair: Pair) -> Iterator[float]:
    """Networks of the workload that they are tested on against those of the others."""
    for name, tested, method in _triples():
        if name != tested:
            yield pair.on(tested, method, tested) - pair.on(name, method, tested)


def _predictions(pair: Pair) -> Iterator[float]:
    """Networks without predictions against those with, on workloads alike."""
    return (pair.on(name, METHODS[0], name) - pair.on(name, with_, name) for name in WORKLOADS for with_ in METHODS[1:])


def _wider(pair: Pair) -> Iterator[float]:
    """NN2 against NN1."""
    return (pair.on(a, METHODS[2], b) - pair.on(a, METHODS[1], b) for a in WORKLOADS for b in WORKLOADS)


def _triples() -> Iterator[tuple[str, str, str]]:
    return ((name, tested, method) for name in WORKLOADS for tested in WORKLOADS for method in METHODS)


_Cells = Callable[[Pair], Iterator[float]]
_CLAIMS: tuple[tuple[str, Kind, _Cells], ...] = (
    ("networks are no worse than SJF and FCFS", Kind.NO_WORSE, _against(Pair.own, Pair.simple)),
    (
        "they are below FCFS with backfilling",
        Kind.BELOW,
        _against(Pair.own, lambda pair, half: pair.rules[half]["FCFS w/ BF"]),
    ),
    ("learned on another workload, they are no worse than SJF and FCFS", Kind.NO_WORSE, _elsewhere),
    ("those of the own workload are better than those of others", Kind.ABOVE, _own_workload),
    ("without predictions they are no worse than with, on workloads alike", Kind.NO_WORSE, _predictions),
    ("NN2 is no worse than NN1", Kind.NO_WORSE, _wider),
)
