"""What a difference says of a claim: the same rule for all papers.

Each quantity has one margin: differences within it, either way, count as equal. So a difference is below, equal or
above, and never two of these; a claim names which of them it may be. It holds where the whole interval is what the
claim names, and is refuted where no part of it is; else it is undecided. What nobody has run as its paper has it was
not tried, whatever others did: what another network, budget or reward of ours says stands in a column of its own.
"""

import math
from enum import StrEnum

from decision.analysis.statistics import Estimate


class Kind(StrEnum):
    """What a claim says of a difference."""

    ABOVE = "above"
    BELOW = "below"
    EQUAL = "equal"
    NO_WORSE = "no worse"  # equal or above


VERDICT_COLUMNS = "verdict", "by ours"  # of tables of claims: of the paper's own method, and of ours in its place


class Verdict(StrEnum):
    """What is known of a claim."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_TRIED = "not tried"


def judge(kind: Kind, found: Estimate | None, margin: float) -> Verdict:
    """What a difference and its interval say of a claim.

    Args:
        kind: what the claim says.
        found: the difference; None where it was not tried.
        margin: up to which differences count as equal.
    """
    if found is None:
        return Verdict.NOT_TRIED
    lowest = {Kind.ABOVE: margin, Kind.EQUAL: -margin, Kind.NO_WORSE: -margin}.get(kind, -math.inf)
    highest = {Kind.BELOW: -margin, Kind.EQUAL: margin}.get(kind, math.inf)
    above = found.low > lowest if kind == Kind.ABOVE else found.low >= lowest
    below = found.high < highest if kind == Kind.BELOW else found.high <= highest
    if above and below:
        return Verdict.HOLDS
    beside = (found.high <= lowest if kind == Kind.ABOVE else found.high < lowest) or (
        found.low >= highest if kind == Kind.BELOW else found.low > highest
    )
    return Verdict.REFUTED if beside else Verdict.UNDECIDED


def verdicts(kind: Kind, found: Estimate | None, margin: float, *, as_written: bool) -> tuple[str, str]:
    """What is known of a claim, and what ours says of it, for `VERDICT_COLUMNS`.

    Args:
        kind: what the claim says.
        found: the difference; None where nothing was tried.
        margin: up to which differences count as equal.
        as_written: whether all that was compared is as the paper has it.
    """
    known = judge(kind, found, margin).value
    if as_written or found is None:
        return known, ""
    return Verdict.NOT_TRIED.value, known
