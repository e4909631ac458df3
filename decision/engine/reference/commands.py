"""What the reference engine does when a command's time comes, once `decision.engine.commands_in` has read it.

Each command is checked whole before it changes anything. Where Batsim 4.2.1 would stop with an assertion, a
`PolicyError` names the time, the job and the hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from decision.engine import batsim_words as words
from decision.engine import command_kinds as commands
from decision.engine import refusals
from decision.engine.constants import PSTATE_ROW, SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP
from decision.engine.refusals import JobPhase
from decision.model.hosts import format_hosts
from decision.model.record import FinalState, HostState
from decision.protocol.messages import DecisionEvent

from .activities import Call, Steps
from .actors import call_later, execute, kill_jobs, switch
from .machines import HostMachine
from .sim_job import SimJob
from .simulation import Simulation


class CommandHandler:
    """The server's reactions to commands."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.switches = Switches(sim)

    def handle(self, event: DecisionEvent) -> Steps[None] | None:
        """Do what the decision process wants.

        Raises:
            PolicyError: if it is impossible.
        """
        match self.sim.reader.read(event):
            case commands.Start() as start:
                return self._start(start)
            case commands.Reject(job):
                self._reject(job)
            case commands.Kill(jobs):
                return self._kill(jobs)
            case commands.ChangeState(job, wanted):
                self._change_state(job, wanted)
            case commands.CallLater(time):
                return self._call_later(time)
            case commands.SetPstate(hosts, pstate):
                return self._set_pstate([self.sim.machines[host] for host in hosts], pstate)
            case commands.QueryEnergy():
                return self._query_energy()
            case commands.SetRegistration(allowed):
                self.sim.server.registration_open = allowed
            case commands.Register() as register:
                self._register(register)
            case commands.SetMetadata(job, text):
                job.metadata = text
        return None

    def _check(self, refusal: str) -> None:
        if refusal:
            raise self.sim.refuse(refusal)

    # --- Jobs ---------------------------------------------------------------------------------------------

    def _start(self, command: commands.Start[SimJob]) -> Steps[None]:
        job, machines = command.job, [self.sim.machines[host] for host in command.hosts]
        executors = [machines[place] for place in command.places] or machines
        self._check(refusals.phase_refusal(job.id, "start", job.phase))
        self._check(refusals.size_refusal(job.id, job.facts.size, job.moldable, len(executors)))
        self._check(refusals.start_refusal(job.id, command.alloc, machines, self.sim.options.energy))
        job.phase, job.machines, job.executors = JobPhase.RUNNING, machines, executors
        self.sim.server.nb_running += 1
        job.actor = yield Call(partial(self.sim.kernel.start, execute(self.sim, job), machines[0]))

    def _reject(self, job: SimJob) -> None:
        self._check(refusals.phase_refusal(job.id, "be rejected", job.phase))
        job.phase, job.final = JobPhase.ENDED, FinalState.REJECTED
        self.sim.server.note_end(job)

    def _kill(self, jobs: Sequence[SimJob]) -> Steps[None]:
        for job in jobs:
            if job.actor is None:
                raise self.sim.refuse(refusals.never_executed(job.id))
        asked = [job for job in dict.fromkeys(jobs) if not job.kill_asked]
        for job in asked:
            job.kill_asked = True
        if asked:
            yield Call(partial(self.sim.kernel.start, kill_jobs(self.sim, asked)))
            self.sim.server.nb_killers += 1

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
            raise self.sim.refuse(refusals.become_refusal(job.id, wanted, job.phase, alloc))

    def _register(self, command: commands.Register) -> None:
        job = self.sim.add_job(command.job, command.leaves, command.moldable)
        self.sim.submit(job)
        if self.sim.options.acknowledge_dynamic_jobs:
            self.sim.server.report_submitted(job)

    # --- Calls, hosts, energy -----------------------------------------------------------------------------

    def _call_later(self, time: float) -> Steps[None]:
        if not time > self.sim.now:
            raise self.sim.refuse(refusals.call_refusal(time))
        yield Call(partial(self.sim.kernel.start, call_later(self.sim, time)))
        self.sim.server.nb_calls += 1

    def _query_energy(self) -> Steps[None]:
        joules = yield from self.sim.joules(self.sim.machines)
        self.sim.server.outbox.append(words.consumed_energy(self.sim.message_time, float(joules)))

    def _set_pstate(self, machines: Sequence[HostMachine], pstate: int) -> Steps[None]:
        self._check(refusals.switch_refusal(machines, pstate))
        return self.switches.request(machines, pstate)


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
        self.nb_switching = 0  # hosts on their way to or from sleep

    def request(self, machines: Sequence[HostMachine], pstate: int) -> Steps[None]:
        """Change the hosts' pstate: at once between computing pstates, else through a virtual pstate."""
        tables = self.sim.tables
        request = SwitchRequest(format_hosts(machine.id for machine in machines), pstate, set(machines))
        self.requests.append(request)
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
        yield Call(partial(self.sim.kernel.start, switch(self.sim, machine, way, pstate, after), machine))
        self.nb_switching += 1

    def on_switched(self, machine: HostMachine, pstate: int) -> Steps[None]:
        """A host has arrived in its pstate."""
        request = yield from self._mark_done(machine, pstate)
        if request:
            self.sim.host_row()
        self._report(request)
        self.nb_switching -= 1

    def _mark_done(self, machine: HostMachine, pstate: int) -> Steps[SwitchRequest | None]:
        """Note that a host has arrived; returns the request that it completes."""
        request = next(each for each in self.requests if each.pstate == pstate and machine in each.left)
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
