"""A learned policy beside every heuristic, on second halves of public logs, which nothing was learned from.

Each policy runs each half as it is, on equal hosts. Heuristics are all orders with each way of backfilling, with
``guard=auto``, and FCFS with EASY; of those that make the same schedule the first counts. Those that pass the gates of
learned policies are the measure: the least waiting time, and the least slowdown, that any of them has there is what
choosing a heuristic with hindsight would give. Changes are of means over all jobs; for the intervals, jobs that were
submitted one after the other count together. The lower bound is that of any schedule, made with all run times and
arrivals known.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision.experiments.advise import ORDERS
from decision.experiments.gates import GATE_COPIES, Measures, gates_over, idle_gate, measure
from decision.experiments.inputs import writable_folder
from decision.experiments.metrics import bounded_slowdowns, only_ran, waiting_times
from decision.experiments.statistics import Estimate, ratio_of_means
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.files import load_workload
from decision.files.text import file_facts
from decision.model.record import Floats, JobTable
from decision.model.reshape import shaken
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.policies import find_policy
from decision.rl.envs import equal_hosts
from decision.rl.learning import find_checkpoint
from decision.rl.learning.evolution import CmaEs
from decision.rl.schedulers.learned import NB_WEIGHTS, Learned
from decision.simulation import simulate_workloads

from .coverage import lower_bound
from .evolved import write_evolved
from .judged import FILES, FOLDS, LUBLIN, judge_left_out, path_of, training_parts
from .learned import LOGS, weights_of
from .ranking import ALL_BACKFILLS

_METRICS = ("wait", "slowdown")
_UNCHANGED = Estimate(1.0, 1.0, 1.0)


class _Half(NamedTuple):
    """The policy and the log on the second half of which it is compared."""

    data: Path
    log: str
    policy: str

    def definition(self) -> dict[str, Any]:
        """For the cache of results."""
        checkpoint = find_checkpoint(self.policy)
        policy = file_facts(checkpoint).sha256 if checkpoint else self.policy
        return {"log": file_digest(self.data / self.log), "policy": policy, "heuristics": [ORDERS, ALL_BACKFILLS]}


def reproduce_held_out(data: Path, parts: Parts, policy: str = "learned") -> Findings:
    """Compare on the logs that are missing, write ``table.md``.

    Args:
        data: folder of `decision.papers.own.learned.LOGS`.
        parts: where finished logs are kept, and how many processes work.
        policy: what is compared with the heuristics.

    Raises:
        InputError: if a log cannot be read.
        ConfigError: if there is no such policy.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    find_policy(policy)
    folder = writable_folder(parts.folder)
    halves = [_Half(data, log, policy) for log in LOGS]
    results = run_tasks(
        compare_on_half, halves, folder / "runs", first=halves[:1], progress=parts.progress, **parts.how
    )
    found = dict(zip(LOGS, results, strict=True))
    header = ("log", "metric", "FCFS with EASY", "hindsight", policy, "over hindsight", "over the lower bound")
    rows, pairs = [], []
    for log, result in found.items():
        for at, metric in enumerate(_METRICS):
            name, best = min(result["heuristics"].items(), key=lambda item: item[1]["measures"][at])
            own, bound = result["own"][at], result["bound"][at]
            easy = result["heuristics"]["easy"]["measures"][at]
            over = f"{own / bound:.1f} times {_number(bound)}" if bound > 0 else "0"
            hindsight = f"{_number(best['measures'][at])} ({name.removesuffix(',guard=auto')})"
            rows.append((log, metric, _number(easy), hindsight, _number(own), _change(best["ratios"][at]), over))
        pairs += [(log, name, *map(_change, each["ratios"])) for name, each in result["heuristics"].items()]
    summary = ResultTable("", header, rows)
    beside = ("log", "heuristic that passes the gates", *(f"{metric} of {policy} over its" for metric in _METRICS))
    every = ResultTable("", beside, pairs)
    text = [*summary.markdown(), "", *every.markdown(), ""]
    (folder / "table.md").write_text("\n".join(text))
    return Findings((summary, every), f"{_verdict(policy, found)}\n{folder}: table.md")


# --- One log --------------------------------------------------------------------------------------------------------


def compare_on_half(half: _Half) -> Result:
    """Measures of all policies on a log, changes against those that pass the gates, and the lower bound."""
    field = LOGS[half.log][1]
    workload = load_workload(
        half.data / half.log,
        "w0",
        jobs=slice(LOGS[half.log][0].stop, None),
        time_field=field,
        missing_walltime="runtime",
    )
    own, easy = _run(workload, half.policy), _run(workload, "easy")
    heuristics, seen = {"easy": _beside(own, easy)}, {_made(easy)}
    for order, backfill in product(ORDERS, ALL_BACKFILLS):
        name = f"{order}+{backfill},guard=auto"
        table = _run(workload, name)
        if _made(table) not in seen and _passes(name, workload, measure(table), measure(easy)):
            heuristics[name] = _beside(own, table)
        seen.add(_made(table))
    return {
        "own": measure(own),
        "passes": _passes(half.policy, workload, measure(own), measure(easy)),
        "heuristics": heuristics,
        "bound": lower_bound(only_ran(own), workload.nb_res),
    }


def _run(workload: Workload, policy: str) -> JobTable:
    return simulate_workloads(equal_hosts(workload.nb_res), [workload], policy).jobs


def _passes(policy: str, workload: Workload, own: Measures, easy: Measures) -> bool:
    if not all(gate.passed for gate in gates_over([own], [easy])):
        return False
    return idle_gate(policy, equal_hosts(workload.nb_res), workload).passed


def _beside(own: JobTable, other: JobTable) -> dict[str, Any]:
    """The other's measures, and the ratios of own wait and slowdown to them."""
    pairs = zip(_scores(own), _scores(other), strict=True)
    ratios = [_UNCHANGED if np.array_equal(*pair) else ratio_of_means(*pair) for pair in pairs]
    return {"measures": measure(other), "ratios": ratios}


def _made(table: JobTable) -> bytes:
    """The schedule: several heuristics may make the same."""
    return _scores(table)[0].tobytes()


def _scores(table: JobTable) -> tuple[Floats, Floats]:
    """Wait and bounded slowdown of each job, in order of submission."""
    ran = only_ran(table)
    order = np.lexsort((np.array(list(ran.id), dtype=str), ran.submit_time))
    return waiting_times(ran)[order], bounded_slowdowns(ran)[order]


# --- Tables ---------------------------------------------------------------------------------------------------------


def _verdict(policy: str, found: Mapping[str, Result]) -> str:
    """How often the policy is better or worse beyond an interval."""
    fails = [log for log, result in found.items() if not result["passes"]]
    lines = [f"gates: {'fails on ' + ', '.join(fails) if fails else 'passes on all'}"]
    for at, metric in enumerate(_METRICS):
        ratios = [h["ratios"][at] for result in found.values() for h in result["heuristics"].values()]
        better, worse = sum(high < 1 for _, _, high in ratios), sum(low > 1 for _, low, _ in ratios)
        lines.append(
            f"{metric}: beyond its interval {policy} is better than {better} and worse than {worse} of {len(ratios)} "
            "heuristics that pass on a log"
        )
    return "\n".join(lines)


def _change(ratio: Sequence[float]) -> str:
    """In percent, with its interval."""
    value, low, high = (f"{100 * (each - 1):+.0f}" for each in ratio)
    return f"{value} % ({low} to {high})" if low != high else "0 %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


# The policy `learned`, evolved on parts of many logs with the logs of one fold left out, and judged on these.
#
# For each fold of `decision.papers.own.judged` candidates schedule parts of the other folds' logs, each generation on a
# shaken copy of its own. What is minimised is the mean over the logs of the logarithms of mean wait and mean bounded
# slowdown over those of FCFS with EASY on the same copy; from 1.4 times EASY's longest wait on, one costs three times.
# The first candidates are the same in all folds; evolution goes on from the mean of the best quarter of them, and what
# is learned is its mean at the end, not the luckiest candidate. It begins near the weights that an earlier evolution
# came to on first halves of lublin_256, lublin_256_2, NASA, Theta and Curie: of these, and of lublin_10000, which is of
# the same model, a first guess was seen also where their fold is left out. And how short queues are guarded was found
# out with all logs in sight: that there is SHORT_GUARD, and its largest value.


GENERATIONS, _POOL = 3, 60
_POPULATION, _POOL_SPREAD, _SPREAD = 12, 0.7, 0.25
_LONGEST = 1.4  # times FCFS with EASY's longest wait, from where on it costs
_TOO_LONG = 3.0  # times as much as wait and slowdown together
_LEAST_WAIT = 10.0  # seconds: added to mean waits, so that logs where nobody waits count for little
_LEAST_LONGEST = 60.0  # seconds: added to longest waits


class _Trial(NamedTuple):
    """A policy that schedules the parts of some logs."""

    data: Path
    policy: str | tuple[float, ...]  # a heuristic's name, or weights
    logs: tuple[str, ...]
    copy: int

    def definition(self) -> dict[str, Any]:
        """For the cache of results."""
        digests = [file_digest(path_of(self.data, log)) for log in FILES]
        return {"policy": self.policy, "logs": self.logs, "copy": self.copy, "digests": digests}


def reproduce_left_out(
    data: Path,
    parts: Parts,
    *,
    seed: int = 0,
    generations: int = GENERATIONS,
    pool: int = _POOL,
    copies: int = GATE_COPIES,
) -> Findings:
    """Learn what is missing, judge it on the logs that were left out, write checkpoints and ``table.md``.

    Args:
        data: folder of the files of `decision.papers.own.judged`.
        parts: where what is finished is kept; progress counts policies that have scheduled parts, then whole runs.
        seed: of the evolution.
        generations: of twelve candidates each, in each fold.
        pool: the first candidates.
        copies: of each log, with shaken submissions.

    Raises:
        InputError: if a log cannot be read.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    folder = writable_folder(parts.folder)
    every = tuple(log for fold in FOLDS for log in fold if log != LUBLIN)
    evolution = _Evolution(data, parts, every, seed, generations, pool)
    for number, fold in enumerate(FOLDS, 1):
        logs = tuple(log for log in every if log not in fold)
        learned = evolution.learn(logs)
        some = [part.workload for part in training_parts(data) if part.log in logs]
        steps = evolution.tried * sum(len(part.jobs) for part in some)
        write_evolved(
            folder / f"without-fold-{number}.ckpt",
            Learned(),
            learned,
            {"steps": steps, "population": _POPULATION, "spread": _SPREAD, "sequences": len(some)},
            hosts=max(part.nb_res for part in some),
            platform="equal hosts",
            workloads=[file_facts(path_of(data, log)) for log in logs if log in FILES],
        )
    return judge_left_out(data, parts, copies)


class _Evolution:
    """What the evolutions of all folds share."""

    def __init__(self, data: Path, parts: Parts, logs: tuple[str, ...], seed: int, generations: int, pool: int) -> None:
        self._data, self._parts, self._every, self._seed = data, parts, logs, seed
        self._generations, self._done = generations, 0
        self.tried = pool + generations * _POPULATION  # candidates
        self._of = len(FOLDS) * self.tried + generations + 1
        self._easy: dict[int, list[Measures]] = {}
        self._first = _POOL_SPREAD * np.random.default_rng(seed).standard_normal((pool, NB_WEIGHTS))

    def learn(self, logs: tuple[str, ...]) -> Floats:
        """(P,) weights, from the parts of these logs."""
        costs = self._costs(self._first, logs, self._every, 1)
        best = self._first[np.argsort(costs, kind="stable")[: max(1, len(costs) // 4)]]
        evolution = CmaEs(best.mean(axis=0), _SPREAD, _POPULATION)
        for generation in range(1, self._generations + 1):
            genes = evolution.ask(np.random.default_rng([self._seed, generation]))
            evolution.tell(self._costs(genes, logs, logs, generation + 1))
        return weights_of(evolution.mean)

    def _costs(self, genes: Floats, counted: tuple[str, ...], logs: tuple[str, ...], copy: int) -> Floats:
        """(n,) of candidates (n, P), over the logs that count of those that they schedule, on a copy."""
        parts = training_parts(self._data)
        if copy not in self._easy:
            self._easy[copy] = self._run([_Trial(self._data, "easy", self._every, copy)])[0]
        easy = [each for part, each in zip(parts, self._easy[copy], strict=True) if part.log in counted]
        ran = [part.log for part in parts if part.log in logs]
        found = self._run([_Trial(self._data, tuple(weights_of(row).tolist()), logs, copy) for row in genes])
        names = [log for log in ran if log in counted]
        costs = []  # of each candidate: the mean over logs of the means over their parts
        for one in found:
            own = [each for log, each in zip(ran, one, strict=True) if log in counted]
            by_log: dict[str, list[float]] = {log: [] for log in names}
            for log, mine, other in zip(names, own, easy, strict=True):
                wait = math.log((mine.wait + _LEAST_WAIT) / (other.wait + _LEAST_WAIT))
                means = wait + math.log(mine.slowdown / other.slowdown)
                longest = (mine.longest + _LEAST_LONGEST) / (other.longest + _LEAST_LONGEST)
                by_log[log].append(means / 2 + _TOO_LONG * math.log(max(longest / _LONGEST, 1.0)))
            costs.append(float(np.mean([np.mean(each) for each in by_log.values()])))
        return np.array(costs)

    def _run(self, trials: Sequence[_Trial]) -> list[list[Measures]]:
        """Of each trial, what each part came to."""
        before = self._done
        results = run_tasks(
            _schedule,
            trials,
            self._parts.folder / "runs",
            progress=lambda done, _: self._parts.progress(before + done, self._of),
            **self._parts.how,
        )
        self._done += len(trials)
        return [[Measures(*values) for values in result["parts"]] for result in results]


def _schedule(trial: _Trial) -> Result:
    """The `Measures` of the policy on each part of the logs, in order."""
    policy = trial.policy if isinstance(trial.policy, str) else Learned().policy(np.array(trial.policy))
    found = []
    for part in training_parts(trial.data):
        if part.log in trial.logs:
            workload = shaken(part.workload, trial.copy)
            found.append(measure(simulate_workloads(equal_hosts(workload.nb_res), [workload], policy).jobs))
    return {"parts": found}
