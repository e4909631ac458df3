"""`Truth` from workloads: what jobs really do, as arrays."""

from array import array
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from decision.model.columns import DelayProfiles, JobColumns, columns_of
from decision.model.demand import told
from decision.model.errors import ConfigError, InternalError
from decision.model.workload import POWER_SUPPLY, Job, MachineEvent, Workload

from .constants import DECIMALS
from .kernels.arrays import DELAY, HOSTS_COME_BACK, HOSTS_LEAVE, SUPPLY_CHANGES, Truth
from .names import Names
from .profiles import LeafKind, LeafTask, check_width, is_moldable

_EVENT_KIND = {"machine_unavailable": HOSTS_LEAVE, "machine_available": HOSTS_COME_BACK, POWER_SUPPLY: SUPPLY_CHANGES}


_TIES = 16384  # instants at which several jobs are submitted, sorted at once


def submission_order(jobs: Sequence[Job]) -> Sequence[Job]:
    """The order in which Batsim's submitter sends a workload's jobs: by time, then by id as text."""
    if not isinstance(jobs, JobColumns):
        return sorted(jobs, key=lambda job: (job.submit_time, job.id))
    order = np.argsort(jobs.submit_time, kind="stable").astype(np.int32)
    times = jobs.submit_time[order]
    same = times[1:] == times[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    begins = np.flatnonzero(np.diff(times[tied], prepend=np.nan))
    for some in np.split(tied, begins[_TIES::_TIES]):
        keys = list(zip(times[some].tolist(), jobs.id.take(order[some]).made(), strict=True))
        order[some] = order[some][sorted(range(len(some)), key=keys.__getitem__)]
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
    columns = {name: _joined([part[name] for part in parts], dtype) for name, dtype in _BY_JOB.items()}
    columns["worth"] = _worths(parts)
    ends = np.cumsum([len(part["size"]) for part in parts], dtype=np.int64)
    return Truth(**columns, **profiles.arrays(), workload_end=ends, **_event_arrays(events)), names


def _worths(parts: Sequence[Mapping[str, np.ndarray]]) -> np.ndarray:
    """What all jobs are worth, as `Truth` has it."""
    if not any(part["worth"].size for part in parts):
        return np.zeros((0, 4))
    rows = [part["worth"] if part["worth"].size else np.zeros((len(part["size"]), 4)) for part in parts]
    return np.round(np.nan_to_num(np.concatenate(rows)), DECIMALS)


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
    said = {"submit_time": job.submit_time, "size": job.size, "walltime": job.walltime, "user": names.user(job.user)}
    said |= {"told": round(float(told(job.estimate)), DECIMALS), "profile": names.profiles[key]}
    for name, value in said.items():
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
    "told": np.float64,
    "profile": np.int32,
}


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    """One array of all; of a single part the same array."""
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts]), dtype)


def _static_jobs(names: Names, profiles: "_Profiles", workload: Workload) -> Mapping[str, np.ndarray]:
    """A workload's part of the columns `_BY_JOB`; its jobs are added to `names`."""
    jobs = submission_order(workload.jobs)
    columns = columns_of(jobs)
    try:
        profile = profiles.of_jobs(columns, workload, names)
        fine = bool((columns.size > 0).all()) and not _repeated(names, jobs)
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
        "told": np.zeros(len(columns)) if columns.estimate is None else np.round(told(columns.estimate), DECIMALS),
        "worth": np.zeros((0, 4)) if columns.worth is None else columns.worth,
        "profile": profile,
    }


def _repeated(names: Names, jobs: Sequence[Job]) -> bool:
    """Whether two jobs share an id, or one has that of an earlier workload; those of columns are of their own."""
    if isinstance(jobs, JobColumns):
        return False
    ids = {job.id for job in jobs}
    return len(ids) < len(jobs) or any(job_id in names for job_id in ids)


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
            number[code], width[code] = self.add(leaves, is_moldable(name, workload)), _width(leaves)
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
            self._sent.append(leaf.sent)
            self._matrix.append(self._first_byte + len(self._bytes))
            self._bytes.extend(leaf.matrix)
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


def _width(leaves: tuple[LeafTask, ...]) -> int:
    """Hosts that the leaves are for: 0 for any number, -1 where no number fits all."""
    widths = {len(leaf.flops) for leaf in leaves if leaf.kind is LeafKind.FLOPS_VECTOR}
    return -1 if len(widths) > 1 else sum(widths)


def _event_arrays(lists: Sequence[Sequence[MachineEvent]]) -> Mapping[str, np.ndarray]:
    events = [event for one in lists for event in one]
    numbers = [e.hosts if e.type == POWER_SUPPLY else tuple(sorted(set(e.hosts))) for e in events]
    return {
        "event_time": np.array([e.timestamp for e in events], np.float64),
        "event_kind": np.array([_EVENT_KIND.get(e.type, 0) for e in events], np.int8),
        "event_host_end": np.cumsum([len(some) for some in numbers], dtype=np.int64),
        "event_host": np.array([number for some in numbers for number in some], np.int32),
        "list_end": np.cumsum([len(one) for one in lists], dtype=np.int64),
    }
