"""What Takizawa, Nomura and Matsuba published, and the counts that their claims are made of.

A count is made of any tables of that form: of theirs, where it says what holds only with ties, and of ours.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
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
from decision.papers.campaign import (
    VERDICT_COLUMNS,
    Kind,
    PaperAgent,
    Part,
    ResultTable,
    counted,
    training_folder,
    verdicts,
)
from decision.rl.envs import Setup, equal_hosts, evaluate, make_setup
from decision.rl.envs.batch import ChooseAll
from decision.rl.learning.acting import NetworkActor
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import LearnedPolicy, learned_policy
from decision.rl.schedulers.window import JOB_FEATURES

WORKLOADS = ("WL1_100", "WL1_050", "WL1_RND", "WL2_100", "WL2_050", "WL2_RND")
METHODS = ("baseline", "NN1", "NN2")  # without predictions; with, in two widths
PUBLISHED_HEURISTICS = {"SJF": "sjf", "SJF w/ BF": "sjf+easy", "FCFS": "fcfs", "FCFS w/ BF": "easy"}

ByHeuristic = Mapping[str, Mapping[str, float]]  # half (WL1_100a), heuristic: utilization
OnOwn = Mapping[str, tuple[float, ...]]  # workload: utilization on its half a, by method
OnOthers = Mapping[tuple[str, str], tuple[float, ...]]  # learned from half a, on half b: utilization, by method


def _rows(text: str) -> list[list[float]]:
    return [[float(number) for number in line.replace("/", " ").split()] for line in text.strip().splitlines()]


_TABLE_4 = _rows("""
.54 .70 .54 .74 .64 .78 .57 .75
.44 .47 .49 .51 .46 .49 .55 .53
.45 .47 .44 .50 .45 .55 .49 .63
.74 .88 .68 .92 .78 .90 .69 .94
.69 .79 .65 .82 .77 .86 .69 .90
.67 .78 .61 .80 .69 .86 .62 .90
""")
_TABLE_5 = _rows("""
.67 .64 .67
.46 .48 .48
.45 .42 .46
.84 .83 .85
.76 .76 .75
.76 .76 .77
""")
_TABLE_6 = _rows("""
.74/.71/.72 .47/.46/.47 .53/.48/.52 .86/.85/.85 .83/.82/.83 .83/.81/.81
.72/.70/.72 .49/.49/.48 .54/.55/.55 .78/.77/.76 .77/.75/.74 .74/.74/.74
.70/.60/.71 .48/.51/.47 .55/.50/.54 .78/.70/.86 .69/.64/.82 .71/.63/.83
.68/.69/.70 .44/.45/.47 .50/.52/.50 .87/.87/.87 .81/.82/.83 .82/.83/.84
.71/.73/.71 .46/.46/.46 .51/.53/.54 .87/.86/.87 .83/.82/.83 .84/.83/.83
.73/.72/.73 .46/.45/.46 .51/.52/.54 .87/.86/.86 .83/.81/.82 .84/.82/.83
""")
PUBLISHED_4: ByHeuristic = {
    f"{name}{half}": dict(zip(PUBLISHED_HEURISTICS, row[4 * at : 4 * at + 4], strict=True))
    for name, row in zip(WORKLOADS, _TABLE_4, strict=True)
    for at, half in enumerate("ab")
}
PUBLISHED_5: OnOwn = {name: tuple(row) for name, row in zip(WORKLOADS, _TABLE_5, strict=True)}
PUBLISHED_6: OnOthers = {
    (learned, tested): tuple(row[3 * at : 3 * at + 3])
    for learned, row in zip(WORKLOADS, _TABLE_6, strict=True)
    for at, tested in enumerate(WORKLOADS)
}


class Claims(NamedTuple):
    """Counts; texts say of how many."""

    at_least_simple: int  # cells of table 5 at or above both SJF and FCFS, of 18
    above_simple: int  # above both
    below_backfilling: int  # below FCFS with backfilling, of 18
    unlike_below: tuple[int, ...]  # cells of table 6 from another workload, below SJF or FCFS, by method; of 25 each
    own_best: int  # columns of table 6 whose own workload is best, with ties; of 18
    own_alone_best: int  # without
    own_effect: float  # utilization of the own row minus the mean of the five others, mean over columns
    accuracy_effect: float  # minus the mean of the two others of the same WL
    kind_effect: float  # minus the mean of the three of the other WL
    predictions_gain_nothing: int  # own workloads where the baseline is at least both others, of 6
    wider_at_least: int  # cells of table 6 where NN2 is at least NN1, of 36
    wider_above: int  # above


def count_claims(by_heuristic: ByHeuristic, own: OnOwn, others: OnOthers) -> Claims:
    """Count; WL1_050b is left out of `unlike_below`, as in the paper."""
    simple = {half: max(row["SJF"], row["FCFS"]) for half, row in by_heuristic.items()}
    backfilling = {half: row["FCFS w/ BF"] for half, row in by_heuristic.items()}
    cells = [(value, f"{name}a") for name, row in own.items() for value in row]
    unlike = [(x, t) for x, t in product(WORKLOADS, WORKLOADS) if x != t and t != "WL1_050"]
    below = tuple(sum(others[x, t][m] < simple[f"{t}b"] - _HAIR for x, t in unlike) for m in range(len(METHODS)))
    columns = [(t, m) for t in WORKLOADS for m in range(len(METHODS))]
    rivals = {(t, m): [others[x, t][m] for x in WORKLOADS if x != t] for t, m in columns}
    return Claims(
        at_least_simple=sum(value >= simple[half] - _HAIR for value, half in cells),
        above_simple=sum(value > simple[half] + _HAIR for value, half in cells),
        below_backfilling=sum(value < backfilling[half] - _HAIR for value, half in cells),
        unlike_below=below,
        own_best=sum(others[t, t][m] >= max(rivals[t, m]) - _HAIR for t, m in columns),
        own_alone_best=sum(others[t, t][m] > max(rivals[t, m]) + _HAIR for t, m in columns),
        own_effect=_effect(others, columns, lambda x, t: True),
        accuracy_effect=_effect(others, columns, lambda x, t: x[:3] == t[:3]),
        kind_effect=_effect(others, columns, lambda x, t: x[:3] != t[:3]),
        predictions_gain_nothing=sum(others[t, t][0] >= max(others[t, t][1:]) - _HAIR for t in WORKLOADS),
        wider_at_least=sum(row[2] >= row[1] - _HAIR for row in others.values()),
        wider_above=sum(row[2] > row[1] + _HAIR for row in others.values()),
    )


_HAIR = 1e-9  # published figures are decimals


def _effect(others: OnOthers, columns: Sequence[tuple[str, int]], counts: Callable[[str, str], bool]) -> float:
    """Mean over columns of the own row minus the mean of other rows, those that count."""
    total = 0.0
    for tested, method in columns:
        rows = [others[x, tested][method] for x in WORKLOADS if x != tested and counts(x, tested)]
        total += others[tested, tested][method] - sum(rows) / len(rows)
    return total / len(columns)


# What is known of the packing paper's claims: mean differences of utilization by pair of workloads, by one rule.
#
# The paper counts cells of its tables; a count has no interval, and chance has nearly the same counts. So each claim is
# a mean over the same cells here, pairs are drawn with replacement, and differences within `_MARGIN` count as equal.

_MARGIN = 0.005  # of utilization: the paper prints two decimals


class Pair(NamedTuple):
    """What was found on a pair of workloads."""

    rules: Mapping[str, Mapping[str, float]]  # half, heuristic: utilization
    learned: Mapping[tuple[str, str, str], float]  # workload learned from, method, half

    def own(self, name: str, method: str) -> float:
        """On the half that it learned from."""
        return self.learned[name, method, f"{name}a"]

    def on(self, name: str, method: str, tested: str) -> float:
        """The utilization that a method of this name reached on a half b."""
        return self.learned[name, method, f"{tested}b"]

    def simple(self, half: str) -> float:
        """The better one of SJF and FCFS."""
        return max(self.rules[half]["SJF"], self.rules[half]["FCFS"])


def judged(pairs: list[Pair], agent: PaperAgent) -> ResultTable:
    """Each claim with its difference, and what that says.

    Args:
        pairs: of the seeds.
        agent: who learned.
    """
    rows = []
    for what, kind, cells in _CLAIMS:
        means = np.array([[np.mean(list(cells(pair)))] for pair in pairs])
        found = bootstrap_mean(means, np.random.default_rng(0))
        shown = f"{found.value:+z.3f} ({found.low:+z.3f} to {found.high:+z.3f})"
        rows.append((what, shown, *verdicts(kind, found, _MARGIN, agent=agent, runs=len(pairs))))
    by = f"95 %, by {counted(len(pairs), 'pair')}"
    title = f"Claims: differences of utilization ({by}); within {_MARGIN} they are equal"
    return ResultTable(title, ("claim", "found", *VERDICT_COLUMNS), rows)


def _against(own: Callable[[Pair, str, str], float], other: Callable[[Pair, str], float]) -> "_Cells":
    """Each network on its own half a against something there."""

    def cells(pair: Pair) -> Iterator[float]:
        return (own(pair, name, method) - other(pair, f"{name}a") for name in WORKLOADS for method in METHODS)

    return cells


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
    (
        "learned on another workload, they are no worse than SJF and FCFS",  # without WL1_050b, as in the paper
        Kind.NO_WORSE,
        lambda pair: (pair.on(a, m, b) - pair.simple(f"{b}b") for a, b, m in _triples() if b not in (a, "WL1_050")),
    ),
    (
        "those of the own workload are better than those of others",
        Kind.ABOVE,
        lambda pair: (pair.on(b, m, b) - pair.on(a, m, b) for a, b, m in _triples() if a != b),
    ),
    (
        "without predictions they are no worse than with, on workloads alike",
        Kind.NO_WORSE,
        lambda pair: (pair.on(x, METHODS[0], x) - pair.on(x, m, x) for x in WORKLOADS for m in METHODS[1:]),
    ),
    (
        "NN2 is no worse than NN1",
        Kind.NO_WORSE,
        lambda pair: (pair.on(a, METHODS[2], b) - pair.on(a, METHODS[1], b) for a in WORKLOADS for b in WORKLOADS),
    ),
)

# What reproductions of packing share: budgets, parts, made halves, and trainings.

_CHOICES = 200_000  # of an evaluation at most: chance takes 14,000
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
    grid: tuple[
        tuple[int, int, int], ...
    ] = ()  # T, M and K of trainings, of which the best is taken; none: the preset's
    tries: int = 1  # trainings of each


_STEPS = 4_000_000  # of the paper's trainings
_SIZES = (512, 1024, 2048, 4096, 8192)
GRID = tuple((t, m, k) for t in _SIZES for m in _SIZES for k in (4, 8, 10) if m < 8 * t)  # table 3, and algorithm 1
_SMALL = ("learn.minibatch=512", "learn.lr=1e-3", "learn.epochs=4")  # 4 is in the paper's grid, too
_WIDTHS = (1024, 512, 256), (2048, 512, 256)  # of NN1 and NN2
PACKING_BUDGETS = {
    "smoke": PackingBudget(
        1, 60, 512, ((16,), (32,)), 512, 1, ("learn.rollout=64", "learn.minibatch=256", "env.steps=500")
    ),
    "standard": PackingBudget(5, 1000, 400_000, ((128, 64, 32), (256, 64, 32)), 100_000, 20, _SMALL),
    "first": PackingBudget(1, 1000, _STEPS, _WIDTHS, 100_000, 1, ("learn.epochs=4",)),
    "full": PackingBudget(5, 1000, _STEPS, _WIDTHS, 2_000_000, 20),
    "tuned": PackingBudget(1, 1000, _STEPS, _WIDTHS, 2_000_000, 20, grid=GRID, tries=5),
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


def learner_of(budget: PackingBudget) -> PaperAgent:
    """Who learns by a budget: the paper's own where networks and triples of the grid are chosen as there."""
    own = budget.widths == _WIDTHS and budget.grid == GRID
    name = "packing-nn1 and nn2, " + ("tuned" if budget.grid else "not tuned")
    return PaperAgent(name if budget.widths == _WIDTHS else "smaller networks", own, budget.steps / _STEPS)


def made_half(seed: int, name: str, half: str, jobs: int, noise: float = 0.0) -> Workload:
    """The first jobs of a half, which say how long they run: right, but for a lognormal error of this sigma."""
    kind, _, accuracy = name.partition("_")
    whole = predicted_runtimes(np.random.default_rng(seed), kind, accuracy, half)
    error = np.exp(noise * np.random.default_rng([seed, 1]).standard_normal(len(whole.jobs)))
    said = zip(whole.jobs[:jobs], (runtimes(whole) * error).tolist(), strict=False)
    return msgspec.structs.replace(whole, jobs=[msgspec.structs.replace(job, estimate=run) for job, run in said])


def learned(task: PackingPart, preset: str, changes: Sequence[str], seed: int = -1, name: str = "") -> LearnedPolicy:
    """What is learned from the task's half a; a training that was interrupted goes on.

    Args:
        task: names the half.
        preset: of the training.
        changes: to it.
        seed: of the training; -1 is the task's.
        name: of its folder inside the task's; none where it is the only one.
    """
    jobs = made_half(task.seed, task.learned, "a", task.budget.jobs)
    changed = [f"env.jobs={task.budget.jobs}", "learn.threads=1", *changes]
    facts = InputFacts(name=f"{jobs.nb_res} equal hosts", sha256=""), InputFacts(name=task.file.stem, sha256="")
    log = LogOnHosts(equal_hosts(jobs.nb_res), jobs, facts)
    config = load_config(preset, changed, seed=task.seed if seed < 0 else seed)
    policy = learned_policy(train_to_folder(log, config, training_folder(task) / name, resume=True))
    assert isinstance(policy, LearnedPolicy)
    return policy


def setup_of(jobs: Workload, **options: object) -> Setup:
    return make_setup(jobs, equal_hosts(jobs.nb_res), **{"encoder": "packing", "steps": _CHOICES, **options})  # type: ignore[arg-type]


def packed_utilization(policy: str | ChooseAll, setup: Setup) -> float:
    return float(evaluate(policy, setup, first=[0])[UTILIZATION][0])


def interval(values: Sequence[float] | NDArray[np.float64], sign: str = "") -> str:
    """The mean with its interval, where there are several values."""
    estimate = bootstrap_mean(np.asarray(values)[:, None], np.random.default_rng(0))
    between = f" ({estimate.low:{sign}z.3f} to {estimate.high:{sign}z.3f})" if len(values) > 1 else ""
    return f"{estimate.value:{sign}z.3f}{between}"


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
    reached = {}
    for noise in noises:
        policy.actor.reset(task.seed)
        half = made_half(task.seed, task.learned, "b", task.budget.jobs, noise)
        setup = setup_of(half, encoder=policy.encoder)
        reached[_noise(noise)] = packed_utilization(policy.actor.together, setup)
    found = {f"{task.learned}b": reached}
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


def _moved(policy: LearnedPolicy, task: PackingPart) -> dict[str, float]:
    """Share of the most likely choices that become others, by what is permuted."""
    seen, masks = _states(policy, task)
    best, rng = NetworkActor(policy.actor.network, "nothing").together, np.random.default_rng(task.seed)
    order, own = rng.permutation(len(seen)), best(seen, masks)
    shares, width = {}, seen.shape[1]
    pools = width - JOB_FEATURES * (masks.shape[1] - 1)
    moved = [np.arange(pools), *(np.arange(pools + k, width, JOB_FEATURES) for k in range(JOB_FEATURES - 1))]
    for group, columns in zip(_GROUPS, moved, strict=True):
        other = seen.copy()
        other[:, columns] = seen[order][:, columns]
        shares[group] = float((best(other, masks) != own).mean())
    return shares


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
