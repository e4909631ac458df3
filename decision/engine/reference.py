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

- `reference_kernel`: simulated time, actors as generators, sleeps, parallel tasks, the mailbox;
- `reference_machines`: hosts, their pstates and energy;
- `reference_actors`: submitters, jobs, killers, calls, switches, the one that asks the decision process;
- `reference_server`, `reference_commands`, `reference_switches`: what the server does with each message;
- `reference_rows`: what Batsim writes into its output files.

Rejected: one event queue ordered by (time, rank, serial). It is what the compiled engine does, and it gives the
same order in all but contrived cases, but its ranks have no reason in themselves; here they are explained.

Where Batsim would stop with a failed assertion this engine raises, in one line that names who is to blame.
"""

from collections.abc import Sequence

from decision.model.errors import ConfigError, DeadlockError, DecisionError, LocalProtocolError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message, SimulationEnds

from .checks import check_platform
from .options import EngineOptions
from .reference_actors import submit_events, submit_jobs
from .reference_messages import simulation_begins
from .reference_server import Server
from .reference_world import World

_EVENT_RANKS = {"machine_available": 0, "machine_unavailable": 1}  # Batsim's order of events at one instant
_NAMED = 5  # jobs that an error names


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
        _check(platform, workloads, events, options)
        self._world = World(platform, workloads, options)
        self._server = Server(self._world, len(workloads), 1 if events else 0)
        self._start_actors(platform, workloads, events)
        if options.energy:
            self._world.rows.begin_pstates(self._world.machines)
        self._questions = self._world.kernel.run()
        self._asked = False
        self._told_end = False  # whether the last question said that the simulation ends
        self._reply: Message | None = None
        self._failure: DecisionError | None = None

    def _start_actors(self, platform: Platform, workloads: Sequence[Workload], events: Sequence[MachineEvent]) -> None:
        kernel = self._world.kernel
        for workload in workloads:
            kernel.start(submit_jobs(self._world, workload))
        if events:
            ranked = sorted(events, key=lambda event: (event.timestamp, _EVENT_RANKS.get(event.type, 2)))
            kernel.start(submit_events(self._world, ranked))
        kernel.start(self._server.serve(simulation_begins(platform, workloads, self._world.options)))

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
        self._told_end = question is not None and isinstance(question.events[-1], SimulationEnds)
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
        if message.events and self._told_end:
            self._failure = self._world.refuse("the reply to SIMULATION_ENDS has commands; it must have none")
        self._asked, self._reply = False, message

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        if not self._server.over:
            raise LocalProtocolError("the run is not over: ask and answer until there is no further question")
        return self._world.rows.record(self._world.machines, self._world.options.energy)

    def _check_over(self) -> None:
        if self._server.over:
            return
        waiting = self._world.waiting()
        if waiting:
            names = ", ".join(entry.id for entry in waiting[:_NAMED])
            more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
            advice = f"{names}{more} wait; start or reject them, or ask to be called later"
        elif self._server.registration_open:
            advice = "end the registration of jobs with NOTIFY registration_finished"
        else:
            advice = "jobs that were set to RUNNING must be set to a final state"
        raise DeadlockError(f"t={self._world.now:.12g} s: nothing can happen any more: {advice}")


def _check(
    platform: Platform, workloads: Sequence[Workload], events: Sequence[MachineEvent], options: EngineOptions
) -> None:
    names = [workload.name for workload in workloads]
    if len(set(names)) < len(names):
        raise ConfigError(f"workloads {', '.join(names)}: two have the same name; give each its own")
    check_platform(platform, options)
    for event in events:
        if event.type not in _EVENT_RANKS and not options.forward_unknown_events:
            raise ConfigError(f"external event of unknown type {event.type!r}: forward unknown events, or leave it out")
