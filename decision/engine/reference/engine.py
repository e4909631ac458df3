"""The reference engine: Batsim 4.2.1's rules in plain Python, to be read.

`ReferenceEngine` is Batsim's side of the conversation without I/O: ask it for a question, answer it, until there is
no further question.

>>> engine = ReferenceEngine(platform, [workload])     # doctest: +SKIP
>>> while (question := engine.ask()) is not None:      # doctest: +SKIP
...     engine.answer(decide(question))
>>> record = engine.record()                           # doctest: +SKIP

Design
------
Batsim is a set of SimGrid actors (submitters, a server, one actor per running job, ...) that talk through one
mailbox. What happens at one instant, and in which order, follows from who wakes first and how many rounds of
SimGrid's kernel each one takes. So this engine is the same set of actors on a small kernel of the same kind:

- `machines`: hosts, their pstates and energy; `network`: links, and the shares that tasks have of them;
- `activities`: what actors ask for, and what takes time: sleeps, parallel tasks, messages;
- `kernel`: simulated time, the rounds in which actors act, the mailbox;
- `simulation`: what all actors share: jobs, hosts, and the tables that Batsim writes at the end;
- `actors`: submitters, jobs, killers, calls, switches, the one that asks the decision process, and what each command
  makes the server do;
- here: the engine, and the server, who takes all messages. Each module needs only those above it.

To follow one job: `actors.submit_jobs` sends it, `Server.on_submitted` takes it, `Server._speak` asks the decision
process, `actors.ask_decision` passes its commands on, `CommandHandler` starts the job, and `actors.execute` runs it.

Rejected: one event queue ordered by (time, rank, serial). It gives the same order in all but contrived cases, but ranks
have no reason in themselves; rounds have one. The compiled engine has rounds, too, on arrays instead of generators.

Where Batsim would stop with a failed assertion this engine raises, in one line that names who is to blame.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from decision.engine import batsim_words as words
from decision.engine.batsim_words import simulation_begins
from decision.engine.refusals import (
    COMMANDS_AFTER_END,
    EngineOptions,
    check_events,
    check_inputs,
    deadlock,
    events_in_order,
    warn_of_change_away,
)
from decision.model.errors import DecisionError, LocalProtocolError
from decision.model.platform import Platform
from decision.model.record import FinalState, HostState, RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import DecisionEvent, Event, RequestedCall, SimulationEnds, TaskProgress

from .activities import STEP, Call, Get, Steps
from .actors import CommandHandler, ask_decision, submit_events, submit_jobs
from .machines import HostMachine
from .simulation import Handler, SimJob, Simulation


class ReferenceEngine:
    """Simulates one run.

    Args:
        platform: the hosts.
        workloads: jobs and profiles; their submitters begin in this order.
        events: what happens to the platform from outside.
        options: Batsim's options.

    Raises:
        ConfigError: if the engine cannot simulate it (a profile that needs a network, no power where energy is
            wanted, an event of unknown type); one line that says what to do.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        events: Sequence[MachineEvent] = (),
        options: EngineOptions = EngineOptions(),  # noqa: B008 - immutable
    ) -> None:
        check_inputs(platform, workloads, events, options)
        events = events_in_order(events)
        check_events(events, len(platform.hosts))
        self._sim = Simulation(platform, workloads, options)
        self._server = Server(self._sim, len(workloads), 1 if events else 0)
        kernel = self._sim.kernel
        # Batsim starts its actors in this order, in which they come to their first requests.
        for workload in workloads:
            kernel.start(submit_jobs(self._sim, workload))
        if events:
            kernel.start(submit_events(self._sim, events))
        kernel.start(self._server.serve(simulation_begins(platform, workloads, self._sim.options)))
        if options.energy:
            self._sim.tables.begin_pstates(self._sim.machines)
        self._questions = self._sim.kernel.run()
        self._asked = False
        self._end_reported = False  # whether the last question said that the simulation ends
        self._reply: Message | None = None
        self._failure: DecisionError | None = None

    def ask(self) -> Message | None:
        """Run until the decision process must be asked.

        Returns:
            The question, or None once the decision process has heard of the simulation's end.

        Raises:
            PolicyError: if a command of the last reply is impossible.
            DeadlockError: if nothing can happen any more.
            LocalProtocolError: if the last question has no answer yet.
        """
        if self._asked:
            raise LocalProtocolError("the engine was asked again before its last question was answered")
        if self._failure:
            raise self._failure
        question: Message | None = None
        try:
            question = self._questions.send(self._reply)
        except StopIteration:
            if not self._server.over:
                waiting = [job.id for job in self._sim.waiting()]
                self._failure = deadlock(self._sim.now, waiting, self._server.registration_open)
                raise self._failure from None
        except DecisionError as error:
            self._failure = error
            raise
        self._asked = question is not None
        self._end_reported = question is not None and isinstance(question.events[-1], SimulationEnds)
        return question

    def answer(self, message: Message) -> None:
        """Take the decision process's reply; it is carried out by the next `ask`."""
        if not self._asked:
            raise LocalProtocolError("the engine was answered without having asked")
        if message.events and self._end_reported:
            self._failure = self._sim.refuse(COMMANDS_AFTER_END)
        self._asked, self._reply = False, message

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        if not self._server.over:
            raise LocalProtocolError("the run is not over: ask and answer until there is no further question")
        return self._sim.tables.record(self._sim.machines, self._sim.options.energy)


class Server:
    """Batsim's server process: it takes messages one at a time, keeps count, and asks the decision process.

    The `on_` methods are its reactions to messages.
    """

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
            # A question goes out once nobody waits with a message, a round later: what happens at one instant is in
            # one question, but for actors that take more rounds.
            if self.decision_waits and not self.over:
                yield STEP
                if self.sim.kernel.mailbox_empty:
                    yield from self._speak()
        if not self.is_finished():
            raise self.sim.refuse(COMMANDS_AFTER_END)

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

    # --- Submitters ---------------------------------------------------------------------------------------

    def on_hello(self) -> None:
        """A submitter is there. Batsim counts these; here it only takes the server's turn."""

    def on_submitted(self, jobs: Iterable[SimJob]) -> None:
        """Jobs arrive, those of one workload and one instant."""
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
        """External events happen, those of one list and one instant."""
        for event in events:
            machines = [self.sim.machines[host] for host in sorted(set(event.hosts))]
            if event.type == "machine_unavailable":
                for machine in machines:
                    machine.away = True
                    self.sim.trace(machine, HostState.UNAVAILABLE)
            elif event.type == "machine_available":
                for machine in machines:
                    if machine.traced is not HostState.UNAVAILABLE:  # a switch has ended: Batsim stops at this
                        warn_of_change_away(machine.id, self.sim.now)
                    machine.away = False
                    self.sim.trace(machine, HostState.COMPUTING if machine.job else HostState.IDLE)
            self.outbox.append(words.external_event(self.sim.message_time, event))

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
