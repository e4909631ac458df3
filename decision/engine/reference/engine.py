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
- `simulation`: what all actors share: jobs, hosts, the tables that Batsim writes at the end, and the server, who takes
  all messages and asks the decision process;
- `actors`: submitters, calls, jobs, killers, switches, and what each command makes the server do.

Each needs only those above it, so they can be read in this order. To follow one job: `actors.submit_jobs` sends it,
`Server.on_submitted` takes it, `Server._ask_or_end` asks the decision process, `ask_decision` passes its commands on,
`CommandHandler` starts the job, and `actors.execute` runs it.

Rejected: one event queue ordered by (time, rank, serial). It gives the same order in all but contrived cases, but ranks
have no reason in themselves; rounds have one. The compiled engine has rounds, too, on arrays instead of generators.

Where Batsim would stop with a failed assertion this engine raises, in one line that names who is to blame.
"""

from collections.abc import Sequence

from decision.engine.batsim_words import simulation_begins
from decision.engine.rules import (
    COMMANDS_AFTER_END,
    EngineOptions,
    check_events,
    check_inputs,
    deadlock,
    events_in_order,
)
from decision.model.errors import DecisionError, LocalProtocolError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import SimulationEnds

from .actors import CommandHandler, submit_events, submit_jobs
from .simulation import Server, Simulation


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
        self._server.carry_out = CommandHandler(self._sim).handle
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
        """Run until the decision process must be asked; results and errors are those of `EmbeddedEngine.ask`."""
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
