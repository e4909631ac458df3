"""How the policy `learned` was made: evolution on whole schedules of many logs at once.

The logs are first halves of public traces and jobs of Lublin and Feitelson's model, of 16 to 23,000 hosts, of several
loads, with exact and with modal estimates. What is minimised is, over the logs, the mean of the logarithms of mean wait
and mean bounded slowdown over those of the best heuristic there: of all orders with EASY and first-fit, with
``guard=auto``, those that pass the gates on that log. What is worse than that counts three times, and a longest wait
near the limit of the gates ten times. What is learned is the candidate of least cost.
"""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.experiments.advise import ORDERS
from decision.experiments.gates import Measures, gates_over, measure
from decision.experiments.inputs import writable_folder
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.files import load_workload
from decision.files.generate.lublin import lublin_workload
from decision.files.text import file_facts
from decision.model.computer import find_workload
from decision.model.reshape import at_load
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.policies.runtimes import apply_estimates
from decision.rl.envs import equal_hosts
from decision.rl.learning.evolution import CmaEs
from decision.rl.schedulers.learned import NB_WEIGHTS, SCALE, Learned
from decision.simulation import simulate_workloads

from .evolved import write_evolved

LOGS: dict[str, tuple[slice, int]] = {  # file: its first half, and the field of the requested time
    "lublin_256.swf": (slice(5000), 9),
    "lublin_256_2.swf": (slice(5000), 9),
    "NASA-iPSC-1993-3.1-cln.swf": (slice(9033), 9),
    "theta_argonne.swf": (slice(11693), 6),
    "curie_25days.swf": (slice(5000), 9),
}
LEARNED_GENERATIONS = 10
_BACKFILLS = ("easy", "first-fit")  # of the heuristics that are the measure, each with every order
MADE_JOBS = 6000  # of each log of the model
_POPULATION, _SPREAD = 12, 0.3
_LONGEST = 1.4  # times FCFS with EASY's longest wait, from where on it costs
_WORSE = 3.0  # what is worse than the measure counts so many times
_TOO_LONG = 10.0  # and a longest wait near the limit
_LEAST_WAIT = 60.0  # seconds: added to both waits, so that logs where nobody waits do not count


class _Log(NamedTuple):
    """A part of a log that candidates schedule when they are compared."""

    name: str
    workload: Workload


class _Trial(NamedTuple):
    """A policy that schedules all logs."""

    data: Path
    policy: str | tuple[float, ...]  # a heuristic's name, or weights

    def definition(self) -> dict[str, Any]:
        """For the cache of results."""
        return {"policy": self.policy, "logs": [file_digest(self.data / name) for name in LOGS]}


ByLog = dict[str, Measures]


def reproduce_learned(data: Path, parts: Parts, *, seed: int = 0, generations: int = LEARNED_GENERATIONS) -> Findings:
    """Learn what is missing, write ``learned.ckpt`` and ``table.md``.

    Args:
        data: folder of `LOGS`.
        parts: where what is finished is kept; progress counts policies that have scheduled all logs.
        seed: of the evolution.
        generations: of twelve candidates each.

    Raises:
        InputError: if a log cannot be read.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    folder = writable_folder(parts.folder)
    names = ["easy", *(f"{order}+{backfill},guard=auto" for order in ORDERS for backfill in _BACKFILLS)]
    done, of = 0, len(names) + generations * _POPULATION

    def run(policies: Sequence[str | tuple[float, ...]]) -> list[ByLog]:
        nonlocal done
        tasks = [_Trial(data, policy) for policy in policies]
        results = run_tasks(
            measure_logs, tasks, folder / "runs", progress=lambda part, _: parts.progress(done + part, of), **parts.how
        )
        done += len(tasks)
        return [{log: Measures(*values) for log, values in result.items()} for result in results]

    easy, *heuristics = run(names)
    best = {log: _least(easy[log], [found[log] for found in heuristics]) for log in easy}
    evolution = CmaEs(np.zeros(NB_WEIGHTS), _SPREAD, _POPULATION)
    least, learned, found = math.inf, (), ByLog()
    for generation in range(generations):
        genes = evolution.ask(np.random.default_rng([seed, generation]))
        candidates = [tuple(weights_of(row).tolist()) for row in genes]
        results = run(candidates)
        costs = np.array([_cost(each, best) for each in results])
        evolution.tell(costs)
        if costs.min() < least:
            first = int(costs.argmin())
            least, learned, found = float(costs[first]), candidates[first], results[first]
    logs = training_logs(data)
    steps = generations * _POPULATION * sum(len(log.workload.jobs) for log in logs)
    write_evolved(
        folder / "learned.ckpt",
        Learned(),
        np.array(learned),
        {"steps": steps, "population": _POPULATION, "spread": _SPREAD, "sequences": len(logs)},
        hosts=max(log.workload.nb_res for log in logs),
        platform="equal hosts",
        workloads=[file_facts(data / name) for name in LOGS],
        scores={"cost on the training logs": least},
    )
    shown = ((log, _ratios(own, best[log])) for log, own in found.items())
    rows = [(log, f"{r.wait:.3f}", f"{r.slowdown:.3f}", f"{r.longest:.2f}") for log, r in shown]
    table = ResultTable("", ("log", "wait", "slowdown", "longest wait"), rows)
    (folder / "table.md").write_text("\n".join(table.markdown()) + "\n")
    over = "wait and slowdown over those of the best heuristic, longest wait over FCFS with EASY's"
    return Findings((table,), f"{over}; cost {least:.4f}; {folder}: learned.ckpt, table.md")


def weights_of(genes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) weights from what evolves."""
    return Learned().first_weights(np.random.default_rng(0)) + SCALE * genes


def _least(easy: Measures, heuristics: Sequence[Measures]) -> Measures:
    """The least wait and slowdown of those that pass the gates, and FCFS with EASY's longest wait."""
    passing = [easy, *(each for each in heuristics if all(gate.passed for gate in gates_over([each], [easy])))]
    return Measures(min(each.wait for each in passing), min(each.slowdown for each in passing), easy.longest)


def _ratios(own: Measures, best: Measures) -> Measures:
    waits = [(a + _LEAST_WAIT) / (b + _LEAST_WAIT) for a, b in ((own.wait, best.wait), (own.longest, best.longest))]
    return Measures(waits[0], own.slowdown / best.slowdown, waits[1])


def _cost(found: ByLog, best: ByLog) -> float:
    costs = []
    for log, own in found.items():
        ratios = _ratios(own, best[log])
        logs = [math.log(ratio) for ratio in (ratios.wait, ratios.slowdown)]
        over = math.log(max(ratios.longest / _LONGEST, 1.0))
        costs.append(sum(_WORSE * x if x > 0 else x for x in logs) / 2 + _TOO_LONG * over)
    return float(np.mean(costs))


# --- The logs -------------------------------------------------------------------------------------------------------


@functools.cache
def training_logs(data: Path) -> tuple[_Log, ...]:
    """All that are learned from. Raises InputError if one cannot be read."""
    halves = {
        name: load_workload(data / name, "w0", jobs=jobs, time_field=field, missing_walltime="runtime")
        for name, (jobs, field) in LOGS.items()
    }
    first, second, nasa, theta, curie = halves.values()
    middle = len(theta.jobs) // 2
    taurus = load_workload(find_workload("taurus_week"), "w0")
    return (
        _Log("lublin_256", first),
        _Log("lublin_256_2", second),
        _Log("nasa, load 0.9", at_load(nasa, 0.9)),
        _Log("theta, first part", _part(theta, slice(middle))),
        _Log("theta, second part", _part(theta, slice(middle, None))),
        _Log("curie, a sixteenth, load 0.7", at_load(_narrow(curie, 5832), 0.7)),
        _Log("theta, load 0.8", at_load(theta, 0.8)),
        _Log("curie, a fourth, load 0.8", at_load(_narrow(curie, 23328), 0.8)),
        _Log("lublin_256, load 0.7", at_load(first, 0.7)),
        _Log("taurus_week", taurus),
        _Log("model, 100 hosts", _made(100, 1, 0.8, "tsafrir")),
        _Log("model, 128 hosts", _made(128, 2, 0.65, "tsafrir")),
        _Log("model, 256 hosts", _made(256, 3, 0.9, "exact")),
        _Log("model, 1024 hosts", _made(1024, 4, 0.75, "tsafrir")),
        _Log("model, 512 hosts", _made(512, 5, 0.85, "tsafrir")),
        _Log("model, 4096 hosts", _made(4096, 6, 0.8, "exact")),
    )


def _part(workload: Workload, jobs: slice) -> Workload:
    return replace(workload, jobs=workload.jobs[jobs])


def _narrow(workload: Workload, hosts: int) -> Workload:
    """The same jobs on fewer hosts, each on its share of them."""
    jobs = [replace(job, size=math.ceil(job.size * hosts / workload.nb_res)) for job in workload.jobs]
    return replace(workload, jobs=jobs, nb_res=hosts)


def _made(hosts: int, seed: int, load: float, estimates: str) -> Workload:
    rng = np.random.default_rng(seed)
    return at_load(apply_estimates(lublin_workload(rng, MADE_JOBS, hosts), estimates, rng), load)


# --- Schedules ------------------------------------------------------------------------------------------------------


_machine = functools.lru_cache(equal_hosts)  # each trial has the same ones


def measure_logs(trial: _Trial) -> Result:
    """The `Measures` of the policy on each log."""
    policy = trial.policy if isinstance(trial.policy, str) else Learned().policy(np.array(trial.policy))
    return {
        log.name: measure(simulate_workloads(_machine(log.workload.nb_res), [log.workload], policy).jobs)
        for log in training_logs(trial.data)
    }
