"""The parts of the reproduction of Lan et al.: trainings, epochs of windows, schedules, and jobs that communicate.

Each part can be done by any process, and its result depends on its definition alone. `windows` has the
windows, and `topology` says what the parts are for.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from decision.experiments import Engine
from decision.experiments.inputs import Inputs, LogOnHosts, PolicyChoice, load_inputs
from decision.experiments.metrics import makespan_from_submission, only_ran, stretches, tree_hops, waiting_times
from decision.experiments.results import CURVES
from decision.experiments.run import run_to_folder
from decision.experiments.statistics import Estimate, bootstrap_mean
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, task_key
from decision.experiments.training import train_to_folder
from decision.files import write_platform, write_workload
from decision.files.generate.jobs import Tasks, as_tasks, workload_of
from decision.files.generate.paper_workloads import topology_workload
from decision.files.generate.platforms import full_tree, networked
from decision.files.outputs_read import read_jobs
from decision.files.text import InputFacts, write_files
from decision.model.demand import runtimes, sizes
from decision.model.platform import Link, Platform, PowerState
from decision.model.record import Floats, JobTable
from decision.model.workload import Workload
from decision.papers.campaign import ResultTable
from decision.papers.rlscheduler import JobSequence, cut_sequence
from decision.policies.placement.search import AT_BEST, PROGRAM_FIRST
from decision.policies.runtimes import apply_estimates
from decision.rl.learning import read_prices, read_repair
from decision.rl.learning.checkpoint import read_checkpoint
from decision.rl.learning.config import load_config
from decision.simulation import simulate_workloads

from .windows import (
    EPOCH_JOBS,
    EPOCHS,
    EXACT,
    IN_TURN,
    LARGEST_FIRST,
    PROGRAM,
    TEXT,
    Tree,
    WindowJobs,
    annealing,
    read_job_list,
    solve_epoch,
    solve_models,
)

TREES = {tree.name: tree for tree in (PROGRAM, TEXT)}
NETWORKS = {  # Table II
    "FCN-1": ("fcn", (64, 64)),
    "FCN-2": ("fcn", (64, 64, 64)),
    "FCN-3": ("fcn", (96, 64)),
    "CNN-1": ("cnn", (4, 4)),
    "CNN-2": ("cnn", (8, 4)),
    "CNN-3": ("cnn", (16, 8)),
}
LOOKS = (500, 600, 700, 800, 900, 1000)  # steps of NSA in Fig. 5; SA is given twice as many
SA_LOOKS = (500, *(2 * steps for steps in LOOKS))
UNDOES = (500, 1000)
LINKS = {"full": (1, 1, 1), "tapered": (1, 4, 8)}  # by what share of the hosts' bandwidth each level is slower
HOST_SPEED = 141.24e9  # flop/s, as all of the shipped fat_tree1000
_BANDWIDTH, _LATENCY = 12.5e9, 1e-6  # bytes/s, seconds
_TRAINING_JOBS, _TRAINING_SEED = 20_000, 1000  # of the jobs that networks learn from, which no other part uses


def platform_of(tree: Tree, links: str = "full") -> Platform:
    """The tree with its network."""
    levels = [Link(_BANDWIDTH / share, _LATENCY) for share in LINKS[links]]
    return networked(full_tree(tuple(tree.down.tolist()), levels), (PowerState(HOST_SPEED),))


def all_to_all(jobs: Workload, ratio: float) -> Workload:
    """The jobs as tasks whose hosts all communicate, alone for `ratio` of the time that they compute."""
    return as_tasks(jobs, Tasks(kind="parallel", speed=HOST_SPEED, comm_ratio=ratio, bandwidth=_BANDWIDTH))


def schedule_files(platform: Platform, jobs: Workload, policy: str, seed: int, batsim: bool) -> JobTable:
    """The schedule of inputs as files have them: where links fill up at once, last digits decide which do.

    Args:
        platform: is written and read again, as the jobs are.
        jobs: to be scheduled.
        policy: with its options.
        seed: of the policy.
        batsim: whether a real Batsim simulates, or the embedded engine.
    """
    with TemporaryDirectory() as folder:
        files = Path(folder) / "tree.xml", Path(folder) / "jobs.json"
        write_platform(files[0], platform)
        write_workload(files[1], jobs)
        case = load_inputs(Inputs(platform=files[0], workloads=(files[1],)))
        if not batsim:
            return simulate_workloads(case.platform, case.workloads, policy, seed=seed).jobs
        choice = PolicyChoice(policy=policy, seed=seed)
        run_to_folder(case, choice, Path(folder) / "run", engine=Engine.BATSIM)
        return read_jobs(str(Path(folder) / "run" / "out"))


def list_of_jobs(path: Path | None) -> JobSequence:
    """The authors' list, or without it as many jobs of their generator."""
    if path is not None:
        return read_job_list(path)
    made = topology_workload(np.random.default_rng(0), EPOCHS * EPOCH_JOBS)
    seconds = runtimes(made, HOST_SPEED)
    return JobSequence(np.array([job.submit_time for job in made.jobs]), seconds, seconds, sizes(made).astype(np.int64))


# --- Networks -------------------------------------------------------------------------------------------------------


class RepairTraining(NamedTuple):
    """A network to be trained on one tree."""

    parent: Path  # of its folder
    tree: str
    network: str
    seed: int
    changes: tuple[str, ...]  # to the preset
    preset: str

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        return {"experiment": "topology", **{name: value for name, value in self._asdict().items() if name != "parent"}}

    @property
    def written(self) -> list[Path]:
        """The files that it leaves when it is finished."""
        return [self.checkpoint, self.curves]

    @property
    def curves(self) -> Path:
        """The file that says how the training went."""
        return self.checkpoint.with_name(CURVES)

    @property
    def checkpoint(self) -> Path:
        """The file of what was learned."""
        return self.parent / f"{self.tree}-{self.network}-{self.seed}" / "repair.ckpt"


def train_networks(training: RepairTraining) -> None:
    """Learn what is missing; the jobs are made by the authors' generator, and differ with the seed."""
    kind, hidden = NETWORKS[training.network]
    changes = [f"network.kind={kind}", f"network.hidden={list(hidden)}", "learn.threads=1", *training.changes]
    config = load_config(training.preset, changes, seed=training.seed)
    seed = _TRAINING_SEED + training.seed
    rng, tree = np.random.default_rng(seed), TREES[training.tree]
    jobs = apply_estimates(topology_workload(rng, _TRAINING_JOBS), "exact", rng)
    down = ", ".join(map(str, tree.down))
    facts = (
        InputFacts(name=f"fat-tree of {down}", sha256=""),
        InputFacts(name=f"topology, {_TRAINING_JOBS:,} jobs, seed {seed}", sha256=""),
    )
    log = LogOnHosts(platform_of(tree), jobs, facts)
    folder = training.checkpoint.parent / task_key(training)[:8]
    learned = train_to_folder(log, config, folder, resume=True)
    files = {training.checkpoint: learned, training.curves: learned.with_name(CURVES)}
    write_files({path: [own.read_bytes()] for path, own in files.items()})


# --- Windows --------------------------------------------------------------------------------------------------------


class WindowEpoch(NamedTuple):
    """An epoch of windows that all solvers place."""

    jobs: Path | None
    tree: str
    epoch: int
    periods: int
    networks: Mapping[str, Path]  # checkpoints by name

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        networks = {name: _digest(path) for name, path in self.networks.items()}
        return {**_facts(self, "networks"), "networks": networks}

    def work(self) -> Result:
        """Mean cost of a window by solver and steps, and seconds by solver."""
        # a walk is the beginning of any longer one; a search that undoes is not
        solvers = [
            IN_TURN,
            annealing("SA, walk", SA_LOOKS, False, first=PROGRAM_FIRST),
            *(annealing("SA, undo", (steps,), True) for steps in UNDOES),
            annealing("best start, walk", (500,), False, AT_BEST, PROGRAM_FIRST),
            annealing("best start, undo", (500,), True, AT_BEST),
            LARGEST_FIRST,
        ]
        for name, path in self.networks.items():
            repair, _ = read_repair(str(path))
            solvers.append(annealing(f"{name}, walk", LOOKS, False, repair, PROGRAM_FIRST))
            solvers.append(annealing(f"{name}, undo", (500,), True, repair))
        solvers.append(EXACT)
        found = solve_epoch(list_of_jobs(self.jobs), self.epoch, solvers, TREES[self.tree], self.periods)
        names = [f"{solver.name} {steps}" if steps else solver.name for solver in solvers for steps in solver.steps]
        return {
            "costs": dict(zip(names, found.costs.tolist(), strict=True)),
            "seconds": dict(zip((solver.name for solver in solvers), found.seconds.tolist(), strict=True)),
        }


class Models(NamedTuple):
    """Windows that several exact solvers place."""

    jobs: Path | None
    tree: str
    windows: int
    limit: float  # seconds that one may take

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        return _facts(self)

    def work(self) -> Result:
        """By solver, the seconds and the worth of each window; no worth where the time was over."""
        windows: list[WindowJobs] = []
        epoch = 0
        while len(windows) < self.windows:
            windows += solve_epoch(list_of_jobs(self.jobs), epoch, [EXACT], TREES[self.tree]).windows
            epoch += 1
        return solve_models(windows[: self.windows], self.limit)


# --- Schedules ------------------------------------------------------------------------------------------------------


class ScheduledEpoch(NamedTuple):
    """An epoch of Fig. 6."""

    jobs: Path | None
    tree: str
    policy: str
    epoch: int
    length: int  # jobs
    network: Path | None = None  # of the policy

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        return {**_facts(self, "network"), "network": _digest(self.network) if self.network else ""}

    def work(self) -> Result:
        """Mean cost in thousandths of a hop, and wait in seconds."""
        tree = TREES[self.tree]
        jobs = cut_sequence(list_of_jobs(self.jobs), self.epoch * EPOCH_JOBS, self.length)
        made = workload_of(jobs.submit - jobs.submit[0], jobs.size, jobs.runtime, tree.hosts)
        policy = f"{self.policy},repair={self.network}" if self.network else self.policy
        platform = platform_of(tree)
        done = only_ran(simulate_workloads(platform, [made], policy, seed=self.epoch).jobs)
        size, hops = done.size.astype(np.int64), tree_hops(done, platform.down, np.arange(tree.hosts))
        worth = float(((2 * len(tree.down) * size - 2 - hops) / 2).sum())  # hops are those of the text
        return {"cost": tree.cost(size, worth) / len(size), "wait": float(waiting_times(done).mean())}


class Contention(NamedTuple):
    """JobSequence that communicate, all to all, under one policy."""

    tree: str
    links: str
    ratio: float
    policy: str
    seed: int
    jobs: int
    batsim: bool = False  # under a real Batsim

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        return self._asdict()

    def work(self) -> Result:
        """Means over jobs: hops of the text, stretch and wait (seconds); and makespan (seconds)."""
        tree = TREES[self.tree]
        made = topology_workload(np.random.default_rng(self.seed), self.jobs)
        recorded = dict(zip((job.id for job in made.jobs), runtimes(made, HOST_SPEED).tolist(), strict=True))
        platform, tasks = platform_of(tree, self.links), all_to_all(made, self.ratio)
        done = only_ran(schedule_files(platform, tasks, self.policy, self.seed, self.batsim))
        return {
            "hops": float(tree_hops(done, platform.down, np.arange(tree.hosts)).mean()),
            "stretch": float(stretches(done, recorded).mean()),
            "wait": float(waiting_times(done).mean()),
            "makespan": float(makespan_from_submission(done)),
        }


def _digest(checkpoint: Path) -> str:
    """A hash of what was learned, which a training that was resumed does not change."""
    return hashlib.sha256(read_checkpoint(checkpoint)[1]).hexdigest()[:24]


def _facts(task: Any, *but: str) -> dict[str, Any]:
    """A task's fields, with the list of jobs by its content."""
    fields = {name: value for name, value in task._asdict().items() if name not in (*but, "jobs")}
    return {**fields, "kind": type(task).__name__, "list": file_digest(task.jobs) if task.jobs else ""}


# What free hosts are worth: prices that ship against the tree alone and against exact windows, on jobs held out.
#
# Pairs of schedules of the same jobs are compared, each sequence from a seed of its own;
# `decision.rl.schedulers.prices` learns from seeds below these. Hops are compared on both trees and with waits alike:
# jobs start at the same windows whether each window is placed exactly or its jobs are placed one by one. Stretch is
# compared where jobs communicate for half of their time on a tapered tree.

_TREE = "fcfs,allocation=tree"
_EXACT, _ONE_BY_ONE = "window,solver=exact", "window,solver=sequential,strategy=free"
_FIRST_SEED = {"hops": 2001, "stretch": 3101}
_ESTIMATES = {"hops": "exact", "stretch": "factor:10"}  # walltimes: jobs that communicate take longer
_TAPERED, _RATIO = "tapered", 0.5  # where stretch is compared


class Comparison(NamedTuple):
    """Two policies on the same jobs."""

    metric: str
    tree: str
    policy: str
    reference: str
    claim: str = ""


COMPARISONS = (
    *(
        Comparison("hops", tree, f"{own},prices=hops", reference, claim)
        for tree, asked in (("program", 2.0), ("text", 0.5))
        for own, reference, claim in (
            (_TREE, _TREE, ""),
            (_ONE_BY_ONE, _EXACT, f"one by one by prices, jobs have fewer hops than in exact windows ({asked:g} %)"),
        )
    ),
    Comparison("stretch", "text", f"{_TREE},prices=stretch", _TREE, "prices for stretch shorten runs against tree"),
    Comparison(
        *("stretch", "text", f"{_TREE},prices=stretch", f"{_TREE},prices=hops"),
        "prices for stretch shorten runs against prices for hops",
    ),
)


class Priced(NamedTuple):
    """A sequence of jobs that no training has seen, under one policy."""

    metric: str
    tree: str
    policy: str
    seed: int
    jobs: int
    batsim: bool = False  # under a real Batsim

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        _, _, name = self.policy.partition("prices=")
        prices = hashlib.sha256(read_prices(name).tobytes()).hexdigest()[:24] if name else ""
        return {**self._asdict(), "kind": "Priced", "prices": prices}

    def work(self) -> Result:
        """Means over jobs: hops of the text or stretch, and wait in seconds."""
        rng, tree = np.random.default_rng(self.seed), TREES[self.tree]
        jobs = apply_estimates(topology_workload(rng, self.jobs), _ESTIMATES[self.metric], rng)
        communicate = self.metric == "stretch"
        platform = platform_of(tree, _TAPERED if communicate else "full")
        given = all_to_all(jobs, _RATIO) if communicate else jobs
        done = only_ran(schedule_files(platform, given, self.policy, self.seed, self.batsim))
        if communicate:
            recorded = dict(zip((job.id for job in jobs.jobs), runtimes(jobs, HOST_SPEED).tolist(), strict=True))
            values = stretches(done, recorded)
        else:
            values = tree_hops(done, platform.down, np.arange(tree.hosts))
        return {self.metric: float(values.mean()), "wait": float(waiting_times(done).mean())}


class Lengths(NamedTuple):
    """Sequences of so many jobs each."""

    sequences: int
    jobs: int


def priced_tasks(lengths: Sequence[Lengths], batsim: bool) -> list[Priced]:
    """All schedules that are compared; stretch on sequences of the first length only, because it takes longest.

    Args:
        lengths: of the sequences.
        batsim: whether stretch is compared under a real Batsim, too.
    """
    tasks: dict[Priced, None] = {}
    for metric, tree, *policies, _ in COMPARISONS:
        places = (False, True) if batsim and metric == "stretch" else (False,)
        for sequences, jobs in lengths[:1] if metric == "stretch" else lengths:
            for policy, i, there in product(policies, range(sequences), places):
                tasks[Priced(metric, tree, policy, _FIRST_SEED[metric] + i, jobs, there)] = None
    return list(tasks)


class Compared(NamedTuple):
    """A comparison on sequences of one length."""

    comparison: Comparison
    jobs: int
    batsim: bool
    values: tuple[Floats, Floats]  # means of the sequences: the policy's, and the reference's
    waits: tuple[Floats, Floats]  # seconds

    @property
    def less(self) -> Estimate:
        """By how many per cent the policy's mean is below the reference's: over pairs, in shares of the latter."""
        own, reference = self.values
        shares = 100 * (reference - own) / reference.mean()
        return bootstrap_mean(shares.reshape(-1, 1), np.random.default_rng(0))


def compared(found: Mapping[Priced, Result]) -> Iterator[Compared]:
    """All comparisons that there are results for."""
    for comparison in COMPARISONS:
        metric, tree, *policies, _ = comparison
        own_tasks = [task for task in found if (task.metric, task.tree) == (metric, tree)]
        for jobs, batsim in dict.fromkeys((task.jobs, task.batsim) for task in own_tasks):
            same = [task for task in own_tasks if (task.jobs, task.batsim) == (jobs, batsim)]
            rows = [[found[task] for task in same if task.policy == policy] for policy in policies]
            own, reference = (np.array([r[metric] for r in row]) for row in rows)
            waits = tuple(np.array([r["wait"] for r in row]) for row in rows)
            yield Compared(comparison, jobs, batsim, (own, reference), (waits[0], waits[1]))


def price_table(pairs: Sequence[Compared]) -> ResultTable:
    """A row for each comparison."""
    rows = []
    for pair in pairs:
        metric, tree, policy, reference, _ = pair.comparison
        digits = 2 if metric == "hops" else 3
        figures = [f"{values.mean():,.{digits}f}" for values in pair.values]
        waits = " / ".join(f"{values.mean():,.0f}" for values in pair.waits)
        less = f"{pair.less.value:+.2f} % ({pair.less.low:+.2f} to {pair.less.high:+.2f})"
        sequences = f"{len(pair.values[0])} of {pair.jobs}"
        metric += ", Batsim" if pair.batsim else ""
        rows.append((policy, reference, metric, tree, sequences, *figures, less, waits))
    columns = ("prices", "against", "metric", "tree", "sequences", "with prices", "without", "less (95 %)", "waits, s")
    return ResultTable("Prices that ship, on held-out jobs: pairs of schedules", columns, rows)
