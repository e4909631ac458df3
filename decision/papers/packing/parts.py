"""What reproductions of packing share: budgets, parts, made halves, and trainings."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.analysis.statistics import bootstrap_mean
from decision.envs import Setup, equal_hosts, evaluate, make_setup
from decision.envs.evaluation import ChooseAll
from decision.formats.input_facts import InputFacts
from decision.generate.papers.predicted_runtimes import predicted_runtimes
from decision.learn.config import load_config
from decision.learn.deploy import LearnedPolicy, learned_policy
from decision.model.demand import runtimes
from decision.model.workload import Workload
from decision.runs.inputs import LogOnHosts
from decision.runs.training import train_to_folder

from ..campaign import Part, training_folder

_STEPS = 200_000  # choices of an evaluation at most: chance takes 14,000
UTILIZATION = "packed_utilization"


class PackingBudget(NamedTuple):
    """What that means."""

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
