"""The policy `learned`, evolved on parts of many logs with the logs of one fold left out, and judged on these.

For each fold of `decision.papers.own.judged` candidates schedule parts of the other folds' logs,
each generation on a shaken copy of its own. What is minimised is the mean over the logs of the logarithms of mean wait
and mean bounded slowdown over those of FCFS with EASY on the same copy; from 1.4 times EASY's longest wait on, one
costs three times. The first candidates are the same in all folds; evolution goes on from the mean of the best
quarter of them, and what is learned is its mean at the end, not the luckiest candidate. It begins near the weights that
an earlier evolution came to on first halves of lublin_256, lublin_256_2, NASA, Theta and Curie: of these, and of
lublin_10000, which is of the same model, a first guess was seen also where their fold is left out. And how short queues
are guarded was found out with all logs in sight: that there is SHORT_GUARD, and its largest value.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.experiments.gates import GATE_COPIES, Measures, measure
from decision.experiments.inputs import writable_folder
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.files.text import file_facts
from decision.model.record import Floats
from decision.model.reshape import shaken
from decision.papers.campaign import Findings, Parts
from decision.rl.envs import equal_hosts
from decision.rl.learning.evolution import CmaEs
from decision.rl.schedulers.learned import NB_WEIGHTS, SCALE, Learned
from decision.simulation import simulate_workloads

from .judged import FILES, FOLDS, LUBLIN, judge_left_out, path_of, training_parts
from .packer import write_evolved

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
        _write(folder / f"without-fold-{number}.ckpt", data, logs, evolution.learn(logs), evolution.tried)
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
        own = [[each for log, each in zip(ran, one, strict=True) if log in counted] for one in found]
        names = [log for log in ran if log in counted]
        return np.array([_cost(names, one, easy) for one in own])

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


def weights_of(genes: Floats) -> NDArray[np.float64]:
    """(P,) weights from what evolves."""
    return Learned().first_weights(np.random.default_rng(0)) + SCALE * genes


def _schedule(trial: _Trial) -> Result:
    """The `Measures` of the policy on each part of the logs, in order."""
    policy = trial.policy if isinstance(trial.policy, str) else Learned().policy(np.array(trial.policy))
    found = []
    for part in training_parts(trial.data):
        if part.log in trial.logs:
            workload = shaken(part.workload, trial.copy)
            found.append(measure(simulate_workloads(equal_hosts(workload.nb_res), [workload], policy).jobs))
    return {"parts": found}


def _cost(logs: Sequence[str], own: Sequence[Measures], easy: Sequence[Measures]) -> float:
    """The mean over logs of the means over their parts."""
    by_log: Mapping[str, list[float]] = {log: [] for log in logs}
    for log, mine, other in zip(logs, own, easy, strict=True):
        means = math.log((mine.wait + _LEAST_WAIT) / (other.wait + _LEAST_WAIT)) + math.log(
            mine.slowdown / other.slowdown
        )
        longest = (mine.longest + _LEAST_LONGEST) / (other.longest + _LEAST_LONGEST)
        by_log[log].append(means / 2 + _TOO_LONG * math.log(max(longest / _LONGEST, 1.0)))
    return float(np.mean([np.mean(costs) for costs in by_log.values()]))


def _write(path: Path, data: Path, logs: tuple[str, ...], weights: Floats, tried: int) -> None:
    parts = [part.workload for part in training_parts(data) if part.log in logs]
    write_evolved(
        path,
        Learned(),
        weights,
        {"steps": tried * sum(len(part.jobs) for part in parts), "population": _POPULATION, "spread": _SPREAD}
        | {"sequences": len(parts)},
        hosts=max(part.nb_res for part in parts),
        platform="equal hosts",
        workloads=[file_facts(path_of(data, log)) for log in logs if log in FILES],
    )
