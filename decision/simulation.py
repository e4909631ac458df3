"""A policy and the embedded engine together: whole runs without any messages, and a check of a policy by small ones.

Design
------
A policy and the engine run in one compiled loop, `simulate_episode`, which comes up to Python only to let arrays grow
and to show progress. It asks the policy by address (`decision.policies.prepared`), so it is the same loop for a policy
that is compiled and for one in Python. Nobody decides in the middle of an instant: one question, one decision, as
under Batsim; a test asserts that both give the same trace. Rejected: a second loop, in Python, for policies in Python:
it did the same in other words, and was slower.

Jobs that ask for more hosts than there are cannot start: they are rejected as they come, so that no policy sees them.
Batsim would send them, and our agent rejects them in the same way; results are the same to the byte.

`try_policy` tries a policy on small workloads, as Gymnasium's `check_env` tries an environment.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.compiling.entry import Interface
from decision.compiling.jit import compile_ahead
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.kernels import arrays as a
from decision.engine.kernels.arrays import World, addresses
from decision.engine.kernels.server import CARRY_OUT, ask_engine
from decision.engine.kernels.server import engine as compiled_engine
from decision.engine.rules import EngineOptions
from decision.model.demand import context, has_deadlines
from decision.model.errors import DeadlockError, DecideTimeoutError, DecisionError, PolicyError
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.record import RunRecord, lost_work
from decision.model.trace import without_records
from decision.model.workload import Delay, Job, MachineEvent, Workload
from decision.policies.checks import ask_about_others, check_jobs, check_sleep
from decision.policies.loading import reset_policy
from decision.policies.policy import Plan, Policy
from decision.policies.prepared import ask, prepare
from decision.policies.registry import find_policy
from decision.policies.traits import PolicySpec, traits_of
from decision.policies.window import window_gap
from decision.policies.wrappers import entries_of
from decision.policies.wrappers.prediction import predictions_of
from decision.policies.wrappers.supply import (
    are_forwarded,
    battery_table,
    check_suspensions,
    has_supply,
    host_cap,
    settings_of,
    supplied,
    with_cap,
)
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import START
from decision.state.transitions import set_supply
from decision.state.view import ClusterView

__all__ = ["simulate_workloads", "try_policy"]

Progress = Callable[[float, ClusterState | None], None]  # simulated time in seconds; the state, where it is known

# Decisions while nothing happens but calls of the policy. It may wait for a time, be it a day second by second.
_PATIENCE = 100_000
_STRETCH = 16  # decisions before the first sign of progress
_INTERVAL = 0.05  # seconds between two signs, about


def simulate_workloads(
    platform: Platform,
    workloads: Sequence[Workload],
    policy: str | PolicySpec | Policy,
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
        policy: a name, ``module:Class`` or ``./file.py:Class``, or that parsed; or the policy itself.
        options: the named policy's own options, as texts, where its name is one.
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
    chosen = find_policy(policy, options) if isinstance(policy, str | PolicySpec) else policy
    events = with_cap(chosen, platform, workloads, events)
    if are_forwarded(events):
        engine_options = replace(engine_options, forward_unknown_events=True)
    # What is not on disk compiles in another process, while this one reads and checks.
    compile_ahead(compiled_engine, *entries_of(chosen), simulate_episode)
    engine = EmbeddedEngine(platform, without_records(workloads), events, engine_options)
    oversized = check_jobs(platform, workloads, chosen)
    if has_supply(events) or any(map(has_deadlines, workloads)):
        chosen = supplied(chosen)
    check_suspensions(chosen, workloads, events)
    check_sleep(chosen, platform, engine_options.energy)
    reset_policy(chosen, platform, seed)
    cap = host_cap(chosen, platform)
    if cap is not None:  # from the beginning on, as `Agent` has it: events at 0 s come with the second question
        set_supply(engine.state, int(cap.hosts[0]), np.zeros(0, np.int32))
    seconds = simulate_on(engine, chosen, progress, decide_limit)
    oversized.tell(len(platform.hosts))
    engine.release()
    record = engine.record()
    engine.release(recorded=True)
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
    oversized = bool((engine.world.truth.size > len(engine.state.host_state)).any())
    memory, stretch = None, _STRETCH if progress else _PATIENCE
    watch = _Watch(engine)
    # Each turn is one call of machine code: up to `stretch` decisions, or until arrays must grow.
    while True:
        memory = prepared.memory_for(engine.state, engine.plan, memory)
        began = time.perf_counter()
        code = simulate_episode.from_python(
            *addresses(engine.world), prepared.address, memory.address, stretch, oversized
        )
        if code == a.STOPPED:
            raise prepared.error()
        # The plan is still to be carried out, in longer arrays.
        if code == a.UNCARRIED:
            engine.reply(float(engine.state.now))
            code = a.GROW
        if code != a.PAUSED and engine.resume(code) == a.DONE:
            return prepared.seconds
        if code == a.PAUSED:
            watch.look(stretch)
            engine.release_ended(prepared.recalls)
        if progress:
            progress(float(engine.state.now), engine.state)
            # Signs of progress come at about `_INTERVAL`, whatever a decision takes.
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
        # Nothing is on its way that could change anything, and the policy has ended, killed and switched nothing.
        idle = others == 0 and state.nb_queued > 0 and done == self._done
        self._done, self._decisions = done, self._decisions + decisions if idle else 0
        if self._decisions >= _PATIENCE:
            waiting = JobNames(self._engine)[int(state.queue[0])]
            asked = f"t={state.now:.12g} s: asked {self._decisions:,} times, and jobs still wait"
            raise DeadlockError(f"{asked}: nothing else can happen any more; start or reject {waiting}")


@Interface(int, *a.WORLD, int, int, int, int).entry
def simulate_episode(state, facts, truth, sim, rows, plan, policy, memory, decisions, oversized):
    """Ask the policy at address `policy` for at most so many decisions, and carry them out.

    To be called when a question is open; after PAUSED again, after GROW `advance` must be called first. `oversized`
    is whether there are jobs that are larger than the cluster, which are rejected.

    Returns:
        Why it stopped: a code of `advance`, or PAUSED, UNCARRIED or STOPPED.
    """
    world = World(state, facts, truth, sim, rows, plan)
    sim.timed_commands = 0
    sim.policy_watches = 1
    while decisions > 0:
        if oversized:
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
        return self._engine.state.nb_jobs

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self._engine.job(i).id for i in range(*number.indices(len(self)))]
        return self._engine.job(number).id


# --- A check that a policy keeps the rules of every policy -----------------------------------------------------------

# Decisions without a start while jobs wait. Trials take some hundred decisions, so that this many are for ever.
_CHECK_PATIENCE = 2_000
_DECIDE_LIMIT = 5.0  # seconds


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One of the small runs."""

    name: str
    platform: Platform
    workload: Workload
    events: tuple[MachineEvent, ...] = ()
    energy: bool = False


def try_policy(make: Callable[[], Policy], decide_limit: float = _DECIDE_LIMIT) -> list[str]:
    """Try a policy on small workloads.

    Args:
        make: makes a fresh policy.
        decide_limit: seconds that a policy in Python may take for a decision; after one that took longer, nothing more
            is tried. 0 means no limit.

    Returns:
        One clear line for each rule that it breaks, with the first trial that found it; none if it keeps them all.

    Raises:
        ConfigError: if the policy cannot be made.
    """
    findings: dict[str, str] = {}  # the trial that found it first
    for trial in trials(without_walltime=not traits_of(make()).needs_walltime):
        watched = _Watched(make())
        try:
            broken = _try(trial, watched, make, decide_limit)
        except DecideTimeoutError as error:
            findings |= dict.fromkeys((*watched.findings, str(error)), trial.name)
            break
        findings |= {finding: trial.name for finding in broken if finding not in findings}
    return [f"{trial}: {finding}" for finding, trial in findings.items()]


def _try(trial: Trial, watched: "_Watched", make: Callable[[], Policy], decide_limit: float) -> list[str]:
    try:
        first, again = (_simulate(trial, watched, decide_limit) for _ in range(2))
        fresh = _simulate(trial, _Watched(make()), decide_limit)
    except DecideTimeoutError:
        raise
    except DecisionError as error:
        return [*watched.findings, str(error)]
    findings = list(watched.findings)
    if difference := _difference(first, fresh):
        findings.append(f"two runs with the same seed differ: {difference}")
    elif difference := _difference(first, again):
        findings.append(f"reset does not forget the run before: {difference}")
    return findings


def _simulate(trial: Trial, policy: Policy, decide_limit: float) -> RunRecord:
    engine = EmbeddedEngine(trial.platform, [trial.workload], trial.events, EngineOptions(energy=trial.energy))
    reset_policy(policy, trial.platform, 1)
    simulate_on(engine, policy, decide_limit=decide_limit)
    return engine.record()


def _difference(one: RunRecord, other: RunRecord) -> str:
    """The first job that two runs treat differently, in words; nothing if there is none."""
    a, b = (
        dict(
            zip(
                jobs.id,
                zip(np.nan_to_num(jobs.start_time, nan=-1.0).tolist(), jobs.allocation, strict=True),
                strict=True,
            )
        )
        for jobs in (one.jobs, other.jobs)
    )
    for job, (start, hosts) in a.items():
        if (start, hosts) != b.get(job):
            then = b.get(job)
            elsewhere = f"at {then[0]:g} s on {then[1]}" if then else "never"
            return f"{job} starts at {start:g} s on {hosts}, or {elsewhere}"
    return ""


class _Watched:
    """A policy whose effects are observed: what it does to the state, and whether it ever starts a job."""

    def __init__(self, policy: Policy) -> None:
        self.__wrapped__ = policy  # whose failures these are
        self._idle = 0
        self.findings: list[str] = []

    def reset(self, platform: Platform, seed: int) -> None:
        self._idle = 0
        self.__wrapped__.reset(platform, seed)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        before = [array.tobytes() for array in cluster.arrays.arrays().values()]
        self.__wrapped__.decide(cluster, plan)
        for was, (field, now) in zip(before, cluster.arrays.arrays().items(), strict=True):
            finding = f"it writes the state ({field}), which it may only read"
            # 0 and -0 are the same
            same = was == now.tobytes() or np.array_equal(np.frombuffer(was, now.dtype), now.ravel(), equal_nan=True)
            if not same and finding not in self.findings:
                self.findings.append(finding)
        starts = START in plan.arrays.kind[: plan.arrays.nb_actions]
        self._idle = 0 if starts or cluster.arrays.nb_queued == 0 else self._idle + 1
        if self._idle > _CHECK_PATIENCE:
            raise PolicyError(f"t={cluster.now:g} s: asked {_CHECK_PATIENCE} times, and jobs still wait")


# --- The trials ---------------------------------------------------------------------------------------------------


def trials(without_walltime: bool) -> Iterator[Trial]:
    """All of them; the one whose jobs have no walltime only for policies that need none."""
    rng = np.random.default_rng(2)
    small, large = _platform(4), _platform(16)
    yield Trial(name="one job", platform=small, workload=_workload([(1.0, 2, 10.0, 20.0)]))
    ties = [(float(i // 10), int(rng.integers(1, 9)), float(rng.integers(1, 6)), 5.0) for i in range(60)]
    yield Trial(name="many things at one instant", platform=large, workload=_workload(ties))
    early = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(1, 30), 60.0) for i in range(80)]
    yield Trial(name="jobs that end early", platform=large, workload=_workload(early))
    late = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(20, 90), 50.0) for i in range(40)]
    yield Trial(name="jobs that reach their walltime", platform=large, workload=_workload(late))
    burst = [(0.0, int(rng.integers(1, 5)), rng.uniform(1, 10), 10.0) for _ in range(300)]
    yield Trial(name="300 jobs at once on 4 hosts", platform=small, workload=_workload(burst))
    wide = [(i * 2.0, 16 if i % 3 == 0 else 1, 10.0, 12.0) for i in range(40)]
    yield Trial(name="jobs as large as the platform", platform=large, workload=_workload(wide))
    away = (
        MachineEvent(timestamp=20.0, type="machine_unavailable", hosts=(0, 1, 2, 3, 4, 5)),
        MachineEvent(timestamp=300.0, type="machine_available", hosts=(0, 1, 2, 3, 4, 5)),
    )
    yield Trial(name="hosts that leave and return", platform=large, workload=_workload(early), events=away)
    sparse = [(i * 200.0, int(rng.integers(1, 5)), rng.uniform(1, 100), 120.0) for i in range(20)]
    yield Trial(name="hosts that can sleep", platform=_platform(4, True), workload=_workload(sparse), energy=True)
    if without_walltime:
        endless = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(1, 30), math.inf) for i in range(40)]
        yield Trial(name="jobs without walltime", platform=large, workload=_workload(endless))


def _workload(jobs: list[tuple[float, int, float, float]]) -> Workload:
    """From (submission, hosts, runtime, walltime), times in seconds."""
    return Workload(
        name="w0",
        jobs=[
            Job(id=f"w0!{i}", submit_time=submit, size=size, walltime=walltime, profile=f"p{i}")
            for i, (submit, size, _, walltime) in enumerate(jobs)
        ],
        profiles={f"p{i}": Delay(duration=runtime) for i, (_, _, runtime, _) in enumerate(jobs)},
        nb_res=max(job[1] for job in jobs),
    )


def _platform(hosts: int, sleeps: bool = False) -> Platform:
    """Equal hosts; those that sleep take 5 s to fall asleep and 20 s to wake."""
    awake = PowerState(speed=1e9, idle=95.0, epsilon=95.0, full=190.0)
    asleep, down, up = (
        PowerState(speed=s, idle=w, epsilon=w, full=w) for s, w in ((1e9, 9.0), (0.2, 100.0), (0.05, 125.0))
    )
    return Platform(
        hosts=tuple(
            Host(
                id=i,
                name=f"host-{i:02}",
                pstates=(awake, asleep, down, up) if sleeps else (awake,),
                sleep=(SleepState(pstate=1, switch_off=2, switch_on=3),) if sleeps else (),
                has_power=True,
            )
            for i in range(hosts)
        )
    )
