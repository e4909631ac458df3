"""Simulated time under the reference engine: actors, what they wait for, and the server's mailbox.

This is the part of SimGrid 3.32 (host model L07) on which Batsim 4.2.1 rests, with SimGrid's own order of things,
because that order decides in which order Batsim reports what happens at one instant.

An actor is a generator that yields requests. While actors run, time stands still. It goes in rounds: all actors that
are ready run to their next request, one after the other; then the requests are met in the same order. A `Call` is met
at once and its actor takes part in the next round; the other requests wait for the end of an activity. When no actor
is ready, time goes on to the next end of an activity. All activities that end then wake their actors in the order in
which the activities began.

What is left of an activity is counted down step by step, as SimGrid does, and not kept as the time of its end: which of
two ends are one instant depends on how the rounding errors add up.
"""

import math
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from decision.engine.rules import LAST_INSTANT, TIME_PRECISION, WORK_PRECISION
from decision.model.platform import Route

from .machines import Flow, HostMachine, PlatformLinks

# Actors of the reference engine, what they ask the kernel for, and the activities whose ends they wait for.
#
# An actor is a generator of requests. Some of them begin an activity, which takes time: a sleep, a parallel task, or a
# message on its way. `kernel` runs the first and counts down the second.

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
    """A parallel task. Its executors advance together, so the slowest one sets the pace.

    One that communicates waits for its latency, and then takes its share of machines and links. One that only computes
    has its machines to itself, unless it `shares` them with others, or several of its executors are on one.
    """

    work: list[tuple[HostMachine, float]] = field(default_factory=list)  # flop of each executor, and where it is
    # Bytes from executor to executor, of pairs that have any.
    sent: list[tuple[HostMachine, HostMachine, float]] = field(default_factory=list)
    shares: bool = False
    latency: float = 0.0  # seconds that are left of it
    flow: Flow | None = None  # once it takes its share
    remains: float = 1.0  # share that is left
    rate: float = 0.0  # share per second
    limit: Pause | None = None
    loads: bool = False  # whether its machines are loaded: from the next pass of time on, when SimGrid computes loads

    def __post_init__(self) -> None:
        computes = any(flops > 0 for _, flops in self.work)
        self.shares = bool(self.sent) or (computes and (self.shares or len({m for m, _ in self.work}) < len(self.work)))
        if self.shares:
            return  # the network says
        self.set_rate()
        if not self.rate:
            self.remains = 0.0

    def set_rate(self) -> None:
        self.rate = min((m.speed / flops for m, flops in self.work if flops > 0), default=0.0)

    def rescale(self, now: float) -> None:
        """A machine has changed its speed."""
        for machine, _ in self.work:
            machine.measure(now)
        if self.flow:
            self.flow.network.note_speeds(self)
        elif not self.shares:
            self.set_rate()

    def flops_on(self, machine: HostMachine) -> float:
        """Flop/s of the task on the machine."""
        return sum(self.rate * flops for place, flops in self.work if place is machine) if self.loads else 0.0

    def left(self) -> float:
        if self.latency > 0:
            return self.latency
        if self.shares and not self.rate:
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
        return [machine for machine, _ in self.work]


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


class ActorKernel:
    """Runs actors over simulated time. `now` is in seconds; `home` is the route of the master's messages to itself."""

    def __init__(self, network: PlatformLinks, home: Route = Route()) -> None:  # noqa: B008 - immutable
        self.now = 0.0
        self.network = network
        self._home = home
        self._ready: list[SimActor] = []
        self._running: dict[Activity, None] = {}  # in the order in which they began
        self._brief: dict[Activity, None] = {}  # those of them that may end while no time passes
        self._fresh: list[ParallelTask] = []  # began since time last passed
        self._cancelled: list[SimActor] = []
        self._waiting_puts: deque[tuple[SimActor, Any]] = deque()
        self._reader: SimActor | None = None

    @property
    def mailbox_empty(self) -> bool:
        """Whether nobody waits with an item for the mailbox."""
        return not self._waiting_puts

    def run(self) -> Generator[Any, Any, None]:
        """Run until nothing can happen any more; yields the actors' questions and takes the answers."""
        while self._ready or self._pass_time():
            while self._ready:
                yield from self._round()

    # --- What actors do through a Call --------------------------------------------------------------------

    def start(self, body: Steps[Any], machine: HostMachine | None = None) -> SimActor:
        """Let a new actor take part from the next round on."""
        actor = SimActor(body, machine)
        self._ready.append(actor)
        return actor

    def begin(self, task: ParallelTask) -> None:
        """Let a task begin; SimGrid looks at its machine where it is on one alone, and at others when time passes."""
        if len(task.work) == 1:
            task.work[0][0].look(self.now)
        for machine in dict.fromkeys(task.machines()):
            machine.tasks.append(task)
        self._fresh.append(task)
        # Its bytes flow after the longest latency that any of them meets; SimGrid skips one below its precision.
        if task.shares:
            latency = self.network.latency(task)
            if latency >= TIME_PRECISION:
                task.latency = latency
            else:
                self.network.begin(task)
        self._begin(task)

    def cancel(self, task: ParallelTask) -> None:
        """End a task early; who waits for it goes on, `CANCELLED`, after the requests of this round."""
        self._end(task)
        self._lift_limit(task)
        # Not at once: actors of this round have made their requests already.
        for actor, _ in task.wakes:
            actor.answer = WaitResult.CANCELLED
            self._cancelled.append(actor)

    def kill(self, actor: SimActor) -> None:
        """End an actor, and the sleep that it may be in."""
        if actor.sleep:
            self._end(actor.sleep)
        actor.body.close()

    # --- Rounds -------------------------------------------------------------------------------------------

    def _round(self) -> Generator[Any, Any, None]:
        actors, self._ready = self._ready, []
        requests = []
        # All go on to their next request, one after the other; who asks the decision process goes on at once.
        for actor in actors:
            request = self._step(actor, actor.answer)
            while isinstance(request, Ask):
                request = self._step(actor, (yield request.question))
            requests.append((actor, request))
        # Then the requests are met in the same order.
        for actor, request in requests:
            if request is not None:
                self._meet(actor, request)
        self._ready += self._cancelled
        self._cancelled = []

    def _step(self, actor: SimActor, answer: Any) -> Request | None:
        """Run an actor to its next request; None at its end."""
        actor.answer = actor.sleep = None
        try:
            return actor.body.send(answer)
        except StopIteration:
            if actor.task in self._running:  # it overran its limit; SimGrid lets it compute until its actor ends
                self._end(actor.task)
            return None

    def _meet(self, actor: SimActor, request: Request) -> None:
        match request:
            case Call(act):
                actor.answer = act()
                self._ready.append(actor)
            case Sleep(seconds):
                actor.sleep = Pause([(actor, None)], seconds)
                self._begin(actor.sleep)
            case Wait(task, limit):
                actor.task = task
                task.wakes = [(actor, WaitResult.DONE)]
                if limit is not None:  # begins after its task: at equal times the task is over
                    task.limit = Pause([(actor, WaitResult.LATE)], limit)
                    self._begin(task.limit)
            case Put(item):
                # The message sets off when both are there: who sends it, and the server that wants the next one.
                if self._reader is None:
                    self._waiting_puts.append((actor, item))
                else:
                    self._transfer(actor, [(self._reader, item), (actor, None)])
                    self._reader = None
            case Get() if self._waiting_puts:
                sender, item = self._waiting_puts.popleft()
                self._transfer(sender, [(sender, None), (actor, item)])
            case Get():
                self._reader = actor

    def _transfer(self, sender: SimActor, wakes: list[tuple[SimActor, Any]]) -> None:
        # From the sender's host to the master's; the master's own messages have the loopback of its zone, if there is
        # one.
        route = sender.machine.route if sender.machine else self._home
        self._begin(Transfer(wakes, sender.machine, route.latency, route.byte_rate))

    # --- Time ---------------------------------------------------------------------------------------------

    def _begin(self, activity: Activity) -> None:
        self._running[activity] = None
        if activity.left() < TIME_PRECISION:
            self._brief[activity] = None

    def _pass_time(self) -> bool:
        """Go on to the next end of an activity and wake who waits for it.

        False where there is none, and where it is after `LAST_INSTANT`.
        """
        if not self._running:
            return False
        # SimGrid computes loads and rates now: tasks that began are a load from here on, and communication has shares.
        for task in self._fresh:
            task.loads = True
        self._fresh = []
        self.network.share()
        # Where something takes no time, nothing but the brief activities can be over.
        stays = any(activity.left() == 0 for activity in self._brief)
        seconds = 0.0 if stays else min(activity.left() for activity in self._running)
        self.now += seconds
        if self.now > LAST_INSTANT:
            return False
        # First all that end are over, and then they wake their actors, in the order in which they began.
        over = []
        for activity in self._running if seconds > 0 else self._brief:
            waiting = activity if isinstance(activity, ParallelTask) and activity.latency > 0 else None
            is_over = activity.spend(seconds)
            if waiting is None and is_over:
                over.append(activity)
            elif waiting is not None and waiting.latency == 0:  # its bytes flow from now on
                self.network.begin(waiting)
        for activity in over:
            self._end(activity)
        for activity in over:
            for actor, answer in activity.wakes:
                # A task and its limit end each other: whichever comes first is the answer.
                if answer is WaitResult.DONE and actor.task:
                    self._lift_limit(actor.task)
                if answer is WaitResult.LATE and actor.task:
                    actor.task.wakes = []
                actor.answer = answer
                self._ready.append(actor)
        return True

    def _end(self, activity: Activity) -> None:
        self._remove(activity)
        for machine in activity.machines():
            machine.measure(self.now)
        if isinstance(activity, ParallelTask):
            self.network.end(activity)
            for machine in activity.machines():
                if activity in machine.tasks:
                    machine.tasks.remove(activity)

    def _lift_limit(self, task: ParallelTask) -> None:
        """The time limit of a task no longer matters."""
        if task.limit:
            self._remove(task.limit)
            task.limit.wakes = []

    def _remove(self, activity: Activity) -> None:
        self._running.pop(activity, None)
        self._brief.pop(activity, None)
