"""Claims of Lan et al. on topology-aware allocation, held or refuted on their program's tree and on their text's.

The paper is "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
Annealing". Networks learn to put jobs back, all solvers are given the same windows, schedules with and without windows
are compared, and jobs that communicate show whether lower cost makes runs shorter. `published` has the figures of the
published program to the digit. Without their list of jobs, those of their generator are taken.
"""

import csv
import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision import __version__
from decision.experiments.statistics import Estimate, bootstrap_mean
from decision.experiments.store import Result
from decision.experiments.tasks import run_tasks
from decision.model.record import Floats
from decision.papers.campaign import (
    VERDICT_COLUMNS,
    Asked,
    Campaign,
    Findings,
    Kind,
    PaperAgent,
    Parts,
    ResultTable,
    Shown,
    TrainingHours,
    price_line,
    tables_markdown,
    verdicts,
)
from decision.rl.learning.config import load_config

from .parts import (
    LINKS,
    LOOKS,
    NETWORKS,
    TREES,
    Contention,
    Lengths,
    Models,
    Priced,
    RepairTraining,
    ScheduledEpoch,
    WindowEpoch,
    compared,
    price_table,
    priced_tasks,
    train_networks,
)
from .windows import DYNAMIC_PROGRAM, EPOCHS, HPCSCHEDULE_JOBS, PERIODS

_PLACES = ("first-fit", "contiguous", "best-fit", "random", "slurm-tree", "tree")
_WINDOW, _WALK = "window,solver=exact", "window,solver=sa,undo=false"
_DRAWN = ("fcfs,allocation=first-fit", "fcfs,allocation=tree")  # without windows, in figure 6
COST, _WAIT, CORRELATION = 0.25, 1.0, 0.1  # per cent of hops, or of run times; seconds: what counts as equal
LENGTHS = (10, 20, 30, 40, 50, 60)  # seconds from one window to the next, in Fig. 6
FIG_5 = {  # NSA-t under SA-2t, %, for t of LOOKS
    "FCN-1": (-0.27, 0.39, 0.33, 0.18, 0.24, -0.01),
    "FCN-2": (0.49, 0.31, 0.70, 0.50, 0.25, 0.32),
    "FCN-3": (0.50, 0.47, 0.49, 0.30, 0.31, 0.23),
    "CNN-1": (0.39, 0.32, 0.25, 0.10, 0.51, 0.58),
    "CNN-2": (0.41, 0.08, 0.18, 0.41, 0.29, 0.28),
    "CNN-3": (1.17, 1.03, 1.06, 1.05, 0.88, 0.91),
}
_BEST = "CNN-3"  # of the paper
_SHORT = 30.0  # seconds, of the paper's table IV: what takes longer was not allocated there


class _Budget(NamedTuple):
    """How many trainings, networks, seeds and epochs a budget of the command line means."""

    training: tuple[str, ...]  # changes to the preset
    networks: tuple[str, ...]
    seeds: int
    epochs: int  # of windows, by seed
    periods: int  # of each
    models: int  # windows that each model solves
    limit: float  # seconds for one by the paper's rows
    schedules: int  # epochs of Fig. 6
    length: int  # jobs of each
    lengths: tuple[int, ...]  # of windows, seconds
    places: tuple[str, ...]
    ratios: tuple[float, ...]
    jobs: int  # that communicate
    held_out: tuple[Lengths, ...]  # sequences by which prices are compared
    preset: str = "repair"  # of the networks


_FEW = ("learn.steps=256", "learn.envs=4", "learn.rollout=32", "learn.minibatch=64")
_HELD_OUT = Lengths(24, 300), Lengths(8, 2000)
_PAPERS = "repair-paper"  # networks as the paper's
_FIRST = "FCN-1", "CNN-3"  # networks
TOPOLOGY_BUDGETS = {
    "smoke": _Budget(
        *(_FEW, ("FCN-1", "CNN-3"), 2, 1, 2, 2, 5.0, 2, 20, (60,), ("first-fit", "random", "tree"), (1.0,), 10),
        held_out=(Lengths(2, 20),),
    ),
    "standard": _Budget(
        ("learn.steps=200000",),
        *(tuple(NETWORKS), 5, 2, PERIODS, 50, 30.0, EPOCHS, 300, LENGTHS, _PLACES, (0.25, 0.5, 1.0), 250, _HELD_OUT),
    ),
    "first": _Budget(
        (),
        *(_FIRST, 1, 2, PERIODS, 4, 30.0, EPOCHS, 300, LENGTHS, ("first-fit", "tree"), (0.5,), 250, _HELD_OUT),
        preset=_PAPERS,
    ),
    "full": _Budget(
        (),
        *(tuple(NETWORKS), 5, 10, PERIODS, 50, 600.0, EPOCHS, 300, LENGTHS, _PLACES, (0.25, 0.5, 1.0), 1000, _HELD_OUT),
        preset=_PAPERS,
    ),
}


class _Claim(NamedTuple):
    """What was said, what was found, and what that says."""

    claim: str
    where: str
    found: str
    reward: str  # by which the networks of this row learned; empty where there are none
    verdict: str
    ours: str  # with networks that learned otherwise than the paper's
    learned_by: str


class _Judge(NamedTuple):
    """Gives claims their verdicts, by the rule of all papers."""

    paid: str
    agent: PaperAgent  # who learns
    runs: int  # seeds

    def __call__(
        self,
        what: str,
        tree: str,
        found: str,
        value: Estimate,
        margin: float = 0.0,
        kind: Kind = Kind.ABOVE,
        *,
        network: bool = False,
    ) -> _Claim:
        """A claim that something is above 0, unless it is of another kind, of networks or without any."""
        known = verdicts(kind, value, margin or COST, agent=self.agent if network else None, runs=self.runs)
        return _Claim(what, tree, found, self.paid if network else "", *known)


def reproduce_topology(how: Parts, budget: str = "smoke", data: Path | None = None) -> Findings:
    """Do what is missing, write ``table.md`` and ``results.csv`` into ``FOLDER/BUDGET``.

    Args:
        how: where finished parts are kept; an interrupted one is resumed.
        budget: how much is run.
        data: folder of the authors' list of jobs; None for jobs of their generator.

    Raises:
        InputError: if the list cannot be read.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    return Campaign(
        TOPOLOGY_BUDGETS,
        lambda budget, folder: [  # all of a seed before the next
            RepairTraining(folder, tree, name, seed, budget.training, budget.preset)
            for seed, tree, name in product(range(budget.seeds), TREES, budget.networks)
        ],
        train_networks,
        partial(_show, data / HPCSCHEDULE_JOBS if data else None),
        price=_left,
    ).reproduce(how, budget)


_PRICE = TrainingHours(3e6, per_core=395.0, per_gpu=21_340.0)  # of CNN-3


def _left(asked: Asked[_Budget, RepairTraining]) -> str:
    """What the paper's own trainings of all networks on both trees take, one seed of each."""
    own = len(asked.done) if asked.budget.preset == _PAPERS and asked.budget.seeds else 0
    return price_line([(_PRICE, max(len(TREES) * len(NETWORKS) - own, 0))])


def _show(jobs: Path | None, asked: Asked[_Budget, RepairTraining]) -> Shown:
    """What is done with the networks, once all have learned."""
    tasks = _tasks(asked.budget, jobs, asked.done, bool(shutil.which("batsim")))
    results = run_tasks(work, tasks, asked.folder / "runs", progress=asked.how.progress, **asked.how.how)
    found = list(zip(tasks, results, strict=True))
    tables = tuple(_tables(asked.budget, found))
    pictures = _figures(asked.budget, asked.done, found)
    source = HPCSCHEDULE_JOBS if jobs else "jobs of the authors' generator"
    facts = f"decision {__version__}; budget {asked.name}; {source}"
    files = {
        "table.md": f"{facts}\n\n{tables_markdown(tables)}".encode(),
        "results.csv": _csv(found).encode(),
        **pictures,
    }
    return Shown(tables, files, f"{facts}\n{asked.folder}: {', '.join(files)}")


Task = WindowEpoch | Models | ScheduledEpoch | Contention | Priced
Found = Sequence[tuple[Task, Result]]


def work(task: Task) -> Result:
    """Do one part, whatever its kind."""
    return task.work()


def _tasks(budget: _Budget, jobs: Path | None, trainings: Sequence[RepairTraining], batsim: bool) -> list[Task]:
    """All but the trainings, what is short first."""
    tasks: list[Task] = []
    learned = {(each.tree, each.network, each.seed): each.checkpoint for each in trainings}
    for tree, links, ratio, policy, seed in product(
        TREES,
        LINKS,
        budget.ratios,
        [f"fcfs,allocation={place}" for place in budget.places] + [_WINDOW],
        range(budget.seeds),
    ):
        tasks.append(Contention(tree, links, ratio, policy, seed, budget.jobs))
    for tree, epoch in product(TREES, range(budget.schedules)):
        nsa = learned[tree, _BEST, epoch % budget.seeds]
        for place in budget.places:
            tasks.append(ScheduledEpoch(jobs, tree, f"fcfs,allocation={place}", epoch, budget.length))
        for length in budget.lengths:
            for policy in (f"{_WALK},period={length}", f"{_WINDOW},period={length}"):
                tasks.append(ScheduledEpoch(jobs, tree, policy, epoch, budget.length))
            policy = f"window,solver=nsa,undo=false,period={length}"
            tasks.append(ScheduledEpoch(jobs, tree, policy, epoch, budget.length, nsa))
    tasks += priced_tasks(budget.held_out, batsim)
    tasks += [Models(jobs, tree, budget.models, budget.limit) for tree in TREES]
    for tree, epoch in product(TREES, range(budget.seeds * budget.epochs)):
        seed = epoch // budget.epochs
        networks = {name: learned[tree, name, seed] for name in budget.networks}
        tasks.append(WindowEpoch(jobs, tree, epoch, budget.periods, networks))
    if batsim:
        tasks += [t._replace(batsim=True) for t in tasks if isinstance(t, Contention) and t.seed == 0]
    return tasks


# --- What was found -------------------------------------------------------------------------------------------------


def _tables(budget: _Budget, found: Found) -> Iterator[ResultTable]:
    costs = {tree: _window_costs(budget, found, tree) for tree in TREES}
    pairs = list(compared({task: result for task, result in found if isinstance(task, Priced)}))
    steps = load_config(budget.preset, budget.training).learn.steps
    agent = PaperAgent(budget.preset, budget.preset == _PAPERS, steps / _PRICE.steps)
    judged = _Judge(_paid(budget), agent, budget.seeds)
    claims = [claim for tree in TREES for claim in _claims(budget, found, tree, costs[tree], judged)]
    for pair in pairs:
        _, tree, _, _, what = pair.comparison
        where = ", Batsim" if pair.batsim else ""
        found_there = f"{_shown(pair.less)}, {len(pair.values[0])} sequences of {pair.jobs}{where}"
        claims += [judged(what, tree, found_there, pair.less)] if what else []
    title = f"Claims; networks of {budget.preset}"
    yield ResultTable(title, ("claim", "tree", "found (95 %)", "reward", *VERDICT_COLUMNS), claims)
    for tree in TREES:
        seconds = [result["seconds"] for task, result in found if isinstance(task, WindowEpoch) and task.tree == tree]
        solved = []
        for name, values in costs[tree].items():
            less = "" if name == "in turn" else _shown(_less(costs[tree], name, "in turn"), 1)
            solver = name.rsplit(" ", 1)[0] if name.rsplit(" ", 1)[-1].isdigit() else name
            took = 1000 * float(np.mean([epoch[solver] for epoch in seconds]))
            solved.append((name, f"{values.mean():,.0f}", less, f"{took:.3g}"))
        title = f"Windows, {tree}: cost in thousandths of a hop, how much less than in turn; time of the longest look"
        yield ResultTable(title, ("solver, steps", "cost", "less (95 %)", "ms"), solved)
        rows = [
            [name, *(f"{_shown(v, 2, '')} [{old:+.2f}]" for v, old in zip(values, FIG_5[name], strict=True))]
            for name, values in _beside_annealing(budget, costs[tree]).items()
        ]
        yield ResultTable(f"Fig. 5, {tree}: NSA-t under SA-2t, % (95 %) [published]", ("t", *map(str, LOOKS)), rows)
    yield _model_table(found)
    schedules = []
    for tree, policy in dict.fromkeys((t.tree, t.policy) for t, _ in found if isinstance(t, ScheduledEpoch)):
        means = map(_interval, _schedules(found, tree, policy))
        shown = (f"{each.value:,.0f} ({each.low:,.0f} to {each.high:,.0f})" for each in means)
        schedules.append((policy, tree, *shown))
    title = "Fig. 6: cost of a job, thousandths of a hop, and wait, s (95 %)"
    yield ResultTable(title, ("policy", "tree", "cost", "wait"), schedules)
    yield _contention_table(found)
    yield price_table(pairs)


def _paid(budget: _Budget) -> str:
    """For what networks are rewarded."""
    config = load_config(budget.preset)
    pays = "each job" if config.settings["pay"] == "job" else "the window, at its last job"
    return f"{pays}; discount {config.learn.discount:g}"  # type: ignore[union-attr]


def _window_costs(budget: _Budget, found: Found, tree: str) -> dict[str, Floats]:
    """Mean costs of a window by solver, (seeds, 1)."""
    epochs = [result["costs"] for task, result in found if isinstance(task, WindowEpoch) and task.tree == tree]
    return {
        name: np.array([epoch[name] for epoch in epochs]).reshape(budget.seeds, -1).mean(axis=1, keepdims=True)
        for name in epochs[0]
    }


def _interval(values: Floats) -> Estimate:
    """The mean over seeds with its interval, as text."""
    return bootstrap_mean(np.asarray(values, float).reshape(-1, 1), np.random.default_rng(0))


def _less(costs: Mapping[str, Floats], name: str, than: str) -> Estimate:
    """By how many per cent the first costs less than the second."""
    return _interval(100 * (1 - costs[name] / costs[than]))


def _shown(value: Estimate, digits: int = 2, unit: str = " %") -> str:
    return f"{value.value:+z.{digits}f}{unit} ({value.low:+z.{digits}f} to {value.high:+z.{digits}f})"


def _claims(budget: _Budget, found: Found, tree: str, costs: Mapping[str, Floats], judged: _Judge) -> Iterator[_Claim]:
    nsa, walk, undo = f"{_BEST}, walk 500", "SA, walk 1000", "SA, undo 500"
    for what, own, other, network in (
        ("NSA-500 costs less than SA-1000 (1.34 %)", nsa, walk, True),
        ("SA-500 that undoes costs less than SA-1000", undo, walk, False),
        ("SA-500 that undoes costs less than NSA-500", undo, nsa, True),
        ("NSA-500 costs less than SA-500, both undo", f"{_BEST}, undo 500", undo, True),
        ("the best start, without a network, costs less than SA-500, both undo", "best start, undo 500", undo, False),
    ):
        value = _less(costs, own, other)
        yield judged(what, tree, _shown(value), value, network=network)
    above = _interval(100 * (costs[nsa] / costs["exact"] - 1))
    beside = Estimate(*(each - 7.82 for each in above))
    what = "NSA-500 costs 7.8 % more than the optimum"
    yield judged(what, tree, _shown(above), beside, kind=Kind.EQUAL, network=True)
    value = _interval(_kind(budget, costs, "FCN") - _kind(budget, costs, "CNN"))
    yield judged("NSA with CNN costs less than with FCN (means over Fig. 5)", tree, _shown(value), value, network=True)
    yield from _schedule_claims(found, tree, judged)
    yield from _period_claims(budget.lengths, found, tree, judged)
    yield from _contention_claims(found, tree, judged)


def _kind(budget: _Budget, costs: Mapping[str, Floats], kind: str) -> Floats:
    """Per cent of the costs of SA-2t, over networks of a kind and steps, by seed."""
    shares = [
        100 * costs[f"{name}, walk {steps}"] / costs[f"SA, walk {2 * steps}"]
        for name in budget.networks
        if name.startswith(kind)
        for steps in LOOKS
    ]
    return np.asarray(np.mean(shares, axis=0))


def _schedules(found: Found, tree: str, policy: str) -> tuple[Floats, Floats]:
    """Cost and wait of the epochs of Fig. 6."""
    results = [
        r for task, r in found if isinstance(task, ScheduledEpoch) and (task.tree, task.policy) == (tree, policy)
    ]
    return np.array([r["cost"] for r in results]), np.array([r["wait"] for r in results])


def _schedule_claims(found: Found, tree: str, judged: _Judge) -> Iterator[_Claim]:
    first, wait = _schedules(found, tree, "fcfs,allocation=first-fit")
    for search, solver in (("SA, without a network,", "sa"), ("NSA", "nsa")):
        window, waits = _schedules(found, tree, f"window,solver={solver},undo=false,period=60")
        value, more = _interval(100 * (1 - window / first)), _interval(waits - wait)
        longer, network = f"{_shown(value)}, wait {_shown(more, 0, ' s')}", solver == "nsa"
        yield judged(f"windows of 60 s with {search} cut cost (12.3 %)", tree, longer, value, network=network)
        yield judged("and for that jobs wait longer", tree, longer, more, _WAIT, network=network)
    best, waited = _schedules(found, tree, "fcfs,allocation=tree")
    value, more = _interval(100 * (1 - best / window)), _interval(waited - wait)
    text = f"{_shown(value)}, wait {_shown(more, 0, ' s')}"
    what = "FCFS with allocation=tree costs less than those windows, at FCFS's waiting"
    yield judged(what, tree, text, value, network=True)


def _period_claims(lengths: Sequence[int], found: Found, tree: str, judged: _Judge) -> Iterator[_Claim]:
    """Longer windows cost less and wait longer, from the shortest to the longest of Fig. 6."""
    first, last = min(lengths), max(lengths)
    if first == last:
        return
    for search, policy in (("NSA", "window,solver=nsa,undo=false"), ("SA", _WALK), ("exact windows", _WINDOW)):
        ends = [_schedules(found, tree, f"{policy},period={length}") for length in (first, last)]
        (short, soon), (long, late) = ends
        less, more = _interval(100 * (1 - long / short)), _interval(late - soon)
        between, network = f"windows of {last} s", search == "NSA"
        yield judged(f"{between} cost less than of {first} s, {search}", tree, _shown(less), less, network=network)
        waited = _shown(more, 0, " s")
        yield judged(f"{between} wait longer than of {first} s, {search}", tree, waited, more, _WAIT, network=network)


def _cells(found: Found, tree: str, batsim: bool = False) -> dict[tuple[str, float, int], dict[str, Result]]:
    """By links, ratio and seed: the results of each policy."""
    cells: dict[tuple[str, float, int], dict[str, Result]] = {}
    for task, result in found:
        if isinstance(task, Contention) and (task.tree, task.batsim) == (tree, batsim):
            cells.setdefault((task.links, task.ratio, task.seed), {})[task.policy] = result
    return cells


def _contention_claims(found: Found, tree: str, judged: _Judge) -> Iterator[_Claim]:
    cells = _cells(found, tree)
    for links in LINKS:
        by_seed: dict[int, list[float]] = {}
        for (own, _, seed), policies in cells.items():
            if own == links:
                columns = np.array([[result["hops"], result["stretch"]] for result in policies.values()])
                # ranks from the lowest on; equal values share theirs
                ranks = ((columns[None] < columns[:, None]).sum(1) + (columns[None] == columns[:, None]).sum(1) / 2).T
                spearman = float(np.corrcoef(ranks)[0, 1]) if np.all(ranks.std(axis=1) > 0) else 0.0
                by_seed.setdefault(seed, []).append(spearman)
        value = _interval(np.array([np.mean(each) for each in by_seed.values()]))
        what = f"lower cost, shorter runs: rank correlation of hops and stretch, {links}"
        yield judged(what, tree, _shown(value, 2, ""), value, CORRELATION)


def _beside_annealing(budget: _Budget, costs: Mapping[str, Floats]) -> dict[str, list[Estimate]]:
    """By how many per cent each network costs less than SA with twice the steps, for each of `LOOKS`."""
    return {
        name: [_less(costs, f"{name}, walk {steps}", f"SA, walk {2 * steps}") for steps in LOOKS]
        for name in budget.networks
    }


def _model_table(found: Found) -> ResultTable:
    rows = []
    for task, result in found:
        if not isinstance(task, Models):
            continue
        best = result[DYNAMIC_PROGRAM]["worths"]
        for name, own in result.items():
            solved = [w is not None for w in own["worths"]]
            same = sum(w is not None and abs(w - b) < 1e-6 for w, b in zip(own["worths"], best, strict=True))
            seconds = np.array(own["seconds"])
            late = np.mean(~np.array(solved) | (seconds > _SHORT))
            figures = (np.median(seconds), seconds.mean(), seconds.max())
            shown = (f"{s:.3g}" for s in figures)
            rows.append((name, task.tree, f"{len(solved)}", f"{sum(solved)}", f"{late:.0%}", f"{same}", *shown))
    times = ("median, s", "mean, s", "longest, s")
    columns = ("model", "tree", "windows", "solved", f"no optimum in {_SHORT:g} s", "same optimum", *times)
    return ResultTable("Exact windows, table IV (SCIP by the paper: 18.96 s in the mean)", columns, rows)


def _contention_table(found: Found) -> ResultTable:
    columns = ("policy", "tree", "links", "ratio", "hops", "stretch", "wait, s", "makespan, s", "Batsim: stretch")
    rows = []
    for tree in TREES:
        cells, real = _cells(found, tree), _cells(found, tree, batsim=True)
        for links, ratio in dict.fromkeys((links, ratio) for links, ratio, _ in cells):
            same = {seed: policies for (own, share, seed), policies in cells.items() if (own, share) == (links, ratio)}
            for policy in next(iter(same.values())):
                values = [_interval(np.array([p[policy][m] for p in same.values()])) for m in _CONTENTION]
                cell = real.get((links, ratio, 0), {}).get(policy)
                there = f"{cell['stretch']:.4f} (ours {same[0][policy]['stretch']:.4f})" if cell else ""
                shown = [
                    f"{value.value:,.{digits}f} ± {(value.high - value.low) / 2:,.{digits}f}"
                    for value, digits in zip(values, _CONTENTION.values(), strict=True)
                ]
                rows.append((policy.removeprefix("fcfs,allocation="), tree, links, f"{ratio:g}", *shown, there))
    return ResultTable("Jobs that communicate: means over seeds, half of the 95 % interval", columns, rows)


_CONTENTION = {"hops": 1, "stretch": 3, "wait": 0, "makespan": 0}  # decimals


def _figures(budget: _Budget, trained: Sequence[RepairTraining], found: Found) -> dict[str, bytes]:
    """Figures 4 to 6 as pictures, by file name."""
    from decision.report.plots.figures import drawn

    from .figures import beside_annealing, costs_and_waits, reward_curves

    curves: dict[str, dict[str, list[Path]]] = {}
    for each in trained:
        curves.setdefault(each.tree, {}).setdefault(each.network, []).append(each.curves)
    looks = {tree: _beside_annealing(budget, _window_costs(budget, found, tree)) for tree in TREES}
    schedules: dict[str, dict[str, dict[float, tuple[Estimate, Estimate]]]] = {}
    for tree, policy in dict.fromkeys(
        (task.tree, task.policy) for task, _ in found if isinstance(task, ScheduledEpoch)
    ):
        name, _, period = policy.partition(",period=")
        if not period and name not in _DRAWN:
            continue
        cost, wait = map(_interval, _schedules(found, tree, policy))
        schedules.setdefault(tree, {}).setdefault(name, {})[float(period or 0)] = cost, wait
    figures = {
        "figure-4": reward_curves(curves, _paid(budget)),
        "figure-5": beside_annealing(looks, LOOKS, FIG_5, budget.seeds),
        "figure-6": costs_and_waits(schedules, budget.schedules),
    }
    return {f"{name}.svg": drawn(figure, ".svg") for name, figure in figures.items()}


def _csv(found: Found) -> str:
    """A row for each figure of each part, but for times on this machine."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("part", "tree", "policy", "links", "ratio", "seed or epoch", "figure", "value"))
    for task, result in found:
        own: tuple[str | float, ...]
        match task:
            case WindowEpoch():
                own, values = (task.tree, "", "", "", task.epoch), result["costs"]
            case ScheduledEpoch():
                own, values = (task.tree, task.policy, "", "", task.epoch), result
            case Priced():
                where = f"{task.jobs} jobs, {task.metric}" + ", batsim" * task.batsim
                own, values = (task.tree, task.policy, where, "", task.seed), result
            case Contention():
                where = "batsim, " if task.batsim else ""
                own, values = (task.tree, task.policy, where + task.links, task.ratio, task.seed), result
            case _:
                continue
        for name, value in values.items():
            writer.writerow((type(task).__name__, *own, name, value))
    return text.getvalue()
