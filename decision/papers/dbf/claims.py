"""What DBF's paper claims of windows and splits, and what is known of each claim, by the rule of all papers.

Compared are interquartile means over runs; an interval holds 95 % of the ratios over bootstrap samples of the runs,
drawn apart for either side. A heuristic has one run. Changes within `MARGINS` count as equal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from decision.analysis.statistics import Estimate, middle_mean

from ..findings import ResultTable
from ..verdicts import VERDICT_COLUMNS, Kind, verdicts
from .results import Result, Results

MARGINS = {"waiting_time": 0.02, "queue_length": 0.02, "utilization": 0.01}  # as shares
_NAMES = {"waiting_time": "wait", "queue_length": "queue", "utilization": "utilization"}
_SAMPLES, _LEVELS = 1000, (0.025, 0.975)
_SPLIT, _WIDE = 20, 32  # jobs of the window of which the best split is asked for; and of those that beat all others


class _Claim(NamedTuple):
    """What is said of a change."""

    what: str
    kind: Kind
    metric: str
    found: Estimate  # as a share
    beside: float = 0.0  # what it is compared with


def judged_claims(results: Results, as_written: bool) -> ResultTable:
    """Each claim that there are runs for, with its change and what that says.

    Args:
        results: of the policies.
        as_written: whether networks and steps are the paper's.
    """
    rows = []
    for claim in (*_tails(results), *_best_split(results), *_wide(results)):
        value, low, high = (100 * each for each in claim.found)
        beside = Estimate(*(each - claim.beside for each in claim.found))
        known = verdicts(claim.kind, beside, MARGINS[claim.metric], as_written=as_written)
        rows.append((claim.what, f"{value:+.0f} % ({low:+.0f} to {high:+.0f})", *known))
    margins = ", ".join(f"{_NAMES[name]} {margin:.0%}" for name, margin in MARGINS.items())
    return ResultTable(f"Claims (95 %); equal within: {margins}", ("claim", "change", *VERDICT_COLUMNS), rows)


def mean_change(own: Sequence[Result], other: Sequence[Result], metric: str) -> Estimate:
    """By which share the interquartile mean over runs is larger than that of others."""
    rng = np.random.default_rng(0)
    sides = [np.array([run.means[metric] for run in runs]) for runs in (own, other)]
    drawn = []
    for _ in range(_SAMPLES):
        one, two = (side[rng.integers(len(side), size=len(side))] for side in sides)
        drawn.append(middle_mean(one) / middle_mean(two) - 1)
    low, high = np.quantile(drawn, _LEVELS).tolist()
    return Estimate(middle_mean(sides[0]) / middle_mean(sides[1]) - 1, low, high)


def _tails(results: Results) -> Iterator[_Claim]:
    """One slot at the tail already helps."""
    known = _windows(results)
    for (head, tail), policy in known.items():
        if tail == 1 and (whole := known.get((head + 1, 0))):
            for metric in ("waiting_time", "queue_length"):
                found = mean_change(results[policy], results[whole], metric)
                yield _Claim(f"{policy} has less {_NAMES[metric]} than {whole}", Kind.BELOW, metric, found)


def _best_split(results: Results) -> Iterator[_Claim]:
    """The best split of a window of 20 halves wait and queue."""
    known = _windows(results)
    splits = [policy for (head, tail), policy in known.items() if head + tail == _SPLIT and tail]
    if whole := known.get((_SPLIT, 0)):
        for policy in splits[:1]:  # results are sorted by waiting time
            for metric in ("waiting_time", "queue_length"):
                found = mean_change(results[policy], results[whole], metric)
                what = f"{policy} has half the {_NAMES[metric]} of {whole}"
                yield _Claim(what, Kind.EQUAL, metric, found, beside=-0.5)


def _wide(results: Results) -> Iterator[_Claim]:
    """Windows of 32 and more wait less, with shorter queues, than all others, and use as much of the machine."""
    others = [policy for policy, runs in results.items() if runs[0].window is None]
    for (head, tail), policy in _windows(results).items():
        if head + tail < _WIDE:
            continue
        for metric, kind in (
            ("waiting_time", Kind.BELOW),
            ("queue_length", Kind.BELOW),
            ("utilization", Kind.NO_WORSE),
        ):
            sign = -1 if kind == Kind.NO_WORSE else 1
            rival = min(others, key=lambda name: sign * middle_mean(_values(results[name], metric)))
            found = mean_change(results[policy], results[rival], metric)
            said = "no less" if kind == Kind.NO_WORSE else "less"
            what = f"{policy} has {said} {_NAMES[metric]} than the best other ({rival})"
            yield _Claim(what, kind, metric, found)


def _values(runs: Sequence[Result], metric: str) -> np.ndarray:
    return np.array([run.means[metric] for run in runs])


def _windows(results: Results) -> dict[tuple[int, int], str]:
    """Policy by window, those whose jobs wait least first."""
    return {runs[0].window: policy for policy, runs in results.items() if runs[0].window}
