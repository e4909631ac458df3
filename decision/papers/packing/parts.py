"""What reproductions of packing share: budgets, parts, made halves, and trainings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.experiments.inputs import LogOnHosts
from decision.experiments.statistics import bootstrap_mean
from decision.experiments.training import train_to_folder
from decision.files.generate.paper_workloads import predicted_runtimes
from decision.files.text import InputFacts
from decision.model.demand import runtimes
from decision.model.workload import Workload
from decision.papers.campaign import Part, ResultTable, training_folder
from decision.rl.envs import Setup, equal_hosts, evaluate, make_setup
from decision.rl.envs.batch import ChooseAll
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import LearnedPolicy, learned_policy
from decision.rl.learning.ppo import NetworkActor
from decision.rl.schedulers.window import JOB_FEATURES

_STEPS = 200_000  # choices of an evaluation at most: chance takes 14,000
UTILIZATION = "packed_utilization"


class PackingBudget(NamedTuple):
    """How many seeds, jobs and steps a budget of the command line means."""

    seeds: int
    jobs: int  # of a half that are used
    steps: int  # of a training
    widths: tuple[tuple[int, ...], tuple[int, ...]]  # of the layers, NN1 and NN2
    compact_steps: int  # of a training of packing-compact
    pairs: int  # of workloads that the shipped policy is tested on
    changes: tuple[str, ...] = ()  # to the preset


_SMALL = ("learn.minibatch=512", "learn.lr=1e-3", "learn.epochs=4")  # 4 is in the paper's grid, too
PACKING_BUDGETS = {
    "smoke": PackingBudget(
        1, 60, 512, ((16,), (32,)), 512, 1, ("learn.rollout=64", "learn.minibatch=256", "env.steps=500")
    ),
    "standard": PackingBudget(5, 1000, 400_000, ((128, 64, 32), (256, 64, 32)), 100_000, 20, _SMALL),
    "full": PackingBudget(5, 1000, 4_000_000, ((1024, 512, 256), (2048, 512, 256)), 2_000_000, 20),
}


class PackingPart(Part, frozen=True, kw_only=True):
    """What is learned or played with the workloads of a seed."""

    experiment = "packing"

    budget: PackingBudget
    learned: str  # the workload that is learned from; "" for what learns nothing
    method: str  # "" for heuristics

    @property
    def file(self) -> Path:
        """Utilization by half, and by who schedules it."""
        name = f"{self.learned}a-{self.method}".replace(", ", "-") if self.learned else self.method or "heuristics"
        return self.folder / f"{name}-{self.seed}.json"

    @property
    def plain(self) -> bool:
        """Whether it is of heuristics, the bound and chance."""
        return not (self.learned or self.method)


def made_half(seed: int, name: str, half: str, jobs: int, noise: float = 0.0) -> Workload:
    """The first jobs of a half, which say how long they run: right, but for a lognormal error of this sigma."""
    kind, _, accuracy = name.partition("_")
    whole = predicted_runtimes(np.random.default_rng(seed), kind, accuracy, half)
    error = np.exp(noise * np.random.default_rng([seed, 1]).standard_normal(len(whole.jobs)))
    said = zip(whole.jobs[:jobs], (runtimes(whole) * error).tolist(), strict=False)
    return msgspec.structs.replace(whole, jobs=[msgspec.structs.replace(job, estimate=run) for job, run in said])


def learned(task: PackingPart, preset: str, changes: Sequence[str]) -> LearnedPolicy:
    """What is learned from the task's half a; a training that was interrupted goes on."""
    jobs = made_half(task.seed, task.learned, "a", task.budget.jobs)
    changed = [f"env.jobs={task.budget.jobs}", "learn.threads=1", *changes]
    facts = InputFacts(name=f"{jobs.nb_res} equal hosts", sha256=""), InputFacts(name=task.file.stem, sha256="")
    log = LogOnHosts(equal_hosts(jobs.nb_res), jobs, facts)
    config = load_config(preset, changed, seed=task.seed)
    policy = learned_policy(train_to_folder(log, config, training_folder(task), resume=True))
    assert isinstance(policy, LearnedPolicy)
    return policy


def setup_of(jobs: Workload, **options: object) -> Setup:
    return make_setup(jobs, equal_hosts(jobs.nb_res), **{"encoder": "packing", "steps": _STEPS, **options})  # type: ignore[arg-type]


def packed_utilization(policy: str | ChooseAll, setup: Setup) -> float:
    return float(evaluate(policy, setup, first=[0])[UTILIZATION][0])


def interval(values: Sequence[float] | NDArray[np.float64], sign: str = "") -> str:
    """The mean with its interval, where there are several values."""
    estimate = bootstrap_mean(np.asarray(values)[:, None], np.random.default_rng(0))
    between = f" ({estimate.low:{sign}.3f} to {estimate.high:{sign}.3f})" if len(values) > 1 else ""
    return f"{estimate.value:{sign}.3f}{between}"


# What predictions are worth to packing-compact, on RND: there they say something.
#
# A network is learned from half a with perfect predictions and another without, both tested on half b. The first one is
# tested with predictions that are off, too, and asked which of its inputs move its choices: by permutation of these
# among the states of its own schedule (Breiman, Random Forests, Machine Learning 45, 2001).

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
