"""What all actors of the reference engine share: jobs, hosts, Batsim's server, and the tables that it writes down."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from decision.engine import batsim_words as words
from decision.engine.commands import CommandReader
from decision.engine.rules import (
    COMMANDS_AFTER_END,
    DECIMALS,
    EngineOptions,
    JobPhase,
    network_refusal,
    warn_of_change_away,
)
from decision.engine.truth import LeafKind, LeafTask, amounts, check_width, flatten, is_moldable, sendings
from decision.model.errors import ConfigError, PolicyError
from decision.model.hosts import format_hosts
from decision.model.platform import Platform, Route
from decision.model.record import (
    NULL_RUNTIME,
    EnergyTable,
    FinalState,
    HostState,
    HostTable,
    JobTable,
    PstateTable,
    RunRecord,
)
from decision.model.workload import Job, MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import Answer, DecisionEvent, Event, RequestedCall, SimulationEnds, TaskProgress

from .kernel import STEP, ActorKernel, Ask, Call, Get, ParallelTask, Put, SimActor, Sleep, Steps
from .machines import HostMachine, PlatformLinks

Handler = Callable[[], Steps[None] | None]  # what a message makes the server do


@dataclass(slots=True, eq=False)
class SimJob:
    """A job, and all that Batsim remembers of it."""

    facts: Job
    leaves: tuple[LeafTask, ...]
    moldable: bool  # whether it may get another number of hosts than it requests
    phase: JobPhase = JobPhase.UNKNOWN
    final: FinalState | None = None
    machines: list[HostMachine] = field(default_factory=list)  # its allocation, ascending
    executors: list[HostMachine] = field(default_factory=list)  # a machine for each; without a mapping, `machines`
    actor: SimActor | None = None
    leaf: LeafTask | None = None  # the present one
    leaf_begin: float = 0.0  # seconds
    task: ParallelTask | None = None  # of the present leaf, where it computes
    start: float = 0.0  # seconds
    runtime: float = 0.0  # seconds
    joules: float | np.longdouble = -1.0  # on its hosts while it ran, where energy is simulated
    return_code: int = -1
    kill_asked: bool = False
    metadata: str = ""

    @property
    def id(self) -> str:
        """The full id, as Batsim says it: WORKLOAD!NAME."""
        return self.facts.id

    @property
    def allocation(self) -> str:
        """Its hosts as Batsim writes them."""
        return format_hosts(machine.id for machine in self.machines)

    def end(self, state: FinalState, now: float) -> None:
        """Note that the job ends now. Batsim writes no runtime of 0."""
        self.phase, self.final = JobPhase.ENDED, state
        self.runtime = (now - self.start) or NULL_RUNTIME

    def work(self, leaf: LeafTask) -> list[tuple[HostMachine, float]]:
        """Where each executor of the leaf is, and its flop."""
        return list(zip(self.executors, amounts(leaf, len(self.executors)), strict=True))

    def sent(self, leaf: LeafTask) -> list[tuple[HostMachine, HostMachine, float]]:
        """Bytes of the leaf from executor to executor, and where these are."""
        pairs = sendings(leaf, len(self.executors)) if leaf.sent > 0 else ()
        return [(self.executors[i], self.executors[j], amount) for i, j, amount in pairs]

    def progress(self, now: float) -> float:
        """Share of the present leaf that is done."""
        assert self.leaf is not None
        if self.leaf.kind is LeafKind.DELAY:
            return (now - self.leaf_begin) / self.leaf.amount
        return 1.0 - self.task.remains if self.task else 0.0


class Simulation:
    """The state of a simulation. Host ids count compute hosts first, then storage hosts."""

    server: "Server"  # set by the server itself

    def __init__(self, platform: Platform, workloads: Sequence[Workload], options: EngineOptions) -> None:
        *routes, home = platform.routes or (Route(),) * (len(platform.hosts) + 1)
        self.kernel = ActorKernel(PlatformLinks(platform), home)
        self.options = options
        pairs = zip(platform.hosts, routes, strict=True)
        self.machines = [HostMachine(host, options.energy, route) for host, route in pairs]
        self.machines += [HostMachine(host, options.energy) for host in platform.storage]
        self.in_state = [0] * len(HostState)  # compute hosts in each state
        self.in_state[HostState.IDLE] = len(platform.hosts)
        self.jobs: dict[str, SimJob] = {}
        self.submitted: list[SimJob] = []  # in order of submission
        self.reader = CommandReader[SimJob](platform, workloads, options, self.jobs, lambda job: job.facts, self.refuse)
        self.tables = RunTables()
        self._leaves: dict[tuple[str, str], tuple[LeafTask, ...]] = {}  # of each profile of a workload
        self._no_network = network_refusal(platform)
        for workload in workloads:
            for job in workload.jobs:
                self._add_static_job(job)

    # --- Jobs ---------------------------------------------------------------------------------------------

    def _add_static_job(self, job: Job) -> None:
        if job.workload not in self.reader.workloads:
            raise ConfigError(f"job {job.id}: there is no workload {job.workload!r}; ids are WORKLOAD!NAME")
        if job.id in self.jobs:
            raise ConfigError(f"job {job.id} exists already; give it another id")
        workload = self.reader.workloads[job.workload]
        key = (job.workload, job.profile)
        if key not in self._leaves:
            self._leaves[key] = flatten(job.profile, workload, self._no_network)
        check_width(job, self._leaves[key], workload)
        self.add_job(job, self._leaves[key], is_moldable(job.profile, workload))

    def add_job(self, facts: Job, leaves: tuple[LeafTask, ...], moldable: bool) -> SimJob:
        """Take a job in, which is not submitted yet; returns what the engine knows of it."""
        job = SimJob(facts, leaves, moldable)
        self.jobs[facts.id] = job
        return job

    def submit(self, job: SimJob) -> None:
        """A job arrives: commands may name it from now on."""
        job.phase = JobPhase.SUBMITTED
        self.submitted.append(job)
        self.reader.submit(job.id, job)

    def waiting(self) -> list[SimJob]:
        """Jobs that were submitted and neither started nor rejected, in order of submission."""
        return [job for job in self.submitted if job.phase is JobPhase.SUBMITTED]

    # --- Time, messages, errors ---------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Simulated time in seconds, with all digits."""
        return self.kernel.now

    @property
    def message_time(self) -> float:
        """The time as Batsim writes it into messages: six decimals."""
        return round(self.kernel.now, DECIMALS)

    def send(self, handler: Handler) -> Steps[None]:
        """Let the server run `handler`; goes on when the server has taken it."""
        yield STEP
        yield Put(handler)

    def refuse(self, reason: str) -> PolicyError:
        """The error of an impossible command."""
        return PolicyError(f"t={self.now:.12g} s: {reason}")

    # --- Hosts and energy ---------------------------------------------------------------------------------

    def enter(self, machine: HostMachine, state: HostState) -> None:
        """Change what a host does."""
        machine.doing = state
        self.trace(machine, state)

    def trace(self, machine: HostMachine, state: HostState) -> None:
        """Change the state that Batsim takes a host to be in."""
        self.in_state[machine.traced] -= 1
        self.in_state[state] += 1
        machine.trace(state, self.now)

    def host_row(self) -> None:
        """Write down how many hosts are in each state."""
        if self.options.trace:
            self.tables.hosts.append((self.now, list(self.in_state)))

    def joules(self, machines: Iterable[HostMachine]) -> Steps[np.longdouble]:
        """Joules of these machines since the beginning; each that is not up to date takes a round.

        The sum is as wide as Batsim's: rows can be nanoseconds apart, and show the power between them.
        """
        total = np.longdouble(0.0)
        for machine in machines:
            if machine.needs_measure(self.now):
                yield Call(partial(machine.measure, self.now))
            total += machine.joules
        return total

    def energy_row(self, kind: str) -> Steps[np.longdouble]:
        """Write down the energy so far; returns it."""
        # Measuring takes rounds, in which others act.
        total = yield from self.joules(self.machines)
        self.tables.energy.append((self.now, total, kind, sum(machine.power.epsilon for machine in self.machines)))
        return total


class Server:
    """Batsim's server process: it takes messages one at a time, keeps count, and asks the decision process.

    The `on_` methods are its reactions to messages.
    """

    carry_out: Callable[[DecisionEvent], Steps[None] | None]  # a command; set by the engine (`actors.CommandHandler`)

    def __init__(self, sim: Simulation, nb_workloads: int, nb_event_lists: int) -> None:
        sim.server = self
        self.sim = sim
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
        self.nb_switching = 0  # hosts on their way to or from sleep
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
                    yield from self._ask_or_end()
        if not self.is_finished():
            raise self.sim.refuse(COMMANDS_AFTER_END)

    def _ask_or_end(self) -> Steps[None]:
        """Ask with what has happened; where nothing has and nothing will, say that the simulation ends."""
        if self.outbox:
            yield from self._ask()
            # Batsim forgets a job once a question has told of its end; commands may not name it any more.
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
        # Who might still send: submitters, a decision process that may register jobs, jobs, switches, calls and
        # killers.
        return (
            self.nb_workloads == self.nb_event_lists == 0
            and not self.registration_open
            and self.nb_ended == len(self.sim.submitted)
            and self.nb_running == self.nb_switching == self.nb_calls == self.nb_killers == 0
        )

    # --- Submitters ---------------------------------------------------------------------------------------

    def on_hello(self) -> None:
        """A submitter is there, which takes a turn of the server and changes nothing."""

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
            if event.type == "machine_unavailable":
                for machine in self._machines(event):
                    machine.away = True
                    self.sim.trace(machine, HostState.UNAVAILABLE)
            elif event.type == "machine_available":
                for machine in self._machines(event):
                    if machine.traced is not HostState.UNAVAILABLE:  # a switch has ended: Batsim stops at this
                        warn_of_change_away(machine.id, self.sim.now)
                    machine.away = False
                    self.sim.trace(machine, HostState.COMPUTING if machine.jobs else HostState.IDLE)
            self.outbox.append(words.external_event(self.sim.message_time, event))

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
            # The killed ones have ended too, and Batsim says so before it says that they were killed.
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

    def on_ready(self) -> None:
        """The decision process has said all, and waits for the next question."""
        self.decision_waits = True
        self.over = self.ends_sent


def ask_decision(sim: Simulation, question: Message) -> Steps[None]:
    """Ask the decision process, and pass its commands on one by one, each at its time."""
    reply: Message = yield Ask(question)
    for command in reply.events:
        if isinstance(command, Answer):
            continue  # Batsim asked nothing and reads no answer
        sim.reader.check_time(command, reply.now)
        yield from sleep(command.timestamp - sim.now)
        yield from sim.send(partial(sim.server.carry_out, command))
    yield from sleep(reply.now - sim.now)
    yield from sim.send(sim.server.on_ready)


def sleep(seconds: float) -> Steps[None]:
    """Sleep; 0 seconds are no sleep at all."""
    if seconds > 0:
        yield Sleep(seconds)


@dataclass(slots=True)
class RunTables:
    """The tables of Batsim's output files, in the order in which Batsim writes them."""

    jobs: list[SimJob] = field(default_factory=list)  # ended jobs
    hosts: list[tuple[float, list[int]]] = field(default_factory=list)  # seconds, hosts in each HostState
    energy: list[tuple[float, np.longdouble, str, float]] = field(default_factory=list)  # seconds, joules, kind, watts
    pstates: list[tuple[float, str, int]] = field(default_factory=list)  # seconds, hosts, pstate
    first_joules: float | np.longdouble = -1.0  # joules at the first submission
    last_joules: float | np.longdouble = -1.0  # joules at the last end of a job
    nb_switches: int = 0
    nb_grouped_switches: int = 0

    def begin_pstates(self, machines: Sequence[HostMachine]) -> None:
        """Write down the pstates of time 0, lowest first."""
        for pstate in sorted({machine.pstate for machine in machines}):
            hosts = format_hosts(machine.id for machine in machines if machine.pstate == pstate)
            self.pstates.append((0.0, hosts, pstate))

    def record(self, machines: Sequence[HostMachine], energy: bool) -> RunRecord:
        """Everything that Batsim would write about the run."""
        energies = EnergyTable(
            time=np.array([row[0] for row in self.energy], np.float64),
            energy=np.array([row[1] for row in self.energy], np.longdouble),
            event=[row[2] for row in self.energy],
            wattmin=np.array([row[3] for row in self.energy], np.float64),
        )
        pstates = PstateTable(
            time=np.array([row[0] for row in self.pstates], np.float64),
            hosts=[row[1] for row in self.pstates],
            pstate=np.array([row[2] for row in self.pstates], np.int64),
        )
        in_state = np.array([machine.time_in_state for machine in machines]).reshape(-1, len(HostState))
        return RunRecord(
            nb_hosts=len(machines),
            jobs=self._job_table(),
            host_states=HostTable(
                time=np.array([time for time, _ in self.hosts], np.float64),
                counts=np.array([counts for _, counts in self.hosts], np.int64).reshape(-1, len(HostState)),
            ),
            energy=energies if energy else None,
            pstates=pstates if energy else None,
            time_in_state=in_state.sum(axis=0),
            joules=float(self.last_joules - self.first_joules),
            nb_switches=self.nb_switches,
            nb_grouped_switches=self.nb_grouped_switches,
        )

    def _job_table(self) -> JobTable:
        return JobTable(
            id=[job.facts.id for job in self.jobs],
            profile=[job.facts.profile for job in self.jobs],
            submit_time=np.array([job.facts.submit_time for job in self.jobs], np.float64),
            size=np.array([job.facts.size for job in self.jobs], np.int64),
            walltime=np.array([job.facts.walltime for job in self.jobs], np.float64),
            final_state=np.array([job.final for job in self.jobs], np.int64),
            start_time=np.array([_unless_rejected(job, job.start) for job in self.jobs], np.float64),
            runtime=np.array([_unless_rejected(job, job.runtime) for job in self.jobs], np.float64),
            allocation=[job.allocation for job in self.jobs],
            energy=np.array([job.joules for job in self.jobs], np.float64),
            metadata=[job.metadata for job in self.jobs],
        )


def _unless_rejected(job: SimJob, value: float) -> float:
    return math.nan if job.final is FinalState.REJECTED else value
