"""Rankings that evolved, against every ordering with backfilling, on jobs that none has seen.

Learned from jobs of Lublin and Feitelson's model; the first half of a log of that model chooses one of the seeds; all
are compared on its second half, every job done: over sequences of 1,000 jobs, and over the half as it is. Sequences
begin at each twentieth job: which of two policies is ahead changes with little, and evens out over many. But as they
overlap, they tell no more than so many jobs can: neighbours that share jobs are drawn together for the intervals
(circular block bootstrap; Politis and Romano 1992). A half has few that do not overlap, so all are compared on other
jobs of the model, too.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.experiments.advise import ORDERS
from decision.experiments.inputs import LogOnHosts
from decision.experiments.statistics import Estimate, interquartile_mean
from decision.experiments.training import train_to_folder
from decision.files import load_swf
from decision.files.generate.lublin import lublin_workload
from decision.files.text import InputFacts, write_files
from decision.model.reshape import at_load
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.policies.runtimes import apply_estimates
from decision.rl.envs import Setup, equal_hosts, evaluate, make_setup
from decision.rl.learning.config import load_config

ALL_SEEDS, CHOSEN = "ranking, all seeds", "ranking, chosen"
ALL_BACKFILLS = ("easy", "conservative", "first-fit")
COMPARED = ("waiting_time", "bounded_slowdown")
BEST_SHOWN = 3  # policies that are best at a metric

TRAINING_JOBS, MODEL_SEED, TRAINING_LOAD = 60_000, 7, 1.1  # that are learned from
SEQUENCE_JOBS, _STRIDE = 1000, 20  # of sequences: their jobs, and how many jobs after one the next begins
MADE_SEQUENCES, MADE_SEED = 150, 123  # sequences of other jobs, one after the other
RESAMPLES = 10_000  # of the bootstrap

Scores = dict[str, NDArray[np.float64]]  # of a metric: (runs, sequences)


class RankingResults(NamedTuple):
    """The scores of each policy: on sequences of the second half, on all of it, and on made jobs."""

    sequences: dict[str, Scores]
    half: dict[str, Scores]  # one sequence: all of it
    made: dict[str, Scores]


def reproduce_ranking(swf: Path, parts: Parts, *, seeds: int = 5, steps: int | None = None) -> Findings:
    """Learn what is missing, compare, write ``table.md`` and ``results.csv``.

    Args:
        swf: the log; its second half is scheduled.
        parts: where the trainings are kept; progress counts training steps of all seeds.
        seeds: rankings to learn.
        steps: jobs that are placed to learn one; the preset's where None.

    Raises:
        InputError: if the log cannot be read.
    """
    half = len(load_swf(swf, name="w0", missing_walltime="runtime").jobs) // 2
    seen, held_out = (
        load_swf(swf, jobs=part, name="w0", missing_walltime="runtime") for part in (slice(half), slice(half, None))
    )
    jobs, others = (
        _jobs(seen.nb_res, TRAINING_JOBS, MODEL_SEED),
        _jobs(seen.nb_res, MADE_SEQUENCES * SEQUENCE_JOBS, MADE_SEED),
    )
    learned = [_learn(jobs, seed, seeds, steps, parts) for seed in range(seeds)]
    first, later = (
        _scores(learned, _offline(part, SEQUENCE_JOBS), range(0, len(part.jobs), _STRIDE)) for part in (seen, held_out)
    )
    # the seed whose worse metric, over the best heuristic's, is best
    heuristics = {name: scores for name, scores in first.items() if name != ALL_SEEDS}
    best = {metric: heuristics[_by(heuristics, metric)[0]][metric].mean() for metric in COMPARED}
    ratios = [first[ALL_SEEDS][metric].mean(axis=1) / best[metric] for metric in COMPARED]
    chosen = int(np.argmin(np.max(ratios, axis=0)))
    results = RankingResults(
        sequences=later,
        half=_scores(learned, _offline(held_out, None), [0]),
        made=_scores(learned, _offline(others, SEQUENCE_JOBS), range(0, MADE_SEQUENCES * SEQUENCE_JOBS, SEQUENCE_JOBS)),
    )
    results, tried = distinct(results), len(results.half) - 1
    different = len(results.half) - 1
    for scores in results:
        scores[CHOSEN] = {metric: runs[chosen : chosen + 1] for metric, runs in scores[ALL_SEEDS].items()}
    columns = (
        "policy",
        *(f"{where}{metric}" for where in ("", "half: ", "made: ") for metric in ("wait, s", "slowdown")),
    )
    table = ResultTable("", columns, _rows(results))
    header = ("", "of", "in", "best with this backfilling", "change", "typical change")
    gains = ResultTable("", header, [*_gains(results, CHOSEN), *_gains(results, ALL_SEEDS)])
    text = "\n".join([*table.markdown(), "", *gains.markdown(), ""])
    write_files({parts.folder / "table.md": [text.encode()], parts.folder / "results.csv": [_csv(results)]})
    count = f"{different} of the {tried} heuristics make different schedules"
    return Findings((table, gains), f"chosen: seed {chosen}; {count}; {parts.folder}: table.md, results.csv")


def _learn(jobs: Workload, seed: int, seeds: int, steps: int | None, parts: Parts) -> Path:
    """The checkpoint of a seed."""
    config = load_config("ranking", [f"learn.steps={steps}"] if steps else [], seed=seed)
    name = f"Lublin and Feitelson's model, {TRAINING_JOBS:,} jobs, seed {MODEL_SEED}, load {TRAINING_LOAD}"
    facts = InputFacts(name=f"{jobs.nb_res} equal hosts", sha256=""), InputFacts(name=name, sha256="")
    return train_to_folder(
        LogOnHosts(equal_hosts(jobs.nb_res), jobs, facts),
        config,
        parts.folder / str(seed),
        resume=True,
        report=lambda done: parts.progress(seed * config.steps + done.steps, seeds * config.steps),
    )


def _jobs(hosts: int, jobs: int, seed: int) -> Workload:
    """Jobs that Lublin's model makes, at the load that is learned at."""
    rng = np.random.default_rng(seed)
    return at_load(apply_estimates(lublin_workload(rng, jobs, hosts), "exact", rng), TRAINING_LOAD)


def _offline(workload: Workload, jobs: int | None) -> Setup:
    """Sequences of so many jobs, or of all, after which none come."""
    return make_setup(workload, equal_hosts(workload.nb_res), jobs=jobs, online=False)


def _scores(learned: Sequence[Path], setup: Setup, first: Sequence[int]) -> dict[str, Scores]:
    """Of all policies, over the sequences that begin with these jobs."""
    runs = {name: [name] for name in map("+".join, product(ORDERS, ALL_BACKFILLS))}
    runs[ALL_SEEDS] = [str(path) for path in learned]
    found = {name: [evaluate(each, setup, first=first) for each in same] for name, same in runs.items()}
    return {name: {m: np.stack([run[m] for run in runs]) for m in COMPARED} for name, runs in found.items()}


def distinct(results: RankingResults) -> RankingResults:
    """The results, with one policy, the first, of those that are the same in all: they make one schedule.

    With exact walltimes conservative backfilling starts each job when its arrival promised, whatever the order.
    """
    first: dict[bytes, str] = {}
    for name in results.half:
        made = b"".join(scores[name][m].tobytes() for scores in results for m in COMPARED)
        first.setdefault(made, name)
    return RankingResults(*({name: scores[name] for name in first.values()} for scores in results))


def _rows(results: RankingResults) -> list[tuple[str, ...]]:
    """The rankings, the best at each metric, and the two that everybody knows; by waiting time.

    Means over runs, and where there are several, the lowest and the highest.
    """
    shown = {ALL_SEEDS, CHOSEN, "fcfs+easy", "fcfs+conservative"}
    for scores, metric in product(results, COMPARED):
        shown |= set(_by(scores, metric)[:BEST_SHOWN])
    rows: list[tuple[str, ...]] = []
    for name in filter(shown.__contains__, _by(results.sequences, "waiting_time")):
        cells = []
        for scores, metric in product(results, COMPARED):
            runs = scores[name][metric].mean(axis=1)
            mean, *ends = (f"{x:,.0f}" if x >= 1000 else f"{x:.1f}" for x in (runs.mean(), runs.min(), runs.max()))
            cells.append(mean if len(runs) == 1 else f"{mean} ({' to '.join(ends)})")
        rows.append((name, *cells))
    return rows


def _by(scores: Mapping[str, Scores], metric: str, backfill: str = "") -> list[str]:
    """Heuristics with this backfilling, the best first; of all policies if there is none."""
    return sorted((n for n in scores if n.endswith(backfill)), key=lambda n: float(scores[n][metric].mean()))


def _gains(results: RankingResults, policy: str) -> list[tuple[str, ...]]:
    """By how much each metric differs from that of the best ordering with each backfilling."""
    rows: list[tuple[str, ...]] = []
    for (where, scores), metric, backfill in product(results._asdict().items(), COMPARED, ALL_BACKFILLS):
        best = _by(scores, metric, backfill)[0]
        own, other = scores[policy][metric], scores[best][metric][0]
        mean = _change(own, other, SEQUENCE_JOBS // _STRIDE if where == "sequences" else 1)
        cells = map(_percent, (mean, _typical_change(own, other)))
        rows.append((policy, metric.replace("_", " "), where, best, *cells))
    return rows


def _percent(change: Estimate) -> str:
    """With its interval, where there is one."""
    interval = "" if change.low == change.high else f" ({change.low:+.1f} to {change.high:+.1f})"
    return f"{change.value:+.1f} %{interval}"


def _change(own: NDArray[np.float64], other: NDArray[np.float64], together: int) -> Estimate:
    """Of (runs, sequences) against (sequences,), in percent of the means.

    Runs are resampled, and sequences, so many neighbours together; the first are neighbours of the last.
    """
    rng = np.random.default_rng(0)
    runs, sequences = own.shape
    values = []
    for _ in range(RESAMPLES):
        run, block = rng.integers(runs, size=runs), rng.integers(sequences, size=-(-sequences // together))
        sequence = ((block[:, None] + np.arange(together)).ravel() % sequences)[:sequences]
        values.append(own[run][:, sequence].mean() / other[sequence].mean())
    low, high = np.percentile(values, [2.5, 97.5])
    return Estimate(*(100 * (float(value) - 1) for value in (own.mean() / other.mean(), low, high)))


def _typical_change(own: NDArray[np.float64], other: NDArray[np.float64]) -> Estimate:
    """Of (runs, sequences) against (sequences,): interquartile mean of each sequence's change, in percent.

    Runs are resampled, sequences are not (stratified bootstrap).
    """
    changes = 100 * (own / np.maximum(other, 1.0) - 1)
    return interquartile_mean(changes, np.random.default_rng(0))


def _csv(results: RankingResults) -> bytes:
    """A row for each policy, run and sequence."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("where", "policy", "run", "sequence", *COMPARED))
    for where, scores in results._asdict().items():
        for name, columns in scores.items():
            for run, sequence in np.ndindex(columns[COMPARED[0]].shape):
                writer.writerow((where, name, run, sequence, *(float(columns[m][run, sequence]) for m in COMPARED)))
    return text.getvalue().encode()
