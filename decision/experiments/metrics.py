"""Metrics of a schedule, each with its formula.

Over the jobs that ran (rejected jobs count nowhere), each once where it was suspended. For a job, s is its submission
time, t its start, p its runtime, q its size and w = t - s its waiting time. Programs that use the same word compute
different things: Batsim's ``mean_slowdown`` is `slowdowns` (unbounded), its makespan is `makespan` until version 4 and
`makespan_from_submission` from version 5 on, and its means divide by all jobs, the rejected ones too; evalys'
utilization is a number of busy hosts; batsim-py's stretch is w / walltime.
"""

import csv
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.files.text import read_bytes, write_files
from decision.model.columns import Labelled, columns_of
from decision.model.errors import InputError
from decision.model.hosts import parse_hosts
from decision.model.record import SHORTEST_RUNTIME, FinalState, Floats, Ints, JobTable, PredictionTable
from decision.model.table import csv_text
from decision.model.trace import of_jobs
from decision.model.workload import Workload
from decision.policies.placement.tree import text_costs

SECONDS_IN_HOUR = 3600.0  # seconds
PROMISE_TOLERANCE = 1e-3  # seconds: a start so much later breaks no promise, since clocks round

Distance = Callable[[Ints, Ints], Ints]  # hops between hosts, for arrays of ids


def only_ran(jobs: JobTable) -> JobTable:
    """The jobs that were not rejected."""
    ran = jobs.final_state != FinalState.REJECTED
    return jobs if ran.all() else jobs.take(np.flatnonzero(ran))


def mean(values: Floats) -> float:
    """The arithmetic mean; nan of nothing."""
    return float(values.mean()) if len(values) else math.nan


def largest(values: Floats) -> float:
    """The maximum; nan of nothing."""
    return float(values.max()) if len(values) else math.nan


def percentile(values: Floats, percent: float) -> float:
    """The value that `percent` of all are not above, linear between neighbours; nan of nothing.

    As `numpy.percentile`, to the last digit; that loads modules for 15 ms.
    """
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    at = (len(ordered) - 1) * (percent / 100)
    below, share = int(at), at - int(at)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    if math.isnan(ordered[-1]):
        return math.nan
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)


# --- Of each job (all take jobs that ran) ---------------------------------------------------------------------------


def waiting_times(jobs: JobTable) -> Floats:
    """``t - s`` of each job, seconds."""
    return jobs.start_time - jobs.submit_time


def turnaround_times(jobs: JobTable) -> Floats:
    """``t + p - s`` of each job, seconds."""
    return jobs.start_time + jobs.runtime - jobs.submit_time


def slowdowns(jobs: JobTable) -> Floats:
    """``(w + p) / p`` of each job; Batsim calls it stretch in ``out_jobs.csv`` and slowdown in ``out_schedule.csv``."""
    return turnaround_times(jobs) / jobs.runtime


def bounded_slowdowns(jobs: JobTable, bound: float = SHORTEST_RUNTIME) -> Floats:
    """``max(1, (w + p) / max(p, bound))`` of each job, `bound` in seconds (Feitelson et al. 1997)."""
    return np.maximum(1.0, (waiting_times(jobs) + jobs.runtime) / np.maximum(jobs.runtime, bound))


def stretches(jobs: JobTable, recorded: Mapping[str, float]) -> Floats:
    """Run times over the recorded ones (seconds by id), of the jobs that have one above 0."""
    wanted = np.array([recorded.get(job, 0.0) for job in jobs.id])
    known = wanted > 0
    return jobs.runtime[known] / wanted[known]


def waits_over_walltime(jobs: JobTable) -> Floats:
    """``w / walltime`` of each job that has a walltime."""
    known = np.isfinite(jobs.walltime)
    return waiting_times(jobs)[known] / jobs.walltime[known]


def prediction_errors(jobs: JobTable, predictions: PredictionTable) -> Floats:
    """``|e - p|`` of each job, seconds: e is the run time that was expected at its submission."""
    return np.abs(predictions.predicted - jobs.runtime)


def underpredicted(jobs: JobTable, predictions: PredictionTable) -> float:
    """Share of the jobs with ``e < p``: they ran for longer than was expected at their submission; nan of none."""
    return mean((predictions.predicted < jobs.runtime).astype(np.float64))


def broken_promises(jobs: JobTable, predictions: PredictionTable) -> float:
    """Jobs that started later than EASY promised when they first were the head of the queue; nan without promises."""
    if np.isnan(predictions.promised).all():
        return math.nan
    return float((jobs.start_time > predictions.promised + PROMISE_TOLERANCE).sum())


def per_processor_slowdowns(jobs: JobTable) -> Floats:
    """``max(1, (w + p) / (q * p))`` of each job (Zotkin and Keleher 1999, without a bound)."""
    return np.maximum(1.0, turnaround_times(jobs) / (jobs.size * jobs.runtime))


def communication_hops(jobs: JobTable, distance: Distance) -> Floats:
    """``sum over pairs (i, k), i != k, of the job's hosts of distance(i, k) / q``: the communication-hop cost.

    Each pair counts in both directions; a job on one host has no cost. It is the interference metric of topology-aware
    allocation on fat-trees, where `distance` is 2, 4 or 6 (same switch, same pod, other pod).
    """
    costs = np.zeros(len(jobs.allocation))
    for row, text in enumerate(jobs.allocation):
        hosts = np.array(parse_hosts(text), np.int64)
        if len(hosts) > 1:
            near, far = np.triu_indices(len(hosts), 1)
            costs[row] = 2 * float(distance(hosts[near], hosts[far]).sum()) / len(hosts)
    return costs


def tree_hops(jobs: JobTable, down: Sequence[int], places: Ints) -> Floats:
    """`communication_hops` on a tree of switches, in closed form (`decision.policies.placement.tree`).

    Args:
        jobs: that ran.
        down: devices below each switch of a level, from the hosts up.
        places: (H,) the hosts' places in the tree, by id.
    """
    sets = [parse_hosts(hosts) for hosts in jobs.allocation]
    begin = np.cumsum([0, *map(len, sets)])
    hosts = np.fromiter(chain.from_iterable(sets), np.int64, begin[-1])
    costs = np.zeros(len(sets))
    text_costs(np.array(down), places[hosts], begin, costs)
    return costs


# --- Of a schedule (all take jobs that ran; nan where there are none) -------------------------------------------------


def makespan(jobs: JobTable) -> float:
    """``max(t + p)``: when the last job ends, seconds since the simulation began (Batsim 3 and 4)."""
    return largest(jobs.start_time + jobs.runtime)


def makespan_from_submission(jobs: JobTable) -> float:
    """``max(t + p) - min(s)``: seconds from the first submission to the last end (Batsim 5)."""
    return makespan(jobs) - float(jobs.submit_time.min()) if jobs.id else math.nan


def utilization(jobs: JobTable, nb_hosts: int) -> float:
    """``sum(q * p) / (nb_hosts * (max(t + p) - min(s)))``: the share of host time in use until the last end."""
    return float(np.sum(jobs.size * jobs.runtime)) / (nb_hosts * makespan_from_submission(jobs))


def arrival_utilization(jobs: JobTable, nb_hosts: int) -> float:
    """``sum(q * max(0, min(t + p, S) - t)) / (nb_hosts * (S - min(s)))``, S = max(s): the share until the last arrival.

    What comes after is the queue's end, when no jobs come that could fill the hosts; a machine in service never sees
    it. nan where all jobs came at once.
    """
    if not jobs.id or (span := float(np.ptp(jobs.submit_time))) == 0:
        return math.nan
    last = float(jobs.submit_time.max())
    used = np.minimum(jobs.start_time + jobs.runtime, last) - np.minimum(jobs.start_time, last)
    return float(np.sum(jobs.size * used)) / (nb_hosts * span)


def late_starts(jobs: JobTable) -> int:
    """Jobs with ``t > max(s)``, which began after the last arrival: had more jobs come, they might have waited on."""
    return int((jobs.start_time > jobs.submit_time.max()).sum()) if jobs.id else 0


def mean_queue_length(jobs: JobTable) -> float:
    """``sum(w) / (max(t + p) - min(s))``: waiting jobs, averaged over the time from first submission to last end."""
    return float(waiting_times(jobs).sum()) / makespan_from_submission(jobs)


def mean_job_load(jobs: JobTable) -> float:
    """``sum(w * load) / (max(t + p) - min(s))``: the load that waits, host-seconds, averaged over the same time.

    A job's load is ``q * walltime``, or ``q * p`` where it has no walltime.
    """
    return float((waiting_times(jobs) * loads(jobs)).sum()) / makespan_from_submission(jobs)


def loads(jobs: JobTable) -> Floats:
    """``q * walltime`` of each job, host-seconds; ``q * p`` where it has no walltime."""
    return np.multiply(jobs.size, np.where(np.isfinite(jobs.walltime), jobs.walltime, jobs.runtime), dtype=np.float64)


def throughput(jobs: JobTable) -> float:
    """``n / (max(t + p) - min(s))``: jobs per hour that ran between the first submission and the last end."""
    return len(jobs.id) * SECONDS_IN_HOUR / makespan_from_submission(jobs)


def fairness(jobs: JobTable, users: Mapping[str, str]) -> float:
    """``sum(x)^2 / (n * sum(x^2))`` of the n users' mean bounded slowdowns x: 1 if all fare alike, 1/n at worst.

    Jain, Chiu and Hawe's index (1984). `users` are the users by job id; jobs without one count as one user's, and
    where no job has one, each job is a user of its own.
    """
    names = [users.get(job, "") for job in jobs.id]
    number = {name: at for at, name in enumerate(sorted(set(names)))}
    owners = np.array([number[name] for name in names]) if any(names) else np.arange(len(names))
    slowdown = bounded_slowdowns(jobs)
    if not len(slowdown):
        return math.nan
    each = np.bincount(owners, weights=slowdown) / np.bincount(owners)
    return float(each.sum() ** 2 / (len(each) * (each**2).sum()))


# Who had what of a run: jobs, host-time and waits of users, groups, accounts, queues and partitions.
#
# A run's folder has them as ``groups.csv``, since Batsim's files do not say whose a job is.

GROUPS_FILE = "groups.csv"
SHOWN_GROUPS = 10  # of a kind; the others are one
NOT_SAID = "not said"
_MOST_JOBS = 1_000_000  # with more, their ids are not kept beside their groups


class Membership(NamedTuple):
    """The groups of a kind."""

    names: Sequence[str]
    of: Mapping[str, int]  # the number of each job's group, by the job's id
    folded: bool  # whether the last name is that of all others


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a group had; rejected ones do not count."""

    by: str  # "user", "group", "account", "queue", "partition"
    name: str
    jobs: float  # of several runs their mean, as all below
    host_seconds: float
    mean_wait: float  # seconds
    max_wait: float  # seconds


def memberships(workloads: Sequence[Workload], most: int = 0) -> dict[str, Membership]:
    """Whose the jobs are, by kind, where the workloads say it and there are two groups or more.

    Args:
        workloads: as they were read, with what is recorded; nothing is said of more than a million jobs.
        most: groups of a kind, those with most jobs; the others are one. All if 0.
    """
    if sum(len(each.jobs) for each in workloads) > _MOST_JOBS:
        return {}
    named: dict[str, list[tuple[Sequence[str], Sequence[str]]]] = {}  # ids and names, workload by workload
    for workload in workloads:
        jobs = columns_of(workload.jobs)
        said: dict[str, Sequence[str]] = {"user": list(jobs.user)}
        if isinstance(jobs.extra, Labelled):
            for kind in ("group", "queue"):
                said[kind] = [str((fields or {}).get(kind) or "") for fields in jobs.extra]
        if workload.trace is not None:
            trace = of_jobs(workload.trace, workload.jobs)
            said |= {kind: trace.texts("request", kind) for kind in ("account", "partition")}
        for kind, names in said.items():
            named.setdefault(kind, []).append((jobs.id, names))
    members = {}
    for kind, parts in named.items():
        if len(set().union(*(names for _, names in parts)) - {""}) < 2:
            continue
        group_of = dict(chain.from_iterable(zip(ids, names, strict=True) for ids, names in parts))
        texts = [name or NOT_SAID for name in group_of.values()]
        labels, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
        listed = [str(label) for label in labels]
        folded = 0 < most < len(listed)
        if folded:
            order = np.argsort(-counts, kind="stable")
            place = np.full(len(listed), most)
            place[order[:most]] = np.arange(most)
            codes, listed = place[codes], [*(listed[at] for at in order[:most]), others(len(listed) - most)]
        members[kind] = Membership(listed, dict(zip(group_of, codes.tolist(), strict=True)), folded)
    return members


def others(number: int) -> str:
    """The name of so many groups together."""
    return f"{number:,} others"


def group_figures(jobs: JobTable, members: Mapping[str, Membership]) -> list[GroupFigures]:
    """What each group had, of a kind those with most host-time first.

    Args:
        jobs: of a run.
        members: whose they are.
    """
    ran = only_ran(jobs)
    wait, found, ids = waiting_times(ran), [], list(ran.id)
    for kind, (names, of, folded) in members.items():
        code = np.array([of.get(job, -1) for job in ids], np.int64)
        known = code >= 0
        code, waits, work = code[known], wait[known], (ran.size * ran.runtime)[known]
        number = np.bincount(code, minlength=len(names))
        longest = np.zeros(len(names))
        np.maximum.at(longest, code, waits)
        total_work, total_wait = (np.bincount(code, values, len(names)) for values in (work, waits))
        rows = [
            GroupFigures(
                by=kind,
                name=names[at],
                jobs=float(number[at]),
                host_seconds=float(total_work[at]),
                mean_wait=float(total_wait[at] / number[at]),
                max_wait=float(longest[at]),
            )
            for at in np.flatnonzero(number).tolist()
        ]
        last = names[-1] if folded else ""
        found += sorted(rows, key=lambda row: (row.name == last, -row.host_seconds))
    return found


def mean_figures(runs: Sequence[Sequence[GroupFigures]]) -> list[GroupFigures]:
    """The means over runs of the same jobs, copies of a log or seeds of a policy, in the order of the first run."""
    by_key: dict[tuple[str, str], list[GroupFigures]] = {}
    for row in (row for run in runs for row in run):
        by_key.setdefault((row.by, row.name), []).append(row)
    fields = ("jobs", "host_seconds", "mean_wait", "max_wait")
    return [
        GroupFigures(
            by=by, name=name, **{field: float(np.mean([getattr(row, field) for row in rows])) for field in fields}
        )
        for (by, name), rows in by_key.items()
    ]


def folded(rows: Sequence[GroupFigures], names: Collection[str]) -> list[GroupFigures]:
    """The groups of these names, and all others of the kind as one."""
    rest = [row for row in rows if row.name not in names]
    if not rest:
        return [*rows]
    jobs = sum(row.jobs for row in rest)
    together = GroupFigures(
        by=rest[0].by,
        name=others(len(rest)),
        jobs=jobs,
        host_seconds=sum(row.host_seconds for row in rest),
        mean_wait=sum(row.jobs * row.mean_wait for row in rest) / jobs,
        max_wait=max(row.max_wait for row in rest),
    )
    return [*(row for row in rows if row.name in names), together]


def write_groups(folder: Path, jobs: JobTable, workloads: Sequence[Workload]) -> list[Path]:
    """Write ``groups.csv`` into a run's folder, where the workloads say whose the jobs are.

    Raises:
        ConfigError: if it cannot be written.
    """
    path = folder / GROUPS_FILE
    members = memberships(workloads)
    found = group_figures(jobs, members) if members else []
    if not found:
        path.unlink(missing_ok=True)
        return []
    write_files({path: [csv_text(map(msgspec.structs.asdict, found)).encode()]})
    return [path]


def read_groups(folder: Path) -> list[GroupFigures]:
    """What `write_groups` wrote; nothing where it is not there.

    Raises:
        InputError: if the file is of another kind.
    """
    path = folder / GROUPS_FILE
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(read_bytes(path).decode(errors="replace"))))
    try:
        return msgspec.convert(rows, list[GroupFigures], strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not the groups of a run ({error}); run it again, or remove the file") from None
