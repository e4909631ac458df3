"""The columns of a case's jobs: what they ask for, in cores and nodes, their times, and what they wait for."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from decision.compiling.bundle import I8

from .case import Case
from .factors import YEAR
from .jobs import Need, SlurmJob
from .kernels import world as at
from .kernels.world import FAR
from .nodes import Partition
from .parameters import Settings
from .shares import ShareTree
from .text import read_hosts

_KINDS = {"after": at.AFTER, "afterany": at.AFTER_ANY, "afterok": at.AFTER_OK, "afternotok": at.AFTER_NOT_OK}


def gres_names(case: Case) -> list[str]:
    """Kinds of generic resources, GPUs first."""
    names = {name for node in case.nodes for name in node.gres}
    return sorted(names, key=lambda name: (name != "gpu", name))


def _exempt_time(case: Case, settings: Settings) -> Callable[[SlurmJob, Partition], int]:
    """The seconds for which a job runs before it may be preempted: of the partition's QOS, its own, the cluster's."""
    known = {each.name: each.exempt for each in case.qualities if each.exempt >= 0}
    cluster = settings.exempt_time
    return lambda job, partition: int(min(known.get(partition.qos, known.get(job.qos, cluster)), FAR))


def job_arrays(case: Case, settings: Settings, tree: ShareTree, begin: int) -> dict[str, Any]:
    """The arrays with a row for each job, of a world that begins `begin` seconds after 1970."""
    jobs, kinds = case.jobs, gres_names(case)
    users: dict[str, int] = {}
    arrays: dict[str, int] = {}
    partitions = {p.name: p for p in case.partitions}
    qualities = {each.name: number for number, each in enumerate(case.qualities)}
    needs, reservations, exempt = _Cores(case, settings), reservation_numbers(case), _exempt_time(case, settings)
    factors, once = {each.name: each.usage_factor for each in case.qualities}, settings.conf.get("JobRequeue") == "0"
    columns: dict[str, list[int]] = {name: [] for name in _JOB_COLUMNS}
    gres, billing = [], []
    for job in jobs:
        partition = partitions[job.partition.split(",")[0]]
        row = needs.of(job, partition)
        row |= {
            **_times(job, partition, begin),
            "held": job.held and not job.started,
            "user": users.setdefault(job.user, len(users)),
            "association": tree.leaf_of(job.account, job.user),
            "quality": qualities.get(job.qos, -1),
            "array": arrays.setdefault(job.array, len(arrays)) if job.array else -1,
            "array_limited": bool(job.array and job.array_limit),
            "succeeded": job.state == "COMPLETED",
            "reservation": reservations.get(job.reservation, -1),
            "need_any": job.any_need,
            "exempt": exempt(job, partition),
            "runs_once": job.runs_once or (once and not job.runs_again),
            "needs_named": bool(job.nodelist) and len(read_hosts(job.nodelist)) >= row["nodes_min"],
        }
        for name, values in columns.items():
            values.append(int(row[name]))
        gres.append([_gres(job, kind, row["nodes_min"]) for kind in kinds])
        billing.append((job.billing or max(job.cpus_had, job.cpus)) * factors.get(job.qos, 1.0))
    arrays_of = {name: np.array(values, np.int64) for name, values in columns.items()}
    return {
        **arrays_of,
        "gres": np.array(gres, np.int64).reshape(len(jobs), len(kinds)),
        "billing": np.array(billing),
        "seen_user": np.zeros(max(1, len(users)), np.int64),
        "seen_array": np.zeros(max(1, len(arrays)), np.int64),
        "rejected": np.zeros(max(1, len(arrays)), np.int64),
        "seen_user_part": np.zeros((max(1, len(users)), len(case.partitions)), np.int64),
        **_needs(jobs),
    }


NEED_COLUMNS = (
    *("nodes_min", "nodes_max", "cores", "per_task", "in_tasks", "per_node", "memory", "memory_per_core", "exclusive"),
)
_JOB_COLUMNS = (
    *NEED_COLUMNS,
    *("submit", "begin", "runtime", "limit", "cancel", "recorded", "held", "user", "association", "quality", "array"),
    *("array_limited", "exempt", "runs_once"),
    *("succeeded", "reservation", "need_any", "needs_named"),
)


def _times(job: SlurmJob, partition: Partition, begin: int) -> dict[str, int]:
    """The columns of a job's times."""
    waits = not job.started and job.state != "PENDING" and job.end > 0
    limit = min(job.limit, partition.default_time if math.isinf(job.limit) else math.inf)
    limit = min(limit if math.isfinite(limit) else partition.max_time, YEAR)
    return {
        "submit": job.submitted - begin,
        "begin": job.begin - begin if job.begin > 0 else 0,
        "runtime": max(1, round(job.runtime)) if _ended(job) else int(limit),
        "limit": max(1, int(limit)),
        "cancel": job.end - begin if waits else FAR,
        "recorded": job.start - begin if job.before else -1,
    }


def _ended(job: SlurmJob) -> bool:
    return job.started and job.state not in ("RUNNING", "SUSPENDED", "PENDING")


def _gres(job: SlurmJob, kind: str, nodes: int) -> int:
    count = sum(number for name, number in job.gres.items() if name.split(":")[0] == kind)
    return -(-count // nodes) if job.gres_in_all else count


class _Cores:
    """What jobs need of nodes, in cores."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self._linear, self._conf = settings.linear, settings.conf
        self._has_memory = "MEMORY" in settings.text("SelectTypeParameters").upper()
        self._threads = max(node.threads for node in case.nodes)
        self._largest = max(node.cores for node in case.nodes)
        self._nb_nodes = len(case.nodes)

    def of(self, job: SlurmJob, partition: Partition) -> dict[str, Any]:
        """The columns of a job."""
        most = job.nodes_max or self._nb_nodes
        if partition.max_nodes and not job.started:
            most = min(most, partition.max_nodes)
        if self._linear:
            nodes = max(job.nodes, -(-job.cpus // (self._largest * self._threads)))
            had = len(read_hosts(job.hosts)) if job.started else 0
            nodes = had or nodes
            return self._row(nodes, nodes, nodes, 1, False, 1, 0, False, False)
        per_task = -(-job.cpus_per_task // self._threads)
        cores = max(-(-job.cpus // self._threads), job.nodes)
        per_node = job.tasks_per_node * per_task or self._largest
        memory, per_core = self._memory(job, partition)
        exclusive = job.exclusive or partition.exclusive
        in_tasks = job.tasks_per_node > 0 or (self._has_memory and per_core)
        most = max(most, job.nodes)
        return self._row(job.nodes, most, cores, per_task, in_tasks, per_node, memory, per_core, exclusive)

    def _row(self, *values: Any) -> dict[str, Any]:
        return dict(zip(NEED_COLUMNS, values, strict=True))

    def _memory(self, job: SlurmJob, partition: Partition) -> tuple[int, bool]:
        """Megabytes, and whether they are per core."""
        if job.memory > 0:
            return math.ceil(job.memory * (self._threads if job.memory_per_cpu else 1)), job.memory_per_cpu
        per_cpu = partition.memory_per_cpu or float(self._conf.get("DefMemPerCPU") or 0)
        if per_cpu:
            return math.ceil(per_cpu * self._threads), True
        return int(partition.memory_per_node or float(self._conf.get("DefMemPerNode") or 0)), False


def _needs(jobs: Sequence[SlurmJob]) -> dict[str, I8]:
    """The jobs that each job waits for: an array stands for all of its tasks, one that is not in the log for none."""
    numbers: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        for name in {job.id, job.array, _task_name(job.array, job)} - {""}:
            numbers.setdefault(name, []).append(number)
    begin, rows = [0], []
    for job in jobs:
        rows += [row for need in job.needs for row in _need_rows(need, job, numbers)]
        begin.append(len(rows))
    table = np.array(rows, np.int64).reshape(len(rows), 3)
    columns = [np.ascontiguousarray(table[:, column]) for column in range(3)]
    return {"need_begin": np.array(begin, np.int64)} | dict(
        zip(("need_job", "need_kind", "need_delay"), columns, strict=True)
    )


def _need_rows(need: Need, job: SlurmJob, numbers: Mapping[str, list[int]]) -> list[tuple[int, int, int]]:
    kind = _KINDS.get(need.kind, at.AFTER_OK)
    name = _task_name(need.job, job) if need.kind == "aftercorr" else need.job
    return [(number, kind, int(need.delay)) for number in numbers.get(name, ())]


def _task_name(array: str, job: SlurmJob) -> str:
    """The task of an array with the number of this one."""
    return f"{array}_{job.task}" if array and job.array else array


def reservation_numbers(case: Case) -> dict[str, int]:
    """Numbers of the reservations by name."""
    names = {window.reservation for window in case.windows} - {""}
    return {name: number for number, name in enumerate(sorted(names))}
