"""Actors of the reference engine, what they ask the kernel for, and the activities whose ends they wait for."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from decision.engine.refusals import TIME_PRECISION, WORK_PRECISION, JobPhase
from decision.engine.truth import LeafKind, LeafTask, amounts, sendings
from decision.model.hosts import format_hosts
from decision.model.record import NULL_RUNTIME, FinalState
from decision.model.workload import Job

from .machines import Flow, HostMachine

_T = TypeVar("_T")


class WaitResult(Enum):
    """How waiting for a task ended."""

    DONE = "done"
    LATE = "late"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Call:
    """Let the kernel call `act`, and go on in the next round with what it returns."""

    act: Callable[[], Any] = lambda: None


@dataclass(slots=True)
class Sleep:
    """Wait for `seconds`, > 0."""

    seconds: float


@dataclass(slots=True)
class Wait:
    """Wait for the end of a running task, at most `limit` seconds; the answer is an `WaitResult`."""

    task: "ParallelTask"
    limit: float | None


@dataclass(slots=True)
class Put:
    """Give `item` to the mailbox's reader and wait until it is taken."""

    item: Any


@dataclass(slots=True)
class Get:
    """Wait for the next item of the mailbox."""


@dataclass(slots=True)
class Ask:
    """Ask who runs the kernel; the actor goes on with the answer at once."""

    question: Any


Request = Call | Sleep | Wait | Put | Get | Ask
Steps = Generator[Request, Any, _T]

STEP = Call()


@dataclass(slots=True, eq=False)
class SimActor:
    """A running generator, and the machine that it runs on (none: the master host)."""

    body: Steps[Any]
    machine: HostMachine | None
    answer: Any = None
    sleep: "Pause | None" = None
    task: "ParallelTask | None" = None  # the last one that it waited for


@dataclass(slots=True, eq=False)
class Activity:
    """Something that takes time. `wakes` are the actors that its end wakes, each with its answer."""

    wakes: list[tuple[SimActor, Any]] = field(default_factory=list)

    def left(self) -> float:
        """Seconds to its end."""
        return 0.0

    def spend(self, seconds: float) -> bool:
        """Let time pass; whether it is over then."""
        return True

    def machines(self) -> list[HostMachine]:
        """Machines whose energy SimGrid brings up to date at its end."""
        return []


@dataclass(slots=True, eq=False)
class Pause(Activity):
    """A sleep, or the time limit of a task."""

    seconds: float = 0.0

    def left(self) -> float:
        return self.seconds

    def spend(self, seconds: float) -> bool:
        self.seconds -= seconds
        return self.seconds < TIME_PRECISION

    def machines(self) -> list[HostMachine]:
        return [actor.machine for actor, _ in self.wakes if actor.machine]


@dataclass(slots=True, eq=False)
class ParallelTask(Activity):
    """A parallel task. Its machines advance together, so the slowest one sets the pace.

    One that communicates waits for its latency, and then takes its share of machines and links.
    """

    work: dict[HostMachine, float] = field(default_factory=dict)  # flop on each machine
    sent: dict[tuple[HostMachine, HostMachine], float] = field(default_factory=dict)  # bytes, of pairs that have any
    latency: float = 0.0  # seconds that are left of it
    flow: Flow | None = None  # once it communicates
    remains: float = 1.0  # share that is left
    rate: float = 0.0  # share per second
    limit: Pause | None = None
    loads: bool = False  # whether its machines are loaded: from the next pass of time on

    def __post_init__(self) -> None:
        if self.sent:
            return  # the network says
        self.set_rate()
        if not self.rate:
            self.remains = 0.0

    def set_rate(self) -> None:
        self.rate = min((m.speed / flops for m, flops in self.work.items() if flops > 0), default=0.0)

    def rescale(self, now: float) -> None:
        """A machine has changed its speed."""
        for machine in self.work:
            machine.measure(now)
        if self.flow:
            self.flow.network.note_speeds(self)
        elif not self.sent:
            self.set_rate()

    def flops_on(self, machine: HostMachine) -> float:
        """Flop/s of the task on the machine."""
        return self.rate * self.work[machine] if self.loads else 0.0

    def left(self) -> float:
        if self.latency > 0:
            return self.latency
        if self.sent and not self.rate:
            return math.inf  # until rates are set
        return self.remains / self.rate if self.rate else 0.0

    def spend(self, seconds: float) -> bool:
        if self.latency > 0:
            self.latency -= seconds
            if self.latency < TIME_PRECISION:
                self.latency = 0.0
            return False
        self.remains -= self.rate * seconds
        if self.remains < WORK_PRECISION:
            self.remains = 0.0
        return self.remains == 0.0

    def machines(self) -> list[HostMachine]:
        return list(self.work)


@dataclass(slots=True, eq=False)
class Transfer(Activity):
    """A message of one byte on its way to the mailbox's reader: first the route's latency passes, then the byte."""

    sender: HostMachine | None = None
    latency: float = 0.0  # seconds that are left
    rate: float = math.inf  # share of the byte per second after it
    remains: float = 1.0  # share of the byte that is left

    def left(self) -> float:
        return self.latency or self.remains / self.rate

    def spend(self, seconds: float) -> bool:
        if self.latency > 0:
            self.latency -= seconds
            if self.latency < TIME_PRECISION:
                self.latency = 0.0
        elif self.rate < math.inf:
            self.remains -= self.rate * seconds
        return self.latency == 0 and (self.remains < WORK_PRECISION or self.rate == math.inf)

    def machines(self) -> list[HostMachine]:
        return [self.sender] if self.sender else []


# A job of the reference engine: what it is, what it does, and how far it is.


@dataclass(slots=True, eq=False)
class SimJob:
    """A job, and all that Batsim remembers of it."""

    facts: Job
    leaves: tuple[LeafTask, ...]
    moldable: bool  # whether it may get another number of hosts than it requests
    phase: JobPhase = JobPhase.UNKNOWN
    final: FinalState | None = None
    machines: list[HostMachine] = field(default_factory=list)  # its allocation, ascending
    executors: list[HostMachine] = field(
        default_factory=list
    )  # one machine per executor; without a mapping, `machines`
    actor: SimActor | None = None
    leaf: LeafTask | None = None  # the present one
    leaf_begin: float = 0.0  # seconds
    task: ParallelTask | None = None  # of the present leaf, where it computes
    start: float = 0.0  # seconds
    runtime: float = 0.0  # seconds
    joules: float | np.longdouble = -1.0  # on its hosts while it ran, where energy is simulated
    return_code: int = -1
    kill_asked: bool = False
    metadata: str = ""

    @property
    def id(self) -> str:
        """The full id."""
        return self.facts.id

    @property
    def allocation(self) -> str:
        """Its hosts as Batsim writes them."""
        return format_hosts(machine.id for machine in self.machines)

    def end(self, state: FinalState, now: float) -> None:
        """Note that the job ends now. Batsim writes no runtime of 0."""
        self.phase, self.final = JobPhase.ENDED, state
        self.runtime = (now - self.start) or NULL_RUNTIME

    def work(self, leaf: LeafTask) -> dict[HostMachine, float]:
        """Flop of the leaf on each machine; executors on one machine add up."""
        work = dict.fromkeys(self.executors, 0.0)
        for machine, flops in zip(self.executors, amounts(leaf, len(self.executors)), strict=True):
            work[machine] += flops
        return work

    def sent(self, leaf: LeafTask) -> dict[tuple[HostMachine, HostMachine], float]:
        """Bytes of the leaf from machine to machine; those of executors on the same machines add up."""
        sent: dict[tuple[HostMachine, HostMachine], float] = {}
        if leaf.sent > 0:
            for i, j, amount in sendings(leaf, len(self.executors)):
                pair = self.executors[i], self.executors[j]
                sent[pair] = sent.get(pair, 0.0) + amount
        return sent

    def progress(self, now: float) -> float:
        """Share of the present leaf that is done."""
        assert self.leaf is not None
        if self.leaf.kind is LeafKind.DELAY:
            return (now - self.leaf_begin) / self.leaf.amount
        return 1.0 - self.task.remains if self.task else 0.0
