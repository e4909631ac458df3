"""What jobs really do: the leaf tasks of their profiles, `Truth` with them as arrays, and `Names` of its numbers.

No policy sees any of it. What a profile does is unrolled here once for both engines, with what they refuse to simulate.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.engine.kernels.arrays import DELAY, HOSTS_COME_BACK, HOSTS_LEAVE, SUPPLY_CHANGES, Truth
from decision.model.columns import DelayProfiles, JobColumns, columns_of
from decision.model.demand import usable_estimate
from decision.model.errors import ConfigError, InternalError
from decision.model.workload import (
    POWER_SUPPLY,
    Composed,
    Delay,
    Foreign,
    Job,
    MachineEvent,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Workload,
)

from .rules import ADVICE, DECIMALS

# --- Leaf tasks: what a profile makes a job do, one after the other --------------------------------------------------

MAX_LEAVES = 100_000  # of a profile: more is rather a mistake in 'repeat', and would take memory without end


class LeafKind(IntEnum):
    """What a leaf task's amount means."""

    DELAY = 0  # seconds
    FLOPS_EACH = 1  # flop per executor
    FLOPS_TOTAL = 2  # flop in all, spread evenly over the executors
    FLOPS_VECTOR = 3  # one amount per executor
    FLOPS_EXECUTORS = 4  # one amount per host of the job, and how it is spread over the executors there


class LeafTask(msgspec.Struct, frozen=True):
    """A task without parts. An executor is a host of the job, or what a mapping puts there."""

    profile: str  # the leaf's own profile
    kind: LeafKind
    amount: float  # seconds or flop, by kind; 0 where `flops` says it
    flops: tuple[float, ...] = ()  # (n,) flop per executor with FLOPS_VECTOR, per host with FLOPS_EXECUTORS
    exit_code: int = 0  # once the leaf is over: 0 goes on to the next leaf, anything else ends the job
    path: tuple[tuple[str, int], ...] = ()  # enclosing composed profiles, outermost first, and which of their tasks
    sent: float = 0.0  # byte from each executor to each other; in all with FLOPS_TOTAL; the most with FLOPS_VECTOR
    matrix: tuple[float, ...] = ()  # (n * n,) byte from each to each, with FLOPS_VECTOR, FLOPS_EXECUTORS that send
    most: tuple[float, ...] = ()  # (n * n,) the most from one executor to another, with FLOPS_EXECUTORS that send
    executors: tuple[tuple[int, float], ...] = ()  # host, counted in the job, and flop of each, with FLOPS_EXECUTORS


def flatten(name: str, workload: Workload, no_network: str = "") -> tuple[LeafTask, ...]:
    """The leaf tasks of a profile in the order in which they run.

    `no_network` says why they cannot communicate, where they cannot (`decision.engine.rules.network_refusal`).

    A composed profile ends with its first task whose exit code is not 0, so the leaves after such a task are
    left out, and the last leaf has the exit code of the whole.

    Raises:
        ConfigError: if the engines cannot simulate the profile; one line that names it.
    """
    leaves: list[LeafTask] = []
    for leaf in _leaves(name, workload, ()):
        if leaf.sent > 0 and no_network:
            reason = f"communication (com = {leaf.sent:g} bytes), but {no_network}; {ADVICE}"
            raise _refusal(leaf.profile, workload, reason)
        leaves.append(leaf)
        if len(leaves) > MAX_LEAVES:
            raise _refusal(name, workload, f"more than {MAX_LEAVES:,} tasks once unrolled; lower 'repeat'")
        if leaf.exit_code != 0:
            break
    return tuple(leaves)


def _leaves(name: str, workload: Workload, path: tuple[tuple[str, int], ...]) -> Iterator[LeafTask]:
    if any(name == outer for outer, _ in path):
        raise ConfigError(f"{_place(workload)}: profile {name!r} contains itself; break the cycle")
    if name not in workload.profiles:
        raise ConfigError(f"{_place(workload)}: there is no profile {name!r}; add it")
    profile = workload.profiles[name]
    if profile.exit_code < -1:
        raise _refusal(name, workload, f"exit code {profile.exit_code}; Batsim takes no code below -1")
    if isinstance(profile, Foreign):
        reason = f"type {profile.type!r}, which the embedded engine cannot simulate; {ADVICE}"
        raise _refusal(name, workload, reason)
    if not isinstance(profile, Composed):
        kind, amount, sent = LeafKind.DELAY, 0.0, 0.0
        flops: tuple[float, ...] = ()
        matrix: tuple[float, ...] = ()
        match profile:
            case Delay():
                amount = profile.duration
            case ParallelHomogeneous():
                kind, amount, sent = LeafKind.FLOPS_EACH, profile.flops, profile.bytes
            case ParallelHomogeneousTotal():
                kind, amount, sent = LeafKind.FLOPS_TOTAL, profile.flops, profile.bytes
            case Parallel():
                kind, flops = LeafKind.FLOPS_VECTOR, profile.flops
                if len(flops) > 1:  # SimGrid computes on one host without looking at what it sends
                    sent = max(profile.bytes, default=0.0)
                    matrix = profile.bytes if sent > 0 else ()
        yield LeafTask(name, kind, amount, flops, profile.exit_code, path, sent, matrix)
        return
    parts = profile.repeat * len(profile.sequence)
    for index in range(parts):
        part = profile.sequence[index % len(profile.sequence)]
        within = _leaves(part, workload, (*path, (name, index)))
        yield from _with_last_code(within, profile.exit_code) if index == parts - 1 else within


def _with_last_code(leaves: Iterator[LeafTask], code: int) -> Iterator[LeafTask]:
    """The same leaves; the last one also gives the exit code of the composed profile that ends with it."""
    last = next(leaves)
    for leaf in leaves:
        yield last
        last = leaf
    yield last if last.exit_code else msgspec.structs.replace(last, exit_code=code)


def _refusal(name: str, workload: Workload, reason: str) -> ConfigError:
    return ConfigError(f"{_place(workload)}: profile {name!r} has {reason}")


def _place(workload: Workload) -> str:
    return workload.path or workload.name


def is_moldable(name: str, workload: Workload) -> bool:
    """Whether a job of this profile may get another number of hosts than it requested.

    Batsim allows it for `ParallelHomogeneousTotal` and for a composed profile whose parts all are of that kind.
    """
    profile = workload.profiles[name]
    parts = [workload.profiles[part] for part in profile.sequence] if isinstance(profile, Composed) else [profile]
    return all(isinstance(part, ParallelHomogeneousTotal) for part in parts)


def check_width(job: Job, leaves: tuple[LeafTask, ...], workload: Workload) -> None:
    """Refuse a job whose profile gives amounts for another number of hosts than it requests.

    Raises:
        ConfigError: one line that names job, profile and both numbers.
    """
    for leaf in leaves:
        if leaf.kind is LeafKind.FLOPS_VECTOR and len(leaf.flops) != job.size:
            reason = f"amounts for {len(leaf.flops)} hosts, but job {job.id} requests {job.size}; make them equal"
            raise _refusal(leaf.profile, workload, reason)


def on_hosts(leaf: LeafTask, places: Sequence[int], nb_hosts: int) -> LeafTask:
    """The leaf with one amount per allocated host: the sum of what its executors compute there.

    `places` gives each executor the index of its host.
    """
    if leaf.kind is LeafKind.DELAY:
        return leaf
    flops, matrix, most = [0.0] * nb_hosts, [0.0] * nb_hosts**2, [0.0] * nb_hosts**2
    executors = tuple(zip(places, amounts(leaf, len(places)), strict=True))
    for place, amount in executors:
        flops[place] += amount
    alone = sorted(places) == [*range(nb_hosts)]  # each on a host of its own
    for sender, receiver, sent in sendings(leaf, len(places)):
        pair = places[sender] * nb_hosts + places[receiver]
        matrix[pair], most[pair] = matrix[pair] + sent, max(most[pair], sent)
    return msgspec.structs.replace(
        leaf,
        kind=LeafKind.FLOPS_VECTOR if alone else LeafKind.FLOPS_EXECUTORS,
        amount=0.0,
        flops=tuple(flops),
        sent=max(matrix),
        matrix=tuple(matrix) if max(matrix) > 0 else (),
        most=() if alone or max(matrix) == 0 else tuple(most),
        executors=() if alone else executors,
    )


def amounts(leaf: LeafTask, executors: int) -> Sequence[float]:
    """Flop (executors,) that each executor computes."""
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        return leaf.flops
    return [leaf.amount / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.amount] * executors


def sendings(leaf: LeafTask, executors: int) -> Iterator[tuple[int, int, float]]:
    """Who sends to whom how many bytes, where there are any: sender by sender, as SimGrid adds them up."""
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        pairs = ((*divmod(at, executors), sent) for at, sent in enumerate(leaf.matrix))
    else:
        sent = leaf.sent / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.sent
        pairs = ((i, j, sent) for i in range(executors) for j in range(executors) if i != j)
    return (pair for pair in pairs if pair[2] > 0)


# --- Names: what the numbers of `Truth` mean to people ---------------------------------------------------------------


class Names:
    """Jobs by their index in `Truth`, with those that are registered while the simulation goes on."""

    def __init__(self, no_network: str = "") -> None:
        self.no_network = no_network  # why jobs cannot communicate, where they cannot
        self.users: dict[str, int] = {}
        self.profiles: dict[tuple[tuple[LeafTask, ...], bool], int] = {}  # numbers of those of dynamic jobs
        self._parts: list[tuple[Workload, Sequence[Job]]] = []  # in order of submission
        self._added: list[Job] = []
        self._leaves: dict[int, tuple[LeafTask, ...]] = {}  # where they are not those of the job's profile
        self._flat: dict[tuple[str, str], tuple[LeafTask, ...]] = {}  # by workload and profile
        self._ids: set[str] | None = None  # of all jobs, once somebody asked

    def __len__(self) -> int:
        return sum(len(jobs) for jobs in self._lists())

    def __contains__(self, job_id: object) -> bool:
        if self._ids is None:
            self._ids = {job.id for jobs in self._lists() for job in jobs}
        return job_id in self._ids

    def job(self, truth: int) -> Job:
        """The job of an index, as its workload or its registration has it."""
        for jobs in self._lists():
            if truth < len(jobs):
                return jobs[truth]
            truth -= len(jobs)
        raise IndexError(truth)

    def texts(self, field: str, truths: NDArray[np.integer]) -> list[str]:
        """The ``id`` or ``profile`` of some jobs."""
        texts, first = np.empty(len(truths), object), 0
        for jobs in self._lists():
            here = (truths >= first) & (truths < first + len(jobs))
            rows = truths[here] - first
            if isinstance(jobs, JobColumns):
                texts[here] = getattr(jobs, field).take(rows).made()
            else:
                texts[here] = [getattr(jobs[row], field) for row in rows.tolist()]
            first += len(jobs)
        return texts.tolist()

    def leaves(self, truth: int) -> tuple[LeafTask, ...]:
        """The leaf tasks of the job of an index."""
        if truth in self._leaves:
            return self._leaves[truth]
        row = truth
        for workload, jobs in self._parts:
            if row < len(jobs):
                return self.flat(jobs[row].profile, workload)
            row -= len(jobs)
        raise IndexError(truth)

    def flat(self, profile: str, workload: Workload) -> tuple[LeafTask, ...]:
        """The leaves of a profile; errors as `flatten`."""
        key = (workload.name, profile)
        if key not in self._flat:
            self._flat[key] = flatten(profile, workload, self.no_network)
        return self._flat[key]

    def set_leaves(self, truth: int, leaves: tuple[LeafTask, ...]) -> None:
        """Let a job do something else than its profile."""
        self._leaves[truth] = leaves

    def add_workload(self, workload: Workload, jobs: Sequence[Job]) -> None:
        """Add a workload's jobs, in order of submission."""
        self._parts.append((workload, jobs))
        self._ids = None

    def add_job(self, job: Job, leaves: tuple[LeafTask, ...]) -> int:
        """Add a dynamic job; returns its truth."""
        truth = len(self)
        self._added.append(job)
        self._leaves[truth] = leaves
        if self._ids is not None:
            self._ids.add(job.id)
        return truth

    def user(self, name: str) -> int:
        """The number of a user; -1 for none."""
        return self.users.setdefault(name, len(self.users)) if name else -1

    def _lists(self) -> list[Sequence[Job]]:
        return [*(jobs for _, jobs in self._parts), self._added]


# --- Truth: all jobs, profiles and external events as arrays ---------------------------------------------------------

_EVENT_KIND = {"machine_unavailable": HOSTS_LEAVE, "machine_available": HOSTS_COME_BACK, POWER_SUPPLY: SUPPLY_CHANGES}


# Instants at which several jobs are submitted, sorted at once: their ids are texts, and all at once take memory.
_TIES = 16384


def submission_order(jobs: Sequence[Job]) -> Sequence[Job]:
    """The order in which Batsim's submitter sends a workload's jobs: by time, then by id as text."""
    if not isinstance(jobs, JobColumns):
        return sorted(jobs, key=lambda job: (job.submit_time, job.id))
    times, order = jobs.submit_time, np.arange(len(jobs), dtype=np.int32)
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable").astype(np.int32)
        times = times[order]
    same = times[1:] == times[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    begins = np.flatnonzero(np.diff(times[tied], prepend=np.nan))
    for tie in np.split(tied, begins[_TIES::_TIES]):
        keys = list(zip(times[tie].tolist(), jobs.id.take(order[tie]).made(), strict=True))
        order[tie] = order[tie][sorted(range(len(tie)), key=keys.__getitem__)]
    return jobs if (np.diff(order) == 1).all() else jobs.take(order)


def build_truth(
    workloads: Sequence[Workload], events: Sequence[Sequence[MachineEvent]], no_network: str = ""
) -> tuple[Truth, Names]:
    """Arrays and names of static workloads and event lists; `no_network` as for `flatten`.

    Raises:
        ConfigError: if two jobs share an id, a job asks for no host, or a profile cannot be simulated here.
    """
    names, profiles = Names(no_network), _Profiles()
    parts = [_static_jobs(names, profiles, workload) for workload in workloads]
    columns: dict[str, np.ndarray] = {}
    for name, dtype in _BY_JOB.items():  # one array of all; of a single part the same array
        own = [part[name] for part in parts]
        joined = own[0] if len(own) == 1 else np.concatenate([np.zeros(0, dtype), *own])
        columns[name] = np.ascontiguousarray(joined, dtype)
    columns["worth"] = np.zeros((0, 4))
    if any(part["worth"].size for part in parts):
        rows = [part["worth"] if part["worth"].size else np.zeros((len(part["size"]), 4)) for part in parts]
        columns["worth"] = np.round(np.nan_to_num(np.concatenate(rows)), DECIMALS)
    ends = np.cumsum([len(part["size"]) for part in parts], dtype=np.int64)
    every = [event for listed in events for event in listed]
    numbers = [e.hosts if e.type == POWER_SUPPLY else tuple(sorted(set(e.hosts))) for e in every]
    truth = Truth(
        **columns,
        **profiles.arrays(),
        workload_end=ends,
        event_time=np.array([e.timestamp for e in every], np.float64),
        event_kind=np.array([_EVENT_KIND.get(e.type, 0) for e in every], np.int8),
        event_host_end=np.cumsum([len(hosts) for hosts in numbers], dtype=np.int64),
        event_host=np.array([host for hosts in numbers for host in hosts], np.int32),
        list_end=np.cumsum([len(listed) for listed in events], dtype=np.int64),
    )
    return truth, names


def with_job(truth: Truth, names: Names, job: Job, leaves: tuple[LeafTask, ...], moldable: bool) -> Truth:
    """The same truth with one more job, which no submitter sends and no other has the id of.

    Columns by job become twice as long where they are full, so that many jobs cost as much each as a few.
    """
    at = names.add_job(job, leaves)
    key = (leaves, moldable)
    if key not in names.profiles:
        names.profiles[key] = len(truth.leaf_first)
        truth = _with_profile(truth, leaves, moldable)
    if at >= len(truth.size):
        truth = truth._replace(**{name: np.resize(getattr(truth, name), 2 * at + 64) for name in _BY_JOB})
    values = {"submit_time": job.submit_time, "size": job.size, "walltime": job.walltime, "user": names.user(job.user)}
    values |= {"estimate": round(float(usable_estimate(job.estimate)), DECIMALS), "profile": names.profiles[key]}
    for name, value in values.items():
        getattr(truth, name)[at] = value
    return truth


def with_leaves(truth: Truth, at: int, leaves: tuple[LeafTask, ...], moldable: bool) -> Truth:
    """The same truth in which job `at` does `leaves`."""
    number, profile = len(truth.leaf_first), truth.profile.copy()
    profile[at] = number
    return _with_profile(truth, leaves, moldable)._replace(profile=profile)


def _with_profile(truth: Truth, leaves: tuple[LeafTask, ...], moldable: bool) -> Truth:
    """The same truth with one more profile."""
    table = _Profiles(len(truth.leaf_first), len(truth.leaf_kind), len(truth.vector), len(truth.matrix))
    table.add(leaves, moldable)
    return truth._replace(**{n: np.append(getattr(truth, n), new) for n, new in table.arrays().items()})


_BY_JOB = {
    "submit_time": np.float64,
    "size": np.int32,
    "walltime": np.float64,
    "user": np.int32,
    "estimate": np.float64,
    "profile": np.int32,
}


def _static_jobs(names: Names, profiles: "_Profiles", workload: Workload) -> Mapping[str, np.ndarray]:
    """A workload's part of the columns `_BY_JOB`; its jobs are added to `names`."""
    jobs = submission_order(workload.jobs)
    columns = columns_of(jobs)
    try:
        profile = profiles.of_jobs(columns, workload, names)
        fine = bool((columns.size > 0).all())
        # No two jobs share an id, and none has that of an earlier workload; those of columns are of their own.
        if fine and not isinstance(jobs, JobColumns):
            ids = {job.id for job in jobs}
            fine = len(ids) == len(jobs) and not any(job_id in names for job_id in ids)
    except ConfigError:
        fine = False
    if not fine:
        _refuse(names, jobs, workload)
    names.add_workload(workload, jobs)
    users = columns.user.used()
    numbers = np.zeros(len(columns.user.labels), np.int32)
    numbers[users.codes] = [names.user(user) for user in users]
    return {
        "submit_time": columns.submit_time,
        "size": columns.size,
        "walltime": columns.walltime,
        "user": numbers[columns.user.codes],
        "estimate": np.zeros(len(columns))
        if columns.estimate is None
        else np.round(usable_estimate(columns.estimate), DECIMALS),
        "worth": np.zeros((0, 4)) if columns.worth is None else columns.worth,
        "profile": profile,
    }


def _refuse(names: Names, jobs: Sequence[Job], workload: Workload) -> NoReturn:
    """Raise the error of the first job, in order, that cannot be simulated."""
    seen: set[str] = set()
    for job in jobs:
        if job.id in names or job.id in seen:
            raise ConfigError(f"job {job.id} exists already; give it another id")
        seen.add(job.id)
        if job.size <= 0:
            raise ConfigError(
                f"{workload.path or workload.name}: job {job.id} asks for {job.size} hosts; it needs at least 1"
            )
        check_width(job, names.flat(job.profile, workload), workload)
    raise InternalError(f"{workload.name}: no job is at fault")


class _Profiles:
    """Profiles and their leaves, after so many that there are already."""

    def __init__(self, first_profile: int = 0, first_leaf: int = 0, first_flop: int = 0, first_byte: int = 0) -> None:
        self._first_profile, self._first_leaf = first_profile, first_leaf
        self._first_flop, self._first_byte = first_flop, first_byte
        self._moldable, self._leaf_first, self._leaf_count = array("b"), array("q"), array("i")
        self._kind, self._amount, self._exit_code = array("b"), array("d"), array("i")
        self._vector, self._flops = array("q"), array("d")
        self._sent, self._matrix, self._bytes = array("d"), array("q"), array("d")

    def of_jobs(self, jobs: JobColumns, workload: Workload, names: Names) -> NDArray[np.int32]:
        """The profile of each job. Raises ConfigError where one cannot be simulated."""
        codes, profiles = jobs.profile.codes, workload.profiles
        if isinstance(profiles, DelayProfiles) and profiles.label(jobs):
            return codes + np.int32(self._add_delays(profiles.durations))
        number, width = np.zeros((2, len(jobs.profile.labels)), np.int32)
        used = jobs.profile.used()
        for code, name in zip(used.codes.tolist(), used, strict=True):
            leaves = names.flat(name, workload)
            number[code] = self.add(leaves, is_moldable(name, workload))
            # Hosts that the leaves are for: 0 for any number, -1 where no number fits all.
            wanted = {len(leaf.flops) for leaf in leaves if leaf.kind is LeafKind.FLOPS_VECTOR}
            width[code] = -1 if len(wanted) > 1 else sum(wanted)
        widths = width[codes]
        if ((widths != 0) & (widths != jobs.size)).any():
            raise ConfigError(f"{workload.name}: a profile is for another number of hosts than its job")
        return number[codes]

    def add(self, leaves: tuple[LeafTask, ...], moldable: bool) -> int:
        """Add a profile of these leaves; returns its number."""
        number = self._first_profile + len(self._moldable)
        self._moldable.append(moldable)
        self._leaf_first.append(self._first_leaf + len(self._kind))
        self._leaf_count.append(len(leaves))
        for leaf in leaves:
            self._kind.append(leaf.kind)
            self._amount.append(leaf.amount)
            self._exit_code.append(leaf.exit_code)
            self._vector.append(self._first_flop + len(self._flops))
            self._flops.extend(leaf.flops)
            if leaf.executors:
                self._flops.append(len(leaf.executors))
                self._flops.extend(number for executor in leaf.executors for number in executor)
            self._sent.append(leaf.sent)
            self._matrix.append(self._first_byte + len(self._bytes))
            self._bytes.extend(leaf.matrix)
            self._bytes.extend(leaf.most)
        return number

    def _add_delays(self, durations: NDArray[np.float64]) -> int:
        """Add a profile for each duration (m,) in seconds; returns the number of the first."""
        number, count = self._first_profile + len(self._moldable), len(durations)
        first = self._first_leaf + len(self._kind)
        self._moldable.extend(array("b", [0]) * count)
        self._leaf_first.extend(range(first, first + count))
        self._leaf_count.extend(array("i", [1]) * count)
        self._kind.extend(array("b", [DELAY]) * count)
        self._amount.frombytes(durations.tobytes())
        self._exit_code.extend(array("i", [0]) * count)
        self._vector.extend(array("q", [self._first_flop + len(self._flops)]) * count)
        self._sent.extend(array("d", [0.0]) * count)
        self._matrix.extend(array("q", [self._first_byte + len(self._bytes)]) * count)
        return number

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The columns by profile and by leaf."""
        return {
            "moldable": np.array(self._moldable, np.int8),
            "leaf_first": np.array(self._leaf_first, np.int64),
            "leaf_count": np.array(self._leaf_count, np.int32),
            "leaf_kind": np.array(self._kind, np.int8),
            "leaf_amount": np.array(self._amount, np.float64),
            "leaf_vector": np.array(self._vector, np.int64),
            "leaf_exit": np.array(self._exit_code, np.int32),
            "leaf_bytes": np.array(self._sent, np.float64),
            "leaf_matrix": np.array(self._matrix, np.int64),
            "vector": np.array(self._flops, np.float64),
            "matrix": np.array(self._bytes, np.float64),
        }
