"""The compiled engine in Batsim's place: a `CompiledEngine`, and the conversation with a decision process.

`EmbeddedEngine` takes questions and answers like `decision.engine.reference.engine.ReferenceEngine`, and must not
differ from it. Both read commands with `commands` and write events with `batsim_words`; here is how commands become
actions of a plan, and how the log becomes events.
"""

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decision.engine.kernels import arrays as a
from decision.engine.kernels import commands as c
from decision.model.errors import LocalProtocolError, PolicyError
from decision.model.hosts import intervals
from decision.model.platform import Platform
from decision.model.record import FinalState, RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import Answer, BatsimEvent, DecisionEvent, RequestedCall, SimulationEnds, TaskProgress
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import ENDED

from . import batsim_words as words
from . import commands
from .commands import CommandReader
from .compiled import CompiledEngine, run_record
from .rules import COMMANDS_AFTER_END, EngineOptions
from .truth import on_hosts


class EmbeddedEngine(CompiledEngine):
    """Simulates one run, in Batsim's messages. Arguments and errors are those of `CompiledEngine`."""

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        events: Sequence[MachineEvent] = (),
        options: EngineOptions = EngineOptions(),  # noqa: B008 - immutable
    ) -> None:
        super().__init__(platform, workloads, events, options)
        self._workloads = workloads
        self._metadata: dict[int, str] = {}
        self._nb_forgotten = 0  # jobs that had ended at the last question
        self._command_time = 0.0  # seconds: of the command that is read
        self._waits = False  # for an answer
        self._begun = False

    @functools.cached_property
    def _reader(self) -> CommandReader[int]:
        """Of commands; made where there are any: it and the engine refer to each other, which keeps memory."""
        return CommandReader[int](
            self.platform, self._workloads, self.options, self.names, self.job, self._refuse_command
        )

    # --- The conversation ---------------------------------------------------------------------------------------

    def ask(self) -> Message | None:
        """Run until the decision process must be asked.

        Returns:
            The question, or None once the decision process has heard of the simulation's end.

        Raises:
            PolicyError: if a command of the last reply is impossible.
            DeadlockError: if nothing can happen any more.
            LocalProtocolError: if the last question has no answer yet.
        """
        if self._waits:
            raise LocalProtocolError("the engine was asked again before its last question was answered")
        if self._begun and self.advance() == a.DONE:
            return None
        # The first question is ready when the engine is made.
        self._begun = self._waits = True
        # Everything that was logged since the last question.
        sim = self.world.sim
        events: list[BatsimEvent] = []
        for i in range(sim.nb_logged):
            entry = float(sim.log_time[i]), int(sim.log_arg[i]), float(sim.log_value[i])
            self._add_event(events, int(sim.log_kind[i]), *entry)
        # Jobs that ended before a question are forgotten with it, as Batsim does.
        for number in sim.finished[self._nb_forgotten : sim.nb_finished].tolist():
            self._reader.forget(self.job(number))
        self._nb_forgotten = sim.nb_finished
        return Message(float(self.state.now), tuple(events))

    def answer(self, message: Message) -> None:
        """Take the decision process's reply; `ask` carries it out.

        Raises:
            PolicyError: if a command names what does not exist or needs what no engine can do.
            LocalProtocolError: if there was no question.
        """
        if not self._waits:
            raise LocalProtocolError("the engine was answered without having asked")
        if message.events and self.world.sim.ends_sent:
            raise self.refuse(COMMANDS_AFTER_END)
        self._load(message)
        self.reply(message.now)
        self._waits = False

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        if not self._over:
            raise LocalProtocolError("the run is not over: ask and answer until there is no further question")
        return run_record(self, self._metadata)

    def finished(self) -> NDArray[np.int32]:
        """Numbers of the jobs that are over, in the order in which they ended: that of the record."""
        return self.world.sim.finished[: self.world.sim.nb_finished].copy()

    # --- From the log to a question -----------------------------------------------------------------------------

    def _add_event(self, events: list[BatsimEvent], kind: int, time: float, arg: int, value: float) -> None:
        """Add what an entry of the log says."""
        sim = self.world.sim
        match kind:
            case a.LOG_SUBMITTED:
                job = self.job(arg)
                self._reader.submit(job.id, arg)
                events.append(words.job_submitted(time, job, self._reader.workloads[job.workload], self.options))
            case a.LOG_COMPLETED:
                final, code = FinalState(int(self.state.job_state[arg]) - ENDED), int(sim.exit_code[arg])
                events.append(words.job_completed(time, self.job(arg).id, final, code, self.allocation(arg)))
            case a.LOG_CALLED:
                events.append(RequestedCall(time))
            case a.LOG_CHANGED:
                pstate = int(sim.switch_pstate[arg])
                events.append(words.pstate_changed(time, self.switched_hosts(arg), pstate))
            case a.LOG_KILLED:
                numbers = [int(number) for number in sim.kill_job[sim.kill_begin[arg] : sim.kill_end[arg]]]
                killed = [number for number in numbers if sim.kill_state[number] == a.KILL_DONE]
                progress = {self.job(number).id: self._progress(number) for number in killed}
                events.append(words.job_killed(time, [self.job(number).id for number in numbers], progress))
            case a.LOG_ENERGY:
                events.append(words.consumed_energy(time, value))
            case a.LOG_EVENT:
                events.append(words.external_event(time, self.events[arg]))
            case a.LOG_NO_MORE_JOBS:
                events.append(words.notification(time, words.NO_MORE_JOBS))
            case a.LOG_NO_MORE_EVENTS:
                events.append(words.notification(time, words.NO_MORE_EVENTS))
            case a.LOG_BEGINS:
                events.append(words.simulation_begins(self.platform, self._reader.workloads.values(), self.options))
            case a.LOG_ENDS:
                events.append(SimulationEnds(time))

    def _progress(self, number: int) -> TaskProgress:
        sim = self.world.sim
        return words.task_progress(self.leaves(number)[sim.leaf[number]], float(sim.progress[number]))

    # --- From a reply to a plan ---------------------------------------------------------------------------------

    def _refuse_command(self, reason: str) -> PolicyError:
        """The error of a command that is impossible whenever its time comes."""
        return PolicyError(f"t={max(self.now, self._command_time):.12g} s: {reason}")

    def _load(self, reply: Message, nb_own: int = 0) -> None:
        """Turn a reply into the plan, to which the engine adds at most so many commands of its own.

        Raises:
            PolicyError: if a command names what does not exist, or asks for what no engine can do.
        """
        nb_commands = nb_own + sum(1 + len(getattr(event.data, "job_ids", ())) for event in reply.events)
        # Room is made before anything is written: a text of hosts has an interval for every two signs at most.
        texts = (getattr(e.data, "alloc", "") or getattr(e.data, "resources", "") for e in reply.events)
        self.make_room(nb_commands, sum(len(text) // 2 + 1 for text in texts))
        p.clear(self.plan, self.state)
        times = self._take_all(reply)
        self._command_time = 0.0
        self.world.sim.command_time[: len(times)] = times
        self.world.sim.timed_commands = 1

    def _take_all(self, reply: Message) -> list[float]:
        """Add a reply's commands to the plan; the time (seconds) of each action that is there now."""
        times = [reply.now] * self.plan.nb_actions
        for command in reply.events:
            if isinstance(command, Answer):
                continue  # Batsim asked nothing and reads no answer
            self._reader.check_time(command, reply.now)
            self._command_time = command.timestamp
            self._take(command)
            # One command may be several actions, as a kill of several jobs; all have its time.
            times += [command.timestamp] * (self.plan.nb_actions - len(times))
        return times

    def _take(self, command: DecisionEvent) -> None:
        """Add a command of the decision process to the plan."""
        self._add(self._reader.read(command))

    def _add(self, command: commands.Command[int]) -> None:
        """Add a command's actions to the plan."""
        match command:
            case commands.Start():
                self._add_hosts(self._act(p.START, command.job), command.hosts)
                # A mapping puts several executors on a host: the job then does other amounts than its profile says.
                if command.places:
                    leaves, nb_hosts = self.leaves(command.job), len(command.hosts)
                    self.set_leaves(command.job, tuple(on_hosts(leaf, command.places, nb_hosts) for leaf in leaves))
            case commands.Reject(job):
                self._act(p.REJECT, job)
            case commands.Kill(jobs):
                for i, job in enumerate(jobs):  # all of them are one request
                    self._act(p.KILL, job, 0 if i else c.NEW_REQUEST)
                if not jobs:
                    self._act(c.NO_ACTION)
            case commands.ChangeState(job, "RUNNING"):
                self._act(c.START_ELSEWHERE, job)
            case commands.ChangeState(job, wanted):
                if command.final is None:
                    raise self._refuse_command(self.why_not_become(job, wanted))
                self._act(c.END_ELSEWHERE, job, command.final)
            case commands.CallLater(time):
                self.plan.time[self._act(p.CALL_AT)] = time
            case commands.SetPstate(hosts, pstate):
                self._add_hosts(self._act(p.SET_PSTATE, value=pstate), hosts)
            case commands.QueryEnergy():
                self._act(c.QUERY_ENERGY)
            case commands.SetRegistration(allowed):
                self._act(c.SET_REGISTRATION, value=allowed)
            case commands.Register(described, leaves, moldable):
                truth = self.add_job(described, leaves, moldable)
                number = int(transitions.submit(self.state, described.size, described.walltime, -1))
                self.world.sim.truth_of[number] = truth
                self._reader.submit(described.id, number)
                self._act(c.REGISTER, number)
            case commands.SetMetadata(job, text):
                self._metadata[job] = text
                self._act(c.NO_ACTION, job)
            case commands.NoEffect():
                self._act(c.NO_ACTION)

    def _act(self, kind: int, job: int = -1, value: int = 0) -> int:
        action = p.add(self.plan, kind, job)
        self.plan.value[action] = value
        return int(action)

    def _add_hosts(self, action: int, hosts: list[int]) -> None:
        for first, last in intervals(hosts):
            p.add_interval(self.plan, action, first, last)
