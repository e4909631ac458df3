"""What a policy that learned nothing from a log is worth on it, and how long single jobs wait under every order.

Each policy runs ten shaken copies of each whole log, as `decision advise` does; the intervals are those of
`decision.analysis.shakes`. Beside `learned` (of the fold that left the log out) stand FCFS with EASY, the heuristics
that keep the longest wait below 1.5 times EASY's in the median over the copies and twice on each, the best of them with
hindsight for each metric, and a choice among the bounded ones, made again each week (or day) by replaying the last four
weeks (Gaussier, Lelong, Reis and Trystram, TPDS 2018). The choice is made over finished runs of the heuristics: what
waits when one heuristic follows another is not simulated, nor is its longest wait known.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision.analysis.shakes import Runs, change
from decision.analysis.statistics import Estimate
from decision.analysis.whole import LogPart
from decision.learn.checkpoint import Gate
from decision.model.dates import DAY
from decision.model.record import Floats
from decision.runs.advice import MEAN_METRICS
from decision.runs.advise import heuristics
from decision.runs.chunks import file_digest
from decision.runs.gates import GATE_COPIES, idle_gate
from decision.runs.gates_beside import LONGEST_OF_ALL, LONGEST_WAIT, Measures, gates_over
from decision.runs.store import Result
from decision.runs.tasks import run_tasks
from decision.runs.whole import Log, WholeRun, perform_whole_run

from ..findings import Findings, Parts, ResultTable, tables_markdown
from .logs import FILES, FOLDS, log_of

_REPLAYED = 28 * DAY  # seconds that a choice looks back
_LEAST_WAIT = 10.0  # seconds: added to mean waits where a choice multiplies them by slowdowns
_SMALL = 1.0  # second: longest waits below count as one

ByPolicy = Mapping[str, Sequence[Result]]


class IdleRun(NamedTuple):
    """A checkpoint on a nearly idle machine with a log's jobs."""

    log: Log
    policy: str

    def definition(self) -> dict[str, Any]:
        """For the cache of results."""
        return {"idle": file_digest(Path(self.policy)), "digests": self.log.digests()}


def judge_left_out(data: Path, parts: Parts, copies: int = GATE_COPIES) -> Findings:
    """Judge ``without-fold-N.ckpt`` of the folder on the logs of fold N, write ``table.md``.

    Args:
        data: folder of the files of `decision.papers.own.logs`.
        parts: where the checkpoints are and finished runs are kept; progress counts runs.
        copies: of each log, with shaken submissions.
    """
    judged, longest, done = [], [], 0
    for number, fold in enumerate(FOLDS, 1):
        learned = str(parts.folder / f"without-fold-{number}.ckpt")
        for name in fold:
            if name not in FILES:
                continue
            log = log_of(data, name)
            found = _run_all(log, learned, parts, copies, done)
            done += sum(map(len, found.values()))
            idle = run_tasks(wait_on_idle, [IdleRun(log, learned)], parts.folder / "runs", **parts.how)[0]
            judged.append((name, _judge(found, learned, log.read().part, Gate(**idle))))
            longest.append((name, {_short(policy, learned): _times(found, policy) for policy in found}))
    tables = (_judged_table(judged), _longest_table(longest, copies))
    (parts.folder / "table.md").write_text(tables_markdown(tables))
    return Findings(tables, f"{parts.folder}: without-fold-N.ckpt, table.md")


def wait_on_idle(run: IdleRun) -> Result:
    """The gate on a nearly idle machine."""
    log = run.log.read()
    gate = idle_gate(run.policy, log.platform, log.workload)
    return {"name": gate.name, "found": gate.found, "most": gate.most}


def _run_all(log: Log, learned: str, parts: Parts, copies: int, done: int) -> dict[str, list[Result]]:
    """The runs of each policy; heuristics that have no bound, and break it on the first copy, have that one alone."""
    names = [*heuristics(LONGEST_WAIT), learned]

    def run(policies: Sequence[str], numbers: range) -> dict[str, list[Result]]:
        tasks = [WholeRun(log=log, policy=name, copy=copy) for name in policies for copy in numbers]
        results = run_tasks(
            perform_whole_run,
            tasks,
            parts.folder / "runs",
            progress=lambda so_far, of: parts.progress(done + so_far, done + of),
            **parts.how,
        )
        return {name: list(results[at * len(numbers) :][: len(numbers)]) for at, name in enumerate(policies)}

    found = run(names, range(1, 2))
    going_on = [
        name for name in names if "guard" in name or name == learned or _times(found, name)[0] <= LONGEST_OF_ALL
    ]
    others = run(going_on, range(2, copies + 1))
    return {name: [*first, *others.get(name, [])] for name, first in found.items()}


def _times(found: ByPolicy, policy: str) -> list[float]:
    """The longest waits over FCFS with EASY's, by copy."""
    pairs = zip(found[policy], found["easy"], strict=False)
    return [max(own["max_wait"], _SMALL) / max(easy["max_wait"], _SMALL) for own, easy in pairs]


def _short(policy: str, learned: str) -> str:
    return "learned" if policy == learned else policy


# --- One log --------------------------------------------------------------------------------------------------------


class JudgedLog(NamedTuple):
    """What a log says."""

    easy: list[float]  # mean wait in seconds, mean bounded slowdown
    against_easy: list[Estimate | None]  # by metric
    times: list[float]
    failed: list[str]  # gates
    best: list[str]  # heuristic in the bound, by metric
    against_best: list[Estimate | None]
    choice: list[Estimate | None]  # of each week, against FCFS with EASY


def _judge(found: ByPolicy, learned: str, part: LogPart, idle: Gate) -> JudgedLog:
    runs = {metric: {name: _runs(each, metric) for name, each in found.items()} for metric in MEAN_METRICS}
    kept = [name for name in found if name != learned and _keeps_bound(found, name)]
    best = [min(kept, key=lambda name: float(runs[metric][name].values.mean())) for metric in MEAN_METRICS]
    gates = (*gates_over(*([_measures(each) for each in found[name]] for name in (learned, "easy"))), idle)
    chosen = weekly_choice([found[name] for name in found if name == "easy" or "guard" in name], part)
    return JudgedLog(
        easy=[float(runs[metric]["easy"].values.mean()) for metric in MEAN_METRICS],
        against_easy=[change(runs[metric][learned], runs[metric]["easy"]) for metric in MEAN_METRICS],
        times=_times(found, learned),
        failed=[gate.name for gate in gates if not gate.passed],
        best=best,
        against_best=[change(runs[m][learned], runs[m][name]) for m, name in zip(MEAN_METRICS, best, strict=True)],
        choice=[change(chosen[metric], runs[metric]["easy"]) for metric in MEAN_METRICS],
    )


def _runs(results: Sequence[Result], metric: str) -> Runs:
    values = np.array([result[metric] for result in results])
    return Runs(values, np.array([result["without"].get(metric, []) for result in results], np.float64))


def _keeps_bound(found: ByPolicy, name: str) -> bool:
    times = _times(found, name)
    whole = len(times) == len(found["easy"])
    return whole and float(np.median(times)) <= LONGEST_WAIT and max(times) <= LONGEST_OF_ALL


def _measures(result: Result) -> Measures:
    return Measures(result["wait"], result["bounded_slowdown"], result["max_wait"])


def weekly_choice(found: Sequence[Sequence[Result]], part: LogPart) -> dict[str, Runs]:
    """Each metric of a choice that is made again for each block of time, by the blocks of the last four weeks.

    What is least is the product of mean wait and mean bounded slowdown; the first block has the first policy.

    Args:
        found: the results of each policy on the same copies.
        part: of the log.
    """
    jobs = np.array(found[0][0]["block_jobs"], np.float64)
    sums = {
        metric: np.array([[_block_sums(r, metric, jobs) for r in each] for each in found]) for metric in MEAN_METRICS
    }
    back = max(1, round(_REPLAYED / part.block)) if part.blocks > 1 else 1
    wait, slowdown = (sums[metric] for metric in MEAN_METRICS)
    chosen = np.zeros(wait.shape[1:], np.int64)
    for block in range(1, len(jobs)):
        last = slice(max(0, block - back), block)
        costs = (wait[..., last].sum(axis=2) + _LEAST_WAIT * jobs[last].sum()) * slowdown[..., last].sum(axis=2)
        chosen[:, block] = costs.argmin(axis=0)
    return {
        metric: _of_blocks(np.take_along_axis(each, chosen[None], axis=0)[0], jobs) for metric, each in sums.items()
    }


def _block_sums(result: Result, metric: str, jobs: Floats) -> Floats:
    """The sum of a metric over the jobs of each block (n,), from what the mean is without each."""
    total = jobs.sum()
    if len(jobs) == 1:
        return np.array([result[metric] * total])
    return result[metric] * total - np.array(result["without"][metric]) * np.maximum(total - jobs, 1.0)


def _of_blocks(sums: Floats, jobs: Floats) -> Runs:
    """The mean over all jobs, and without those of each block, of sums (copies, blocks)."""
    total = sums.sum(axis=1)
    without = (total[:, None] - sums) / np.maximum(jobs.sum() - jobs, 1.0)
    return Runs(total / jobs.sum(), without if len(jobs) > 1 else without[:, :0])


# --- Tables ---------------------------------------------------------------------------------------------------------


def _judged_table(judged: Sequence[tuple[str, JudgedLog]]) -> ResultTable:
    columns = (
        *("log", "EASY: wait, slowdown", "learned against EASY: wait", "slowdown", "longest wait, times EASY's"),
        *("gates that fail", "best in the bound: wait, slowdown", "learned against the best: wait", "slowdown"),
        *("weekly choice against EASY: wait", "slowdown"),
    )
    rows = []
    for name, each in judged:
        rows.append(
            (
                name,
                f"{each.easy[0]:,.0f}, {each.easy[1]:.2f}",
                *map(_percent, each.against_easy),
                f"{np.median(each.times):.2f}, at most {max(each.times):.2f}",
                "; ".join(each.failed) or "none",
                ", ".join(dict.fromkeys(policy.replace(",guard=1.5x", " in the bound") for policy in each.best)),
                *map(_percent, each.against_best),
                *map(_percent, each.choice),
            )
        )
    return ResultTable("learned on logs that were left out", columns, rows)


def _percent(found: Estimate | None) -> str:
    if found is None:
        return ""
    value, low, high = (f"{100 * each:+.0f}" for each in found)
    return f"{value} % ({low} to {high})" if low != high else f"{value} %"


def _longest_table(longest: Sequence[tuple[str, Mapping[str, list[float]]]], copies: int) -> ResultTable:
    """Policies with a bound, by log, and all logs together."""
    names = [name for name in longest[0][1] if "guard" in name or name == "learned"]
    rows = [
        (name, *(_median_and_most(found[name]) for _, found in longest), _median_and_most(_joined(longest, name)))
        for name in names
    ]
    title = f"Longest wait over FCFS with EASY's on the same copy: median and largest of {copies} copies"
    return ResultTable(title, ("policy", *(name for name, _ in longest), "all"), rows)


def _joined(longest: Sequence[tuple[str, Mapping[str, list[float]]]], name: str) -> list[float]:
    return [each for _, found in longest for each in found[name]]


def _median_and_most(times: Sequence[float]) -> str:
    return f"{np.median(times):.2f}, {max(times):.2f}"
