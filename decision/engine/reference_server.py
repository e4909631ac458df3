"""Batsim's server: it takes messages one at a time, keeps count, and asks the decision process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from decision.model.errors import ConfigError
from decision.model.hosts import format_hosts
from decision.model.record import FinalState, HostState
from decision.model.workload import MachineEvent
from decision.protocol import (
    DecisionEvent,
    Event,
    JobCompleted,
    JobCompletedData,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    Message,
    Notify,
    NotifyData,
    RequestedCall,
    SimulationEnds,
    TaskProgress,
)
from decision.protocol.messages import FinalStateName

from .reference_actors import converse
from .reference_commands import Commands
from .reference_jobs import Entry
from .reference_kernel import STEP, Call, Get, Steps
from .reference_machines import Machine
from .reference_messages import profile_object
from .reference_switches import Switches
from .reference_world import World

Handler = Callable[[], Steps[None] | None]  # what a message makes the server do


class Server:
    """Batsim's server process. The `on_` methods are its reactions to messages."""

    def __init__(self, world: World, nb_workloads: int, nb_event_lists: int) -> None:
        world.server = self
        self.world = world
        self.switches = Switches(world)
        self.commands = Commands(world)
        self.outbox: list[Event] = []
        self.decision_waits = False  # whether the decision process has replied to the last question
        self.ends_sent = False
        self.over = False
        self.nb_workloads = nb_workloads  # that still submit
        self.nb_event_lists = nb_event_lists  # that still come
        self.registration_open = world.options.dynamic_jobs
        self.nb_ended = 0
        self.nb_running = 0
        self.nb_calls = 0
        self.nb_killers = 0
        self.untold: list[Entry] = []  # ended jobs that the next question tells of

    def serve(self, begins: Event) -> Steps[None]:
        """Ask whether to begin, then handle messages until the decision process has heard of the end."""
        self.outbox.append(begins)
        yield from self._ask()
        while not self.over:
            yield STEP
            handle: Handler = yield Get()
            yield from handle() or ()
            if self.decision_waits and not self.over:
                yield STEP
                if self.world.kernel.mailbox_empty:
                    yield from self._speak()
        self._check_nothing_left()

    def _speak(self) -> Steps[None]:
        """Tell what has happened; where nothing has and nothing will, tell that the simulation ends."""
        if self.outbox:
            yield from self._ask()
            for entry in self.untold:
                self.world.forget(entry)
            self.untold = []
        elif self.is_finished() and not self.ends_sent:
            self.outbox.append(SimulationEnds(self.world.told_now))
            yield from self._ask()
            self.ends_sent = True

    def _ask(self) -> Steps[None]:
        question: Message = Message(self.world.told_now, tuple(self.outbox))
        self.outbox = []
        yield Call(partial(self.world.kernel.start, converse(self.world, question)))
        self.decision_waits = False

    def is_finished(self) -> bool:
        """Whether nothing is left that could matter."""
        return (
            self.nb_workloads == self.nb_event_lists == 0
            and not self.registration_open
            and self.nb_ended == len(self.world.submitted)
            and self.nb_running == self.switches.nb_switching == self.nb_calls == self.nb_killers == 0
        )

    def _check_nothing_left(self) -> None:
        if not self.is_finished():
            raise self.world.refuse("the reply to SIMULATION_ENDS has commands; it must have none")

    # --- Submitters ---------------------------------------------------------------------------------------

    def on_hello(self) -> None:
        """A submitter is there."""

    def on_submitted(self, entries: Iterable[Entry]) -> None:
        """Jobs arrive."""
        for entry in entries:
            self.world.submit(entry)
            self.tell_submitted(entry)

    def tell_submitted(self, entry: Entry) -> None:
        """Let the next question tell of this job."""
        profile: dict[str, object] | msgspec.UnsetType = msgspec.UNSET
        if self.world.options.forward_profiles:
            profile = profile_object(entry.job.profile, self.world.workloads[entry.job.workload])
        self.outbox.append(JobSubmitted(self.world.told_now, JobSubmittedData(entry.id, entry.description, profile)))

    def on_jobs_bye(self) -> None:
        """A workload has no more jobs."""
        self.nb_workloads -= 1
        if self.nb_workloads == 0:
            self._notify(type="no_more_static_job_to_submit")

    def on_events_bye(self) -> None:
        """A list of external events is at its end."""
        self.nb_event_lists -= 1
        if self.nb_event_lists == 0:
            self._notify(type="no_more_external_event_to_occur")

    def on_external(self, events: Iterable[MachineEvent]) -> None:
        """External events happen."""
        for event in events:
            if event.type == "machine_unavailable":
                self._leave(event)
            elif event.type == "machine_available":
                self._return(event)
            else:
                self._notify(**msgspec.json.decode(event.source))

    def _leave(self, event: MachineEvent) -> None:
        for machine in self._machines(event):
            if machine.state is HostState.UNAVAILABLE:
                raise self._misplaced(event, f"host {machine.id} is unavailable already")
            self.world.enter(machine, HostState.UNAVAILABLE)
        self._notify(type="event_machine_unavailable", resources=format_hosts(event.hosts))

    def _return(self, event: MachineEvent) -> None:
        for machine in self._machines(event):
            if machine.state is not HostState.UNAVAILABLE:
                raise self._misplaced(event, f"host {machine.id} is not unavailable but {machine.state.name.lower()}")
            self.world.enter(machine, HostState.COMPUTING if machine.job else HostState.IDLE)
        self._notify(type="event_machine_available", resources=format_hosts(event.hosts))

    def _machines(self, event: MachineEvent) -> list[Machine]:
        for host in event.hosts:
            if host >= len(self.world.machines):
                raise self._misplaced(event, f"there is no host {host}")
        return [self.world.machines[host] for host in sorted(set(event.hosts))]

    def _misplaced(self, event: MachineEvent, reason: str) -> ConfigError:
        return ConfigError(f"external event {event.type} at t={event.timestamp:.12g} s: {reason}; correct the events")

    def _notify(self, **fields: object) -> None:
        self.outbox.append(Notify(self.world.told_now, NotifyData(**fields)))

    # --- Jobs ---------------------------------------------------------------------------------------------

    def on_completed(self, entry: Entry) -> None:
        """A job has ended by itself or at its walltime."""
        self.nb_running -= 1
        self.note_end(entry)
        self._tell_completed(entry)

    def on_killed(self, entries: Sequence[Entry], progress: Mapping[str, TaskProgress]) -> None:
        """A kill is over; jobs that had ended by themselves before are named, but were not killed."""
        for entry in entries:
            if entry.final is FinalState.COMPLETED_KILLED:
                self.nb_running -= 1
                self.note_end(entry)
                self._tell_completed(entry)
        data = JobKilledData(tuple(entry.id for entry in entries), dict(progress))
        self.outbox.append(JobKilled(self.world.told_now, data))
        self.nb_killers -= 1

    def note_end(self, entry: Entry) -> None:
        """Write an ended or rejected job down."""
        self.nb_ended += 1
        self.untold.append(entry)
        self.world.rows.jobs.append(entry)

    def _tell_completed(self, entry: Entry) -> None:
        assert entry.final is not None
        state: FinalStateName = entry.final.name  # type: ignore[assignment]
        data = JobCompletedData(entry.id, state, entry.return_code, entry.allocation)
        self.outbox.append(JobCompleted(self.world.told_now, data))

    # --- The decision process -----------------------------------------------------------------------------

    def on_call(self) -> None:
        """A call is due that the decision process asked for."""
        self.outbox.append(RequestedCall(self.world.told_now))
        self.nb_calls -= 1

    def on_command(self, command: DecisionEvent) -> Steps[None] | None:
        """The decision process wants something."""
        return self.commands.handle(command)

    def on_ready(self) -> None:
        """The decision process has said all, and waits for the next question."""
        self.decision_waits = True
        self.over = self.ends_sent

    def on_switched(self, machine: Machine, pstate: int) -> Steps[None]:
        """A host has fallen asleep or woken up."""
        return self.switches.on_switched(machine, pstate)
