"""Batsim's server: it takes messages one at a time, keeps count, and asks the decision process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from decision.engine import batsim_words as words
from decision.engine.refusals import COMMANDS_AFTER_END, warn_of_change_away
from decision.model.record import FinalState, HostState
from decision.model.workload import MachineEvent
from decision.protocol import Message
from decision.protocol.messages import DecisionEvent, Event, RequestedCall, SimulationEnds, TaskProgress

from .activities import STEP, Call, Get, Steps
from .actors import ask_decision
from .commands import CommandHandler
from .machines import HostMachine
from .sim_job import SimJob
from .simulation import Simulation

Handler = Callable[[], Steps[None] | None]  # what a message makes the server do


class Server:
    """Batsim's server process. The `on_` methods are its reactions to messages."""

    def __init__(self, sim: Simulation, nb_workloads: int, nb_event_lists: int) -> None:
        sim.server = self
        self.sim = sim
        self.commands = CommandHandler(sim)
        self.outbox: list[Event] = []
        self.decision_waits = False  # whether the decision process has replied to the last question
        self.ends_sent = False
        self.over = False
        self.nb_workloads = nb_workloads  # that still submit
        self.nb_event_lists = nb_event_lists  # that still come
        self.registration_open = sim.options.dynamic_jobs
        self.nb_ended = 0
        self.nb_running = 0
        self.nb_calls = 0
        self.nb_killers = 0
        self.unreported: list[SimJob] = []  # ended jobs that the next question reports

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
                if self.sim.kernel.mailbox_empty:
                    yield from self._speak()
        self._check_nothing_left()

    def _speak(self) -> Steps[None]:
        """Ask with what has happened; where nothing has and nothing will, say that the simulation ends."""
        if self.outbox:
            yield from self._ask()
            for job in self.unreported:
                self.sim.reader.forget(job.facts)
            self.unreported = []
        elif self.is_finished() and not self.ends_sent:
            self.outbox.append(SimulationEnds(self.sim.message_time))
            yield from self._ask()
            self.ends_sent = True

    def _ask(self) -> Steps[None]:
        question: Message = Message(self.sim.message_time, tuple(self.outbox))
        self.outbox = []
        yield Call(partial(self.sim.kernel.start, ask_decision(self.sim, question)))
        self.decision_waits = False

    def is_finished(self) -> bool:
        """Whether nothing is left that could matter."""
        return (
            self.nb_workloads == self.nb_event_lists == 0
            and not self.registration_open
            and self.nb_ended == len(self.sim.submitted)
            and self.nb_running == self.commands.switches.nb_switching == self.nb_calls == self.nb_killers == 0
        )

    def _check_nothing_left(self) -> None:
        if not self.is_finished():
            raise self.sim.refuse(COMMANDS_AFTER_END)

    # --- Submitters ---------------------------------------------------------------------------------------

    def on_hello(self) -> None:
        """A submitter is there."""

    def on_submitted(self, jobs: Iterable[SimJob]) -> None:
        """Jobs arrive."""
        for job in jobs:
            self.sim.submit(job)
            self.report_submitted(job)

    def report_submitted(self, job: SimJob) -> None:
        """Let the next question report this job."""
        workload = self.sim.reader.workloads[job.facts.workload]
        self.outbox.append(words.job_submitted(self.sim.message_time, job.facts, workload, self.sim.options))

    def on_jobs_bye(self) -> None:
        """A workload has no more jobs."""
        self.nb_workloads -= 1
        if self.nb_workloads == 0:
            self._notify(words.NO_MORE_JOBS)

    def on_events_bye(self) -> None:
        """A list of external events is at its end."""
        self.nb_event_lists -= 1
        if self.nb_event_lists == 0:
            self._notify(words.NO_MORE_EVENTS)

    def on_external(self, events: Iterable[MachineEvent]) -> None:
        """External events happen."""
        for event in events:
            if event.type == "machine_unavailable":
                self._leave(event)
            elif event.type == "machine_available":
                self._return(event)
            self.outbox.append(words.external_event(self.sim.message_time, event))

    def _leave(self, event: MachineEvent) -> None:
        for machine in self._machines(event):
            machine.away = True
            self.sim.trace(machine, HostState.UNAVAILABLE)

    def _return(self, event: MachineEvent) -> None:
        for machine in self._machines(event):
            if machine.traced is not HostState.UNAVAILABLE:
                warn_of_change_away(machine.id, self.sim.now)
            machine.away = False
            self.sim.trace(machine, HostState.COMPUTING if machine.job else HostState.IDLE)

    def _machines(self, event: MachineEvent) -> list[HostMachine]:
        return [self.sim.machines[host] for host in sorted(set(event.hosts))]

    def _notify(self, kind: str) -> None:
        self.outbox.append(words.notification(self.sim.message_time, kind))

    # --- Jobs ---------------------------------------------------------------------------------------------

    def on_completed(self, job: SimJob) -> None:
        """A job has ended by itself or at its walltime."""
        self.nb_running -= 1
        self.note_end(job)
        self._report_completed(job)

    def on_killed(self, jobs: Sequence[SimJob], progress: Mapping[str, TaskProgress]) -> None:
        """A kill is over; jobs that had ended by themselves before are named, but were not killed."""
        for job in jobs:
            if job.final is FinalState.COMPLETED_KILLED:
                self.nb_running -= 1
                self.note_end(job)
                self._report_completed(job)
        self.outbox.append(words.job_killed(self.sim.message_time, [job.id for job in jobs], progress))
        self.nb_killers -= 1

    def note_end(self, job: SimJob) -> None:
        """Write an ended or rejected job down."""
        self.nb_ended += 1
        self.unreported.append(job)
        self.sim.tables.jobs.append(job)

    def _report_completed(self, job: SimJob) -> None:
        assert job.final is not None
        now, allocation = self.sim.message_time, job.allocation
        self.outbox.append(words.job_completed(now, job.id, job.final, job.return_code, allocation))

    # --- The decision process -----------------------------------------------------------------------------

    def on_call(self) -> None:
        """A call is due that the decision process asked for."""
        self.outbox.append(RequestedCall(self.sim.message_time))
        self.nb_calls -= 1

    def on_command(self, command: DecisionEvent) -> Steps[None] | None:
        """The decision process wants something."""
        return self.commands.handle(command)

    def on_ready(self) -> None:
        """The decision process has said all, and waits for the next question."""
        self.decision_waits = True
        self.over = self.ends_sent

    def on_switched(self, machine: HostMachine, pstate: int) -> Steps[None]:
        """A host has fallen asleep or woken up."""
        return self.commands.switches.on_switched(machine, pstate)
