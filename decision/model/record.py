"""The tables of a finished run: the columns of Batsim's output files, before anything is written."""

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from .columns import Column, JobColumns
from .workload import Delay, Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NULL_RUNTIME = 1e-5  # seconds: what Batsim writes for a job that took no time
SHORTEST_RUNTIME = 10.0  # seconds: shorter jobs count as this long in the bounded slowdown


class FinalState(IntEnum):
    """How a job ended; the names are Batsim's."""

    COMPLETED_SUCCESSFULLY = 0
    COMPLETED_FAILED = 1
    COMPLETED_WALLTIME_REACHED = 2
    COMPLETED_KILLED = 3
    REJECTED = 4


class HostState(IntEnum):
    """What a host is doing; Batsim's six machine states."""

    SLEEPING = 0
    SWITCHING_ON = 1
    SWITCHING_OFF = 2
    IDLE = 3
    COMPUTING = 4
    UNAVAILABLE = 5


class JobTable(msgspec.Struct, kw_only=True):
    """Finished and rejected jobs, in the order in which they ended. All columns have length n."""

    id: Sequence[str]  # "w0!12"
    profile: Sequence[str]
    submit_time: Floats  # seconds
    size: NDArray[np.integer]  # requested hosts
    walltime: Floats  # seconds, inf where the job has none
    final_state: NDArray[np.integer]  # FinalState
    start_time: Floats  # seconds, nan where rejected
    runtime: Floats  # seconds, nan where rejected
    allocation: Sequence[str]  # "0-3 7"
    energy: Floats  # joules on the job's hosts while it ran, -1 where energy was not simulated
    metadata: Sequence[str]

    def take(self, rows: Ints) -> "JobTable":
        """The jobs of these rows, in this order."""
        return JobTable(**{name: _rows(getattr(self, name), rows) for name in self.__struct_fields__})


def _rows(column: Any, rows: Ints) -> Any:
    if isinstance(column, np.ndarray):
        return column[rows]
    return column.take(rows) if isinstance(column, Column) else [column[row] for row in rows]


class PredictionTable(msgspec.Struct, kw_only=True):
    """What a policy with predicted run times expected of the jobs of a `JobTable`. Columns of length n."""

    predicted: Floats  # seconds: the run time that was expected when the job was submitted
    corrections: NDArray[np.integer]  # how often that was corrected while the job ran
    promised: Floats  # seconds: when the job was first to start at the latest, as head of an EASY queue; nan for others

    def take(self, rows: Ints) -> "PredictionTable":
        """Those of these rows, in this order."""
        return PredictionTable(**{name: getattr(self, name)[rows] for name in self.__struct_fields__})


class WorthTable(msgspec.Struct, kw_only=True):
    """What the jobs that were submitted are worth. Columns of length n."""

    id: Sequence[str]  # "w0!12"
    value: Floats  # nan where the job has none
    deadline: Floats  # seconds, nan where the job has none


class SupplyTable(msgspec.Struct, kw_only=True):
    """How many hosts have power from each time on. Columns of length n."""

    time: Floats  # seconds, ascending
    hosts: NDArray[np.floating]


class BatteryTable(msgspec.Struct, kw_only=True):
    """What batteries can do that powered jobs beyond the supply. Columns of length n."""

    capacity: Floats  # host-seconds
    charge: Floats  # hosts, at most
    discharge: Floats  # hosts, at most
    efficiency: Floats  # share of what it takes that it gives back


class RateTable(msgspec.Struct, kw_only=True):
    """What a kWh of energy emits or costs from each time on. Columns of length n."""

    time: Floats  # seconds, ascending
    rate: Floats  # g or money per kWh


class HostTable(msgspec.Struct, kw_only=True):
    """How many hosts are in each state after each change. Columns of length n."""

    time: Floats  # seconds
    counts: NDArray[np.integer]  # (n, 6) hosts in each HostState
    in_file: bool = False  # the columns are those of a file, of which what was read need not stay in memory


class EnergyTable(msgspec.Struct, kw_only=True):
    """Energy of all hosts so far, at each start ("s") and end ("e") of a job and each pstate change ("p")."""

    time: Floats  # seconds
    energy: NDArray[np.floating]  # joules since the beginning; rows can be nanoseconds apart, so long double is welcome
    event: list[str]
    wattmin: Floats  # watts that all hosts draw at least in their present pstates


class PstateTable(msgspec.Struct, kw_only=True):
    """Changes of pstate. `pstate` is -1 while hosts switch to a computing pstate, -2 to a sleep pstate."""

    time: Floats  # seconds
    hosts: list[str]  # "0-3 7"
    pstate: Ints


class Context(msgspec.Struct, kw_only=True):
    """What a run is measured by that Batsim's files do not say."""

    worth: WorthTable | None = None  # None where no job has a value or a deadline
    supply: SupplyTable | None = None  # None where power was no limit
    battery: BatteryTable | None = None  # None where none powered jobs beyond it
    carbon: RateTable | None = None  # g per kWh; None where nothing says what energy emits
    price: RateTable | None = None  # per kWh; None where nothing says what energy costs


class RunRecord(Context, kw_only=True):
    """Everything that Batsim 4 writes about a run, and what that is measured by."""

    nb_hosts: int  # compute and storage hosts
    jobs: JobTable
    predictions: PredictionTable | None = None  # None where the policy expects walltimes
    host_states: HostTable
    energy: EnergyTable | None = None  # None where energy was not simulated
    pstates: PstateTable | None = None
    time_in_state: Floats  # (6,) host-seconds in each HostState, up to each host's last change of state
    joules: float = 0.0  # from the first submission to the last end of a job
    nb_switches: int = 0  # hosts asked to change pstate
    nb_grouped_switches: int = 0  # requests to change pstate
    window_gap: float = math.nan  # of a policy that places windows and knows a bound: hops above it, as a share
    lost_work: float = math.nan  # host-seconds that were done in vain (`decision.model.record`); nan: not known
    scheduling_time: float = math.nan  # wall-clock seconds in the policy
    simulation_time: float = math.nan  # wall-clock seconds in all

    def know(self, context: Context) -> None:
        """Be measured by all that a context has."""
        for name in context.__struct_fields__:
            setattr(self, name, getattr(context, name))


# Work that was done in vain: by jobs that were cut, killed or begun again.

_OVER = (FinalState.COMPLETED_SUCCESSFULLY, FinalState.COMPLETED_FAILED, FinalState.COMPLETED_WALLTIME_REACHED)


def lost_work(jobs: JobTable, workloads: Sequence[Workload]) -> float:
    """``sum over jobs of q * (sum of the run times of all parts - min(own run time, walltime))``, in host-seconds.

    Of jobs that were killed, or suspended and submitted again, or whose hosts failed. What ended in the end was worth
    the time that it takes without all this; what never ended was worth nothing.

    Args:
        jobs: of a run, all parts of each.
        workloads: that were submitted.
    """
    killed = np.flatnonzero(np.asarray(jobs.final_state) == FinalState.COMPLETED_KILLED)
    cut = {_origin(jobs.id[row]) for row in killed.tolist()}
    if not cut:
        return 0.0
    total = useful = 0.0
    for row, job_id in enumerate(jobs.id):
        origin = _origin(job_id)
        if origin in cut and jobs.final_state[row] != FinalState.REJECTED:
            total += float(jobs.size[row] * jobs.runtime[row])
    over = {_origin(jobs.id[row]) for row in np.flatnonzero(np.isin(jobs.final_state, _OVER)).tolist()}
    for workload in workloads:
        ids = workload.jobs.id if isinstance(workload.jobs, JobColumns) else [job.id for job in workload.jobs]
        for row in (row for row, job_id in enumerate(ids) if job_id in cut and job_id in over):
            job = workload.jobs[row]
            profile = workload.profiles[job.profile]
            if isinstance(profile, Delay):  # only these are cut and go on
                useful += job.size * min(profile.duration, job.walltime)
    return total - useful


def _origin(job_id: str) -> str:
    """The id of the job that was submitted, of which this is what was left."""
    origin, mark, part = job_id.rpartition("#")
    return origin if mark and part.isdigit() else job_id
