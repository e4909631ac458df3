"""A learned policy beside every heuristic, on second halves of public logs, which nothing was learned from.

Each policy runs each half as it is, on equal hosts. Heuristics are all orders with each way of backfilling, with
``guard=auto``, and FCFS with EASY; of those that make the same schedule the first counts. Those that pass the gates of
learned policies are the measure: the least waiting time, and the least slowdown, that any of them has there is what
choosing a heuristic with hindsight would give. Changes are of means over all jobs; for the intervals, jobs that were
submitted one after the other count together. The lower bound is that of any schedule, made with all run times and
arrivals known.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision.experiments.advise import ORDERS
from decision.experiments.gates import Measures, gates_over, idle_gate, measure
from decision.experiments.inputs import writable_folder
from decision.experiments.metrics import bounded_slowdowns, only_ran, waiting_times
from decision.experiments.statistics import Estimate, ratio_of_means
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.files import load_workload
from decision.files.text import file_facts
from decision.model.record import Floats, JobTable
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.policies import find_policy
from decision.rl.envs import equal_hosts
from decision.rl.learning import find_checkpoint
from decision.simulation import simulate_workloads

from .coverage import lower_bound
from .learned import LOGS
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
    summary = ResultTable("", header, list(_summary(found)))
    beside = ("log", "heuristic that passes the gates", *(f"{metric} of {policy} over its" for metric in _METRICS))
    pairs = ResultTable("", beside, list(_pairs(found)))
    text = [*summary.markdown(), "", *pairs.markdown(), ""]
    (folder / "table.md").write_text("\n".join(text))
    return Findings((summary, pairs), f"{_verdict(policy, found)}\n{folder}: table.md")


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
    return {"measures": measure(other), "ratios": [_ratio(mine, theirs) for mine, theirs in pairs]}


def _made(table: JobTable) -> bytes:
    """The schedule: several heuristics may make the same."""
    return _scores(table)[0].tobytes()


def _ratio(own: Floats, other: Floats) -> Estimate:
    return _UNCHANGED if np.array_equal(own, other) else ratio_of_means(own, other)


def _scores(table: JobTable) -> tuple[Floats, Floats]:
    """Wait and bounded slowdown of each job, in order of submission."""
    ran = only_ran(table)
    order = np.lexsort((np.array(list(ran.id), dtype=str), ran.submit_time))
    return waiting_times(ran)[order], bounded_slowdowns(ran)[order]


# --- Tables ---------------------------------------------------------------------------------------------------------


def _summary(found: Mapping[str, Result]) -> Iterator[tuple[str, ...]]:
    for log, result in found.items():
        for at, metric in enumerate(_METRICS):
            name, best = min(result["heuristics"].items(), key=lambda item: item[1]["measures"][at])
            own, bound = result["own"][at], result["bound"][at]
            easy = result["heuristics"]["easy"]["measures"][at]
            over = f"{own / bound:.1f} times {_number(bound)}" if bound > 0 else "0"
            hindsight = f"{_number(best['measures'][at])} ({name.removesuffix(',guard=auto')})"
            yield log, metric, _number(easy), hindsight, _number(own), _change(best["ratios"][at]), over


def _pairs(found: Mapping[str, Result]) -> Iterator[tuple[str, ...]]:
    for log, result in found.items():
        for name, heuristic in result["heuristics"].items():
            yield log, name, *(_change(ratio) for ratio in heuristic["ratios"])


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
