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

- `kernel`: simulated time, actors as generators, sleeps, parallel tasks, the mailbox;
- `machines`: hosts, their pstates and energy;
- `simulation`: what all actors share: jobs, hosts, and the tables that Batsim writes at the end;
- `actors`: submitters, jobs, killers, calls, switches, the one that asks the decision process;
- `server`, `commands`: what the server does with each message, and with each command.

Rejected: one event queue ordered by (time, rank, serial). It gives the same order in all but contrived cases, but ranks
have no reason in themselves; rounds have one. The compiled engine has rounds, too, on arrays instead of generators.

Where Batsim would stop with a failed assertion this engine raises, in one line that names who is to blame.
"""

from collections.abc import Sequence

from decision.engine.batsim_words import simulation_begins
from decision.engine.options import EngineOptions, check_inputs, events_in_order
from decision.engine.refusals import COMMANDS_AFTER_END, check_events, deadlock
from decision.model.errors import DecisionError, LocalProtocolError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import SimulationEnds

from .actors import submit_events, submit_jobs
from .server import Server
from .simulation import Simulation


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
        self._start_actors(platform, workloads, events)
        if options.energy:
            self._sim.tables.begin_pstates(self._sim.machines)
        self._questions = self._sim.kernel.run()
        self._asked = False
        self._end_reported = False  # whether the last question said that the simulation ends
        self._reply: Message | None = None
        self._failure: DecisionError | None = None

    def _start_actors(self, platform: Platform, workloads: Sequence[Workload], events: Sequence[MachineEvent]) -> None:
        kernel = self._sim.kernel
        for workload in workloads:
            kernel.start(submit_jobs(self._sim, workload))
        if events:
            kernel.start(submit_events(self._sim, events))
        kernel.start(self._server.serve(simulation_begins(platform, workloads, self._sim.options)))

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
        try:
            question = self._go_on()
        except DecisionError as error:
            self._failure = error
            raise
        self._asked = question is not None
        self._end_reported = question is not None and isinstance(question.events[-1], SimulationEnds)
        return question

    def _go_on(self) -> Message | None:
        try:
            question: Message = self._questions.send(self._reply)
        except StopIteration:
            self._check_over()
            return None
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

    def _check_over(self) -> None:
        if self._server.over:
            return
        waiting = [job.id for job in self._sim.waiting()]
        raise deadlock(self._sim.now, waiting, self._server.registration_open)
