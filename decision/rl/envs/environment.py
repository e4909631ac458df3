"""One environment as arrays: what compiled loops step, what they add up, and the metrics of its episodes."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.compiling.jit import kernel
from decision.engine.kernels.arrays import Rows, Sim, Truth, World, grow_sim, new_rows, new_sim
from decision.engine.kernels.server import engine
from decision.model.record import SHORTEST_RUNTIME, FinalState
from decision.policies.profile import TOLERANCE
from decision.policies.traits import OutlookSettings
from decision.policies.wrappers.prediction import Outlook, new_outlook, seen_through
from decision.rl.schedulers.decision_points import Cycles, EpisodeProgress, end_episode, is_over, new_cycles
from decision.state.cluster import ENDED, ClusterState, PlatformFacts, new_state, platform_facts
from decision.state.plan_arrays import START, PlanArrays, new_plan

from .setup import Beginnings, Setup

_SUSPENSIONS = 4  # of each job on average: an episode with more is cut off


class Environment(NamedTuple):
    """One environment. Kernels have the address of `memory` in its place, because its class is the scheduler's own.

    The scheduler's kernels get `seen`, the state through its outlook: the same arrays, where walltimes are expected.
    """

    state: ClusterState
    facts: PlatformFacts
    truth: Truth
    sim: Sim
    rows: Rows
    plan: PlanArrays
    cycles: Cycles
    progress: EpisodeProgress
    beginnings: Beginnings
    seen: ClusterState
    outlook: Outlook
    memory: Any


_state_at, _facts_at, _truth_at, _sim_at = (bundle_at(kind) for kind in (ClusterState, PlatformFacts, Truth, Sim))
_rows_at, _plan_at, _cycles_at = (bundle_at(kind) for kind in (Rows, PlanArrays, Cycles))
_progress_at, _beginnings_at, _outlook_at = (bundle_at(kind) for kind in (EpisodeProgress, Beginnings, Outlook))


@kernel
def environment_at(addresses):
    """The environment whose bundles are at these addresses."""
    return Environment(
        _state_at(addresses[0]),
        _facts_at(addresses[1]),
        _truth_at(addresses[2]),
        _sim_at(addresses[3]),
        _rows_at(addresses[4]),
        _plan_at(addresses[5]),
        _cycles_at(addresses[6]),
        _progress_at(addresses[7]),
        _beginnings_at(addresses[8]),
        _state_at(addresses[9]),
        _outlook_at(addresses[10]),
        addresses[11],
    )


@kernel
def world_of(env):
    """The part of an environment that the engine simulates."""
    return World(env.state, env.facts, env.truth, env.sim, env.rows, env.plan)


def new_environments(setup: Setup, number: int) -> list[Environment]:
    """Environments with room for all that an episode can come to: nothing grows."""
    energy = setup.scheduler.energy
    facts, _ = platform_facts(setup.platform, energy)
    shared = new_rows(0, 0)
    return [_new_environment(setup, facts, shared) for _ in range(number)]


def _new_environment(setup: Setup, facts: PlatformFacts, rows: Rows) -> Environment:
    # every host may end a job and begin another at one instant, while as many calls are asked for as are pending
    truth, room = setup.trace.truth, 16 * len(setup.platform.hosts) + 1024 + 3 * _pending_calls(setup)
    state = _roomy_state(setup, facts, room)
    truth = truth._replace(workload_end=truth.workload_end.copy())  # the rest is shared by all environments
    outlook = new_outlook(state, setup.outlook or OutlookSettings())
    seen = state if setup.outlook is None else seen_through(state, outlook)
    if setup.rules.energy:
        rows = new_rows(0, 8 * room)
    return Environment(
        state=state,
        facts=facts,
        truth=truth,
        sim=_roomy_sim(truth, setup, room),
        rows=rows,
        plan=new_plan(state),
        cycles=new_cycles(state),
        progress=EpisodeProgress(
            word=np.zeros(1, np.uint64),
            actions=np.zeros(setup.rules.steps, np.int32),
            runtime=setup.trace.runtime,
            parameters=np.array(setup.scheduler.reward_parameters(setup.settings), float),
        ),
        beginnings=setup.beginnings,
        seen=seen,
        outlook=outlook,
        memory=setup.scheduler.new_memory(setup.settings, setup.encoder, seen),
    )


def _rests(setup: Setup) -> int:
    """How often jobs of an episode are suspended at most; one with more suspensions is cut off."""
    return 0 if setup.supply is None else _SUSPENSIONS * setup.rules.arrivals + 1024


def _pending_calls(setup: Setup) -> int:
    """How many calls are asked for and not yet made, at most.

    A scheduler asks for one in a cycle; each arrival, each end and each call begins one.
    """
    if setup.scheduler.most_calls is not None:
        return setup.scheduler.most_calls
    return 2 * setup.rules.arrivals + 2 if setup.scheduler.calls else 0


def _roomy_state(setup: Setup, facts: PlatformFacts, room: int) -> ClusterState:
    """A job of s out of H hosts has at most min(s, H - s + 1) intervals of them. Pages never used cost nothing."""
    pstates, rules = setup.beginnings.pstate, setup.rules
    hosts = len(pstates)
    size = setup.trace.truth.size[: setup.trace.jobs].astype(np.int64)
    started = min(rules.jobs, rules.arrivals) + _rests(setup)
    intervals = int(np.minimum(size, hosts - size + 1).max()) * (started + hosts) + room
    running = 4 * hosts + 64 + _pending_calls(setup)
    return new_state(facts, pstates, rules.arrivals + _rests(setup))._replace(
        interval_first=np.zeros(intervals, np.int32),
        interval_last=np.zeros(intervals, np.int32),
        running=np.zeros(running, np.int32),
        expected_end=np.zeros(running),
        ended=np.zeros(running, np.int32),
    )


def _roomy_sim(truth: Truth, setup: Setup, room: int) -> Sim:
    """All jobs may come, with room for whatever else there is."""
    platform, rests = setup.platform, _rests(setup)
    jobs = setup.rules.arrivals + rests
    sim = grow_sim(new_sim(truth, len(platform.hosts), 0, jobs, platform.routes), jobs, room)
    sim.root = engine.address
    if setup.supply is not None:
        sim.restart = setup.supply.restart
    logs = {name: getattr(sim, name) for name in ("log_kind", "log_time", "log_arg", "log_value")}
    kills = {name: getattr(sim, name) for name in ("kill_begin", "kill_end", "kill_job")}
    logged = jobs + room + len(truth.event_time)
    return sim._replace(
        **{name: np.zeros(logged, log.dtype) for name, log in logs.items()},
        **{name: np.zeros(len(kill) + rests, kill.dtype) for name, kill in kills.items()},
    )


# --- Metrics of episodes, and the sums that they and the rewards are computed from ---------------------------------

MEANINGS = {  # of the metrics that every environment has; the words of a paper are DBF's
    "return": "sum of the rewards",
    "length": "choices",
    "utilization": "the paper's: cores in use over all cores, average over time",
    "waiting_time": "the paper's: seconds in the queue per job that has arrived",
    "queue_length": "the paper's: jobs, average over time",
    "job_load": "the paper's: core-seconds of requested work in the queue, average over time",
    "placed_waiting_time": "seconds, mean of the jobs that were placed",
    "bounded_slowdown": "mean of the jobs that were placed, with their real run times",
    "unseen_jobs": "jobs in the queue and outside of the window, average over time",
    "partial_time": "share of the time in which there were any",
    "duration": "seconds",
    "arrived": "jobs",
}
EPISODE_METRICS = tuple(MEANINGS)
RANGES = {"return": (-math.inf, math.inf), "utilization": (0.0, 1.0), "partial_time": (0.0, 1.0)}  # others: from 0 on
(
    _RETURN,
    _LENGTH,
    _UTILIZATION,
    _WAITING_TIME,
    _QUEUE_LENGTH,
    _JOB_LOAD,
    _PLACED_WAITING_TIME,
    _BOUNDED_SLOWDOWN,
    _UNSEEN_JOBS,
    _PARTIAL_TIME,
    _DURATION,
    _ARRIVED,
) = range(len(EPISODE_METRICS))

_SUCCESS = ENDED + int(FinalState.COMPLETED_SUCCESSFULLY)


@kernel
def measure_episode(env, out):
    """The EPISODE_METRICS of the episode so far (K,)."""
    seconds = env.state.now - env.progress.began
    out[_RETURN] = env.progress.total_reward
    out[_LENGTH] = env.progress.nb_steps
    out[_UTILIZATION] = env.progress.used / (seconds * len(env.cycles.until))
    out[_WAITING_TIME] = env.progress.waited / env.progress.nb_arrived
    out[_QUEUE_LENGTH] = env.progress.waited / seconds
    out[_JOB_LOAD] = env.progress.loaded / seconds
    out[_PLACED_WAITING_TIME] = env.progress.placed_wait / env.progress.nb_placed
    out[_BOUNDED_SLOWDOWN] = env.progress.slowdown / env.progress.nb_placed
    out[_UNSEEN_JOBS] = env.progress.unseen / seconds
    out[_PARTIAL_TIME] = env.progress.partial / seconds
    out[_DURATION] = seconds
    out[_ARRIVED] = env.progress.nb_arrived


@kernel
def add_time(env, window, seconds):
    """Add up what stayed the same for so long."""
    queued = env.cycles.nb_queued
    env.progress.used += seconds * env.cycles.nb_busy
    env.progress.waited += seconds * queued
    env.progress.waiting += seconds * queued
    env.progress.loaded += seconds * env.progress.load
    env.progress.unseen += seconds * max(queued - window, 0)
    env.progress.partial += seconds * (queued > window)


@kernel
def add_value(env):
    """Add up the value of the jobs that have just ended."""
    state = env.state
    for i in range(state.nb_ended):
        job = state.ended[i]
        if state.job_state[job] != _SUCCESS:
            continue
        env.progress.earned += state.value[job]
        if state.deadline[job] > 0.0 and state.now > state.deadline[job] + TOLERANCE:
            env.progress.violated += state.value[job]


@kernel
def leave_late(env, job):
    """A job leaves because it cannot end in time."""
    state = env.state
    env.progress.violated += state.value[job]
    env.progress.waiting -= state.now - state.submit_time[job]
    env.progress.load -= state.size[job] * state.walltime[job]


@kernel
def note_longest(env):
    """A cycle begins: the running maxima."""
    env.progress.most_queued = max(env.progress.most_queued, env.cycles.nb_queued)
    env.progress.most_waiting = max(env.progress.most_waiting, env.progress.waiting)


@kernel
def place_planned(env, rules, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on, up to the last of the episode."""
    state = env.state
    for i in range(begin, env.plan.nb_actions):
        if env.plan.kind[i] != START or is_over(env.progress):
            continue
        job = env.plan.job[i]
        waited = state.now - state.submit_time[job]
        if state.nth_rest[job] == 0:  # what is left of a suspended job was placed before
            run = env.progress.runtime[env.sim.truth_of[job]]
            env.progress.placed_wait += waited
            env.progress.work += state.size[job] * run
            env.progress.last_end = max(env.progress.last_end, state.now + run)
            env.progress.slowdown += max(1.0, (waited + run) / max(run, SHORTEST_RUNTIME))
            env.progress.nb_placed += 1
        # sums over the queue are kept by differences: adding up the queue at each step would cost by its length
        if env.cycles.nb_queued == 0:  # what is left of the sums is rounding
            env.progress.waiting = 0.0
            env.progress.load = 0.0
        else:
            env.progress.waiting -= waited
            env.progress.load -= state.size[job] * state.walltime[job]
        if env.progress.nb_placed == rules.jobs and rules.ends_with_jobs == 0:
            end_episode(env.progress, not rules.horizon)


TAIL_METRICS = (  # as in `decision.experiments.metric_list`, where jobs that still wait count with their wait so far
    "p95_wait",
    "p99_wait",
    "max_wait",
    "late_starts",  # jobs that had not begun at the last arrival
    "arrival_utilization",
)


class PlacedJobs(NamedTuple):
    """The n jobs that an episode placed, in the order of their submission."""

    size: NDArray[np.int32]  # (n,) requested hosts
    walltime: NDArray[np.float64]  # (n,) seconds
    wait: NDArray[np.float64]  # (n,) seconds from submission to start


def placed_jobs(env: Environment) -> PlacedJobs:
    """Of an environment whose episode is over and no other has begun."""
    state, start = env.state, start_times(env)
    placed = np.flatnonzero(np.isfinite(start) & (state.nth_rest[: len(start)] == 0))
    return PlacedJobs(state.size[placed], state.walltime[placed], start[placed] - state.submit_time[placed])


def episode_tail(env: Environment) -> tuple[float, ...]:
    """The TAIL_METRICS of an environment whose episode is over and no other has begun."""
    begin = start_times(env)
    rows = np.flatnonzero(env.state.nth_rest[: len(begin)] == 0)
    begin, submit, size = begin[rows], env.state.submit_time[rows], env.state.size[rows]
    first, last = float(submit.min()), float(submit.max())
    waits = np.where(np.isfinite(begin), begin, env.state.now) - submit
    began = np.flatnonzero(begin <= last)
    run = env.progress.runtime[env.sim.truth_of[rows[began]]]
    used = float(np.sum(size[began] * np.minimum(run, last - begin[began])))
    room = len(env.cycles.until) * (last - first)
    percentiles = (float(value) for value in np.percentile(waits, (95, 99, 100)))
    return (*percentiles, float(len(begin) - len(began)), used / room if room else np.nan)


def start_times(env: Environment) -> NDArray[np.float64]:
    """When each job that has arrived, or was left of another, began, seconds; not finite where it still waits."""
    state, plan, planned = env.state, env.plan, env.plan.nb_actions
    start, whole = state.start_time[: state.nb_jobs].copy(), state.nth_rest[: state.nb_jobs] == 0
    last = plan.job[:planned][plan.kind[:planned] == START]  # is not carried out any more, and may be of more jobs
    start[last[whole[last]][: env.progress.nb_placed - np.isfinite(start[whole]).sum()]] = state.now
    return start


class Begun(NamedTuple):
    """When the n jobs of an episode began, in the order of their submission, and what was left of suspended ones."""

    start: NDArray[np.float64]  # (n,) seconds; not finite where it did not
    rests: NDArray[np.float64]  # (m, 3) of each rest: of which of these jobs, which one of it, and seconds likewise


def begun_in(env: Environment) -> Begun:
    """Of an environment whose episode is over and no other has begun."""
    start = start_times(env)
    nth, row = env.state.nth_rest[: len(start)], env.sim.truth_of[: len(start)] - env.progress.first_row
    rest = nth > 0
    return Begun(start[~rest], np.column_stack([row[rest], nth[rest], start[rest]]))


# --- One block of memory for the arrays of many environments, so that stepping them touches few pages --------------
#
# An environment has a hundred arrays. Each in pages of its own, those of a hundred environments are more pages than a
# processor remembers the places of. A large block also gets large pages from the operating system.

_LINE = 64  # bytes: arrays begin at a multiple

E = TypeVar("E", bound=tuple[Any, ...])


def gather(envs: Sequence[E], fields: Sequence[str], lazy: Sequence[str]) -> list[E]:
    """The same environments with all arrays of these fields side by side, except `lazy` (rarely touched) ones.

    An array that has two names keeps both.
    """
    room = sum(_aligned(array.nbytes) for env in envs for _, _, array in _arrays(env, fields, lazy))
    block, at, moved = np.zeros(room + _LINE, np.uint8), 0, []
    block = block[-block.ctypes.data % _LINE :]
    for env in envs:
        changed: dict[str, dict[str, np.ndarray]] = {field: {} for field in fields}
        places: dict[int, np.ndarray] = {}
        # numbers come first, then the small arrays
        for field, name, array in sorted(_arrays(env, fields, lazy), key=lambda e: (e[2].ndim > 0, e[2].nbytes)):
            if id(array) not in places:
                at = _aligned(at) if array.ndim or not places else at  # numbers lie side by side
                place = block[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
                if array.any():  # a page that was never written costs nothing
                    place[...] = array
                places[id(array)] = place
                at += array.nbytes
            changed[field][name] = places[id(array)]
        moved.append(env._replace(**{f: getattr(env, f)._replace(**new) for f, new in changed.items()}))  # type: ignore[attr-defined]
    return moved


def _arrays(env: Any, fields: Sequence[str], lazy: Sequence[str]) -> list[tuple[str, str, np.ndarray]]:
    """Field, name and value of each array."""
    return [
        (field, name, array)
        for field in fields
        for name, array in getattr(env, field).arrays().items()
        if name not in lazy
    ]


def _aligned(size: int) -> int:
    """Bytes up to the next line."""
    return -(-size // _LINE) * _LINE
