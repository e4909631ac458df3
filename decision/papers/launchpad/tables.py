"""Tables and figures of Launchpad's reproduction, from values of rollouts."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from decision.model.record import Floats

from ..findings import ResultTable
from ..verdicts import Kind, Verdict, judge
from .claims import (
    CLAIMS,
    MARGIN,
    PUBLISHED_AGREEMENT,
    PUBLISHED_FIT,
    PUBLISHED_ORDER,
    QUALITIES,
    Difference,
    common,
    difference,
    paired,
    spread,
)

BySeed = dict[int, Floats]  # seed: (R,)
Values = dict[int, dict[str, BySeed]]  # hosts, contender: share of the value
FIGURES = {  # number in the paper: contenders, and hosts where there are such
    3: (("QoS", "BC_qos", "BC_qos_sjf", "BC_combo"), ()),
    4: (("BC_qos", "BC_qos_sjf", "BC_combo", "Offline_qos", "Offline_qos_sjf", "Offline_combo"), ()),
    5: (("QoS", "BC_combo", "Offline_combo"), (50,)),
    6: (("BC_qos", "Offline_combo"), ()),
    7: (("BC_qos", "Offline_combo", "Online"), ()),
    8: (("BC_qos", "Offline_combo", "Offline+Online_qos"), (100,)),
}
_TICK = {True: "yes", False: "no"}
_SUITS = {Verdict.HOLDS: "yes", Verdict.REFUTED: "no", Verdict.UNDECIDED: "undecided"}
_EARLY = "Offline+Online_qos"


class Results(NamedTuple):
    """All that was found."""

    values: Values
    early: Values  # after a third of the steps in environments
    seconds: dict[str, dict[int, float]]  # contender, at the fewest hosts: of a processor, by seed
    agreement: dict[str, dict[int, Floats]]  # contender: (2,) of all steps, of choices, by seed
    possible: dict[str, Floats]  # mix: (2,) likewise, the most
    samples: int  # of the bootstrap


def value_table(found: Results) -> ResultTable:
    """Each contender's value at each size."""
    sizes = sorted(found.values)
    names = dict.fromkeys(name for size in sizes for name in found.values[size])
    rows = [(name, *(_value(found, size, name) for size in sizes)) for name in names]
    title = "Share of the submitted value, IQM (95 %), by hosts"
    return ResultTable(title, ("who", *map(str, sizes)), rows)


def _value(found: Results, size: int, name: str) -> str:
    by_seed = found.values[size].get(name)
    if by_seed is None:
        return ""
    return plain(spread(np.array([by_seed[seed] for seed in sorted(by_seed)]), found.samples))


def plain(found: Difference) -> str:
    """A value and its interval, without a sign."""
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def claim_table(found: Results) -> ResultTable:
    """Each claim at each size of the paper, with its number and what that says."""
    rows: list[tuple[str, ...]] = []
    for claim in CLAIMS:
        for size in claim.hosts:
            change = change_of(found.values, claim.own, claim.other, size, found.samples)
            shown = "" if change is None else str(change)
            rows.append((claim.name, str(claim), str(size), shown, judge(claim.kind, change, MARGIN).value))
    rows += [*_agreement_rows(found), *_time_rows(found), *_early_rows(found)]
    title = f"Claims: differences (95 %); what differs by no more than {MARGIN} counts as equal"
    return ResultTable(title, ("claim", "what", "hosts", "here", "verdict"), rows)


def change_of(values: Values, own: str, other: str, size: int, samples: int) -> Difference | None:
    """Of two contenders on the rollouts of the seeds that both have; None where they have none in common."""
    names = values.get(size, {})
    if not names.get(own, {}).keys() & names.get(other, {}).keys():
        return None
    return difference(*common(names[own], names[other]), samples)


def _agreement_rows(found: Results) -> list[tuple[str, ...]]:
    """C8: table 1 over all steps, figure by figure."""
    rows: list[tuple[str, ...]] = []
    for method, published in PUBLISHED_AGREEMENT.items():
        for mix, share in published.items():
            if by_seed := found.agreement.get(f"{method}_{mix}"):
                ours = np.array([[by_seed[seed][0]] for seed in sorted(by_seed)])
                change = paired(ours, np.full_like(ours, share), _mean_change, found.samples)
                what = f"{method}_{mix} agrees with its data in {share:.0%} of all steps"
                rows.append(("C8", what, str(min(found.values)), str(change), judge(Kind.EQUAL, change, MARGIN).value))
    return rows


def _mean_change(own: Floats, other: Floats) -> float:
    return float(own.mean() - other.mean())


def _time_rows(found: Results) -> list[tuple[str, ...]]:
    """C9: each method takes longer to learn than the one before: the lengths of fixed budgets do not say that."""
    size = str(min(found.values))
    return [
        ("C9", f"{longer} takes longer to reach what {shorter} reaches", size, "", Verdict.NOT_TRIED.value)
        for shorter, longer in pairwise(PUBLISHED_ORDER)
    ]


def _early_rows(found: Results) -> list[tuple[str, ...]]:
    """C10: offline+online is in a third of the steps where online is at the end."""
    rows: list[tuple[str, ...]] = []
    for size, names in sorted(found.early.items()):
        own, other = names.get(_EARLY, {}), found.values.get(size, {}).get("Online", {})
        if own.keys() & other.keys():
            change = difference(*common(own, other), found.samples)
            what = f"{_EARLY} in a third of its steps no worse than Online"
            rows.append(("C10", what, str(size), str(change), judge(Kind.NO_WORSE, change, MARGIN).value))
    return rows


def agreement_table(found: Results) -> ResultTable:
    """Table 1: shares of equal choices, of all steps (and of those with a choice); the paper's; the most possible."""
    mixes = tuple(next(iter(PUBLISHED_AGREEMENT.values())))
    rows = []
    for method, published in PUBLISHED_AGREEMENT.items():
        cells = []
        for mix in mixes:
            by_seed = found.agreement.get(f"{method}_{mix}")
            cells.append(_agreed(np.mean(list(by_seed.values()), axis=0)) if by_seed else "")
        rows.append((method, *cells))
        rows.append((f"{method}, paper", *(f"{published[mix]:.0%}" for mix in mixes)))
    rows.append(("most possible", *(_agreed(found.possible[mix]) if mix in found.possible else "" for mix in mixes)))
    return ResultTable("Table 1: agreement with the data, of all steps (of choices)", ("method", *mixes), rows)


def _agreed(shares: Floats) -> str:
    return f"{shares[0]:.0%} ({shares[1]:.0%})"


def fit_table(found: Results) -> ResultTable:
    """Table 2: a method suits data where it is no worse than QoS, at the fewest hosts."""
    methods, size = PUBLISHED_ORDER, min(found.values)
    rows = []
    for quality, mixes in QUALITIES.items():
        cells = []
        for method in methods:
            names = [f"{method}_{mix}" if mix else method for mix in mixes]
            changes = [change_of(found.values, name, "QoS", size, found.samples) for name in names]
            known = [judge(Kind.NO_WORSE, change, MARGIN) for change in changes if change is not None]
            here = ", ".join(_SUITS[verdict] for verdict in known)
            published = PUBLISHED_FIT[quality].get(method)
            cells.append(f"{here or '-'} ({'-' if published is None else _TICK[published]})")
        rows.append((f"{quality} ({', '.join(mixes) or 'none'})", *cells))
    return ResultTable("Table 2: no worse than QoS from such data (paper)", ("data", *methods), rows)


def time_table(found: Results) -> ResultTable:
    """Seconds of a processor that a training takes, mean over seeds."""
    rows = [(name, f"{np.nanmean(list(each.values())):,.1f}") for name, each in found.seconds.items() if each]
    return ResultTable("Seconds of a processor to learn", ("who", "seconds"), rows)


def figure_values(found: Results, number: int) -> dict[str, dict[int, Difference]]:
    """What a figure of the paper shows: contender, hosts, value."""
    names, sizes = FIGURES[number]
    return {
        name: {
            size: spread(np.array([by_seed[seed] for seed in sorted(by_seed)]), found.samples)
            for size, contenders in sorted(found.values.items())
            if (by_seed := contenders.get(name)) and (not sizes or size in sizes)
        }
        for name in names
    }


def figure_csv(values: Mapping[str, Mapping[int, Difference]]) -> bytes:
    """A figure's numbers as a table."""
    lines = ["who,hosts,value,low,high"]
    lines += [
        f"{name},{size},{each.value:.6f},{each.low:.6f},{each.high:.6f}"
        for name, sizes in values.items()
        for size, each in sizes.items()
    ]
    return "\n".join([*lines, ""]).encode()
