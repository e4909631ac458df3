"""Futures under the model of Slurm, from the queue and the running jobs of one moment.

A world of the model is made of the jobs known then and of one draw of later arrivals; its copies run with different run
times and phases of slurmctld's threads. Nothing of the log before the moment is run again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.compiling.bundle import F8, I8
from decision.compiling.jit import kernel
from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Case
from decision.slurm.conf import Settings
from decision.slurm.jobs import SlurmJob
from decision.slurm.kernels import clock as replay
from decision.slurm.kernels.allocate import begin_on_nodes, is_eligible, join_queue
from decision.slurm.kernels.priority import set_factors, set_priority
from decision.slurm.kernels.world import BY_NOBODY, SlurmWorld
from decision.slurm.priority import make_tree
from decision.slurm.simulate import completing_times
from decision.slurm.text import NEVER

from .forecast import Draws, Forecast, Progress, horizon_of, known_times
from .history import UNDER_WAY, WAITS, KnownJobs, RunTimes

_ARRIVALS = 16  # draws of later arrivals, each for as many futures
_FIRST_LOOK = 1800  # seconds of a future before the first look at whether all have started
_LARGE = 200  # waiting jobs, from which on cycles become rarer as a future goes on
_CYCLES = 50  # of them at least, in a future's time so far
_LONGEST = 120 * 86_400  # seconds of a future


@kernel
def begin_moment(w, now, nb_known):
    """Let the jobs that run have their nodes since their recorded starts, and those that wait stand in the queue."""
    if w.ages != 0 and len(w.leaf):
        set_factors(w)
    for job in range(nb_known):
        if w.recorded[job] >= 0:
            count, first = w.alloc_count[job], w.alloc_begin[job]
            for i in range(count):
                w.chosen[i], w.chosen_cores[i] = w.alloc_node[first + i], w.alloc_cores[first + i]
            begin_on_nodes(w, job, w.entry_part[w.entry_begin[job]], count, w.recorded[job], BY_NOBODY)
            w.charged[job] = now
            w.nb_started = 0
        else:
            join_queue(w, job)
    for job in range(nb_known):
        if w.recorded[job] < 0:
            is_eligible(w, job, now)
            for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
                set_priority(w, entry, now, True)
    w.nb_submitted, w.now = nb_known, now


def slurm_log(case: Case, jobs: Sequence[SlurmJob] | None = None) -> KnownJobs:
    """Jobs of a case as columns; `jobs` in place of the case's own. A job's size is its nodes where it gets them whole,
    else its cpus."""
    jobs = case.jobs if jobs is None else jobs
    users: dict[str, int] = {}
    return KnownJobs(
        id=[job.id for job in jobs],
        submit=np.array([job.submit for job in jobs], np.float64),
        start=np.array([job.start if job.started else np.nan for job in jobs], np.float64),
        runtime=np.array([_ran(job) for job in jobs], np.float64),
        size=np.array([job.nodes if case.linear else job.cpus for job in jobs], np.int64),
        limit=np.array([job.limit for job in jobs], np.float64),
        user=np.array([users.setdefault(job.user, len(users)) for job in jobs], np.int64),
    )


def _ran(job: SlurmJob) -> float:
    over = job.started and job.state not in ("RUNNING", "SUSPENDED", "PENDING")
    return max(1.0, job.runtime) if over else np.nan


class SlurmFutures:
    """Continues one moment again and again.

    Args:
        case: the cluster; its jobs are the history.
        settings: the parameters.
        at: seconds since 1970, the moment.
        known: jobs that run or wait then; the first ones run, and those have hosts.
        later: draws of who comes, as jobs by submission.
        usage: (A,) of the shares' tree; what the case begins with if None.
        priorities: by job, as Slurm says them now.
    """

    def __init__(
        self,
        case: Case,
        settings: Settings,
        at: int,
        known: Sequence[SlurmJob],
        later: Sequence[Sequence[SlurmJob]],
        usage: F8 | None = None,
        priorities: Mapping[str, float] | None = None,
    ) -> None:
        self._at, self._settings = at, settings
        # the model takes jobs by submission; `order` says where each stands there
        self.order = np.array(sorted(range(len(known)), key=lambda n: (known[n].submitted, n)), np.int64)
        self._known = [known[n] for n in self.order]
        self._worlds = []
        self._period = settings.number("bf_interval")
        self._completing = completing_times(case)
        for comers in later:
            now = replace(case, jobs=(*self._known, *comers))
            world = build_world(now, settings)
            if usage is not None and len(usage) == len(world.usage):
                world.usage[:] = usage
            if priorities and settings.multifactor:
                _correct_priorities(world.copy(), world, self._known, self._at - zero_of(now), priorities)
            self._worlds.append((world, zero_of(now)))

    def run(self, future: int, runtime: F8, seed: int) -> F8:
        """One future.

        Args:
            future: its number.
            runtime: (known,) seconds that the known jobs last in all.
            seed: of the phases of slurmctld's threads.

        Returns:
            (known,) seconds since 1970 at which each starts; inf for those that do not.
        """
        made, zero = self._worlds[future % len(self._worlds)]
        world, settings, known, now = made.copy(), self._settings, len(self._known), self._at - zero
        rng = np.random.default_rng((seed, 3, future))
        world.runtime[:known] = np.maximum(1, np.round(runtime[self.order]))
        if "completing" not in settings.changed:
            world.completing_time = int(rng.choice(self._completing))
        world.last_main = now
        world.last_full = now - int(rng.uniform(0, world.sched_interval))
        world.next_calc = now + int(rng.uniform(0, world.calc_period))
        world.next_backfill = now + float(rng.uniform(0, self._period))
        world.asked = 1
        begin_moment(world, now, known)
        waiting, span = world.recorded[:known] < 0, _FIRST_LOOK
        while True:
            replay.run_log(world, now + span)
            if (world.first_start[:known][waiting] >= 0).all() or span >= _LONGEST:
                break
            span = min(3 * span // 2, _LONGEST)
            # a cycle over a large queue takes long to simulate, and hours ahead a minute more or less between two
            # decides nothing
            if waiting.sum() > _LARGE:
                rare = span // _CYCLES
                world.bf_interval = max(int(world.bf_interval), rare)
                world.sched_interval = max(int(world.sched_interval), rare)
        starts = np.where(world.first_start[:known] >= 0, world.first_start[:known] + float(zero), np.inf)
        placed = np.empty(known)
        placed[self.order] = starts
        return placed


def _correct_priorities(
    trial: SlurmWorld, world: SlurmWorld, known: Sequence[SlurmJob], now: int, priorities: Mapping[str, float]
) -> None:
    """Add to what does not change of each priority what the model's is short of Slurm's own, at the moment."""
    begin_moment(trial, now, len(known))
    for number, job in enumerate(known):
        if (said := priorities.get(job.id, 0.0)) > 0:  # 0 is a hold
            for entry in range(int(world.entry_begin[number]), int(world.entry_begin[number + 1])):
                world.entry_base[entry] += said - trial.priority[entry]


def usage_at(case: Case, settings: Settings, at: float) -> F8:
    """(A,) what the shares' usage has become by a moment: what the case begins with and its jobs since, decayed."""
    tree = make_tree(case, settings)
    half = settings.seconds("PriorityDecayHalfLife")
    rate = 0.5 ** (1 / half) if 0 < half < np.inf else 1.0
    usage = tree.usage * rate ** max(0.0, at - case.begin)
    factors = {each.name: each.usage_factor for each in case.qualities}
    for job in case.jobs:
        if not job.started or job.start >= at:
            continue
        over = job.state not in ("RUNNING", "SUSPENDED", "PENDING")
        end = min(at, job.start + job.runtime) if over else at
        left = (end - job.start) * rate ** (at - end)
        price = (job.billing or max(job.cpus_had, job.cpus)) * factors.get(job.qos, 1.0)
        node = tree.leaf_of(job.account, job.user)
        while node >= 0:
            usage[node] += price * left
            node = int(tree.parent[node])
    return usage


def as_running(job: SlurmJob) -> SlurmJob:
    """The job as it is while it runs: how it ends is not known."""
    return replace(job, before=True, state="COMPLETED", end=NEVER, reason="")


def as_waiting(job: SlurmJob) -> SlurmJob:
    """The job as it is before it starts: nothing of its run is known."""
    return replace(
        job,
        start=NEVER,
        end=NEVER,
        state="PENDING",
        runtime=0.0,
        before=False,
        hosts="",
        first_submit=NEVER,
        requeues=0,
    )


def as_later(job: SlurmJob, number: int, submit: float, runtime: float) -> SlurmJob:
    """A job of the history that comes again."""
    return replace(
        as_waiting(job),
        id=f"later{number}",
        submit=round(submit),
        begin=NEVER,
        needs=(),
        singleton="",
        held=False,
        array="",
        state="COMPLETED",
        start=round(submit),
        runtime=runtime,
        end=NEVER,
        nodelist="",
    )


class QueueFacts(NamedTuple):
    """What is known of the queue besides, and what else is to be found."""

    priorities: Mapping[str, float] = {}  # by job that waits: what Slurm says that its priority is now
    slower: Mapping[str, float] = {}  # by job: how many times as long it lasts as its history says
    in_time: Callable[[float], None] | None = None  # is told of each job that waits how often it ends within its limit


def slurm_forecast(
    case: Case,
    settings: Settings,
    at: int,
    *,
    log: KnownJobs | None = None,
    jobs: Sequence[SlurmJob] | None = None,
    futures: int = 200,
    seed: int = 0,
    times: RunTimes | None = None,
    by_limits: bool = False,
    asked: QueueFacts | None = None,
    show: Progress | None = None,
) -> Forecast:
    """Continue a Slurm from a moment on.

    Args:
        case: the cluster and the history.
        settings: the parameters.
        at: seconds since 1970, the moment.
        log: `jobs` as columns.
        jobs: the history and the queue, by submission; the case's own if None. What happened later is not looked at.
        futures: how many.
        seed: of all that is drawn.
        times: what is known of run times then; learnt from the log if None.
        by_limits: one future in which all jobs last for their limits, and nobody comes.
        asked: what is known or asked besides.
        show: is told how many futures are done.
    """
    jobs = case.jobs if jobs is None else jobs
    log = log or slurm_log(case, jobs)
    states = log.states(at)
    running, waiting = np.flatnonzero(states == UNDER_WAY), np.flatnonzero(states == WAITS)
    waiting = np.array([row for row in waiting.tolist() if not _gone(jobs[row], at)], np.int64)
    rows = np.concatenate([running, waiting]).tolist()
    futures = 1 if by_limits else futures
    draws = Draws(log, at, times or known_times(log, at), futures, seed)
    runtime, spreads = draws.runtimes(rows, [*(at - log.start[running]), *[0.0] * len(waiting)])
    known = [*(as_running(jobs[row]) for row in running.tolist()), *(as_waiting(jobs[row]) for row in waiting.tolist())]
    count = len(case.nodes) if case.linear else sum(node.cores * node.threads for node in case.nodes)
    horizon = horizon_of(float((np.median(runtime, 0) * log.size[rows]).sum()), count)
    later: list[list[SlurmJob]] = [[]]
    if by_limits:
        runtime = np.minimum(log.limit[rows], 365 * 86_400)[None, :]
    else:
        large = len(waiting) > _LARGE  # then each draw costs seconds, and those that wait are most of what decides
        groups, horizon = (_ARRIVALS // 4, horizon / 2) if large else (_ARRIVALS, horizon)
        later = [_comers(draws, jobs, group, horizon) for group in range(min(groups, futures))]
    asked = asked or QueueFacts()
    runtime = _within_limits(runtime, [jobs[row] for row in rows], len(running), asked)
    usage = usage_at(replace(case, jobs=tuple(jobs)), settings, at) if settings.multifactor else None
    futures_of = SlurmFutures(case, settings, int(at), known, later, usage, asked.priorities)
    starts = np.full((futures, len(waiting)), np.inf)
    for future in range(futures):
        starts[future] = futures_of.run(future, runtime[future], seed)[len(running) :]
        if show:
            show(future + 1, futures)
    own = spreads[len(running) :]
    return Forecast(
        at=float(at),
        id=[log.id[row] for row in waiting.tolist()],
        submit=log.submit[waiting],
        size=log.size[waiting],
        limit=log.limit[waiting],
        basis=[spread.basis for spread in own],
        jobs=np.array([spread.jobs for spread in own], np.int64),
        starts=starts,
    )


def _within_limits(runtime: F8, jobs: Sequence[SlurmJob], running: int, asked: QueueFacts) -> F8:
    """Run times (futures, n) as jobs last with what they ask for now; `asked` is told of those after the running."""
    limits = np.array([job.limit for job in jobs])
    lasts = runtime * np.array([asked.slower.get(job.id, 1.0) for job in jobs])
    if asked.in_time is not None:
        for share in (lasts <= limits + 1.0).mean(0)[running:].tolist():
            asked.in_time(share)
    return np.minimum(lasts, np.maximum(limits, 1.0))


def _gone(job: SlurmJob, at: float) -> bool:
    """Whether a job that never ran was cancelled by then."""
    return not job.started and job.state != "PENDING" and NEVER != job.end <= at


def _comers(draws: Draws, jobs: Sequence[SlurmJob], group: int, horizon: float) -> list[SlurmJob]:
    """One draw of who comes later."""
    rows, when, runtime = draws.later_rows(group, horizon)
    drawn = zip(rows.tolist(), when.tolist(), runtime.tolist(), strict=True)
    return [as_later(jobs[row], number, time, ran) for number, (row, time, ran) in enumerate(drawn)]


def rows_of(forecast: Forecast, log: KnownJobs) -> I8:
    """(n,) Rows of the log of a forecast's jobs."""
    places = {name: row for row, name in enumerate(log.id)}
    return np.array([places[name] for name in forecast.id], np.int64)
