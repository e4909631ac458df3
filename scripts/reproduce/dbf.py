"""Runs of deep back-filling (arXiv 2401.09910): windows, splits and seeds, against heuristics, with intervals."""

import csv
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from decision.analysis.statistics import interquartile_mean
from decision.cli.learning_tables import write_metrics
from decision.envs import equal_hosts
from decision.formats import load_swf
from decision.learn.checkpoint import InputFacts, file_facts
from decision.learn.config import load_config
from decision.learn.schedulers import Comparison, train_scheduler

COLUMNS = (("waiting_time", 1.0), ("queue_length", 1.0), ("utilization", 100.0))
HEURISTICS = ("easy", "sqf+easy", "lcfs+easy")  # the paper's FCFS, SJF (fewest cores first) and LCFS, backfilling


class BudgetName(StrEnum):
    """How much is run."""

    SMOKE = "smoke"
    STANDARD = "standard"
    FULL = "full"


class Budget(NamedTuple):
    """What that means."""

    preset: str
    steps: int  # of each run
    seeds: int
    episodes: int  # of each evaluation
    windows: tuple[tuple[int, int], ...]  # jobs from the queue's head and tail


STANDARD = ((10, 0), (9, 1), (0, 10), (20, 0), (16, 4), (28, 4))
FULL = tuple((m - t, t) for m in (8, 10, 16, 20, 32, 64) for t in (0, 1, m // 4, m // 2, m))
BUDGETS = {
    BudgetName.SMOKE: Budget("dbf-compact", 16_384, 2, 4, ((10, 0), (9, 1))),
    BudgetName.STANDARD: Budget("dbf-compact", 2_000_000, 5, 100, STANDARD),
    BudgetName.FULL: Budget("dbf-paper", 100_000_000, 5, 100, FULL),
}


class Run(NamedTuple):
    """One training and its evaluation, which any process can do."""

    swf: Path
    budget: Budget
    head: int
    tail: int
    seed: int
    folder: Path

    @property
    def kept(self) -> Path:
        """The metrics that are there once it is finished."""
        return self.folder / f"{self.head}-{self.tail}-{self.seed}" / "metrics.csv"


def main(
    swf: Annotated[Path, typer.Option(help="lublin_256, or a log like it; the first half is learned from.")],
    budget: Annotated[BudgetName, typer.Option(help="How much to run.")] = BudgetName.SMOKE,
    output: Annotated[Path, typer.Option("--output", "-o", help="Keeps what is finished.")] = Path("out/dbf"),
    processes: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = len(os.sched_getaffinity(0)),
) -> None:
    """Run what is missing and print the table; Ctrl-C loses a minute of learning at most."""
    chosen, folder = BUDGETS[budget], output / budget.value
    scores = {name: [_scores(_comparison(swf, chosen), name, folder / f"{name}.csv")] for name in HEURISTICS}
    seeds = range(chosen.seeds)
    runs = [Run(swf, chosen, head, tail, seed, folder) for seed in seeds for head, tail in chosen.windows]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool, Progress() as bar:
        futures = [pool.submit(learn_and_compare, run) for run in runs]
        for future in bar.track(as_completed(futures), total=len(runs)):
            future.result()
    for run in runs:
        scores.setdefault(f"DBF {run.head}-{run.tail}", []).append(_means(run.kept))
    _print(scores)


def learn_and_compare(run: Run) -> None:
    """Learn from the first half of the log, with one thread, and keep the metrics of the other half."""
    if run.kept.exists():
        return
    half = len(load_swf(run.swf, name="w0").jobs) // 2
    jobs = load_swf(run.swf, jobs=slice(half), name="w0")
    hosts = InputFacts(name=f"{jobs.nb_res} equal hosts", sha256="")
    changes = [f"env.head={run.head}", f"env.tail={run.tail}", f"learn.steps={run.budget.steps}", "learn.threads=1"]
    config = load_config(run.budget.preset, changes, seed=run.seed)
    learned = run.kept.parent
    train_scheduler(equal_hosts(jobs.nb_res), jobs, config, [hosts, file_facts(run.swf)], learned, resume=True)
    _scores(_comparison(run.swf, run.budget), str(learned / "dbf.ckpt"), run.kept)


def _comparison(swf: Path, budget: Budget) -> Comparison:
    """Over episodes of the half of the log that nothing is learned from."""
    half = len(load_swf(swf, name="w0").jobs) // 2
    jobs = load_swf(swf, jobs=slice(half, None), name="w0")
    return Comparison(equal_hosts(jobs.nb_res), jobs, 1000, budget.episodes, seed=1)


def _scores(comparison: Comparison, policy: str, kept: Path) -> dict[str, float]:
    """Means over the episodes, from the file if it is there."""
    if not kept.exists():
        write_metrics(kept, {policy: comparison.metrics(policy)})
    return _means(kept)


def _means(kept: Path) -> dict[str, float]:
    with kept.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: float(np.mean([float(row[name]) for row in rows])) for name, _ in COLUMNS}


def _print(scores: dict[str, list[dict[str, float]]]) -> None:
    table = Table(
        "policy", "runs", "wait, s", "queue, jobs", "utilization, %", caption="IQM over the runs, 95 % interval"
    )
    for name, runs in sorted(scores.items(), key=lambda item: np.mean([run["waiting_time"] for run in item[1]])):
        cells = [_interval([scale * run[metric] for run in runs]) for metric, scale in COLUMNS]
        table.add_row(name, str(len(runs)), *cells)
    Console().print(table)


def _interval(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:,.1f}"
    found = interquartile_mean(np.array(values)[:, None], np.random.default_rng(0))
    return f"{found.value:,.1f} ({found.low:,.1f} to {found.high:,.1f})"


if __name__ == "__main__":
    typer.run(main)
