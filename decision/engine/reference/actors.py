"""Batsim's actors, one generator each: who submits, who executes, who kills, who waits, who switches, who asks.

Each mirrors a process of Batsim 4.2.1 with all its requests to the kernel, also those that only take a round
(`STEP`): they decide who comes first where several things happen at one instant.
"""

from collections.abc import Sequence
from functools import partial

from decision.engine.batsim_words import task_progress
from decision.engine.constants import END_ROW, KILLED_CODE, SHORTEST_CALL, START_ROW, TASK_STEPS, WALLTIME_CODE
from decision.engine.profiles import LeafKind, LeafTask
from decision.engine.refusals import JobPhase
from decision.model.record import FinalState, HostState
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol.messages import Answer, TaskProgress

from .activities import STEP, Ask, Call, ParallelTask, Sleep, Steps, Wait, WaitResult
from .machines import HostMachine
from .sim_job import SimJob
from .simulation import Simulation


def sleep(seconds: float) -> Steps[None]:
    """Sleep; 0 seconds are no sleep at all."""
    if seconds > 0:
        yield Sleep(seconds)


# --- Submitters ----------------------------------------------------------------------------------------------


def submit_jobs(sim: Simulation, workload: Workload) -> Steps[None]:
    """Submit the static jobs of a workload: those of one instant in one message."""
    server = sim.server
    yield from sim.send(server.on_hello)
    clock = sim.now
    due: list[SimJob] = []
    for job in sorted((sim.jobs[facts.id] for facts in workload.jobs), key=lambda job: (job.facts.submit_time, job.id)):
        if job.facts.submit_time > clock:
            if due:
                yield from sim.send(partial(server.on_submitted, due))
            due = []
            yield from sleep(job.facts.submit_time - clock)
            clock = sim.now
        due.append(job)
        yield from _note_first_joules(sim)
    if due:
        yield from sim.send(partial(server.on_submitted, due))
    yield from sim.send(server.on_jobs_bye)


def _note_first_joules(sim: Simulation) -> Steps[None]:
    if sim.options.energy and sim.tables.first_joules < 0:
        sim.tables.first_joules = yield from sim.joules(sim.machines)


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
    yield from sim.send(partial(server.on_external, due))
    yield from sim.send(server.on_events_bye)


# --- The decision process ------------------------------------------------------------------------------------


def ask_decision(sim: Simulation, question: Message) -> Steps[None]:
    """Ask the decision process, and pass its commands on one by one, each at its time."""
    reply: Message = yield Ask(question)
    for command in reply.events:
        if isinstance(command, Answer):
            continue  # Batsim asked nothing and reads no answer
        sim.reader.check_time(command, reply.now)
        yield from sleep(command.timestamp - sim.now)
        yield from sim.send(partial(sim.server.on_command, command))
    yield from sleep(reply.now - sim.now)
    yield from sim.send(sim.server.on_ready)


def call_later(sim: Simulation, time: float) -> Steps[None]:
    """Call the decision process at `time` seconds."""
    yield from sleep(max(time - sim.now, SHORTEST_CALL))
    yield from sim.send(sim.server.on_call)


# --- Jobs ----------------------------------------------------------------------------------------------------


def execute(sim: Simulation, job: SimJob) -> Steps[None]:
    """Run a job on its machines, and tell the server how it ended unless it was killed."""
    job.start = sim.now
    if sim.options.energy:
        job.joules = yield from sim.joules(job.machines)
        yield from sim.energy_row(START_ROW)
    for machine in job.machines:
        machine.job = job.id
        sim.enter(machine, HostState.COMPUTING)
    sim.host_row()
    job.return_code = yield from _run_leaves(sim, job)
    yield from _end_job(sim, job, _final_state(job.return_code))
    if job.final is not FinalState.COMPLETED_KILLED:
        yield from sim.send(partial(sim.server.on_completed, job))


def _run_leaves(sim: Simulation, job: SimJob) -> Steps[int]:
    """Run the leaves in turn; returns the job's return code."""
    left = job.facts.walltime if job.facts.walltime != float("inf") else -1.0
    code = 0
    for leaf in job.leaves:
        job.leaf, job.leaf_begin, job.task = leaf, sim.now, None
        if leaf.kind is LeafKind.DELAY:
            code, left = yield from _delay(leaf, left)
        else:
            code, left = yield from _compute(sim, job, leaf, left)
        if code != 0:
            break
    return code


def _delay(leaf: LeafTask, left: float) -> Steps[tuple[int, float]]:
    """Sleep for the leaf; a walltime just as long counts as reached. Returns return code and seconds left."""
    if left < 0 or leaf.amount < left:
        yield from sleep(leaf.amount)
        return leaf.exit_code, left - leaf.amount if left > 0 else left
    yield from sleep(left)
    return WALLTIME_CODE, 0.0


def _compute(sim: Simulation, job: SimJob, leaf: LeafTask, left: float) -> Steps[tuple[int, float]]:
    """Compute the leaf; a walltime just as long is met. Returns return code and seconds left."""
    begin = sim.now
    for _ in range(TASK_STEPS):
        yield STEP
    job.task = ParallelTask(work=job.work(leaf), sent=job.sent(leaf))
    yield Call(partial(sim.kernel.begin, job.task))
    outcome = yield Wait(job.task, left if left >= 0 else None)
    code = {WaitResult.DONE: leaf.exit_code, WaitResult.LATE: WALLTIME_CODE, WaitResult.CANCELLED: KILLED_CODE}[outcome]
    return code, left - (sim.now - begin) if left >= 0 else left


def _final_state(return_code: int) -> FinalState:
    if return_code > 0:
        return FinalState.COMPLETED_FAILED
    stopped = {
        0: FinalState.COMPLETED_SUCCESSFULLY,
        WALLTIME_CODE: FinalState.COMPLETED_WALLTIME_REACHED,
        KILLED_CODE: FinalState.COMPLETED_KILLED,
    }
    return stopped[return_code]


def _end_job(sim: Simulation, job: SimJob, state: FinalState) -> Steps[None]:
    """Free the job's machines and write its energy down."""
    job.end(state, sim.now)
    for machine in job.machines:
        machine.job = ""
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
        if job.phase is not JobPhase.RUNNING or job.actor is None:
            continue
        if job.task:
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


def switch(sim: Simulation, machine: HostMachine, way: int, pstate: int, state: HostState) -> Steps[None]:
    """Compute one flop in the virtual pstate `way`; then the host is in `pstate` and in `state`."""
    yield Call(partial(machine.set_pstate, way, sim.now))
    for _ in ("flops", "host", "priority"):
        yield STEP
    task = ParallelTask(work={machine: 1.0})
    yield Call(partial(sim.kernel.begin, task))
    yield Wait(task, None)
    yield Call(partial(machine.set_pstate, pstate, sim.now))
    sim.enter(machine, state)
    yield from sim.send(partial(sim.server.on_switched, machine, pstate))
