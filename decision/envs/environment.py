"""One environment as arrays: what an episode is, and what compiled loops step."""

from typing import Any, NamedTuple

import numpy as np

from decision.compiling.bundle import bundle_at
from decision.compiling.jit import kernel
from decision.engine.kernels.arrays import Rows, Sim, Truth, World, grow_sim, new_rows, new_sim
from decision.engine.kernels.server import engine
from decision.learned.cycles import Cycles, new_cycles
from decision.learned.progress import EpisodeProgress
from decision.policies.outlook import Outlook, new_outlook, seen_through
from decision.policies.outlook_settings import OutlookSettings
from decision.state.cluster import ClusterState, new_state
from decision.state.plan_arrays import PlanArrays, new_plan
from decision.state.platform_facts import PlatformFacts, platform_facts

from .rows import Beginnings
from .setup import Setup

_SUSPENSIONS = 4  # of each job, with room for many of few


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
    truth, room = setup.trace.truth, _room(setup)
    state = _roomy_state(setup, facts, room)
    own = truth._replace(workload_end=truth.workload_end.copy())
    outlook = new_outlook(state, setup.outlook or OutlookSettings())
    seen = state if setup.outlook is None else seen_through(state, outlook)
    if setup.rules.energy:
        rows = new_rows(0, 8 * room)
    return Environment(
        state=state,
        facts=facts,
        truth=own,
        sim=_roomy_sim(own, setup, room),
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


def _room(setup: Setup) -> int:
    """Every host may end a job and begin another at one instant, while as many calls are asked for as are pending."""
    return 16 * len(setup.platform.hosts) + 1024 + 3 * _pending_calls(setup)


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
    """All jobs may come, with whatever else there is `_room` for."""
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
