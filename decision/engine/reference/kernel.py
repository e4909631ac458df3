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

from collections import deque
from collections.abc import Generator
from typing import Any

from decision.engine.refusals import LAST_INSTANT, TIME_PRECISION
from decision.model.platform import Route

from .activities import (
    Activity,
    Ask,
    Call,
    Get,
    ParallelTask,
    Pause,
    Put,
    Request,
    SimActor,
    Sleep,
    Steps,
    Transfer,
    Wait,
    WaitResult,
)
from .machines import HostMachine
from .network import PlatformLinks


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
        for machine in task.work:
            if len(task.work) == 1:
                machine.look(self.now)
            machine.task = task
        self._fresh.append(task)
        # Its bytes flow after the longest latency that any of them meets; SimGrid skips one below its precision.
        if task.sent:
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
                self._put(actor, item)
            case Get():
                self._get(actor)

    def _put(self, actor: SimActor, item: Any) -> None:
        # The message sets off when both are there: who sends it, and the server that wants the next one.
        if self._reader is None:
            self._waiting_puts.append((actor, item))
            return
        self._transfer(actor, [(self._reader, item), (actor, None)])
        self._reader = None

    def _get(self, actor: SimActor) -> None:
        if not self._waiting_puts:
            self._reader = actor
            return
        sender, item = self._waiting_puts.popleft()
        self._transfer(sender, [(sender, None), (actor, item)])

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
        over = [
            activity for activity in (self._running if seconds > 0 else self._brief) if self._spend(activity, seconds)
        ]
        for activity in over:
            self._end(activity)
        for activity in over:
            self._wake(activity)
        return True

    def _spend(self, activity: Activity, seconds: float) -> bool:
        """Let time pass for an activity; whether it is over then."""
        if not isinstance(activity, ParallelTask) or activity.latency == 0:
            return activity.spend(seconds)
        activity.spend(seconds)
        if activity.latency == 0:
            self.network.begin(activity)
        return False

    def _end(self, activity: Activity) -> None:
        self._remove(activity)
        for machine in activity.machines():
            machine.measure(self.now)
        if isinstance(activity, ParallelTask):
            self.network.end(activity)
            for machine in activity.work:
                if machine.task is activity:
                    machine.task = None

    def _wake(self, activity: Activity) -> None:
        for actor, answer in activity.wakes:
            # A task and its limit end each other: whichever comes first is the answer.
            if answer is WaitResult.DONE and actor.task:
                self._lift_limit(actor.task)
            if answer is WaitResult.LATE and actor.task:
                actor.task.wakes = []
            actor.answer = answer
            self._ready.append(actor)

    def _lift_limit(self, task: ParallelTask) -> None:
        """The time limit of a task no longer matters."""
        if task.limit:
            self._remove(task.limit)
            task.limit.wakes = []

    def _remove(self, activity: Activity) -> None:
        self._running.pop(activity, None)
        self._brief.pop(activity, None)
