"""Batsim's actors, one generator each: who submits, who executes, who kills, who waits, who switches, who asks.

Each mirrors a process of Batsim 4.2.1 with all its requests to the kernel, also those that only take a round
(`STEP`): they decide who comes first where several things happen at one instant.
"""

from collections.abc import Sequence
from functools import partial

from decision.model.record import FinalState, HostState
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Answer, Message, TaskProgress

from .profiles import Leaf, LeafKind
from .reference_jobs import Entry, Phase
from .reference_kernel import STEP, Ask, Call, Outcome, Sleep, Steps, Task, Wait
from .reference_machines import Machine
from .reference_world import World

WALLTIME_CODE, KILLED_CODE = -1, -2  # return codes of jobs that were stopped
SHORTEST_CALL = 1e-5  # seconds


def sleep(seconds: float) -> Steps[None]:
    """Sleep; 0 seconds are no sleep at all."""
    if seconds > 0:
        yield Sleep(seconds)


# --- Submitters ----------------------------------------------------------------------------------------------


def submit_jobs(world: World, workload: Workload) -> Steps[None]:
    """Submit the static jobs of a workload: those of one instant in one message."""
    server = world.server
    yield from world.send(server.on_hello)
    clock = world.now
    due: list[Entry] = []
    entries = [world.jobs[job.id] for job in workload.jobs]
    for entry in sorted(entries, key=lambda entry: (entry.job.submit_time, entry.id)):
        if entry.job.submit_time > clock:
            if due:
                yield from world.send(partial(server.on_submitted, due))
            due = []
            yield from sleep(entry.job.submit_time - clock)
            clock = world.now
        due.append(entry)
        yield from _note_first_joules(world)
    if due:
        yield from world.send(partial(server.on_submitted, due))
    yield from world.send(server.on_jobs_bye)


def _note_first_joules(world: World) -> Steps[None]:
    if world.options.energy and world.rows.first_joules < 0:
        world.rows.first_joules = yield from world.joules(world.machines)


def submit_events(world: World, events: Sequence[MachineEvent]) -> Steps[None]:
    """Let external events happen: those of one instant in one message."""
    server = world.server
    yield from world.send(server.on_hello)
    clock = world.now
    due: list[MachineEvent] = []
    for event in events:
        if event.timestamp > clock:
            if due:
                yield from world.send(partial(server.on_external, due))
            due = []
            yield from sleep(event.timestamp - clock)
            clock = world.now
        due.append(event)
    yield from world.send(partial(server.on_external, due))
    yield from world.send(server.on_events_bye)


# --- The decision process ------------------------------------------------------------------------------------


def converse(world: World, question: Message) -> Steps[None]:
    """Ask the decision process, and pass its commands on one by one, each at its time."""
    reply: Message = yield Ask(question)
    for command in reply.events:
        if isinstance(command, Answer):
            continue  # Batsim asked nothing and reads no answer
        if command.timestamp > reply.now:
            text = f"{type(command).__name__} is for t={command.timestamp:g} s, after the reply's now={reply.now:g} s"
            raise world.refuse(text)
        yield from sleep(command.timestamp - world.now)
        yield from world.send(partial(world.server.on_command, command))
    yield from sleep(reply.now - world.now)
    yield from world.send(world.server.on_ready)


def call_later(world: World, time: float) -> Steps[None]:
    """Call the decision process at `time` seconds."""
    yield from sleep(max(time - world.now, SHORTEST_CALL))
    yield from world.send(world.server.on_call)


# --- Jobs ----------------------------------------------------------------------------------------------------


def execute(world: World, entry: Entry) -> Steps[None]:
    """Run a job on its machines, and tell the server how it ended unless it was killed."""
    entry.start = world.now
    if world.options.energy:
        entry.joules = yield from world.joules(entry.machines)
        yield from world.energy_row("s")
    for machine in entry.machines:
        machine.job = entry.id
        world.enter(machine, HostState.COMPUTING)
    world.host_row()
    entry.return_code = yield from _run_leaves(world, entry)
    yield from _end_job(world, entry, _final_state(entry.return_code))
    if entry.final is not FinalState.COMPLETED_KILLED:
        yield from world.send(partial(world.server.on_completed, entry))


def _run_leaves(world: World, entry: Entry) -> Steps[int]:
    """Run the leaves in turn; returns the job's return code."""
    left = entry.job.walltime if entry.job.walltime != float("inf") else -1.0
    code = 0
    for leaf in entry.leaves:
        entry.leaf, entry.leaf_begin, entry.task = leaf, world.now, None
        if leaf.kind is LeafKind.DELAY:
            code, left = yield from _delay(leaf, left)
        else:
            code, left = yield from _compute(world, entry, leaf, left)
        if code != 0:
            break
    return code


def _delay(leaf: Leaf, left: float) -> Steps[tuple[int, float]]:
    """Sleep for the leaf; a walltime just as long counts as reached. Returns return code and seconds left."""
    if left < 0 or leaf.amount < left:
        yield from sleep(leaf.amount)
        return leaf.exit_code, left - leaf.amount if left > 0 else left
    yield from sleep(left)
    return WALLTIME_CODE, 0.0


def _compute(world: World, entry: Entry, leaf: Leaf, left: float) -> Steps[tuple[int, float]]:
    """Compute the leaf; a walltime just as long is met. Returns return code and seconds left."""
    begin = world.now
    for _ in ("flops", "bytes", "hosts"):
        yield STEP
    entry.task = Task(work=entry.work(leaf))
    yield Call(partial(world.kernel.begin, entry.task))
    outcome = yield Wait(entry.task, left if left >= 0 else None)
    code = {Outcome.DONE: leaf.exit_code, Outcome.LATE: WALLTIME_CODE, Outcome.CANCELLED: KILLED_CODE}[outcome]
    return code, left - (world.now - begin) if left >= 0 else left


def _final_state(return_code: int) -> FinalState:
    if return_code > 0:
        return FinalState.COMPLETED_FAILED
    stopped = {
        0: FinalState.COMPLETED_SUCCESSFULLY,
        WALLTIME_CODE: FinalState.COMPLETED_WALLTIME_REACHED,
        KILLED_CODE: FinalState.COMPLETED_KILLED,
    }
    return stopped[return_code]


def _end_job(world: World, entry: Entry, state: FinalState) -> Steps[None]:
    """Free the job's machines and write its energy down."""
    entry.end(state, world.now)
    for machine in entry.machines:
        machine.job = ""
        if machine.state is not HostState.UNAVAILABLE:
            world.enter(machine, HostState.IDLE)
    world.host_row()
    if world.options.energy:
        entry.joules = (yield from world.joules(entry.machines)) - entry.joules
        world.rows.last_joules = yield from world.energy_row("e")


def kill(world: World, entries: Sequence[Entry]) -> Steps[None]:
    """Kill those of the jobs that still run, and tell the server how far each was."""
    progress: dict[str, TaskProgress] = {}
    for entry in entries:
        if entry.phase is not Phase.RUNNING or entry.actor is None:
            continue
        if entry.task:
            yield STEP
        progress[entry.id] = entry.progress(world.now)
        if entry.task:  # its own actor goes on and ends the job
            yield Call(partial(world.kernel.cancel, entry.task))
        else:
            yield Call(partial(world.kernel.kill, entry.actor))
            yield from _end_job(world, entry, FinalState.COMPLETED_KILLED)
    yield from world.send(partial(world.server.on_killed, entries, progress))


# --- Hosts ---------------------------------------------------------------------------------------------------


def switch(world: World, machine: Machine, way: int, pstate: int, state: HostState) -> Steps[None]:
    """Compute one flop in the virtual pstate `way`; then the host is in `pstate` and in `state`."""
    yield Call(partial(machine.set_pstate, way, world.now))
    for _ in ("flops", "host", "priority"):
        yield STEP
    task = Task(work={machine: 1.0})
    yield Call(partial(world.kernel.begin, task))
    yield Wait(task, None)
    yield Call(partial(machine.set_pstate, pstate, world.now))
    world.enter(machine, state)
    yield from world.send(partial(world.server.on_switched, machine, pstate))
