"""Actors of the reference engine, what they ask the kernel for, and the activities whose ends they wait for.

An actor is a generator of requests. Some of them begin an activity, which takes time: a sleep, a parallel task, or a
message on its way. `kernel` runs the first and counts down the second.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from decision.engine.refusals import TIME_PRECISION, WORK_PRECISION

from .machines import HostMachine
from .network import Flow

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
    """Wait for the end of a running task, at most `limit` seconds; the answer is a `WaitResult`."""

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
        """Seconds to its end, at its present rate."""
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
    loads: bool = False  # whether its machines are loaded: from the next pass of time on, when SimGrid computes loads

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
            return False  # its bytes flow from now on
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
