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
- here: submitters, calls, jobs, killers, switches, what each command makes the server do, and the engine itself.

Each needs only those above it, so they can be read in this order. To follow one job: `submit_jobs` sends it,
`Server.on_submitted` takes it, `Server._ask_or_end` asks the decision process, `ask_decision` passes its commands on,
`CommandHandler` starts the job, and `execute` runs it.

Rejected: one event queue ordered by (time, rank, serial). It gives the same order in all but contrived cases, but ranks
have no reason in themselves; rounds have one. The compiled engine has rounds, too, on arrays instead of generators.

Where Batsim would stop with a failed assertion this engine raises, in one line that names who is to blame.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from decision.engine import batsim_words as words
from decision.engine import commands, rules
from decision.engine.batsim_words import simulation_begins, task_progress
from decision.engine.rules import (
    COMMANDS_AFTER_END,
    END_ROW,
    KILLED_CODE,
    PSTATE_ROW,
    SHORTEST_CALL,
    START_ROW,
    SWITCHING_TO_COMPUTE,
    SWITCHING_TO_SLEEP,
    TASK_STEPS,
    WALLTIME_CODE,
    EngineOptions,
    JobPhase,
    check_events,
    check_inputs,
    deadlock,
    events_in_order,
)
from decision.engine.truth import LeafKind, LeafTask
from decision.model.errors import DecisionError, LocalProtocolError
from decision.model.hosts import format_hosts
from decision.model.platform import Platform
from decision.model.record import FinalState, HostState, RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import DecisionEvent, SimulationEnds, TaskProgress

from .kernel import STEP, Call, ParallelTask, Steps, Wait, WaitResult
from .machines import HostMachine
from .simulation import Server, SimJob, Simulation, sleep


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


# --- Batsim's actors, one generator each: who submits, who calls, who executes, who kills, who switches ------------
#
# Each mirrors a process of Batsim 4.2.1 with all its requests to the kernel, also those that only take a round
# (`STEP`): they decide who comes first where several things happen at one instant. At the end is what a command makes
# the server do when its time comes, which is what starts most of the actors.

# --- Submitters ----------------------------------------------------------------------------------------------


def submit_jobs(sim: Simulation, workload: Workload) -> Steps[None]:
    """Submit the static jobs of a workload: those of one instant in one message."""
    server = sim.server
    yield from sim.send(server.on_hello)
    clock = sim.now
    due: list[SimJob] = []
    # At one time by id as text, as Batsim sorts: w0!10 is before w0!2.
    for job in sorted((sim.jobs[facts.id] for facts in workload.jobs), key=lambda job: (job.facts.submit_time, job.id)):
        if job.facts.submit_time > clock:
            if due:
                yield from sim.send(partial(server.on_submitted, due))
            due = []
            # Counted from when it last woke, as Batsim does: by what sending took, the next jobs come later.
            yield from sleep(job.facts.submit_time - clock)
            clock = sim.now
        due.append(job)
        if sim.options.energy and sim.tables.first_joules < 0:  # Batsim's total counts from the first submission
            sim.tables.first_joules = yield from sim.joules(sim.machines)
    if due:
        yield from sim.send(partial(server.on_submitted, due))
    yield from sim.send(server.on_jobs_bye)


def submit_events(sim: Simulation, events: Sequence[MachineEvent]) -> Steps[None]:
    """Let external events happen: those of one instant in one message."""
    server = sim.server
    yield from sim.send(server.on_hello)
    clock = sim.now
    due: list[MachineEvent] = []
    for event in events:
        if event.timestamp > clock:
            if due:
                yield from sim.send(partial(server.on_external, due))
            due = []
            yield from sleep(event.timestamp - clock)
            clock = sim.now
        due.append(event)
    # The last ones. A list is never empty: without events nobody submits any.
    yield from sim.send(partial(server.on_external, due))
    yield from sim.send(server.on_events_bye)


# --- Calls ---------------------------------------------------------------------------------------------------


def call_later(sim: Simulation, time: float) -> Steps[None]:
    """Call the decision process at `time` seconds."""
    yield from sleep(max(time - sim.now, SHORTEST_CALL))
    yield from sim.send(sim.server.on_call)


# --- Jobs ----------------------------------------------------------------------------------------------------


def execute(sim: Simulation, job: SimJob) -> Steps[None]:
    """Run a job on its machines, and tell the server how it ended unless it was killed."""
    job.start = sim.now
    # Joules first, while hosts still have their old load; each host that is not up to date takes a round.
    if sim.options.energy:
        job.joules = yield from sim.joules(job.machines)
        yield from sim.energy_row(START_ROW)
    for machine in job.machines:
        machine.jobs.append(job.id)
        sim.enter(machine, HostState.COMPUTING)
    sim.host_row()
    job.return_code = yield from _run_leaves(sim, job)
    stopped = {
        0: FinalState.COMPLETED_SUCCESSFULLY,
        WALLTIME_CODE: FinalState.COMPLETED_WALLTIME_REACHED,
        KILLED_CODE: FinalState.COMPLETED_KILLED,
    }
    final = FinalState.COMPLETED_FAILED if job.return_code > 0 else stopped[job.return_code]
    yield from _end_job(sim, job, final)
    # The killer tells of those that it killed.
    if job.final is not FinalState.COMPLETED_KILLED:
        yield from sim.send(partial(sim.server.on_completed, job))


def _run_leaves(sim: Simulation, job: SimJob) -> Steps[int]:
    """Run the leaves in turn; returns the job's return code."""
    # Seconds of walltime that are left; below 0 where there is none.
    left = job.facts.walltime if job.facts.walltime != float("inf") else -1.0
    code = 0
    for leaf in job.leaves:
        job.leaf, job.leaf_begin, job.task = leaf, sim.now, None
        if leaf.kind is LeafKind.DELAY:
            # A walltime just as long counts as reached.
            late = 0 <= left <= leaf.amount
            yield from sleep(left if late else leaf.amount)
            code = WALLTIME_CODE if late else leaf.exit_code
            left = 0.0 if late else left - leaf.amount if left > 0 else left
        else:
            code, left = yield from _compute(sim, job, leaf, left)
        # A leaf with an exit code ends the whole profile, as one that was stopped does.
        if code != 0:
            break
    return code


def _compute(sim: Simulation, job: SimJob, leaf: LeafTask, left: float) -> Steps[tuple[int, float]]:
    """Compute the leaf; a walltime just as long is met. Returns return code and seconds left."""
    begin = sim.now
    for _ in range(TASK_STEPS):  # Batsim sets flops, bytes and hosts of SimGrid's activity: a request each
        yield STEP
    job.task = ParallelTask(work=job.work(leaf), sent=job.sent(leaf), shares=sim.options.shares_hosts)
    # The task begins, and a round later its limit: at equal times the task is over first.
    yield Call(partial(sim.kernel.begin, job.task))
    outcome = yield Wait(job.task, left if left >= 0 else None)
    code = {WaitResult.DONE: leaf.exit_code, WaitResult.LATE: WALLTIME_CODE, WaitResult.CANCELLED: KILLED_CODE}[outcome]
    return code, left - (sim.now - begin) if left >= 0 else left


def _end_job(sim: Simulation, job: SimJob, state: FinalState) -> Steps[None]:
    """Free the job's machines, where no other job computes, and write its energy down."""
    job.end(state, sim.now)
    for machine in job.machines:
        machine.jobs.remove(job.id)
        if machine.jobs:
            continue
        # A machine that is away stays so in the trace, and is idle once it is back.
        machine.doing = HostState.IDLE
        if machine.traced is not HostState.UNAVAILABLE:
            sim.trace(machine, HostState.IDLE)
    sim.host_row()
    if sim.options.energy:
        job.joules = (yield from sim.joules(job.machines)) - job.joules
        sim.tables.last_joules = yield from sim.energy_row(END_ROW)


def kill_jobs(sim: Simulation, jobs: Sequence[SimJob]) -> Steps[None]:
    """Kill those of the jobs that still run, and tell the server how far each was."""
    progress: dict[str, TaskProgress] = {}
    for job in jobs:
        # It may have ended since the command came; the answer names it all the same.
        if job.phase is not JobPhase.RUNNING or job.actor is None:
            continue
        if job.task:  # its progress is asked for, which is a request
            yield STEP
        assert job.leaf is not None
        progress[job.id] = task_progress(job.leaf, job.progress(sim.now))
        if job.task:  # its own actor goes on and ends the job
            yield Call(partial(sim.kernel.cancel, job.task))
        else:
            yield Call(partial(sim.kernel.kill, job.actor))
            yield from _end_job(sim, job, FinalState.COMPLETED_KILLED)
    yield from sim.send(partial(sim.server.on_killed, jobs, progress))


# --- Hosts ---------------------------------------------------------------------------------------------------


def switch(switches: "Switches", machine: HostMachine, way: int, pstate: int, state: HostState) -> Steps[None]:
    """Compute one flop in the virtual pstate `way`; then the host is in `pstate` and in `state`."""
    sim = switches.sim
    yield Call(partial(machine.set_pstate, way, sim.now))
    for _ in ("flops", "host", "priority"):
        yield STEP
    task = ParallelTask(work=[(machine, 1.0)], shares=sim.options.shares_hosts)
    yield Call(partial(sim.kernel.begin, task))
    yield Wait(task, None)
    yield Call(partial(machine.set_pstate, pstate, sim.now))
    sim.enter(machine, state)
    yield from sim.send(partial(switches.on_switched, machine, pstate))


# --- Commands, once `decision.engine.commands` has read them ---------------------------------------------------
#
# Each command is checked whole before it changes anything. Where Batsim 4.2.1 would stop with an assertion, a
# `PolicyError` names the time, the job and the hosts.


class CommandHandler:
    """The server's reactions to commands."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.switches = Switches(sim)

    def handle(self, event: DecisionEvent) -> Steps[None]:
        """Do what the decision process wants.

        Raises:
            PolicyError: if it is impossible.
        """
        match self.sim.reader.read(event):
            case commands.Start() as start:
                yield from self._start(start)
            case commands.Reject(job):
                self._reject(job)
            case commands.Kill(jobs):
                for job in jobs:
                    if job.actor is None:
                        raise self.sim.refuse(rules.never_executed(job.id))
                # Batsim ignores a request of which all jobs are being killed already.
                asked = [job for job in dict.fromkeys(jobs) if not job.kill_asked]
                for job in asked:
                    job.kill_asked = True
                if asked:
                    yield Call(partial(self.sim.kernel.start, kill_jobs(self.sim, asked)))
                    self.sim.server.nb_killers += 1
            case commands.ChangeState(job, wanted):
                self._change_state(job, wanted)
            case commands.CallLater(time):
                if not time > self.sim.now:
                    raise self.sim.refuse(rules.call_refusal(time))
                yield Call(partial(self.sim.kernel.start, call_later(self.sim, time)))
                self.sim.server.nb_calls += 1
            case commands.SetPstate(hosts, pstate):
                machines = [self.sim.machines[host] for host in hosts]
                self._check(rules.switch_refusal(machines, pstate))
                yield from self.switches.request(machines, pstate)
            case commands.QueryEnergy():
                joules = yield from self.sim.joules(self.sim.machines)
                self.sim.server.outbox.append(words.consumed_energy(self.sim.message_time, float(joules)))
            case commands.SetRegistration(allowed):
                self.sim.server.registration_open = allowed
            case commands.Register(facts, leaves, moldable):
                job = self.sim.add_job(facts, leaves, moldable)
                self.sim.submit(job)
                if self.sim.options.acknowledge_dynamic_jobs:
                    self.sim.server.report_submitted(job)
            case commands.SetMetadata(job, text):
                job.metadata = text

    def _check(self, refusal: str) -> None:
        if refusal:
            raise self.sim.refuse(refusal)

    # --- Jobs ---------------------------------------------------------------------------------------------

    def _start(self, command: commands.Start[SimJob]) -> Steps[None]:
        job, machines = command.job, [self.sim.machines[host] for host in command.hosts]
        executors = [machines[place] for place in command.places] or machines
        self._check(rules.phase_refusal(job.id, "start", job.phase))
        self._check(rules.size_refusal(job.id, job.facts.size, job.moldable, len(executors)))
        self._check(rules.start_refusal(job.id, command.alloc, machines, self.sim.options))
        # It counts as running from now on, though it acts only in the next round.
        job.phase, job.machines, job.executors = JobPhase.RUNNING, machines, executors
        self.sim.server.nb_running += 1
        job.actor = yield Call(partial(self.sim.kernel.start, execute(self.sim, job), machines[0]))

    def _reject(self, job: SimJob) -> None:
        self._check(rules.phase_refusal(job.id, "be rejected", job.phase))
        job.phase, job.final = JobPhase.ENDED, FinalState.REJECTED
        self.sim.server.note_end(job)

    def _change_state(self, job: SimJob, wanted: str) -> None:
        """Batsim's documentation says what this does; 4.2.1 itself stops at any change but to RUNNING."""
        final = FinalState.__members__.get(wanted)
        if job.actor is None and job.phase is JobPhase.SUBMITTED and wanted == "RUNNING":
            job.phase, job.start = JobPhase.RUNNING, self.sim.now
            self.sim.server.nb_running += 1
        elif job.actor is None and job.phase is JobPhase.SUBMITTED and final is FinalState.REJECTED:
            self._reject(job)
        elif job.actor is None and job.phase is JobPhase.RUNNING and final not in (None, FinalState.REJECTED):
            job.end(final, self.sim.now)
            self.sim.server.nb_running -= 1
            self.sim.server.note_end(job)
        else:
            alloc = job.allocation if job.actor else ""
            raise self.sim.refuse(rules.become_refusal(job.id, wanted, job.phase, alloc))

    # --- Calls, hosts, energy -----------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class SwitchRequest:
    """Hosts that are to change their pstate."""

    hosts: str
    pstate: int
    left: set[HostMachine]


class Switches:
    """The requests under way; each is reported as done when its last host is."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.requests: list[SwitchRequest] = []  # oldest first

    def request(self, machines: Sequence[HostMachine], pstate: int) -> Steps[None]:
        """Change the hosts' pstate: at once between computing pstates, else through a virtual pstate."""
        tables = self.sim.tables
        request = SwitchRequest(format_hosts(machine.id for machine in machines), pstate, set(machines))
        self.requests.append(request)
        # Two rows before anything changes: of energy, and of what the hosts are on their way to.
        yield from self.sim.energy_row(PSTATE_ROW)
        to_compute = machines[0].facts.is_computing_pstate(pstate)
        way = SWITCHING_TO_COMPUTE if to_compute else SWITCHING_TO_SLEEP
        tables.pstates.append((self.sim.now, request.hosts, way))
        tables.nb_grouped_switches += 1
        tables.nb_switches += len(machines)
        for machine in machines:
            yield from self._begin(machine, pstate)
        self.sim.host_row()

    def _begin(self, machine: HostMachine, pstate: int) -> Steps[None]:
        if not machine.computes:
            way = next(sleep.switch_on for sleep in machine.facts.sleep if sleep.pstate == machine.pstate)
            yield from self._go(machine, way, pstate, HostState.SWITCHING_ON, HostState.IDLE)
        elif pstate in machine.facts.sleep_pstates:
            way = next(sleep.switch_off for sleep in machine.facts.sleep if sleep.pstate == pstate)
            yield from self._go(machine, way, pstate, HostState.SWITCHING_OFF, HostState.SLEEPING)
        else:
            yield Call(partial(machine.set_pstate, pstate, self.sim.now))
            request = yield from self._mark_done(machine, pstate)
            self._report(request)

    def _go(self, machine: HostMachine, way: int, pstate: int, during: HostState, after: HostState) -> Steps[None]:
        self.sim.enter(machine, during)
        yield Call(partial(self.sim.kernel.start, switch(self, machine, way, pstate, after), machine))
        self.sim.server.nb_switching += 1

    def on_switched(self, machine: HostMachine, pstate: int) -> Steps[None]:
        """The server hears that a host has fallen asleep or woken up."""
        # Only with the last host of a request are rows written, and is the decision process told.
        request = yield from self._mark_done(machine, pstate)
        if request:
            self.sim.host_row()
        self._report(request)
        self.sim.server.nb_switching -= 1

    def _mark_done(self, machine: HostMachine, pstate: int) -> Steps[SwitchRequest | None]:
        """Note that a host has arrived; returns the request that it completes."""
        request = next(waiting for waiting in self.requests if waiting.pstate == pstate and machine in waiting.left)
        request.left.remove(machine)
        if request.left:
            return None
        self.requests.remove(request)
        self.sim.tables.pstates.append((self.sim.now, request.hosts, pstate))
        yield from self.sim.energy_row(PSTATE_ROW)
        return request

    def _report(self, request: SwitchRequest | None) -> None:
        if request:
            changed = words.pstate_changed(self.sim.message_time, request.hosts, request.pstate)
            self.sim.server.outbox.append(changed)
