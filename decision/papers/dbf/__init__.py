"""DBF's paper (arXiv 2401.09910): windows, splits and seeds, against heuristics and two other learned schedulers.

Next to the folders of the runs are ``table.md``, ``results.csv`` (a row for each run) and the paper's figures. A
training of the same settings that `decision train` began goes on where it lies in a run's folder as ``training``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision import __version__
from decision.experiments.inputs import LogOnHosts
from decision.experiments.metric_list import summarise
from decision.experiments.tasks import file_digest, task_key
from decision.experiments.training import train_to_folder
from decision.files import load_swf
from decision.files.text import InputFacts, file_facts, write_files
from decision.files.workload import Selection
from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.papers.campaign import Asked, Campaign, Findings, PaperAgent, Parts, Shown, TrainingHours, price_line
from decision.rl.envs import PlacedJobs, equal_hosts, write_metrics
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.config import TrainConfig, load_config
from decision.rl.learning.schedulers import EpisodeComparison
from decision.rl.learning.training import Report
from decision.simulation import simulate_workloads

from .claims import (
    BY_HORIZON,
    CHECKPOINT_METRICS,
    EARLY,
    PAPER_STEPS,
    Checkpoints,
    Result,
    Results,
    by_policy,
    checkpoints_csv,
    horizon_table,
    horizons_csv,
    judged_claims,
    large_jobs,
    read_checkpoints,
    read_horizons,
    read_means,
    read_types,
    results_csv,
    summary,
    table_markdown,
    types_csv,
)

_HEURISTICS = ("easy", "sqf+easy", "lcfs+easy")  # the paper's FCFS, SJF (fewest cores first) and LCFS, backfilling
EPISODE_JOBS = 1000  # jobs, by an episode of an evaluation
HORIZONS = (1000, 2000, 4000)  # jobs that an episode places, where figures are shown by it
_WHOLE = 0  # in place of a horizon: one run of the whole half
TYPED = 10  # slots of the windows whose waiting times are drawn by type of job, as in the paper
_OFFLINE = " (offline)"  # of a policy tested while no other jobs arrive than those that are placed


class Candidate(NamedTuple):
    """A policy that is learned: by which preset, with which changes of it."""

    policy: str  # what it is called in table and figures
    name: str  # what the folders of its runs begin with
    preset: str
    changes: tuple[str, ...]  # to the preset
    window: tuple[int, int] | None = None  # DBF's: jobs from the queue's head and tail


_INSPECTOR = "inspector"  # preset
_AS_IN_THE_PAPER = ("env.paper=true", "env.cluster=cores", "env.jobs=1000")


def _window(head: int, tail: int, preset: str = "dbf-compact", *more: str) -> Candidate:
    """DBF with a window of so many jobs from the head of the queue and from its tail, and more changes to a preset."""
    changes = (f"env.head={head}", f"env.tail={tail}", *_AS_IN_THE_PAPER, *more)
    return Candidate(f"DBF {head}-{tail}", f"{head}-{tail}", preset, changes, (head, tail))


BASELINES = (
    Candidate("RLScheduler", "rlscheduler", "rlscheduler", ()),
    Candidate("SchedInspector over SJF", "inspector-sjf", _INSPECTOR, ("env.base=sjf",)),
    Candidate("SchedInspector over F1", "inspector-f1", _INSPECTOR, ("env.base=f1",)),
)


class _Budget(NamedTuple):
    """How many steps, seeds and episodes a budget of the command line means."""

    steps: int  # of each run
    seeds: int
    episodes: int  # of each evaluation
    horizons: tuple[int, ...]  # jobs that an episode places, where figures are shown by it
    long_episodes: int  # of each of them
    learned: tuple[Candidate, ...]
    runs: str  # the folder that keeps them; another budget may have some of the same
    checkpoints: int  # equal parts of a training, after each of which a window without a tail is evaluated


_SPLITS = tuple((m - t, t) for m in (8, 10, 16, 20, 32, 64) for t in (0, 1, m // 4, m // 2, m))
_SMOKE = (_window(10, 0), _window(9, 1), BASELINES[-1])
_STANDARD = tuple(_window(*split) for split in ((10, 0), (9, 1), (0, 10), (20, 0), (16, 4), (28, 4), (128, 0)))
_WHOLE_QUEUE = (128, 0)  # the widest of figure 4
_COMPACT = tuple(_window(*split) for split in (*_SPLITS, _WHOLE_QUEUE))
_PAPERS_AGENT = "dbf-paper"
_FULL = tuple(_window(*split, preset=_PAPERS_AGENT) for split in (*_SPLITS, _WHOLE_QUEUE))
# Ours in `first`: 32 environments act together, and each step is learned from once; the paper says neither.
_FASTER = ("learn.envs=32", "learn.rollout=94", "learn.epochs=1")
_FIRST = tuple(_window(*split, _PAPERS_AGENT, *_FASTER) for split in ((10, 0), (9, 1), (20, 0), (10, 10), (32, 0)))
_FIRST_STEPS = 15_040_000  # 5,000 updates of as many episodes' steps
_PRICE = TrainingHours(PAPER_STEPS, per_core=1900.0, per_gpu=4951.0)  # one environment, four epochs
_PRICES = {"DBF": _PRICE, "SchedInspector": TrainingHours(PAPER_STEPS, per_core=70_000.0, per_gpu=0.0)}
DBF_BUDGETS = {
    "smoke": _Budget(16_384, 2, 4, (100, 200), 1, _SMOKE, "smoke", 2),
    "standard": _Budget(2_000_000, 5, 100, HORIZONS, 16, _STANDARD + BASELINES, "standard", 20),
    "splits": _Budget(2_000_000, 1, 100, HORIZONS, 16, _COMPACT, "standard", 20),
    "first": _Budget(_FIRST_STEPS, 3, 100, HORIZONS, 16, _FIRST, "first", 20),
    "full": _Budget(PAPER_STEPS, 5, 100, HORIZONS, 16, _FULL + BASELINES, "full", 20),
}


class TrainingRun(NamedTuple):
    """One training and its evaluation, which any process can do."""

    swf: Path
    digest: str  # of the log
    budget: _Budget
    learned: Candidate
    seed: int
    parent: Path  # of its folder

    @property
    def slots(self) -> int:
        """Of DBF's window; 0 for others."""
        return sum(self.learned.window or ())

    @property
    def folder(self) -> Path:
        """The folder of the files that it leaves."""
        return self.parent / f"{self.learned.name}-{self.seed}"

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        facts = ("steps", "episodes", "horizons", "long_episodes", "checkpoints")
        budget = {name: getattr(self.budget, name) for name in facts}
        return {"experiment": "dbf", "log": self.digest, "learned": self.learned, "seed": self.seed, **budget}

    def files(self) -> list[tuple[Path, str]]:
        """The files that it reads from other runs."""
        return [(self.swf, self.digest)]

    @property
    def written(self) -> list[Path]:
        """The files that it leaves when it is finished."""
        also = [self.offline] if self.learned.preset == _INSPECTOR else []
        also += [self.checkpoints] if self.has_checkpoints else []
        return [self.metrics, self.types, self.horizons, self.folder / "progress.csv", *also]

    @property
    def begun(self) -> Path:
        """Where a training that `decision train` began goes on, if there is one."""
        return self.folder / "training"

    @property
    def has_checkpoints(self) -> bool:
        """Whether it is evaluated while it learns, as the paper's windows without a tail are."""
        return self.learned.window is not None and self.learned.window[1] == 0

    @property
    def metrics(self) -> Path:
        """Of the evaluation; it is there once the run is finished."""
        return self.folder / "metrics.csv"

    @property
    def types(self) -> Path:
        """What types of jobs waited in the evaluation."""
        return self.folder / "types.csv"

    @property
    def horizons(self) -> Path:
        """Figures by how long an episode is."""
        return self.folder / "horizons.csv"

    @property
    def offline(self) -> Path:
        """Of the evaluation in which no other jobs arrive, of SchedInspector."""
        return self.folder / "offline.csv"

    @property
    def checkpoints(self) -> Path:
        """What was evaluated while it learned."""
        return self.folder / "checkpoints.csv"


def reproduce_dbf(swf: Path, how: Parts, budget: str = "smoke", *, only_finished: bool = False) -> Findings:
    """Train what is missing, write ``table.md``, ``results.csv`` and the figures into ``FOLDER/BUDGET``.

    Args:
        swf: the log; policies learn from its first half and are compared on the second.
        how: where the runs are kept, and how many are done at a time; an interrupted one is resumed.
        budget: how much is run.
        only_finished: learn nothing; show the runs that are there.

    Raises:
        InputError: if the log cannot be read.
    """
    digest = file_digest(swf)

    def parts_of(budget: _Budget, folder: Path) -> list[TrainingRun]:
        keys = product(range(budget.seeds), budget.learned)
        return [TrainingRun(swf, digest, budget, learned, seed, folder) for seed, learned in keys]

    campaign = Campaign(
        DBF_BUDGETS,
        parts_of,
        learn_and_compare,
        partial(_show, swf),
        kept=lambda name: DBF_BUDGETS[name].runs,
        price=_left,
    )
    return campaign.reproduce(how, budget, only_finished=only_finished)


def _show(swf: Path, asked: Asked[_Budget, TrainingRun]) -> Shown:
    """The learned policies beside the heuristics, which are run where they are not there yet."""
    folder, runs = asked.folder, asked.done
    every: list[Result] = []
    kept = {name: [folder / f"{name}-horizons.csv"] for name in _HEURISTICS}
    for name in _HEURISTICS:
        metrics, (lengths,) = folder / f"{name}.csv", kept[name]
        if not metrics.exists():
            write_metrics(metrics, {name: _comparison(swf, asked.budget).metrics(name)})
        if not lengths.exists():
            _keep_horizons(swf, asked.budget, name, lengths)
        every.append(Result(name, None, None, read_means(metrics)))
    for run in runs:
        who, means = run.learned, read_means(run.metrics) | {"large_jobs": large_jobs(run.types)}
        every.append(Result(who.policy, who.window, run.seed, means, run.budget.steps))
        if run.offline.exists():
            every.append(Result(who.policy + _OFFLINE, None, run.seed, read_means(run.offline), run.budget.steps))
    for run in asked.wanted:
        if run not in runs and run.learned.preset == _PAPERS_AGENT and (checkpoint := _last_checkpoint(run)):
            # as it stands: evaluated once after each number of steps
            steps = read_manifest(checkpoint).steps
            metrics, types = (run.folder / f"{name}-after-{steps}.csv" for name in ("metrics", "types"))
            if not metrics.exists():
                _evaluate(run, checkpoint, metrics, types)
            means = read_means(metrics) | {"large_jobs": large_jobs(types)}
            every.append(Result(run.learned.policy, run.learned.window, run.seed, means, steps))
    results = by_policy(every)
    for run in runs:
        kept.setdefault(run.learned.policy, []).append(run.horizons)
    by_horizon = horizon_table(
        {policy: [read_horizons(path) for path in kept[policy]] for policy in results if policy in kept}
    )
    missing = Counter(run.learned.policy for run in asked.wanted if run not in runs)
    presets = dict.fromkeys(c.preset for c in asked.budget.learned if c.window)
    agent = PaperAgent(", ".join(presets), list(presets) == [_PAPERS_AGENT], asked.budget.steps / PAPER_STEPS)
    claims = judged_claims(results, agent, _checkpoints_of(runs), _PRICES if agent.own else None)
    files = {
        "table.md": table_markdown(results, (claims, by_horizon), _facts(swf, asked.name), missing).encode(),
        "results.csv": results_csv(results).encode(),
        **_figures(results, runs, asked.budget.episodes),
    }
    notes = f"{folder}: {', '.join(files)}"
    if missing:
        notes += f"\nnot finished: {missing.total()} of {len(asked.wanted)} runs; table.md says of which policies"
    return Shown((summary(results), claims, by_horizon), files, notes)


def _left(asked: Asked[_Budget, TrainingRun]) -> str:
    """What the paper's own trainings of all windows take, but for what this budget has done of them."""
    full, own = DBF_BUDGETS["full"], [run for run in asked.wanted if run.learned.preset == _PAPERS_AGENT]
    steps = asked.budget.steps * sum(run in asked.done for run in own)
    begun = filter(None, (_last_checkpoint(run) for run in own if run not in asked.done))
    steps += sum(read_manifest(checkpoint).steps for checkpoint in begun)
    return price_line([(_PRICE, full.seeds * len(_FULL) - steps / PAPER_STEPS)])


def _last_checkpoint(run: TrainingRun) -> Path | None:
    """Of a training that is not finished; the one that was begun elsewhere, where there are two."""
    found = [*run.begun.glob("*.ckpt"), *sorted(run.folder.glob("*/*.ckpt"))]
    return found[0] if found else None


def _checkpoints_of(runs: Sequence[TrainingRun]) -> dict[str, list[Checkpoints]]:
    """By policy, of the runs that were evaluated while they learned."""
    found: dict[str, list[Checkpoints]] = {}
    for run in runs:
        if rows := read_checkpoints(run.checkpoints):
            found.setdefault(run.learned.policy, []).append(rows)
    return found


def learn_and_compare(run: TrainingRun) -> None:
    """Learn from the first half of the log, with one thread, and keep what the other half says of it."""
    half = len(load_swf(run.swf, name="w0", missing_walltime="runtime").jobs) // 2
    jobs = load_swf(run.swf, jobs=slice(half), name="w0", missing_walltime="runtime")
    hosts = InputFacts(name=f"{jobs.nb_res} equal hosts", sha256="")
    changes = [*run.learned.changes, f"learn.steps={run.budget.steps}", "learn.threads=1"]
    config, files = load_config(run.learned.preset, changes, seed=run.seed), (hosts, file_facts(run.swf))
    log = LogOnHosts(equal_hosts(jobs.nb_res), jobs, files, Selection(jobs=(0, half)))
    folder = run.folder / task_key(run)[:8]
    if begun := next(run.begun.glob("*.ckpt"), None):
        folder, log = run.begun, _as_begun(log, begun)
    if run.has_checkpoints:
        _evaluate_while_learning(run, log, config, folder)
    checkpoint = train_to_folder(log, config, folder, resume=True)
    write_files({run.folder / "progress.csv": [(checkpoint.parent / "progress.csv").read_bytes()]})
    if run.learned.preset == _INSPECTOR:
        offline = _comparison(run.swf, run.budget, online=False).metrics(str(checkpoint))
        write_metrics(run.offline, {run.learned.policy: offline})
    _keep_horizons(run.swf, run.budget, str(checkpoint), run.horizons)
    _evaluate(run, checkpoint, run.metrics, run.types)


def _evaluate(run: TrainingRun, checkpoint: Path, metrics: Path, types: Path) -> None:
    """Write what a checkpoint comes to over the episodes, and last, since that says it is done, the metrics."""
    placed: list[PlacedJobs] = []
    found = _comparison(run.swf, run.budget).metrics(str(checkpoint), placed)
    write_files({types: [types_csv(placed).encode()]})
    write_metrics(metrics, {run.learned.policy: found})


def _keep_horizons(swf: Path, budget: _Budget, policy: str, path: Path) -> None:
    """Figures of a policy by how many jobs an episode places, and in one run of the whole half."""
    jobs = _held_out(swf)
    hosts, found = equal_hosts(jobs.nb_res), {}
    for placed in budget.horizons:
        metrics = EpisodeComparison(hosts, jobs, placed, budget.long_episodes, seed=1).metrics(policy)
        found[placed] = [float(metrics[name].mean()) for name in BY_HORIZON]
    whole = summarise(simulate_workloads(hosts, [jobs], policy).jobs, jobs.nb_res)
    found[_WHOLE] = [whole.wait, whole.bounded_slowdown]
    write_files({path: [horizons_csv(found).encode()]})


def _as_begun(log: LogOnHosts, checkpoint: Path) -> LogOnHosts:
    """The half of the log, as a training read it that `decision train` began. Raises ConfigError if it read another."""
    begun, (hosts, facts), jobs = read_manifest(checkpoint), log.files, log.workload.jobs
    files, selection = tuple(each.sha256 for each in begun.workloads), begun.selection or Selection()
    same = files == (facts.sha256,) and begun.nb_hosts == len(log.platform.hosts)
    if not same or selection.read(Path(log.workload.path), log.workload.name).jobs != jobs:
        raise ConfigError(
            f"{checkpoint}: learned from other jobs or hosts than the first half of {facts.name} on {hosts.name}; "
            f"move {checkpoint.parent} away, or train on these"
        )
    return log._replace(files=(begun.platform, *begun.workloads), selection=selection)


def _evaluate_while_learning(run: TrainingRun, log: LogOnHosts, config: TrainConfig, folder: Path) -> None:
    """Stop at the first update, at the paper's 5,000 episodes' share and at equal parts, evaluate, and go on.

    As one training: the learning rate is planned for all steps. Checkpoints evaluated before are not evaluated again.
    """
    found, path = dict(read_checkpoints(run.checkpoints)), run.checkpoints
    parts = sorted({0.0, EARLY, *(k / run.budget.checkpoints for k in range(1, run.budget.checkpoints + 1))})
    for wanted in (share * config.steps for share in parts):
        if found and wanted <= max(found):
            continue
        done = [0]

        def note(report: Report, done: list[int] = done) -> None:
            done[0] = report.steps

        def reached(wanted: float = wanted, done: list[int] = done) -> bool:
            return done[0] >= wanted

        checkpoint = train_to_folder(log, config, folder, resume=True, report=note, stop=reached)
        metrics = _comparison(run.swf, run.budget).metrics(str(checkpoint))
        steps = read_manifest(checkpoint).steps
        found[steps] = [float(of(metrics[name])) for name in CHECKPOINT_METRICS for of in (np.mean, np.std)]
        write_files({path: [checkpoints_csv(found).encode()]})


def _comparison(swf: Path, budget: _Budget, *, online: bool = True) -> EpisodeComparison:
    """Over episodes of the half of the log that nothing is learned from; `online`: other jobs arrive, too."""
    jobs = _held_out(swf)
    return EpisodeComparison(equal_hosts(jobs.nb_res), jobs, EPISODE_JOBS, budget.episodes, seed=1, online=online)


def _held_out(swf: Path) -> Workload:
    half = len(load_swf(swf, name="w0", missing_walltime="runtime").jobs) // 2
    return load_swf(swf, jobs=slice(half, None), name="w0", missing_walltime="runtime")


def _facts(swf: Path, name: str) -> dict[str, str]:
    """All that the results depend on, but for the machine's rounding."""
    log, budget = file_facts(swf), DBF_BUDGETS[name]
    return {
        "log": f"{log.name}, sha256 {log.sha256[:16]}; learned from its first half, evaluated on the other",
        "budget": f"{name}: {len(budget.learned)} learned policies (DBF head-tail); seeds: {budget.seeds}",
        "training": f"{budget.steps:,} steps; presets {', '.join(dict.fromkeys(c.preset for c in budget.learned))}",
        "evaluation": f"{budget.episodes} episodes of {EPISODE_JOBS:,} placed jobs, the same for all",
        "offline": "no other jobs arrive than those that are placed",
        "made by": f"decision {__version__}",
    }


def _figures(results: Results, runs: Sequence[TrainingRun], episodes: int) -> dict[str, bytes]:
    """Those that there are runs for."""
    from decision.report.plots import paper
    from decision.report.plots.figures import drawn

    from .figures import comparison, curves, invisible_jobs, objectives, splits, waits_by_type

    figures = {"comparison": comparison(results)}
    if checkpoints := _checkpoints_of(runs):
        figures["checkpoints"] = objectives(checkpoints, episodes)
    if runs:
        figures |= {"splits": splits(results), "invisible": invisible_jobs(results)}
        for slots in sorted({run.slots for run in runs if run.learned.window}):
            figures[f"curves-{slots}"] = curves(_by_policy(runs, slots, lambda run: run.folder))
        if types := _by_policy(runs, TYPED, lambda run: run.types):
            figures["types"] = waits_by_type(
                {policy: read_types(files) for policy, files in types.items()},
                episodes,
                len({run.seed for run in runs}),
            )
    suffix = paper().suffix
    return {f"{name}{suffix}": drawn(figure, suffix) for name, figure in figures.items()}


def _by_policy(runs: Sequence[TrainingRun], slots: int, path: Callable[[TrainingRun], Path]) -> dict[str, list[Path]]:
    """A path of each run with a window of so many slots, the seeds of a policy together."""
    found: dict[str, list[Path]] = {}
    for run in runs:
        if run.slots == slots:
            found.setdefault(run.learned.policy, []).append(path(run))
    return found


# DBF (arXiv 2401.09910): backfilling learned by windows of the queue, against heuristics and learned schedulers.
