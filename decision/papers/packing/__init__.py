"""Packing against heuristics, chance and a bound, on made pairs of the paper's workloads; and one policy for all.

The paper (Takizawa, Nomura and Matsuba) has one WL1 and one WL2, and neither seeds nor intervals. Here each seed has a
pair of its own: a network is learned from a half a of it, and tested on the halves b. Predictions are perfect, as
the paper's seem to have been: it describes no predictor for its tests. An evaluation decides at multiples of 60 s and
lasts until all jobs have started.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decision.files.text import write_files
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.workload import Workload
from decision.papers.campaign import Asked, Campaign, ResultTable, Shown, TrainingHours, price_line
from decision.rl.envs import Setup
from decision.rl.envs.batch import ChooseAll
from decision.rl.learning.acting import NetworkActor
from decision.rl.learning.config import NetworkConfig
from decision.rl.learning.deploy import LearnedPolicy
from decision.rl.learning.networks import untrained_network

from .claims import (
    METHODS,
    ON,
    PACKING_BUDGETS,
    PUBLISHED_4,
    PUBLISHED_5,
    PUBLISHED_6,
    PUBLISHED_HEURISTICS,
    WITH,
    WITHOUT,
    WORKLOADS,
    Claims,
    OnOthers,
    OnOwn,
    PackingBudget,
    PackingPart,
    Pair,
    count_claims,
    interval,
    judged,
    learn_compact,
    learned,
    learner_of,
    made_half,
    packed_utilization,
    setup_of,
    worth_tables,
)

FOR_ALL = "packer"  # a part
_ORDERS = {**PUBLISHED_HEURISTICS, "laf+easy": "laf+easy", "lqf+easy": "lqf+easy"}
_BOUND, ANY, FITTING, UNTRAINED = "bound", "chance: any action", "chance: any that fits", "untrained network"


def _parts_of(budget: PackingBudget, folder: Path) -> list[PackingPart]:
    """A pair after the other, so that claims have intervals before all is done."""

    def task(seed: int, learned: str, method: str) -> PackingPart:
        return PackingPart(budget=budget, seed=seed, learned=learned, method=method, folder=folder)

    tasks = [task(seed, "", "") for seed in range(budget.seeds)]
    tasks += [task(seed, "", FOR_ALL) for seed in range(budget.pairs)]
    for seed in range(budget.seeds):
        tasks += [task(seed, name, method) for name in ON for method in (WITHOUT, WITH)]
        tasks += [task(seed, name, method) for name in WORKLOADS for method in METHODS]
    return tasks


def _do_part(task: PackingPart) -> None:
    """Learn, if there is something to learn, and evaluate."""
    if task.plain:
        found = _without_learning(task)
    elif not task.learned:
        found = evaluate_for_all(task)
    elif task.method not in METHODS:
        found = learn_compact(task)
    else:  # tested on the own half a, and on all halves b
        hidden = task.budget.widths[METHODS.index(task.method) == 2]
        estimate = "none" if task.method == "baseline" else "given"
        own = (f"env.estimate={estimate}", f"learn.steps={task.budget.steps}", f"network.hidden={list(hidden)}")
        changes = (*own, *task.budget.changes)
        policies = _tuned(task, changes) if task.budget.grid else [learned(task, "packing-nn1", changes)]
        found = {}
        for name, half in [(task.learned, "a"), *((name, "b") for name in WORKLOADS)]:
            reached = [_tested(policy, task, name, half) for policy in policies]
            found[f"{name}{half}"] = {task.method: float(np.mean(reached))}
    write_files({task.file: [json.dumps(found, indent=1).encode()]})


# --- Workloads, and who schedules them -----------------------------------------------------------------------------


def upper_bound(workload: Workload, nodes: int) -> float:
    """Utilization that no schedule exceeds: no job starts before it comes, and no node does two things at once."""
    submit, run = submit_times(workload), runtimes(workload)
    work = run * sizes(workload)
    rest = np.cumsum(work[::-1])[::-1]  # that comes with each job or after it
    end = max(float((submit + rest / nodes).max()), float((submit + run).max())) - float(submit.min())
    return float(work.sum()) / (nodes * end)


def _without_learning(task: PackingPart) -> dict[str, dict[str, float]]:
    """Of all halves: heuristics, the bound, and chance."""
    found: dict[str, dict[str, float]] = {}
    for name in WORKLOADS:
        for half in "ab":
            jobs = made_half(task.seed, name, half, task.budget.jobs)
            plain, masked = setup_of(jobs), setup_of(jobs, masked=True)
            who: dict[str, tuple[str | ChooseAll, Setup]] = {
                label: (policy, plain) for label, policy in _ORDERS.items()
            }
            who[ANY] = (_Chance(task.seed), plain)
            who[FITTING] = (_Chance(task.seed), masked)
            config, encoder = NetworkConfig(kind="fcn", hidden=task.budget.widths[0]), plain.encoder
            network = untrained_network(config, encoder.shape[0], encoder.actions, None, task.seed)
            actor = NetworkActor(network, "all")
            actor.reset(task.seed)
            who[UNTRAINED] = (actor.together, plain)
            row = {label: packed_utilization(policy, setup) for label, (policy, setup) in who.items()}
            found[f"{name}{half}"] = {**row, _BOUND: upper_bound(jobs, jobs.nb_res)}
    return found


class _Chance:
    """Any valid action; with a mask, any job that fits, and X where none does."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, observations: NDArray[np.float32], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        masked = masks.min() == 0
        valid = [np.flatnonzero(mask[:-1] if masked and mask[:-1].any() else mask) for mask in masks]
        return np.array([self._rng.choice(each) for each in valid], np.int64)


def _tuned(task: PackingPart, changes: Sequence[str]) -> list[LearnedPolicy]:
    """The trainings of the triple of T, M and K whose mean utilization of the own half a is best, as in the paper.

    Each training is kept, so that an interrupted search goes on.
    """
    best, most = [], -np.inf
    for steps, batch, epochs in task.budget.grid:
        triple = (f"learn.rollout={steps}", f"learn.minibatch={batch}", f"learn.epochs={epochs}")
        tries = [
            learned(task, "packing-nn1", (*changes, *triple), seed, f"{steps}-{batch}-{epochs}-{seed}")
            for seed in range(task.budget.tries)
        ]
        value = float(np.mean([_tested(policy, task, task.learned, "a") for policy in tries]))
        if value > most:
            best, most = tries, value
    return best


def _tested(policy: LearnedPolicy, task: PackingPart, name: str, half: str) -> float:
    policy.actor.reset(task.seed)
    setup = setup_of(made_half(task.seed, name, half, task.budget.jobs), encoder=policy.encoder)
    return packed_utilization(policy.actor.together, setup)


# --- Tables --------------------------------------------------------------------------------------------------------

Found = dict[PackingPart, dict[str, dict[str, float]]]


def _tables(found: Found) -> tuple[ResultTable, ...]:
    """Those that there are parts for."""
    plain = [rows for task, rows in found.items() if task.plain]
    tables = [_table_4(plain)] if plain else []
    own = {name: [_of(found, name, m, f"{name}a") for m in METHODS] for name in WORKLOADS}
    tables.append(_table("Table 5: learned and used on half a (the paper's)", METHODS, own, PUBLISHED_5))
    for m, method in enumerate(METHODS):
        rows = {x: [_of(found, x, method, f"{t}b") for t in WORKLOADS] for x in WORKLOADS}
        published = {x: tuple(PUBLISHED_6[x, t][m] for t in WORKLOADS) for x in WORKLOADS}
        columns = tuple(f"{t}b" for t in WORKLOADS)
        tables.append(
            _table(f"Table 6, {method}: learned from the row's half a (the paper's)", columns, rows, published)
        )
    # claims are made of the pairs of workloads that have all parts
    wanted = {("", ""), *((x, m) for x in WORKLOADS for m in METHODS)}
    there = {seed: {(task.learned, task.method) for task in found if task.seed == seed} for seed in _seeds(found)}
    pairs = {task: rows for task, rows in found.items() if wanted <= there[task.seed]}
    if pairs:
        tables.append(_claims_table(pairs, [rows for task, rows in pairs.items() if task.plain]))
        budget = next(iter(pairs)).budget
        made = []
        for seed in sorted(_seeds(pairs)):
            reached: dict[tuple[str, str, str], float] = {}
            rules: Mapping[str, Mapping[str, float]] = {}
            for task, by_half in pairs.items():
                if task.seed == seed and task.plain:
                    rules = by_half
                elif task.seed == seed:
                    own_method = ((half, row) for half, row in by_half.items() if task.method in row)
                    reached |= {(task.learned, task.method, half): row[task.method] for half, row in own_method}
            made.append(Pair(rules, reached))
        tables.append(judged(made, learner_of(budget)))
    return (*tables, *worth_tables(found), *for_all_tables(found))


def _seeds(found: Found) -> set[int]:
    return {task.seed for task in found}


def _of(found: Found, learned: str, method: str, half: str) -> list[float]:
    """Utilization by seed, of one method that learned on one workload."""
    return [rows[half][method] for task, rows in found.items() if (task.learned, task.method) == (learned, method)]


def _table_4(plain: Sequence[dict[str, dict[str, float]]]) -> ResultTable:
    """Means over the pairs, with intervals, and the paper's."""
    labels = [*_ORDERS, _BOUND, ANY, FITTING, UNTRAINED]
    rows, apart = [], []
    for half in plain[0]:
        cells = []
        for label in labels:
            values = [pair[half][label] for pair in plain]
            published = PUBLISHED_4[half].get(label)
            cells.append(_cell(values, published))
            apart += [] if published is None else [abs(float(np.mean(values)) - published)]
        rows.append((half, *cells))
    title = f"Table 4: heuristics, bound and chance (the paper's; the mean absolute difference is {np.mean(apart):.3f})"
    return ResultTable(title, ("half", *labels), rows)


def _table(title: str, columns: Sequence[str], rows: Mapping[str, list[list[float]]], published: OnOwn) -> ResultTable:
    body = [
        (x, *(_cell(values, old) for values, old in zip(row, published[x], strict=True))) for x, row in rows.items()
    ]
    return ResultTable(title, ("learned from", *columns), body)


def _cell(values: Sequence[float], published: float | None) -> str:
    """The mean with its interval, where there are several values; and the published one."""
    old = "" if published is None else f" [{published:.2f}]"
    return f"{interval(values) if values else '-'}{old}"


def _claims_table(found: Found, plain: Sequence[dict[str, dict[str, float]]]) -> ResultTable:
    """Counts of the paper's tables, of ours, and of chance in place of what was learned."""

    def mean(half: str, label: str) -> float:
        return float(np.mean([pair[half][label] for pair in plain]))

    simple = {half: {label: mean(half, label) for label in PUBLISHED_HEURISTICS} for half in plain[0]}
    own: OnOwn = {x: tuple(float(np.mean(_of(found, x, m, f"{x}a"))) for m in METHODS) for x in WORKLOADS}
    others: OnOthers = {
        (x, t): tuple(float(np.mean(_of(found, x, m, f"{t}b"))) for m in METHODS) for x in WORKLOADS for t in WORKLOADS
    }
    chance = {x: (mean(f"{x}a", ANY),) * 3 for x in WORKLOADS}
    by_chance = {(x, t): (mean(f"{t}b", ANY),) * 3 for x in WORKLOADS for t in WORKLOADS}
    counts = [
        count_claims(PUBLISHED_4, PUBLISHED_5, PUBLISHED_6),
        count_claims(simple, own, others),
        count_claims(simple, chance, by_chance),
    ]
    rows = []
    for field in Claims._fields:
        cells = []
        for value in (getattr(each, field) for each in counts):
            whole = f"{sum(value)} ({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
            cells.append(f"{value:+.3f}" if isinstance(value, float) else whole)
        rows.append((field.replace("_", " "), *cells))
    title = f"Claims, counted alike, over {len(plain)} pairs"
    return ResultTable(title, ("claim", "the paper's tables", "here", "any action"), rows)


_PRICES = {
    "baseline": TrainingHours(4e6, 1265.0, 26_100.0),
    "NN1": TrainingHours(4e6, 1265.0, 26_100.0),
    "NN2": TrainingHours(4e6, 710.0, 0.0),
}


def _left(asked: Asked[PackingBudget, PackingPart]) -> str:
    """What a training of each network on each workload of a pair takes, without the search of the best triples."""
    done = [
        task.method for task in asked.done if task.learned and asked.budget.widths == PACKING_BUDGETS["full"].widths
    ]
    return price_line([(price, max(len(WORKLOADS) - done.count(method), 0)) for method, price in _PRICES.items()])


# One policy for all: the shipped `packer` on halves b of made pairs, against heuristics and specialists.
#
# It was learned from other seeds and other shares of single-node jobs (`decision reproduce packer`). A specialist is a
# network that was learned from half a of the workload whose half b it schedules.

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
    means = {
        label: {seed: float(np.mean([rows[f"{name}b"][label] for name in WORKLOADS])) for seed, rows in pairs.items()}
        for label in _POLICIES
    }
    rivals = {label: means[label] for label in others}
    for method in METHODS:
        by_workload: dict[int, list[float]] = {}  # by seed: of the specialist of each workload
        for task, rows in found.items():
            if task.learned and task.method == method:
                by_workload.setdefault(task.seed, []).append(rows[f"{task.learned}b"][method])
        whole = {seed: float(np.mean(each)) for seed, each in by_workload.items() if len(each) == len(WORKLOADS)}
        rivals[f"specialists, {method}"] = whole
    overall = [(own, _mean_cell(list(means[own].values())), "", str(len(pairs)))]
    for label, by_seed in rivals.items():
        seeds = sorted(by_seed.keys() & pairs.keys())
        if seeds:
            more = [means[own][seed] - by_seed[seed] for seed in seeds]
            overall.append((label, _mean_cell([by_seed[seed] for seed in seeds]), interval(more, "+"), str(len(seeds))))
    by_half = []
    for half in (f"{name}b" for name in WORKLOADS):
        values = {label: np.array([rows[half][label] for rows in pairs.values()]) for label in _POLICIES}
        over = (interval(values[own] - values[label], "+") for label in others)
        by_half.append((half, interval(values[own]), *over))
    columns = ("policy", "utilization", "less than packing with predictions by", "pairs")
    return [
        ResultTable("One policy for all: means over the six halves b", columns, overall),
        ResultTable(
            "One policy for all, by half: packing with predictions over others", ("half", own, *others), by_half
        ),
    ]


def _mean_cell(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}"


PACKING = Campaign(
    PACKING_BUDGETS,
    _parts_of,
    _do_part,
    lambda asked: Shown(_tables({task: json.loads(task.file.read_text()) for task in asked.done})),
    few=lambda budget: f"few jobs ({budget.jobs}) and steps ({budget.steps})",
    price=_left,
)

# Takizawa, Nomura and Matsuba: packing for utilization with predicted run times, against chance and a bound.
