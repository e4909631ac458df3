"""How often 95 % intervals hold the truth: logs made by a model, each compared as one would compare a log of one's own.

Of each of many logs of Lublin and Feitelson's model, windows at random places are scheduled with five policies. The
intervals of the mean, the interquartile mean, and of the probability that one policy is better than another, are those
of `decision.analysis.statistics`. What they should hold is known from the windows of many other logs.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from decision.analysis.blocks import Windows
from decision.analysis.statistics import (
    Estimate,
    bootstrap_mean,
    interquartile_mean,
    middle_mean,
    probability_of_improvement,
)
from decision.envs import equal_hosts, evaluate, make_setup
from decision.estimates import apply_estimates
from decision.generate.lublin import lublin_workload
from decision.model.record import Floats, Ints
from decision.runs.inputs import writable_folder
from decision.runs.store import Result
from decision.runs.tasks import run_tasks

from ..findings import Findings, Parts, ResultTable, markdown_table

POLICIES = ("easy", "conservative", "wfp3+easy", "sjf+easy", "saf+easy")
METRICS = {"waiting_time": "wait", "bounded_slowdown": "slowdown"}
HOSTS = 256
_TOGETHER = 20  # logs in a task


class Design(NamedTuple):
    """What is repeated."""

    logs: int = 200  # that are judged
    known: int = 1000  # other logs, from which the truth is known
    jobs: int = 5000  # of a log
    windows: int = 50  # of a log that is judged
    length: int = 250  # jobs of a window


class LogBatch(NamedTuple):
    """Logs that one process makes and schedules."""

    first: int  # number of the first
    logs: int
    design: Design
    random: bool  # whether windows begin at random jobs; else one after the other

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {**self._asdict(), "design": self.design._asdict(), "policies": POLICIES}


class Scores(NamedTuple):
    """Of a log."""

    windows: Windows
    of: Floats  # (policies, metrics, windows)


def reproduce_coverage(parts: Parts, design: Design = Design()) -> Findings:  # noqa: B008 - immutable
    """Schedule what is missing and count.

    Args:
        parts: where finished logs are kept, and how many processes work.
        design: what is repeated.

    Raises:
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    tasks = [
        LogBatch(first, min(_TOGETHER, end - first), design, random)
        for begin, end, random in ((0, design.logs, True), (design.logs, design.logs + design.known, False))
        for first in range(begin, end, _TOGETHER)
    ]
    folder = writable_folder(parts.folder)
    results = run_tasks(schedule_logs, tasks, folder / "runs", first=tasks[:1], progress=parts.progress, **parts.how)
    judged = [s for task, result in zip(tasks, results, strict=True) if task.random for s in _read(result, design)]
    others = [s for task, result in zip(tasks, results, strict=True) if not task.random for s in _read(result, design)]
    truth = np.concatenate([scores.of for scores in others], axis=2)
    rows = list(_rows(judged, truth))
    table = ResultTable("share of 95 % intervals that hold the truth, %", ("", *_columns()), rows)
    (folder / "table.md").write_text("\n".join(markdown_table(table.columns, table.rows)) + "\n")
    return Findings((table,), _notes(design))


def schedule_logs(batch: LogBatch) -> Result:
    """The scores of a batch's logs."""
    numbers = range(batch.first, batch.first + batch.logs)
    logs = [_schedule(number, batch.design, batch.random) for number in numbers]
    return {"first": [first.tolist() for first, _ in logs], "scores": [scores.tolist() for _, scores in logs]}


def _schedule(number: int, design: Design, random: bool) -> tuple[Ints, Floats]:
    """First jobs (n,) and scores (policies, metrics, n) of the windows of a log; each begins with idle hosts."""
    rng = np.random.default_rng([number, 7])
    log = apply_estimates(lublin_workload(rng, design.jobs, HOSTS), "exact", rng)
    last = design.jobs - design.length
    first = rng.integers(0, last + 1, design.windows) if random else np.arange(0, last + 1, design.length)
    setup = make_setup(log, equal_hosts(HOSTS), jobs=design.length, online=False)
    found = [evaluate(policy, setup, first=first) for policy in POLICIES]
    return first, np.array([[scores[metric] for metric in METRICS] for scores in found])


def _read(result: Result, design: Design) -> Iterator[Scores]:
    for first, scores in zip(result["first"], result["scores"], strict=True):
        yield Scores(Windows(np.array(first), design.length, design.jobs), np.array(scores))


def _columns() -> list[str]:
    return [f"{name}: {text}" for name in METRICS.values() for text in ("mean", "IQM", "P(better)")]


def _rows(judged: Sequence[Scores], truth: Floats) -> Iterator[list[str]]:
    """A row for each policy, one for each pair, and one for all."""
    cells: dict[str, list[float]] = {}
    for policy, name in enumerate(POLICIES):
        cells[name] = []
        for metric in range(len(METRICS)):
            own = truth[policy, metric]
            cells[name] += [
                _coverage(judged, _of(bootstrap_mean, policy, metric), float(own.mean())),
                _coverage(judged, _of(interquartile_mean, policy, metric), middle_mean(own)),
                math.nan,
            ]
    for one, other in combinations(range(len(POLICIES)), 2):
        name = f"{POLICIES[one]}, {POLICIES[other]}"
        cells[name] = []
        for metric in range(len(METRICS)):
            known = _chance(truth[one, metric], truth[other, metric])
            cells[name] += [math.nan, math.nan, _coverage(judged, _better(one, other, metric), known)]
    cells["all"] = [float(column) for column in np.nanmean(list(cells.values()), axis=0)]
    for name, values in cells.items():
        yield [name, *("" if math.isnan(value) else f"{100 * value:.1f}" for value in values)]


def _chance(scores: Floats, against: Floats) -> float:
    """That one of `scores` is below one of `against`; ties count one half."""
    ascending = np.sort(scores)
    below, upto = (np.searchsorted(ascending, against, side).mean() for side in ("left", "right"))
    return float((below + upto) / (2 * len(scores)))


Interval = Callable[[Scores], Estimate]


def _of(statistic: Callable[..., Estimate], policy: int, metric: int) -> Interval:
    return lambda scores: statistic(scores.of[policy, metric][:, None], _rng(), [scores.windows])


def _better(one: int, other: int, metric: int) -> Interval:
    def interval(scores: Scores) -> Estimate:
        own, against = (scores.of[policy, metric][:, None] for policy in (one, other))
        return probability_of_improvement(own, against, _rng(), [scores.windows])

    return interval


def _coverage(judged: Sequence[Scores], interval: Interval, known: float) -> float:
    """The share of logs whose interval holds what is known."""
    return float(np.mean([low <= known <= high for _, low, high in map(interval, judged)]))


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _notes(design: Design) -> str:
    chance = 196 * math.sqrt(0.95 * 0.05 / design.logs)
    return (
        f"{design.logs:,} logs of {design.jobs:,} jobs on {HOSTS} hosts (Lublin and Feitelson's model), "
        f"{design.windows} random windows of {design.length} jobs of each; the truth is that of {design.known:,} other "
        f"logs.\nBy chance alone a share of 95 % is off by up to {chance:.1f} % in 19 of 20 cells."
    )
