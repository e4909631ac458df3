"""What a policy that learned nothing from a log is worth on it, and how long single jobs wait under every order.

Each policy runs ten shaken copies of each whole log, as `decision advise` does; the intervals are those of
`decision.experiments.comparison`. Beside `learned` (of the fold that left the log out) stand FCFS with EASY, the
heuristics that keep the longest wait below 1.5 times EASY's in the median over the copies and twice on each, the best
of them with hindsight for each metric, and a choice among the bounded ones, made again each week (or day) by replaying
the last four weeks (Gaussier, Lelong, Reis and Trystram, TPDS 2018). The choice is made over finished runs of the
heuristics: what waits when one heuristic follows another is not simulated, nor is its longest wait known.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.experiments.advise import MEAN_METRICS, heuristics, runs_of
from decision.experiments.audit import RECORDED, agreement, recorded_jobs
from decision.experiments.comparison import Runs, change, times_as_long
from decision.experiments.gates import (
    GATE_COPIES,
    LONGEST_OF_ALL,
    LONGEST_WAIT,
    Measures,
    gates_over,
    idle_gate,
    longest_gates,
)
from decision.experiments.statistics import Estimate
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.experiments.whole import Log, LogPart, WholeRun, perform_whole_run
from decision.files import load_workload
from decision.files.generate.lublin import lublin_workload
from decision.files.swf import REQUESTED_TIME
from decision.files.workload import Selection
from decision.model.columns import columns_of
from decision.model.computer import find_workload
from decision.model.dates import DAY
from decision.model.demand import Recorded, fitted, use_of
from decision.model.record import Floats
from decision.model.reshape import at_load
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable, tables_markdown
from decision.policies.runtimes import apply_estimates
from decision.policies.runtimes.walltimes import fill_missing
from decision.rl.envs import equal_hosts
from decision.rl.learning.checkpoint import Gate
from decision.simulation import simulate_workloads

# The logs that the policy `learned` learns from and is judged on, and the parts that candidates schedule.
#
# Ten real logs and three made ones, in four folds: what is learned from the logs of three folds is judged on those of
# the fourth. The made logs and the parts that are made here are of one model, so they are one fold. Nothing is learned
# from the log that is shipped, so that examples show what was learned on a log that it has not seen.

LUBLIN = "lublin_10000"  # shipped
FILES: dict[str, tuple[str, int]] = {  # of each log: its file, and the field of the requested time
    "CTC": ("ctc.swf.gz", REQUESTED_TIME),
    "NASA": ("NASA-iPSC-1993-3.1-cln.swf", REQUESTED_TIME),
    "COARE": ("coare.swf.gz", REQUESTED_TIME),
    "Theta": ("theta_argonne.swf", 6),
    "Atlas": ("atlas.swf.gz", REQUESTED_TIME),
    "taurus": ("taurus_300days.json.gz", REQUESTED_TIME),
    "Curie": ("curie_25days.swf", REQUESTED_TIME),
    "Gaia": ("gaia.swf.gz", REQUESTED_TIME),
    "grid5000": ("grid5000-2016/delay_seed0.json", REQUESTED_TIME),
    "lublin_256": ("lublin_256.swf", REQUESTED_TIME),
    "lublin_256_2": ("lublin_256_2.swf", REQUESTED_TIME),
    LUBLIN: (LUBLIN, REQUESTED_TIME),
}
_MODEL = "model"  # what is made here
FOLDS: tuple[tuple[str, ...], ...] = (
    ("CTC", "NASA", "grid5000"),
    ("COARE", "Atlas", "Gaia"),  # what is learned without these is shipped
    ("Theta", "Curie", "taurus"),
    ("lublin_256", "lublin_256_2", LUBLIN, _MODEL),
)
_MADE_JOBS = 4000


class TrainingPart(NamedTuple):
    """A part of a log that candidates schedule when they are compared."""

    log: str  # of which it is a part
    workload: Workload


def path_of(data: Path, log: str) -> Path:
    """The file of a log in the folder; the shipped one is not there."""
    return find_workload(LUBLIN) if log == LUBLIN else data / FILES[log][0]


def log_of(data: Path, log: str) -> Log:
    """A log on a flat machine, with run times where it has no requested times."""
    selection = Selection(missing="runtime", time_field=FILES[log][1])
    return Log(workload=path_of(data, log), platform=None, hosts=0, selection=selection)


@functools.lru_cache(maxsize=1)
def training_parts(data: Path) -> tuple[TrainingPart, ...]:
    """Parts of all logs but the shipped one, some at another load. Raises InputError if a log cannot be read."""
    read = {log: log_of(data, log).read().workload for log in FILES if log != LUBLIN}
    return (
        TrainingPart("CTC", _part(read["CTC"], 40_000, 45_000)),
        TrainingPart("NASA", read["NASA"]),
        TrainingPart("COARE", read["COARE"]),
        TrainingPart("COARE", at_load(_part(read["COARE"], 10_000, 15_000), 0.7)),
        *(TrainingPart("Theta", _part(read["Theta"], begin, begin + 5000)) for begin in (3000, 14_000)),
        TrainingPart("Atlas", _part(read["Atlas"], 0, 20_000)),
        TrainingPart("taurus", read["taurus"]),
        TrainingPart("Curie", read["Curie"]),
        TrainingPart("Gaia", _part(read["Gaia"], 0, 26_000)),
        TrainingPart("grid5000", read["grid5000"]),
        TrainingPart("lublin_256", at_load(_part(read["lublin_256"], 0, 5000), 0.7)),
        TrainingPart("lublin_256_2", _part(read["lublin_256_2"], 0, 5000)),
        TrainingPart(_MODEL, _made(100, 1, 0.8)),
        TrainingPart(_MODEL, _made(1024, 4, 0.75)),
    )


def _part(workload: Workload, begin: int, end: int) -> Workload:
    """Jobs by order of submission."""
    return replace(workload, jobs=columns_of(workload.jobs).take(np.arange(begin, min(end, len(workload.jobs)))))


def _made(hosts: int, seed: int, load: float) -> Workload:
    rng = np.random.default_rng(seed)
    return at_load(apply_estimates(lublin_workload(rng, _MADE_JOBS, hosts), "tsafrir", rng), load)


_REPLAYED = 28 * DAY  # seconds that a choice looks back
_LEAST_WAIT = 10.0  # seconds: added to mean waits where a choice multiplies them by slowdowns

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
        data: folder of the files of `decision.papers.own.judged`.
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
            longest.append(
                (name, {"learned" if policy == learned else policy: _times(found, policy) for policy in found})
            )
    rows = []  # of policies with a bound: by log, and all logs together
    for name in (name for name in longest[0][1] if "guard" in name or name == "learned"):
        by_log = [found[name] for _, found in longest]
        together = [each for times in by_log for each in times]
        rows.append((name, *(f"{np.median(times):.2f}, {max(times):.2f}" for times in (*by_log, together))))
    title = f"Longest wait over FCFS with EASY's on the same copy: median and largest of {copies} copies"
    waits = ResultTable(title, ("policy", *(name for name, _ in longest), "all"), rows)
    tables = (_judged_table(judged), waits)
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
    own, easy = ([run["max_wait"] for run in found[name]] for name in (policy, "easy"))
    return times_as_long(own, easy[: len(own)])


# --- One log --------------------------------------------------------------------------------------------------------


class JudgedLog(NamedTuple):
    """What the runs of one log say of the policy that did not learn from it."""

    easy: list[float]  # mean wait in seconds, mean bounded slowdown
    against_easy: list[Estimate | None]  # by metric
    times: list[float]
    failed: list[str]  # gates
    best: list[str]  # heuristic in the bound, by metric
    against_best: list[Estimate | None]
    choice: list[Estimate | None]  # of each week, against FCFS with EASY


def _judge(found: ByPolicy, learned: str, part: LogPart, idle: Gate) -> JudgedLog:
    runs = {metric: {name: runs_of(each, metric) for name, each in found.items()} for metric in MEAN_METRICS}
    times = {name: _times(found, name) for name in found}
    whole = [name for name in found if name != learned and len(times[name]) == len(found["easy"])]
    kept = [name for name in whole if all(gate.passed for gate in longest_gates(times[name]))]
    best = [min(kept, key=lambda name: float(runs[metric][name].values.mean())) for metric in MEAN_METRICS]
    measures = (
        [Measures(each["wait"], each["bounded_slowdown"], each["max_wait"]) for each in found[name]]
        for name in (learned, "easy")
    )
    gates = (*gates_over(*measures), idle)
    chosen = weekly_choice([found[name] for name in found if name == "easy" or "guard" in name], part)
    return JudgedLog(
        easy=[float(runs[metric]["easy"].values.mean()) for metric in MEAN_METRICS],
        against_easy=[change(runs[metric][learned], runs[metric]["easy"]) for metric in MEAN_METRICS],
        times=times[learned],
        failed=[gate.name for gate in gates if not gate.passed],
        best=best,
        against_best=[change(runs[m][learned], runs[m][name]) for m, name in zip(MEAN_METRICS, best, strict=True)],
        choice=[change(chosen[metric], runs[metric]["easy"]) for metric in MEAN_METRICS],
    )


def weekly_choice(found: Sequence[Sequence[Result]], part: LogPart) -> dict[str, Runs]:
    """Each metric of a choice that is made again for each block of time, by the blocks of the last four weeks.

    What is least is the product of mean wait and mean bounded slowdown; the first block has the first policy.

    Args:
        found: the results of each policy on the same copies.
        part: of the log.
    """
    jobs = np.array(found[0][0]["block_jobs"], np.float64)
    sums: dict[str, Floats] = {}  # (policies, copies, blocks), from what the means are without each block
    for metric in MEAN_METRICS:
        sums[metric] = np.array([[[run[metric] * jobs.sum()] for run in each] for each in found])
        if len(jobs) > 1:
            without = np.array([[run["without"][metric] for run in each] for each in found])
            sums[metric] = sums[metric] - without * np.maximum(jobs.sum() - jobs, 1.0)
    back = max(1, round(_REPLAYED / part.block)) if part.blocks > 1 else 1
    wait, slowdown = (sums[metric] for metric in MEAN_METRICS)
    chosen = np.zeros(wait.shape[1:], np.int64)
    for block in range(1, len(jobs)):
        last = slice(max(0, block - back), block)
        costs = (wait[..., last].sum(axis=2) + _LEAST_WAIT * jobs[last].sum()) * slowdown[..., last].sum(axis=2)
        chosen[:, block] = costs.argmin(axis=0)
    runs = {}
    for metric, each in sums.items():
        # the mean over all jobs, and without those of each block, of sums (copies, blocks)
        own = np.take_along_axis(each, chosen[None], axis=0)[0]
        total = own.sum(axis=1)
        without = (total[:, None] - own) / np.maximum(jobs.sum() - jobs, 1.0)
        runs[metric] = Runs(total / jobs.sum(), without if len(jobs) > 1 else without[:, :0])
    return runs


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


# What really happened in logs, beside what EASY would have done with the same jobs.
#
# Naively compared, EASY seems to wait 1.1 to 25 times less than what was recorded. That is not the policy: in recorded
# schedules most of the waiting is beside enough free hosts, for reasons that a log does not hold.

POLICY = "easy"
_COLUMNS = (
    *("log", "jobs", "recorded wait, s", "EASY's, s", "ratio", "rank", "within 60 s"),
    *("fitted, recorded", "fitted, EASY", "over", "peak of hosts"),
)
_NOTES = (
    f"{RECORDED}: what the log says; EASY: FCFS with EASY backfilling on the same jobs, the machine as in the log. "
    "rank: correlation of the waits' ranks (Spearman). fitted: share of all waiting during which the schedule left "
    "enough hosts free for the waiting job. over: share of the time with more than the machine in use. Where fitted "
    "of the record is high, the simulation leaves out what made jobs wait beside free hosts, and says nothing of the "
    "policy."
)


def reproduce_recorded(
    logs: Sequence[Path], missing: str = "none", progress: Callable[[int, int], None] = lambda done, of: None
) -> Findings:
    """A row for each log.

    Args:
        logs: with recorded starts.
        missing: walltimes of jobs without a requested time; see `decision.policies.runtimes.walltimes`.
        progress: called with the logs done, and all.

    Raises:
        InputError: if a log cannot be read.
        ConfigError: if no start is recorded in one.
    """
    rows = []
    for done, path in enumerate(logs):
        progress(done, len(logs))
        workload = fill_missing(load_workload(path), missing)
        jobs, hosts = recorded_jobs(workload), workload.nb_res
        use = use_of(jobs)
        record = simulate_workloads(equal_hosts(hosts), [workload], POLICY)
        near = agreement(record, workload)
        # the simulated schedule, as if it had been recorded
        ran = np.flatnonzero(np.isfinite(record.jobs.start_time))
        done_jobs = record.jobs.take(ran)
        size = done_jobs.size.astype(np.float64)
        own = Recorded(ran, done_jobs.submit_time, done_jobs.start_time, done_jobs.runtime, size)
        real, simulated = (float((each.start - each.submit).mean()) for each in (jobs, own))
        rows.append(
            (
                path.name.partition(".")[0],
                f"{len(workload.jobs):,}",
                f"{real:,.0f}",
                f"{simulated:,.0f}",
                f"{real / simulated:.1f}" if simulated else "-",
                f"{near['recorded_rank']:.2f}" if "recorded_rank" in near else "-",
                f"{100 * near['recorded_close']:.0f} %",
                f"{fitted(jobs, use, hosts):.2f}",
                f"{fitted(own, use_of(own), hosts):.2f}",
                f"{100 * use.over(hosts):.1f} %",
                f"{use.hosts.max():,.0f} of {hosts:,}",
            )
        )
    progress(len(logs), len(logs))
    return Findings((ResultTable("Recorded schedules and EASY's", _COLUMNS, rows),), _NOTES)
