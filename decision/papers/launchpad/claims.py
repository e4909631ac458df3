"""What Launchpad's paper claims, and how each claim is held against values of rollouts.

Values are shares of the submitted value, S seeds by R rollouts, the same rollouts for all that is compared. Compared
are interquartile means (IQM). An interval holds 95 % of the differences over bootstrap samples, which draw seeds, and
of each seed rollouts, the same for both sides.

The paper's figures have no numbers in its text, only that its intervals are within 0.015 to 0.023: what differs by
no more than 0.023 counts as equal, in every claim on values and on agreement.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from decision.experiments.statistics import Estimate, middle_mean
from decision.model.record import Floats
from decision.papers.campaign import (
    RUNS_OF_A_VERDICT,
    VERDICT_COLUMNS,
    Kind,
    PaperAgent,
    ResultTable,
    Verdict,
    counted,
    judge,
    verdicts,
)

HEURISTICS = {  # by the paper's names, and more
    "QoS": "qos+first-fit",
    "SJF": "sjf+first-fit",
    "FCFS": "fcfs+first-fit",
    "HVF": "hvf+first-fit",
    "EDF": "edf+first-fit",
    "density": "density+first-fit",
}
SUSPENDING = {f"{name}, suspending": f"{policy},suspend=density" for name, policy in HEURISTICS.items()}
RULES = {**HEURISTICS, **SUSPENDING}

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
        return f"{self.value:+z.3f} ({self.low:+z.3f} to {self.high:+z.3f})"


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


# Tables and figures of Launchpad's reproduction, from values of rollouts.

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
_SHOW = {  # what they show
    3: "cloned heuristics beside QoS",
    4: "cloning and offline learning by what they learn from",
    5: "offline learning from mixed data beside cloning and QoS",
    6: "offline learning beside cloning",
    7: "online learning beside offline learning and cloning",
    8: "offline, then online learning beside either",
}
_TICK = {True: "yes", False: "no"}
_SUITS = {Verdict.HOLDS: "yes", Verdict.REFUTED: "no", Verdict.UNDECIDED: "undecided"}
_DATA = "qos"  # what times are compared with
_EARLY = f"Offline+Online_{_DATA}"
TIME_MARGIN = 1.5  # times that differ by no more than this factor count as equal


class Results(NamedTuple):
    """All that finished parts found, by hosts, contender and seed."""

    values: Values
    early: Values  # after a third of the steps in environments
    moments: dict[str, dict[int, Floats]]  # contender, at the fewest hosts: (M, 2) seconds and shares, by seed
    agreement: dict[str, dict[int, Floats]]  # contender: (2,) of all steps, of choices, by seed
    possible: dict[str, Floats]  # mix: (2,) likewise, the most
    samples: int  # of the bootstrap
    agent: PaperAgent  # who learns


def value_table(found: Results) -> ResultTable:
    """Each contender's value at each size."""
    sizes = sorted(found.values)
    names = dict.fromkeys(name for size in sizes for name in found.values[size])
    rows = []
    for name in names:
        seeds = (found.values[size].get(name) for size in sizes)
        shares = (np.array([each[seed] for seed in sorted(each)]) if each else None for each in seeds)
        rows.append((name, *("" if each is None else plain(spread(each, found.samples)) for each in shares)))
    title = "Share of the submitted value, IQM (95 %), by hosts"
    return ResultTable(title, ("who", *map(str, sizes)), rows)


def plain(found: MeanDifference) -> str:
    """A value and its interval, without a sign."""
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def claim_table(found: Results) -> ResultTable:
    """Each claim at each size that there are runs for, with its number and what that says."""
    rows: list[tuple[str, ...]] = []
    without = 0
    for claim in CLAIMS:
        for size in claim.hosts:
            change = change_of(found.values, claim.own, claim.other, size, found.samples)
            if change is None:
                without += 1
                continue
            agent = None if {claim.own, claim.other} <= RULES.keys() else found.agent
            runs = _runs(found, size, claim.own, claim.other)
            known = verdicts(claim.kind, change, WITHIN, agent=agent, runs=runs)
            rows.append((claim.name, str(claim), str(size), str(change), *known))
    for (method, published), mix in product(PUBLISHED_AGREEMENT.items(), PUBLISHED_AGREEMENT["BC"]):
        # C8: table 1 over all steps, figure by figure
        share, by_seed = published[mix], found.agreement.get(f"{method}_{mix}")
        if by_seed:
            ours = np.array([[by_seed[seed][0]] for seed in sorted(by_seed)])
            theirs = np.full_like(ours, share)
            change = paired(ours, theirs, lambda one, two: float(one.mean() - two.mean()), found.samples)
            what = f"{method}_{mix} agrees with its data in {share:.0%} of all steps"
            known = verdicts(Kind.EQUAL, change, WITHIN, agent=found.agent, runs=len(by_seed))
            rows.append(("C8", what, str(min(found.values)), str(change), *known))
    rows += _time_rows(found)
    for size, names in sorted(found.early.items()):
        # C10: offline+online is in a third of the steps where online is at the end
        own, other = names.get(_EARLY, {}), found.values.get(size, {}).get("Online", {})
        if runs := len(own.keys() & other.keys()):
            change = mean_difference(*common(own, other), found.samples)
            known = verdicts(Kind.NO_WORSE, change, WITHIN, agent=found.agent, runs=runs)
            rows.append(
                ("C10", f"{_EARLY} in a third of its steps no worse than Online", str(size), str(change), *known)
            )
    equal = f"no more than {WITHIN}, of times no more than a factor of {TIME_MARGIN},"
    title = f"Claims: differences (95 %); what differs by {equal} counts as equal"
    title += f"; {counted(without, 'more claim')} of a size have no runs" if without else ""
    return ResultTable(title, ("claim", "what", "hosts", "here", *VERDICT_COLUMNS), rows)


def change_of(values: Values, own: str, other: str, size: int, samples: int) -> MeanDifference | None:
    """Of two contenders on the rollouts of the seeds that both have; None where they have none in common."""
    names = values.get(size, {})
    if not names.get(own, {}).keys() & names.get(other, {}).keys():
        return None
    return mean_difference(*common(names[own], names[other]), samples)


def _runs(found: Results, size: int, own: str, other: str) -> int:
    """Seeds that both contenders have."""
    names = found.values[size]
    return len(names[own].keys() & names[other].keys())


def _time_rows(found: Results) -> list[tuple[str, ...]]:
    """C9: each method takes longer than the one before to come to what QoS gets, less the margin."""
    rows: list[tuple[str, ...]] = []
    times = times_to_value(found)
    for shorter, longer in pairwise(PUBLISHED_ORDER):
        one, other = (times.get(f"{method}_{_DATA}", times.get(method, {})) for method in (shorter, longer))
        ratio = time_ratio(one, other, found.samples)
        if ratio is None:
            continue
        what = f"{longer} takes longer than {shorter} to reach QoS less {WITHIN}"
        shown = f"{_factor(ratio.value)} ({_factor(ratio.low)} to {_factor(ratio.high)})"
        runs = len(one.keys() & other.keys())
        known = verdicts(Kind.ABOVE, ratio, math.log(TIME_MARGIN), agent=found.agent, runs=runs)
        rows.append(("C9", what, str(min(found.values)), shown, *known))
    return rows


def times_to_value(found: Results) -> dict[str, dict[int, float]]:
    """Seconds of a processor until a contender's share is QoS's on the same rollouts, less the margin, by seed.

    Infinite where it never is; none of trainings that were interrupted.
    """
    qos = found.values[min(found.values)].get("QoS", {})
    times: dict[str, dict[int, float]] = {}
    for name, by_seed in found.moments.items():
        for seed in by_seed.keys() & qos.keys():
            seconds, shares = by_seed[seed].T
            there = seconds[shares >= middle_mean(qos[seed]) - WITHIN]
            if not np.isnan(seconds).any():
                times.setdefault(name, {})[seed] = float(there[0]) if len(there) else math.inf
    return times


def time_ratio(shorter: Mapping[int, float], longer: Mapping[int, float], samples: int) -> MeanDifference | None:
    """The logarithm of how many times as long the second takes: the median over seeds that either comes there with."""
    seeds = [s for s in sorted(shorter.keys() & longer.keys()) if not shorter[s] == longer[s] == math.inf]
    if not seeds:
        return None
    ratio = np.log([longer[s] for s in seeds]) - np.log([shorter[s] for s in seeds])
    drawn = np.random.default_rng(0).integers(len(seeds), size=(samples, len(seeds)))
    low, high = np.quantile(np.median(ratio[drawn], axis=1), (0.025, 0.975), method="nearest")
    return MeanDifference(float(np.median(ratio)), float(low), float(high))


def _factor(logarithm: float) -> str:
    return "never" if logarithm == math.inf else f"{math.exp(logarithm):.2g} times"


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
            here = []
            for name in filter(found.values[size].__contains__, names):
                change = change_of(found.values, name, "QoS", size, found.samples)
                few = change is None or _runs(found, size, name, "QoS") < RUNS_OF_A_VERDICT
                here.append(_SUITS[Verdict.UNDECIDED if few else judge(Kind.NO_WORSE, change, WITHIN)])
            published = PUBLISHED_FIT[quality].get(method)
            cells.append(f"{', '.join(here) or '-'} ({'-' if published is None else _TICK[published]})")
        rows.append((f"{quality} ({', '.join(mixes) or 'none'})", *cells))
    return ResultTable("Table 2: no worse than QoS from such data (paper)", ("data", *methods), rows)


def time_table(found: Results) -> ResultTable:
    """Seconds of a processor until a value is reached, median over seeds, and that a training takes, the mean."""
    rows: list[tuple[str, ...]] = []
    times = times_to_value(found)
    for name, by_seed in found.moments.items():
        seconds = [moments[-1, 0] for moments in by_seed.values()]
        reached = np.median(list(times[name].values())) if name in times else math.nan
        shown = "never" if reached == math.inf else f"{reached:,.1f}"
        rows.append((name, shown, f"{np.mean(seconds):,.1f}"))
    return ResultTable("Seconds of a processor to learn", ("who", f"to QoS less {WITHIN}", "all updates"), rows)


def figure_values(found: Results, number: int) -> dict[str, dict[int, MeanDifference]]:
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


def figure_title(found: Results, number: int) -> str:
    """What a figure shows, and over how many seeds."""
    names, sizes = FIGURES[number]
    some = [each.get(name) for at, each in found.values.items() if not sizes or at in sizes for name in names]
    seeds = sorted({len(by_seed) for by_seed in some if by_seed})
    runs = counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    return f"{_SHOW[number]} (figure {number}): interquartile means of rollouts, 95 %, {runs}"


def figure_csv(values: Mapping[str, Mapping[int, MeanDifference]]) -> bytes:
    """A figure's numbers as a table."""
    lines = ["who,hosts,value,low,high"]
    lines += [
        f"{name},{size},{each.value:.6f},{each.low:.6f},{each.high:.6f}"
        for name, sizes in values.items()
        for size, each in sizes.items()
    ]
    return "\n".join([*lines, ""]).encode()
