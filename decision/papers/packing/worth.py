"""What predictions are worth to packing-compact, on RND: there they say something.

A network is learned from half a with perfect predictions and another without, both tested on half b. The first one is
tested with predictions that are off, too, and asked which of its inputs move its choices: by permutation of these
among the states of its own schedule (Breiman, Random Forests, Machine Learning 45, 2001).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from decision.learn.actor import NetworkActor
from decision.learn.deploy import LearnedPolicy
from decision.learned.window import JOB_FEATURES

from ..findings import ResultTable
from .parts import PackingPart, interval, learned, made_half, packed_utilization, setup_of

ON = ("WL1_RND", "WL2_RND")
WITHOUT, WITH = "compact", "compact, predictions"
NOISES = (0.0, 0.25, 0.5, 1.0, 2.0)  # sigmas of the logarithm of predictions; 0: perfect ones
_GROUPS = ("cluster", "nodes", "requested times", "predicted times")
_STATES = 4000  # of which choices are compared, at most

Values = Mapping[str, Mapping[str, float]]


def learn_compact(task: PackingPart) -> dict[str, dict[str, float]]:
    """Utilization on half b; with predictions by their noise, and the share of choices that each input moves."""
    predicts = task.method == WITH
    changes = (f"env.estimate={'given' if predicts else 'none'}", f"learn.steps={task.budget.compact_steps}")
    policy = learned(task, "packing-compact", ("learn.envs=16", *changes))
    noises = NOISES if predicts else NOISES[:1]
    found = {f"{task.learned}b": {_noise(each): _tested(policy, task, each) for each in noises}}
    return {**found, "moved": _moved(policy, task)} if predicts else found


def worth_tables(found: Mapping[PackingPart, Values]) -> list[ResultTable]:
    """The gain over the network without predictions, by noise, and which inputs move choices; those there are."""
    gains, moved = [], []
    for name in ON:
        by_seed = {
            method: {task.seed: rows for task, rows in found.items() if (task.learned, task.method) == (name, method)}
            for method in (WITHOUT, WITH)
        }
        seeds = sorted(by_seed[WITHOUT].keys() & by_seed[WITH].keys())
        if seeds:
            plain = np.array([by_seed[WITHOUT][seed][f"{name}b"][_noise(0.0)] for seed in seeds])
            own = {s: np.array([by_seed[WITH][seed][f"{name}b"][_noise(s)] for seed in seeds]) for s in NOISES}
            cells = (interval(values - plain, "+") for values in own.values())
            gains.append((f"{name}b", interval(plain), *cells, str(len(seeds))))
            shares = {group: np.array([by_seed[WITH][seed]["moved"][group] for seed in seeds]) for group in _GROUPS}
            moved.append((f"{name}b", *(interval(values) for values in shares.values())))
    headers = ["perfect predictions", *(f"off by S = {s:g}" for s in NOISES[1:])]
    return [
        ResultTable(
            "packing-compact on RND: utilization without predictions, and what these add",
            ("half", "without", *headers, "pairs"),
            gains,
        ),
        ResultTable("Share of choices that change where an input is permuted", ("half", *_GROUPS), moved),
    ]


def _noise(sigma: float) -> str:
    return f"noise:{sigma:g}"


def _tested(policy: LearnedPolicy, task: PackingPart, noise: float) -> float:
    policy.actor.reset(task.seed)
    setup = setup_of(made_half(task.seed, task.learned, "b", task.budget.jobs, noise), encoder=policy.encoder)
    return packed_utilization(policy.actor.together, setup)


def _moved(policy: LearnedPolicy, task: PackingPart) -> dict[str, float]:
    """Share of the most likely choices that become others, by what is permuted."""
    seen, masks = _states(policy, task)
    best, rng = NetworkActor(policy.actor.network, "nothing").together, np.random.default_rng(task.seed)
    order, own = rng.permutation(len(seen)), best(seen, masks)
    shares = {}
    for group, columns in zip(_GROUPS, _columns(seen.shape[1], masks.shape[1] - 1), strict=True):
        other = seen.copy()
        other[:, columns] = seen[order][:, columns]
        shares[group] = float((best(other, masks) != own).mean())
    return shares


def _columns(width: int, window: int) -> list[NDArray[np.int64]]:
    """Of the cluster, and of each number about jobs."""
    pools = width - JOB_FEATURES * window
    return [np.arange(pools), *(np.arange(pools + k, width, JOB_FEATURES) for k in range(JOB_FEATURES - 1))]


def _states(policy: LearnedPolicy, task: PackingPart) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Observations and masks of its own schedule of half b, those with something to choose."""
    seen: list[NDArray[np.float32]] = []
    masks: list[NDArray[np.int8]] = []

    def choose(observations: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.int64]:
        if mask.sum() > 1:
            seen.append(observations[0].copy())
            masks.append(mask[0].copy())
        return policy.actor.together(observations, mask)

    policy.actor.reset(task.seed)
    packed_utilization(
        choose, setup_of(made_half(task.seed, task.learned, "b", task.budget.jobs), encoder=policy.encoder)
    )
    rows = np.linspace(0, len(seen) - 1, min(len(seen), _STATES)).astype(int)
    return np.array(seen)[rows], np.array(masks)[rows]
