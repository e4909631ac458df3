"""A whole run: platform, workloads and a policy in, a `RunRecord` out."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np
from msgspec.structs import replace

from decision.compiling.entry import Interface
from decision.compiling.jit import compile_ahead
from decision.engine.embedded import EmbeddedEngine
from decision.engine.kernels import arrays as a
from decision.engine.kernels.arrays import World, addresses
from decision.engine.kernels.server import CARRY_OUT, ask_engine
from decision.engine.kernels.server import engine as compiled_engine
from decision.engine.options import EngineOptions
from decision.model.demand import context, has_deadlines
from decision.model.errors import DeadlockError
from decision.model.lost_work import lost_work
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.trace import without_records
from decision.model.workload import MachineEvent, Workload
from decision.policies.around import entries_of
from decision.policies.around.estimated import predictions_of
from decision.policies.around.supplied import (
    are_forwarded,
    battery_table,
    check_suspensions,
    has_supply,
    host_cap,
    settings_of,
    supplied,
    with_cap,
)
from decision.policies.failures import reset_policy
from decision.policies.policy import Policy
from decision.policies.prepared import ask, prepare
from decision.policies.registry import find_policy
from decision.policies.window import window_gap
from decision.state.cluster import ClusterState
from decision.state.transitions import set_supply

from .job_checks import check_jobs, check_sleep
from .misfits import ask_about_others

Progress = Callable[[float, ClusterState | None], None]  # simulated time in seconds; the state, where it is known

_PATIENCE = 100_000  # decisions while nothing happens but calls of the policy, which wait for a time: a day by seconds
# what can change something, but the policy and jobs
_STRETCH = 16  # decisions before the first sign of progress
_INTERVAL = 0.05  # seconds between two signs, about


def simulate_workloads(
    platform: Platform,
    workloads: Sequence[Workload],
    policy: str | Policy,
    options: Mapping[str, str] | None = None,
    *,
    events: Sequence[MachineEvent] = (),
    engine_options: EngineOptions = EngineOptions(),  # noqa: B008 - immutable
    seed: int = 0,
    decide_limit: float = 0.0,
    progress: Progress | None = None,
) -> RunRecord:
    """Run `policy` over the workloads on the embedded engine.

    Args:
        platform: the hosts.
        workloads: what is submitted.
        policy: a name, ``module:Class`` or ``./file.py:Class``; or the policy itself.
        options: the named policy's own options, as texts.
        events: what happens to the platform from outside.
        engine_options: Batsim's options.
        seed: of the policy.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.
        progress: is called every now and then with how far the run is.

    Raises:
        ConfigError: if the inputs do not fit together.
        PolicyError: if the policy decides something impossible, or jobs wait and nothing happens any more.
    """
    began = time.perf_counter()
    chosen = find_policy(policy, options) if isinstance(policy, str) else policy
    events = with_cap(chosen, platform, workloads, events)
    if are_forwarded(events):
        engine_options = replace(engine_options, forward_unknown_events=True)
    compile_ahead(compiled_engine, *entries_of(chosen), simulate_episode)
    engine = EmbeddedEngine(platform, without_records(workloads), events, engine_options)
    misfits = check_jobs(platform, workloads, chosen)
    if has_supply(events) or any(map(has_deadlines, workloads)):
        chosen = supplied(chosen)
    check_suspensions(chosen, workloads, events)
    check_sleep(chosen, platform, engine_options.energy)
    reset_policy(chosen, platform, seed)
    cap = host_cap(chosen, platform)
    if cap is not None:  # from the beginning on, as `Agent` has it: events at 0 s come with the second question
        set_supply(engine.state, int(cap.hosts[0]), np.zeros(0, np.int32))
    seconds = simulate_on(engine, chosen, progress, decide_limit)
    misfits.tell(len(platform.hosts))
    engine.release()
    record = engine.record()
    record.predictions = predictions_of(chosen, engine.finished())
    record.window_gap = window_gap(chosen)
    record.know(context(workloads, events, battery_table(chosen)))
    record.lost_work = lost_work(record.jobs, workloads)
    record.scheduling_time = seconds
    record.simulation_time = time.perf_counter() - began
    return record


def simulate_on(
    engine: EmbeddedEngine, policy: Policy, progress: Progress | None = None, decide_limit: float = 0.0
) -> float:
    """Run a policy that was reset on an engine that was just made, to the end.

    Arguments are those of `simulate_workloads`.

    Returns:
        The seconds spent in a policy in Python; nan for a compiled one.

    Raises:
        PolicyError: if the policy fails or decides something impossible.
        DeadlockError: if nothing can happen any more, or nothing but calls that the policy asks for.
    """
    engine.world.sim.registration_open = 0  # the engine itself registers what is left of suspended jobs
    settings = settings_of(policy)
    engine.world.sim.restart, engine.world.sim.checkpoint_every = settings.restart, settings.every
    prepared = prepare(policy, engine.facts, JobNames(engine), decide_limit)
    engine.allocations.unasked = not prepared.looks_back
    misfits = bool((engine.world.truth.size > len(engine.state.host_state)).any())
    memory, stretch = None, _STRETCH if progress else _PATIENCE
    watch = _Watch(engine)
    while True:
        memory = prepared.memory_for(engine.state, engine.plan, memory)
        began = time.perf_counter()
        code = simulate_episode.from_python(
            *addresses(engine.world), prepared.address, memory.address, stretch, misfits
        )
        if code == a.STOPPED:
            raise prepared.error()
        if code == a.UNCARRIED:
            engine.reply(float(engine.state.now))
            code = a.GROW
        if code != a.PAUSED and engine.resume(code) == a.DONE:
            return prepared.seconds
        if code == a.PAUSED:
            watch.look(stretch)
        if progress:
            progress(float(engine.state.now), engine.state)
            stretch = min(2 * stretch, _PATIENCE) if time.perf_counter() - began < _INTERVAL else max(stretch // 2, 1)


class _Watch:
    """Ends a run in which jobs wait, and a policy that alone could go on only asks to be called again."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine, self._decisions = engine, 0
        self._done: tuple[int, ...] = ()

    def look(self, decisions: int) -> None:
        """The policy has been asked so many times since the last look. Raises DeadlockError."""
        state, sim = self._engine.state, self._engine.world.sim
        others = sim.nb_submitters + sim.nb_event_lists + sim.nb_switching + sim.nb_killers + state.nb_running
        done = (sim.nb_finished, sim.nb_switches, sim.nb_kills)
        idle = others == 0 and state.nb_queued > 0 and done == self._done
        self._done, self._decisions = done, self._decisions + decisions if idle else 0
        if self._decisions >= _PATIENCE:
            waiting = JobNames(self._engine)[int(state.queue[0])]
            asked = f"t={state.now:.12g} s: asked {self._decisions:,} times, and jobs still wait"
            raise DeadlockError(f"{asked}: nothing else can happen any more; start or reject {waiting}")


@Interface(int, *a.WORLD, int, int, int, int).entry
def simulate_episode(state, facts, truth, sim, rows, plan, policy, memory, decisions, misfits):
    """Ask the policy at address `policy` for at most so many decisions, and carry them out.

    To be called when a question is open; after PAUSED again, after GROW `advance` must be called first. `misfits` is
    whether there are jobs that are larger than the cluster, which are rejected.

    Returns:
        Why it stopped: a code of `advance`, or PAUSED, UNCARRIED or STOPPED.
    """
    world = World(state, facts, truth, sim, rows, plan)
    sim.timed_commands = 0
    sim.policy_watches = 1
    while decisions > 0:
        if misfits:
            planned = ask_about_others(policy, state, facts, memory, plan)
        else:
            planned = ask(policy, state, facts, memory, plan)
        if not planned:
            return a.STOPPED
        code = ask_engine(world, CARRY_OUT, state.now)
        if code != a.ASK:
            return code
        decisions -= 1
    return a.PAUSED


class JobNames(Sequence[str]):
    """The ids of an engine's jobs, by number: looked up when asked for, as many as jobs have been submitted."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return int(self._engine.state.nb_jobs)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self._engine.job(i).id for i in range(*number.indices(len(self)))]
        return self._engine.job(number).id
