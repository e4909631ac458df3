"""How often 95 % intervals hold the truth: logs made by a model, each compared as one would compare a log of one's own.

Logs are made in three ways: by Lublin and Feitelson's model; by it, with a load that goes up and down with a memory
of 500 jobs (gaps times the exponential of an AR(1) series); and of whole weeks of a real log, drawn again and again.
Of each of many logs windows at random places are scheduled with five policies. The intervals of the mean, the
interquartile mean, and of the probability that one policy is better than another, are those of
`decision.experiments.statistics`. What they should hold is known from the windows of many other logs.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.compiling.jit import kernel
from decision.experiments.inputs import writable_folder
from decision.experiments.statistics import (
    Estimate,
    Windows,
    bootstrap_mean,
    interquartile_mean,
    middle_mean,
    probability_of_improvement,
)
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.experiments.whole import WEEK
from decision.files.generate.lublin import lublin_workload
from decision.files.workload import Selection
from decision.model.columns import columns_of, labelled
from decision.model.demand import submit_times
from decision.model.record import SHORTEST_RUNTIME, Floats, Ints, JobTable
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.policies.runtimes import apply_estimates
from decision.rl.envs import equal_hosts, evaluate, make_setup

_POLICIES = ("easy", "conservative", "wfp3+easy", "sjf+easy", "saf+easy")
_METRICS = {"waiting_time": "wait", "bounded_slowdown": "slowdown"}
HOSTS = 256  # of made logs
_MODEL, MEMORY, WEEKS = "model", "memory", "weeks"
_MEMORY, _SWING = 500.0, 0.5  # jobs after which a load is forgotten to 1 / e, and its standard deviation, in logarithms
_TOGETHER = 20  # logs in a task


class Design(NamedTuple):
    """What is repeated: how many logs, and how long they and their windows are."""

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
    made: str  # how: `_MODEL`, `MEMORY` or `WEEKS`
    log: Path | None  # whose weeks are drawn

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        digest = None if self.log is None else file_digest(self.log)
        return {**self._asdict(), "log": digest, "design": self.design._asdict(), "policies": _POLICIES}


class Scores(NamedTuple):
    """The scores of the policies on one log."""

    windows: Windows
    of: Floats  # (policies, metrics, windows)


def reproduce_coverage(parts: Parts, design: Design = Design(), log: Path | None = None) -> Findings:  # noqa: B008
    """Schedule what is missing and count.

    Args:
        parts: where finished logs are kept, and how many processes work.
        design: what is repeated.
        log: a real one, whose weeks are drawn; without it there are made logs alone.

    Raises:
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    ways = (_MODEL, MEMORY) if log is None else (_MODEL, MEMORY, WEEKS)
    tasks = [
        LogBatch(first, min(_TOGETHER, end - first), design, random, made, log if made == WEEKS else None)
        for made in ways
        for begin, end, random in ((0, design.logs, True), (design.logs, design.logs + design.known, False))
        for first in range(begin, end, _TOGETHER)
    ]
    folder = writable_folder(parts.folder)
    results = run_tasks(schedule_logs, tasks, folder / "runs", first=tasks[:1], progress=parts.progress, **parts.how)
    every = list(zip(tasks, results, strict=True))
    columns = ("", *(f"{name}: {text}" for name in _METRICS.values() for text in ("mean", "IQM", "P(better)")))
    tables = []
    for made in ways:
        own = [
            (task.random, Scores(Windows(np.array(first), design.length, design.jobs), np.array(scores)))
            for task, result in every
            if task.made == made
            for first, scores in zip(result["first"], result["scores"], strict=True)
        ]
        truth = np.concatenate([scores.of for random, scores in own if not random], axis=2)
        rows = list(_rows([scores for random, scores in own if random], truth))
        tables.append(ResultTable(f"{_TITLES[made]}: share of 95 % intervals that hold the truth, %", columns, rows))
    lines = [line for table in tables for line in (table.title, "", *table.markdown(), "")]
    (folder / "table.md").write_text("\n".join(lines))
    chance = 196 * math.sqrt(0.95 * 0.05 / design.logs)
    notes = (
        f"{design.logs:,} logs of {design.jobs:,} jobs, made ones on {HOSTS} hosts (Lublin and Feitelson's model), "
        f"{design.windows} random windows of {design.length} jobs of each; the truth is that of {design.known:,} other "
        f"logs.\nBy chance alone a share of 95 % is off by up to {chance:.1f} % in 19 of 20 cells."
    )
    return Findings(tuple(tables), notes)


_TITLES = {_MODEL: "the model", MEMORY: f"load with a memory of {_MEMORY:g} jobs", WEEKS: "weeks of a log, drawn again"}


def schedule_logs(batch: LogBatch) -> Result:
    """The scores of a batch's logs."""
    design, last = batch.design, batch.design.jobs - batch.design.length
    begins, scores = [], []  # of each log: (n,) first jobs of its windows, (policies, metrics, n) their scores
    for number in range(batch.first, batch.first + batch.logs):
        rng = np.random.default_rng([number, 7])
        log = _weeks_of(batch.log, design.jobs, rng) if batch.log else _made(batch.made, design.jobs, rng)
        first = rng.integers(0, last + 1, design.windows) if batch.random else np.arange(0, last + 1, design.length)
        setup = make_setup(log, equal_hosts(log.nb_res), jobs=design.length, online=False)  # windows begin idle
        found = [evaluate(policy, setup, first=first) for policy in _POLICIES]
        begins.append(first.tolist())
        scores.append([[each[metric].tolist() for metric in _METRICS] for each in found])
    return {"first": begins, "scores": scores}


def _made(how: str, jobs: int, rng: np.random.Generator) -> Workload:
    log = apply_estimates(lublin_workload(rng, jobs, HOSTS), "exact", rng)
    if how == _MODEL:
        return log
    submit, stay = submit_times(log), math.exp(-1 / _MEMORY)
    swing = np.array([*accumulate(rng.normal(size=jobs), lambda x, new: stay * x + math.sqrt(1 - stay**2) * new)])
    gaps = np.diff(submit, prepend=submit[0]) * np.exp(_SWING * swing - _SWING**2 / 2)
    return replace(log, jobs=columns_of(log.jobs).replaced(submit_time=np.cumsum(gaps), source=None))


def _weeks_of(path: Path, jobs: int, rng: np.random.Generator) -> Workload:
    """So many jobs of whole weeks of a log, drawn with replacement and put one after the other."""
    log = _real(path, file_digest(path))
    columns = columns_of(log.jobs)
    week = (columns.submit_time // WEEK).astype(np.int64)
    rows: list[Ints] = []
    submit: list[Floats] = []
    while sum(map(len, rows)) < jobs:
        drawn = np.flatnonzero(week == rng.integers(week[-1]))  # the last one is not whole
        submit.append(columns.submit_time[drawn] % WEEK + WEEK * len(rows))
        rows.append(drawn)
    taken = columns.take(np.concatenate(rows)[:jobs])
    ids = labelled([f"w0!{number}" for number in range(jobs)])
    return replace(log, jobs=taken.replaced(id=ids, submit_time=np.concatenate(submit)[:jobs], source=None), trace=None)


@functools.lru_cache(maxsize=1)
def _real(path: Path, digest: str) -> Workload:
    log = Selection(walltime="runtime").read(path, "w0")
    jobs = columns_of(log.jobs)
    return replace(log, jobs=jobs.take(np.argsort(jobs.submit_time, kind="stable")))


def _rows(judged: Sequence[Scores], truth: Floats) -> Iterator[list[str]]:
    """A row for each policy, one for each pair, and one for all."""
    cells: dict[str, list[float]] = {}
    for policy, name in enumerate(_POLICIES):
        cells[name] = []
        for metric in range(len(_METRICS)):
            own = truth[policy, metric]
            cells[name] += [
                _coverage(judged, _of(bootstrap_mean, policy, metric), float(own.mean())),
                _coverage(judged, _of(interquartile_mean, policy, metric), middle_mean(own)),
                math.nan,
            ]
    for one, other in combinations(range(len(_POLICIES)), 2):
        name = f"{_POLICIES[one]}, {_POLICIES[other]}"
        cells[name] = []
        for metric in range(len(_METRICS)):
            # the chance that one is below the other; ties count one half
            ascending, against = np.sort(truth[one, metric]), truth[other, metric]
            below, upto = (np.searchsorted(ascending, against, side).mean() for side in ("left", "right"))
            known = float((below + upto) / (2 * len(ascending)))
            cells[name] += [math.nan, math.nan, _coverage(judged, _better(one, other, metric), known)]
    cells["all"] = [float(column) for column in np.nanmean(list(cells.values()), axis=0)]
    for name, values in cells.items():
        yield [name, *("" if math.isnan(value) else f"{100 * value:.1f}" for value in values)]


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


# What no schedule of a log can be below: a Lagrangian relaxation of the hosts, with run times known in advance.
#
# Each host-second has a price that depends on the time alone. Were hosts without limit at that price, each job would
# begin when its own cost and the price of its hosts are least together; the sum of that over jobs, less the price of
# all hosts, is a lower bound of the cost of all schedules, whatever the prices are. They are raised where jobs want
# more hosts than there are (subgradient method with Polyak's steps). The best prices give the linear relaxation of the
# time-indexed formulation (Dyer and Wolsey, Discrete Applied Mathematics 26, 1990), which is at least as tight as
# preemptive relaxations; prices that are not the best give less, but never too much.

_CELLS = 4000  # of constant price
_STEPS = 400  # of the subgradient method
_PATIENCE = 10  # steps without a better bound, after which they are halved


class LowerBound(NamedTuple):
    """Of a log, on so many hosts."""

    wait: float  # seconds, mean
    slowdown: float  # bounded, mean


def lower_bound(jobs: JobTable, nb_hosts: int) -> LowerBound:
    """Of the mean wait and the mean bounded slowdown of any schedule of the jobs.

    Args:
        jobs: all jobs, as a schedule has run them; it says how far the costs can be from the bound.
        nb_hosts: of the machine.
    """
    order = np.argsort(jobs.submit_time, kind="stable")
    submit, start, runtime = (
        np.asarray(each, np.float64)[order] for each in (jobs.submit_time, jobs.start_time, jobs.runtime)
    )
    size, waits = np.asarray(jobs.size, np.float64)[order], start - submit
    free = np.maximum(SHORTEST_RUNTIME - runtime, 0.0)  # seconds of waiting that cost no slowdown
    problem = submit - submit[0], size, runtime
    end = float((start + runtime).max() - submit[0])
    rate = 1 / np.maximum(runtime, SHORTEST_RUNTIME)
    wait = _bound(*problem, np.ones(len(size)), np.zeros(len(size)), nb_hosts, end, float(waits.mean()))
    over = float((np.maximum(waits - free, 0.0) * rate).mean())
    return LowerBound(wait, 1 + _bound(*problem, rate, free, nb_hosts, end, over))


def _bound(
    submit: Floats, size: Floats, runtime: Floats, rate: Floats, free: Floats, nb_hosts: int, end: float, known: float
) -> float:
    """Of the mean of ``rate * max(wait - free, 0)``; `known` is what some schedule has that ends at `end`."""
    cell, best, since, share = end / _CELLS, 0.0, 0, 1.0
    price, tried = np.zeros(_CELLS), np.zeros(_CELLS)
    for _ in range(_STEPS):
        sums = np.concatenate([[0.0], np.cumsum(price) * cell])
        wanted = np.zeros(_CELLS)  # host-seconds
        cost = _cheapest(submit, size, runtime, rate, free, sums, cell, wanted)
        bound = (cost - nb_hosts * sums[-1]) / len(size)
        if bound > best:
            best, tried, since = bound, price, 0
        else:
            since += 1
        if since == _PATIENCE:
            price, share, since = tried, share / 2, 0
            continue
        slope = (wanted - nb_hosts * cell) / len(size)
        slope[(price == 0) & (slope < 0)] = 0.0
        square = float(slope @ slope)
        if square == 0 or known <= best * (1 + 1e-6):
            break
        price = np.maximum(price + share * (known - bound) / square * slope, 0.0)
    return float(best)


@kernel
def _cheapest(submit, size, runtime, rate, free, sums, cell, wanted):
    """The sum of what jobs cost when they are cheapest; adds the host-seconds that they then want to each cell.

    Costs are linear between edges of cells, for a job's begin and for its end, so these are all that is looked at.
    """
    total = 0.0
    for job in range(len(submit)):
        begin, length = submit[job], runtime[job]
        at = begin
        least = size[job] * (_price(sums, cell, begin + length) - _price(sums, cell, begin))
        for shift in (0.0, length):
            edge = math.floor((begin + shift) / cell) + 1
            while edge < len(sums):
                start = max(edge * cell - shift, begin)
                late = rate[job] * max(start - begin - free[job], 0.0)
                if late >= least:
                    break
                cost = late + size[job] * (_price(sums, cell, start + length) - _price(sums, cell, start))
                if cost < least:
                    least, at = cost, start
                edge += 1
        start = begin + free[job]
        cost = size[job] * (_price(sums, cell, start + length) - _price(sums, cell, start))
        if cost < least:
            least, at = cost, start
        total += least
        edge = int(at / cell)
        while edge < len(wanted) and edge * cell < at + length:
            wanted[edge] += size[job] * max(min(at + length, (edge + 1) * cell) - max(at, edge * cell), 0.0)
            edge += 1
    return total


@kernel
def _price(sums, cell, time):
    """The price of a host from 0 s on until `time`."""
    place = time / cell
    low = int(place)
    if low >= len(sums) - 1:
        return sums[len(sums) - 1]
    return sums[low] + (place - low) * (sums[low + 1] - sums[low])
