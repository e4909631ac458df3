"""Futures under any policy, in the embedded engine.

The engine's arrays are made once. Each future rewinds them, gives the jobs that run the hosts that they have, lets
those that wait join the queue, with their true ages, and then the policy decides.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I4, I8, Bundle, Int
from decision.compiling.entry import Interface
from decision.engine.compiled import CompiledEngine
from decision.engine.kernels import arrays as a
from decision.engine.kernels.arrays import World, addresses
from decision.engine.kernels.server import CARRY_OUT, ask_engine, rewind
from decision.engine.rules import EngineOptions
from decision.model.columns import DelayProfiles, JobColumns, Labelled, numbered
from decision.model.errors import ConfigError, DeadlockError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.loading import reset_policy
from decision.policies.policy import Policy
from decision.policies.prepared import prepare
from decision.simulation import JobNames, go_on
from decision.state.plan_arrays import START, add, add_interval, clear
from decision.state.transitions import backdate

_LEAD = 1.0  # seconds before the moment at which jobs that run are put on their hosts
_STRETCH = 64  # decisions between two looks at whether all have started
_PATIENCE = 4_000  # stretches in which no job starts


class RunningPlaces(Bundle):
    """The hosts of jobs that run, and since when; those that wait follow them by number."""

    nb_running: Int
    nb_known: Int  # jobs that run or wait
    begin: I8  # (R + 1,) of each job's intervals
    first: I4  # (I,)
    last: I4  # (I,)
    submit: F8  # (nb_known,) seconds
    start: F8  # (R,) seconds
    walltime: F8  # (R,) seconds


@Interface(int, *a.WORLD, RunningPlaces, float, int).entry
def begin_future(state, facts, truth, sim, rows, plan, placed, clock, jobs):
    """Rewind to `clock`, put the jobs that run on their hosts, and let the first `jobs` of the truth come.

    Returns:
        A code of `advance`: ASK once the jobs that wait are in the queue.
    """
    world = World(state, facts, truth, sim, rows, plan)
    rewind(world, state.pstate, 0, 0, jobs, clock)
    while state.nb_jobs < placed.nb_known:
        clear(plan, state)
        for i in range(state.nb_queued):
            job = state.queue[i]
            if job < placed.nb_running:
                action = add(plan, START, job)
                for at in range(placed.begin[job], placed.begin[job + 1]):
                    add_interval(plan, action, placed.first[at], placed.last[at])
        code = ask_engine(world, CARRY_OUT, state.now)
        if code != a.ASK:
            return code
    # what a policy reads of jobs is when they came and began really; when they end by walltime is the same
    backdate(state, placed.submit, placed.start, placed.walltime, placed.nb_running)
    return a.ASK


class EngineQueue(NamedTuple):
    """Jobs as columns: those that run, then those that wait, in order of submission."""

    size: I8
    limit: F8  # seconds
    user: I8
    submit: F8  # seconds
    start: F8  # seconds, of those that run
    hosts: Sequence[Sequence[tuple[int, int]]]  # intervals of those that run

    @property
    def nb_running(self) -> int:
        return len(self.start)


class Comers(NamedTuple):
    """Jobs that come later, by time."""

    submit: F8
    size: I8
    limit: F8
    user: I8
    runtime: F8


class EngineFutures:
    """Continues one moment again and again.

    Args:
        platform: the hosts.
        policy: decides; it is reset for each future, and knows nothing of what was before the moment.
        at: seconds, the moment.
        queue: jobs that run and wait then.
        room: jobs that come later, at most, in a future.

    Raises:
        ConfigError: if the jobs that run do not fit, or a policy or platform cannot be simulated.
    """

    def __init__(self, platform: Platform, policy: Policy, at: float, queue: EngineQueue, room: int) -> None:
        self._platform, self._policy, self._at, self._queue = platform, policy, at, queue
        known, running = len(queue.size), queue.nb_running
        if not (queue.size[running:] <= len(platform.hosts)).all():
            largest = int(queue.size[running:].max())
            raise ConfigError(f"a job that waits asks for {largest} hosts, and there are {len(platform.hosts)}")
        rows = known + room
        names = [f"p{number}" for number in range(rows)]
        codes = np.arange(rows, dtype=np.int32)
        jobs = JobColumns(
            id=numbered("w0", codes),
            submit_time=codes.astype(np.float64),  # in order of their numbers, whatever their ids
            size=np.ones(rows, np.int32),
            walltime=np.full(rows, np.inf),
            profile=Labelled(names, codes),
            user=Labelled([""], np.zeros(rows, np.int32)),
        )
        workload = Workload(name="w0", jobs=jobs, profiles=DelayProfiles(names, np.ones(rows)), nb_res=1)
        self._engine = CompiledEngine(platform, [workload], (), EngineOptions(trace=False))
        self._engine.world.sim.registration_open = 0
        truth = self._engine.world.truth
        truth.submit_time[:running], truth.submit_time[running:known] = at - _LEAD, at
        truth.size[:known], truth.user[:known] = queue.size, queue.user
        begin = np.cumsum([0, *map(len, queue.hosts)])
        pairs = [pair for hosts in queue.hosts for pair in hosts]
        self._placed = RunningPlaces(
            nb_running=running,
            nb_known=known,
            begin=begin.astype(np.int64),
            first=np.array([first for first, _ in pairs], np.int32),
            last=np.array([last for _, last in pairs], np.int32),
            submit=np.ascontiguousarray(queue.submit, np.float64),
            start=np.ascontiguousarray(queue.start, np.float64),
            walltime=np.ascontiguousarray(queue.limit[:running], np.float64),
        )

    def run(self, runtime: F8, later: Comers) -> F8:
        """One future.

        Args:
            runtime: (known,) seconds that jobs last in all, longer than those that run have run.
            later: who comes.

        Returns:
            (waiting,) seconds at which the jobs that wait start; inf for those that never do.
        """
        engine, queue, known, running = self._engine, self._queue, len(self._queue.size), self._queue.nb_running
        count = min(len(later.submit), len(engine.world.truth.size) - known)
        truth, all_in = engine.world.truth, known + count
        left = np.maximum(1.0, queue.start + runtime[:running] - self._at)
        truth.leaf_amount[:running] = left + _LEAD
        # nothing but the walltime stops a job, and one that runs has a part of it left
        truth.walltime[:running] = np.maximum(left, queue.start + queue.limit[:running] - self._at) + _LEAD + 1.0
        truth.leaf_amount[running:known] = runtime[running:]
        truth.walltime[running:known] = queue.limit[running:]
        truth.submit_time[known:all_in] = np.maximum(later.submit[:count], self._at + 1e-3)
        truth.size[known:all_in] = later.size[:count]
        truth.walltime[known:all_in] = later.limit[:count]
        truth.user[known:all_in] = later.user[:count]
        truth.leaf_amount[known:all_in] = later.runtime[:count]
        reset_policy(self._policy, self._platform, 0)
        clock, too_short, code = self._at - _LEAD, (a.GROW, a.UNCARRIED), a.GROW
        while code in too_short:
            code = begin_future.from_python(*addresses(engine.world), self._placed.address, clock, all_in)
            if code in too_short:  # and begin again, with more room
                engine.grow()
        if code != a.ASK:
            raise ConfigError("the jobs that run at this moment do not fit on the platform")
        prepared = prepare(self._policy, engine.facts, JobNames(engine))  # type: ignore[arg-type]
        engine.allocations.unasked = not prepared.looks_back
        memory, idle, waiting = None, 0, known - running
        while True:
            try:
                code, memory = go_on(engine, prepared, memory, _STRETCH, True)
            except DeadlockError:  # nothing can happen any more, though jobs wait
                code = a.DONE
            state = engine.state
            starts = np.where(state.job_state[running:known] == 0, np.inf, state.start_time[running:known])
            before, waiting = waiting, int(np.isinf(starts).sum())
            idle = idle + 1 if waiting == before else 0
            if code == a.DONE or not waiting or idle > _PATIENCE:
                return starts
