"""What a decision process may ask of an engine, read and checked: which each engine carries out in its own way."""

from typing import Generic, TypeVar

import msgspec

from decision.model.record import FinalState
from decision.model.workload import Job

from .profiles import LeafTask

J = TypeVar("J")


class Start(msgspec.Struct, Generic[J], frozen=True):
    """Let a job compute on hosts, ascending."""

    job: J
    hosts: list[int]
    alloc: str  # the hosts as they were given
    places: list[int]  # (n,) for each executor, its host's index in `hosts`; empty for one executor on each host


class Reject(msgspec.Struct, Generic[J], frozen=True):
    """Turn a waiting job away."""

    job: J


class Kill(msgspec.Struct, Generic[J], frozen=True):
    """Kill jobs."""

    jobs: list[J]


class ChangeState(msgspec.Struct, Generic[J], frozen=True):
    """Let a job that runs outside of the simulation start or end."""

    job: J
    wanted: str  # "RUNNING", a FinalState's name, or anything else, which is impossible

    @property
    def final(self) -> FinalState | None:
        """How the job is to end; None where that is not what is wanted."""
        return FinalState.__members__.get(self.wanted)


class CallLater(msgspec.Struct, frozen=True):
    """Ask again at `time`, in seconds."""

    time: float


class SetPstate(msgspec.Struct, frozen=True):
    """Let hosts, ascending, go to a pstate."""

    hosts: list[int]
    pstate: int


class QueryEnergy(msgspec.Struct, frozen=True):
    """Answer how many joules were used so far."""


class SetRegistration(msgspec.Struct, frozen=True):
    """From now on jobs may be registered, or no longer."""

    allowed: bool


class Register(msgspec.Struct, frozen=True):
    """A new job, with what it does."""

    job: Job
    leaves: tuple[LeafTask, ...]
    moldable: bool


class SetMetadata(msgspec.Struct, Generic[J], frozen=True):
    """Text that Batsim writes next to the job's results."""

    job: J
    text: str


class NoEffect(msgspec.Struct, frozen=True):
    """Nothing that a simulation could notice: a profile, which was registered here, or a message to a job."""


Command = (
    Start[J]
    | Reject[J]
    | Kill[J]
    | ChangeState[J]
    | CallLater
    | SetPstate
    | QueryEnergy
    | SetRegistration
    | Register
    | SetMetadata[J]
    | NoEffect
)
