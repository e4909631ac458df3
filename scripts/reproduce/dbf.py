"""Runs of deep back-filling (arXiv 2401.09910): windows, splits and seeds, against heuristics, with intervals."""

import csv
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from decision.analysis.statistics import interquartile_mean
from decision.cli.learning_tables import learning, write_metrics
from decision.envs import equal_hosts
from decision.formats import load_swf
from decision.learn.checkpoint import InputFacts, file_facts
from decision.learn.config import TrainConfig, load_config
from decision.learn.dbf import Comparison, train_dbf
from decision.model.platform import Platform
from decision.model.workload import Workload

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


def main(
    swf: Annotated[Path, typer.Option(help="lublin_256, or a log like it; the first half is learned from.")],
    budget: Annotated[BudgetName, typer.Option(help="How much to run.")] = BudgetName.SMOKE,
    output: Annotated[Path, typer.Option("--output", "-o", help="Keeps what is finished.")] = Path("out/dbf"),
) -> None:
    """Run what is missing and print the table."""
    chosen, folder = BUDGETS[budget], output / budget.value
    half = len(load_swf(swf, name="w0").jobs) // 2
    seen, unseen = (load_swf(swf, jobs=part, name="w0") for part in (slice(half), slice(half, None)))
    platform = equal_hosts(seen.nb_res)
    facts = [InputFacts(name=f"{seen.nb_res} equal hosts", sha256=""), file_facts(swf)]
    comparison = Comparison(platform, unseen, 1000, chosen.episodes, seed=1)
    scores = {name: [_scores(comparison, name, folder / f"{name}.csv")] for name in HEURISTICS}
    for head, tail in chosen.windows:
        for seed in range(chosen.seeds):
            run = folder / f"{head}-{tail}-{seed}"
            if not (run / "metrics.csv").exists():
                changes = [f"env.head={head}", f"env.tail={tail}", f"learn.steps={chosen.steps}"]
                _learn(platform, seen, load_config(chosen.preset, changes, seed=seed), facts, run)
            found = _scores(comparison, str(run / "dbf.ckpt"), run / "metrics.csv")
            scores.setdefault(f"DBF {head}-{tail}", []).append(found)
    _print(scores)


def _learn(platform: Platform, jobs: Workload, config: TrainConfig, facts: list[InputFacts], run: Path) -> None:
    with learning(config.learn.steps) as show:
        train_dbf(platform, jobs, config, facts, run, resume=True, report=lambda r: show(r.steps, r.rate, r.row))


def _scores(comparison: Comparison, policy: str, kept: Path) -> dict[str, float]:
    """Means over the episodes, from the file if it is there."""
    if not kept.exists():
        write_metrics(kept, {policy: comparison.metrics(policy)})
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
