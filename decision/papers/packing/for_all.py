"""One policy for all: the shipped `packer` on halves b of made pairs, against heuristics and specialists.

It was learned from other seeds and other shares of single-node jobs (`decision reproduce packer`). A specialist is a
network that was learned from half a of the workload whose half b it schedules.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from decision.papers.campaign import ResultTable

from .claims import METHODS, WORKLOADS
from .parts import PackingPart, interval, made_half, packed_utilization, setup_of

FOR_ALL = "packer"  # a part
_OWN = "packer,estimate=given"
_RIVALS = {"laf+easy": "laf+easy", "lqf+easy": "lqf+easy", "FCFS w/ BF": "easy"}
_PREDICTING = {f"{name}, predictions": f"{policy},estimate=given" for name, policy in _RIVALS.items()}
_POLICIES = {"packer, predictions": _OWN, "packer": "packer", **_RIVALS, **_PREDICTING}

Values = Mapping[str, Mapping[str, float]]


def evaluate_for_all(task: PackingPart) -> dict[str, dict[str, float]]:
    """Utilization of each half b, by policy."""
    setups = {f"{name}b": setup_of(made_half(task.seed, name, "b", task.budget.jobs)) for name in WORKLOADS}
    return {
        half: {label: packed_utilization(policy, setup) for label, policy in _POLICIES.items()}
        for half, setup in setups.items()
    }


def for_all_tables(found: Mapping[PackingPart, Values]) -> list[ResultTable]:
    """Means over the six halves, and by half; none where no pair is finished."""
    pairs = {task.seed: rows for task, rows in found.items() if task.method == FOR_ALL}
    if not pairs:
        return []
    own, *others = _POLICIES
    means = {label: {seed: _mean(rows, label) for seed, rows in pairs.items()} for label in _POLICIES}
    rivals = {label: means[label] for label in others} | _specialists(found)
    overall = [(own, _shown(list(means[own].values())), "", str(len(pairs)))]
    for label, by_seed in rivals.items():
        seeds = sorted(by_seed.keys() & pairs.keys())
        if seeds:
            more = [means[own][seed] - by_seed[seed] for seed in seeds]
            overall.append((label, _shown([by_seed[seed] for seed in seeds]), interval(more, "+"), str(len(seeds))))
    columns = ("policy", "utilization", "less than packing with predictions by", "pairs")
    return [
        ResultTable("One policy for all: means over the six halves b", columns, overall),
        ResultTable(
            "One policy for all, by half: packing with predictions over others",
            ("half", own, *others),
            [_by_half(f"{name}b", list(pairs.values())) for name in WORKLOADS],
        ),
    ]


def _mean(rows: Values, label: str) -> float:
    return float(np.mean([rows[f"{name}b"][label] for name in WORKLOADS]))


def _specialists(found: Mapping[PackingPart, Values]) -> dict[str, dict[int, float]]:
    """By method and seed: the mean over the workloads, where each has its own."""
    specialists: dict[str, dict[int, float]] = {}
    for method in METHODS:
        by_seed: dict[int, list[float]] = {}
        for task, rows in found.items():
            if task.learned and task.method == method:
                by_seed.setdefault(task.seed, []).append(rows[f"{task.learned}b"][method])
        whole = {seed: float(np.mean(own)) for seed, own in by_seed.items() if len(own) == len(WORKLOADS)}
        specialists[f"specialists, {method}"] = whole
    return specialists


def _by_half(half: str, pairs: Sequence[Values]) -> tuple[str, ...]:
    own, *others = _POLICIES
    values = {label: np.array([rows[half][label] for rows in pairs]) for label in _POLICIES}
    return half, interval(values[own]), *(interval(values[own] - values[label], "+") for label in others)


def _shown(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}"
