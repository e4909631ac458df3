"""`Truth` from workloads: what jobs really do, as arrays, and the names that belong to the numbers."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.workload import Job, MachineEvent, Workload

from .kernels.arrays import HOSTS_COME_BACK, HOSTS_LEAVE, Truth
from .profiles import LeafTask, check_width, flatten, is_moldable
from .refusals import impossible_event

_EVENT_KIND = {"machine_unavailable": HOSTS_LEAVE, "machine_available": HOSTS_COME_BACK}


class Names(msgspec.Struct):
    """What the numbers of `Truth` mean to people. Lists by truth, growing with dynamic jobs."""

    jobs: list[Job]
    number: dict[str, int]  # job id to truth
    leaves: list[tuple[LeafTask, ...]]
    users: dict[str, int]


def submission_order(workload: Workload) -> list[Job]:
    """The order in which Batsim's submitter sends a workload's jobs: by time, then by id as text."""
    return sorted(workload.jobs, key=lambda job: (job.submit_time, job.id))


def check_events(events: Sequence[MachineEvent], nb_hosts: int) -> None:
    """Refuse external events, in order, that name a host which is not there, or that cannot happen one after the other.

    Raises:
        ConfigError: one line that names the event and the host.
    """
    away: set[int] = set()
    for event in events:
        hosts = set(event.hosts)
        if hosts and max(hosts) >= nb_hosts:
            raise impossible_event(event, f"there is no host {max(hosts)}")
        if event.type == "machine_unavailable":
            if hosts & away:
                raise impossible_event(event, f"host {min(hosts & away)} is unavailable already")
            away |= hosts
        elif event.type == "machine_available":
            if hosts - away:
                raise impossible_event(event, f"host {min(hosts - away)} is not unavailable")
            away -= hosts


def build_truth(workloads: Sequence[Workload], events: Sequence[Sequence[MachineEvent]]) -> tuple[Truth, Names]:
    """Arrays and names of static workloads and event lists.

    Raises:
        ConfigError: if two jobs share an id, a job asks for no host, or a profile cannot be simulated here.
    """
    names = Names([], {}, [], {})
    table = _LeafTable()
    ends = []
    for workload in workloads:
        for job in submission_order(workload):
            _add_job(names, table, job, workload)
        ends.append(len(names.jobs))
    jobs = names.jobs
    truth = Truth(
        submit_time=np.array([j.submit_time for j in jobs], np.float64),
        size=np.array([j.size for j in jobs], np.int32),
        walltime=np.array([j.walltime for j in jobs], np.float64),
        user=np.array([names.users.setdefault(j.user, len(names.users)) if j.user else -1 for j in jobs], np.int32),
        **table.arrays(),
        moldable=np.array(table.moldable, np.int8),
        workload_end=np.array(ends, np.int64),
        **_event_arrays(events),
    )
    return truth, names


def with_job(truth: Truth, names: Names, job: Job, leaves: tuple[LeafTask, ...], moldable: bool) -> Truth:
    """The same truth with one more job, which no submitter sends and no other has the id of."""
    names.number[job.id] = len(names.jobs)
    names.jobs.append(job)
    names.leaves.append(leaves)
    user = names.users.setdefault(job.user, len(names.users)) if job.user else -1
    more = {"submit_time": job.submit_time, "size": job.size, "walltime": job.walltime, "user": user}
    more["moldable"] = moldable
    columns = {
        name: np.append(getattr(truth, name), [value]).astype(getattr(truth, name).dtype)
        for name, value in more.items()
    }
    return with_leaves(truth._replace(**columns), len(names.jobs) - 1, leaves)


def with_leaves(truth: Truth, at: int, leaves: tuple[LeafTask, ...]) -> Truth:
    """The same truth in which job `at` does `leaves`."""
    table = _LeafTable(len(truth.leaf_kind), len(truth.vector))
    first, count = table.add(leaves)
    arrays = {n: np.append(getattr(truth, n), new) for n, new in table.leaf_arrays().items()}
    for name, value in (("leaf_first", first), ("leaf_count", count)):
        column = getattr(truth, name)
        arrays[name] = np.append(column, np.zeros(max(0, at + 1 - len(column)), column.dtype))
        arrays[name][at] = value
    return truth._replace(**arrays)


def _add_job(names: Names, table: "_LeafTable", job: Job, workload: Workload) -> None:
    if job.id in names.number:
        raise ConfigError(f"job {job.id} exists already; give it another id")
    if job.size <= 0:
        raise ConfigError(
            f"{workload.path or workload.name}: job {job.id} asks for {job.size} hosts; it needs at least 1"
        )
    names.number[job.id] = len(names.jobs)
    names.jobs.append(job)
    names.leaves.append(table.job(job, workload))


class _LeafTable:
    """Leaves and the jobs that point to them; jobs of one profile share its leaves."""

    def __init__(self, first_leaf: int = 0, first_flop: int = 0) -> None:
        self.first_leaf, self.first_flop = first_leaf, first_flop
        self.rows: list[LeafTask] = []
        self.vector: list[float] = []
        self.offsets: list[int] = []
        self.ranges: list[tuple[int, int]] = []
        self.moldable: list[bool] = []
        self.known: dict[tuple[str, str], tuple[int, int, bool, tuple[LeafTask, ...]]] = {}

    def job(self, job: Job, workload: Workload) -> tuple[LeafTask, ...]:
        key = (workload.name, job.profile)
        if key not in self.known:
            leaves = flatten(job.profile, workload)
            self.known[key] = (*self.add(leaves), is_moldable(job.profile, workload), leaves)
        first, count, moldable, leaves = self.known[key]
        check_width(job, leaves, workload)
        self.ranges.append((first, count))
        self.moldable.append(moldable)
        return leaves

    def add(self, leaves: tuple[LeafTask, ...]) -> tuple[int, int]:
        first = self.first_leaf + len(self.rows)
        for leaf in leaves:
            self.offsets.append(self.first_flop + len(self.vector))
            self.vector.extend(leaf.flops)
            self.rows.append(leaf)
        return first, len(leaves)

    def leaf_arrays(self) -> Mapping[str, np.ndarray]:
        return {
            "leaf_kind": np.array([leaf.kind for leaf in self.rows], np.int8),
            "leaf_amount": np.array([leaf.amount for leaf in self.rows], np.float64),
            "leaf_vector": np.array(self.offsets, np.int64),
            "leaf_exit": np.array([leaf.exit_code for leaf in self.rows], np.int32),
            "vector": np.array(self.vector, np.float64),
        }

    def arrays(self) -> Mapping[str, np.ndarray]:
        ranges = np.array(self.ranges, np.int64).reshape(-1, 2)
        return {"leaf_first": ranges[:, 0].copy(), "leaf_count": ranges[:, 1].astype(np.int32), **self.leaf_arrays()}


def _event_arrays(lists: Sequence[Sequence[MachineEvent]]) -> Mapping[str, np.ndarray]:
    events = [event for one in lists for event in one]
    return {
        "event_time": np.array([e.timestamp for e in events], np.float64),
        "event_kind": np.array([_EVENT_KIND.get(e.type, 0) for e in events], np.int8),
        "event_host_end": np.cumsum([len(set(e.hosts)) for e in events], dtype=np.int64),
        "event_host": np.array([h for e in events for h in sorted(set(e.hosts))], np.int32),
        "list_end": np.cumsum([len(one) for one in lists], dtype=np.int64),
    }
