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
from decision.model.computer import available_cores
from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Case
from decision.slurm.conf import Settings
from decision.slurm.jobs import SlurmJob
from decision.slurm.kernels.allocate import begin_on_nodes, end_jobs, is_eligible, join_queue
from decision.slurm.kernels.clock import due, step_scheduler, submit_job
from decision.slurm.kernels.main_loop import sort_pending
from decision.slurm.kernels.priority import set_factors, set_priority
from decision.slurm.kernels.world import BY_NOBODY, SlurmWorld
from decision.slurm.nodes import Absence
from decision.slurm.priority import make_tree
from decision.slurm.simulate import completing_times
from decision.slurm.text import NEVER

from .forecast import Draws, Forecast, Progress, forecast_of, horizon_of, known_times, run_futures
from .history import UNDER_WAY, WAITS, KnownJobs, RunTimes

_ARRIVALS = 16  # draws of later arrivals, each for as many futures
_FIRST_LOOK = 1800  # seconds of a future before the first look at whether all have started
LONG_QUEUE = 200  # waiting jobs, from which on cycles become rarer as a future goes on
# A whole future of 1,000 jobs that wait on 1,000 nodes takes two minutes. These two keep its starts in the mean (median
# job: 31.1 h after the moment; 18 % off, as two futures differ by 12 %) and take one second. Fewer plans let small jobs
# start too early, fewer cycles leave nodes idle: 50 cycles and all plans had starts at 102 h.
_CYCLES = 150  # of them at least, in a future's time so far
_PLANS = 40  # jobs of a partition for which a cycle plans; those behind start where these leave room
_LONGEST = 120 * 86_400  # seconds of a future
_LEAST_SHARE = 0.02  # an absence without examples ends within 50 times what it has lasted


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


@kernel
def run_future(w, wanted, until):
    """Go on until all jobs of the numbers in `wanted` have started, or until a time; returns whether they have.

    As `slurm.kernels.clock.run_log`, but nobody is cancelled, and nothing is recorded.
    """
    nb_jobs, left = len(w.submit), _nb_not_started(w, wanted)
    while left > 0:
        now = due(w)
        if w.nb_submitted < nb_jobs:
            now = min(now, w.submit[w.nb_submitted])
        for i in range(w.nb_running):
            now = min(now, w.end[w.running[i]])
        if now >= until:
            return False
        end_jobs(w, now)
        while w.nb_submitted < nb_jobs and w.submit[w.nb_submitted] <= now:
            submit_job(w, w.nb_submitted, now)
            w.nb_submitted += 1
        tested = w.bf_max_job_test
        if w.leaves_out != 0 and now >= w.next_backfill:
            w.bf_max_job_test = min(tested, _depth_of_cycle(w))
            if w.bf_max_job_test == 0:
                w.changed, w.next_backfill = 0, now + w.bf_interval
        step_scheduler(w, now)
        w.bf_max_job_test = tested
        if w.nb_started > 0:
            left = _nb_not_started(w, wanted)
    return True


@kernel
def _nb_not_started(w, wanted):
    count = 0
    for job in wanted:
        count += w.first_start[job] < 0
    return count


@kernel
def _depth_of_cycle(w):
    """How far down the queue a cycle of backfill must look: to the last job for which enough nodes may be free.

    0 where nothing has changed since the last one, which would have started it.
    """
    if w.changed == 0:
        return 0
    free, depth = 0, 0
    for node in range(len(w.away)):
        free += w.nb_jobs[node] == 0 or w.nb_completing[node] > 0 or (w.linear == 0 and w.free_cores[node] > 0)
    length = sort_pending(w)
    for i in range(length):
        if w.nodes_min[w.entry_job[w.queue[i]]] <= free:
            depth = i + 1
    return depth


def slurm_log(case: Case, jobs: Sequence[SlurmJob] | None = None) -> KnownJobs:
    """Jobs of a case as columns; `jobs` in place of the case's own. A job's size is its nodes where it gets them whole,
    else its cpus."""
    jobs = case.jobs if jobs is None else jobs
    users: dict[str, int] = {}
    ended = [job.started and job.state not in ("RUNNING", "SUSPENDED", "PENDING") for job in jobs]
    return KnownJobs(
        id=[job.id for job in jobs],
        submit=np.array([job.submit for job in jobs], np.float64),
        start=np.array([job.start if job.started else np.nan for job in jobs], np.float64),
        runtime=np.array([max(1.0, job.runtime) if e else np.nan for job, e in zip(jobs, ended, strict=True)]),
        size=np.array([job.nodes if case.linear else job.cpus for job in jobs], np.int64),
        limit=np.array([job.limit for job in jobs], np.float64),
        user=np.array([users.setdefault(job.user, len(users)) for job in jobs], np.int64),
    )


class SlurmFutures:
    """Continues one moment again and again.

    Args:
        case: the cluster; its jobs are the history.
        settings: the parameters.
        at: seconds since 1970, the moment.
        known: jobs that run or wait then; the first ones run, and those have hosts.
        later: draws of who comes, as jobs by submission.
        absences: of each of these draws, when nodes are not there.
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
        absences: Sequence[Sequence[Absence]],
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
        for comers, away in zip(later, absences, strict=True):
            now = replace(case, jobs=(*self._known, *comers), windows=tuple(away))
            world = build_world(now, settings)
            if usage is not None and len(usage) == len(world.usage):
                world.usage[:] = usage
            if priorities and settings.multifactor:
                _correct_priorities(world.copy(), world, self._known, self._at - zero_of(now), priorities)
            self._worlds.append((world, zero_of(now)))

    def run(self, future: int, runtime: F8, seed: int, wanted: I8) -> F8:
        """One future; several threads may ask for some at a time.

        Args:
            future: its number.
            runtime: (known,) seconds that the known jobs last in all.
            seed: of the phases of slurmctld's threads.
            wanted: numbers of the known jobs whose starts are asked for; the future ends when they have started.

        Returns:
            (known,) seconds since 1970 at which each starts; inf for those that do not, or not yet.
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
        is_large = int((world.recorded[:known] < 0).sum()) > LONG_QUEUE
        if is_large:
            reserved = int(world.bf_job_part_count_reserve)
            world.bf_job_part_count_reserve = min(reserved or _PLANS, _PLANS)
            world.leaves_out = int(world.preempts_by == 0)
        begin_moment(world, now, known)
        span, numbers = _FIRST_LOOK, np.flatnonzero(np.isin(self.order, wanted))
        while True:
            if run_future(world, numbers, now + span) or span >= _LONGEST:
                break
            span = min(3 * span // 2, _LONGEST)
            # a cycle over a large queue takes long to simulate, and hours ahead a minute more or less between two
            # decides nothing
            if is_large:
                rare = span // _CYCLES
                world.bf_interval = max(int(world.bf_interval), rare)
                world.sched_interval = max(int(world.sched_interval), rare)
                world.calc_period = max(int(world.calc_period), rare)
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
        if (own := priorities.get(job.id, 0.0)) > 0:  # 0 is a hold
            for entry in range(int(world.entry_begin[number]), int(world.entry_begin[number + 1])):
                world.entry_base[entry] += own - trial.priority[entry]


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
    wanted: frozenset[str] = frozenset()  # jobs whose starts are asked for; all if none of them waits
    in_time: Callable[[float], None] | None = None  # gets of each job that waits how often it ends within its limit


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
        show: gets how many futures are done.
    """
    jobs = case.jobs if jobs is None else jobs
    log = log or slurm_log(case, jobs)
    states = log.states(at)
    running, waiting = np.flatnonzero(states == UNDER_WAY), np.flatnonzero(states == WAITS)
    cancelled = [
        not job.started and job.state != "PENDING" and NEVER != job.end <= at
        for job in (jobs[row] for row in waiting.tolist())
    ]
    waiting = waiting[~np.array(cancelled, bool)]
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
        large = len(waiting) > LONG_QUEUE  # then each draw costs seconds, and those that wait are most of what decides
        groups, horizon = (_ARRIVALS // 4, horizon / 2) if large else (_ARRIVALS, horizon)
        later = []
        for group in range(min(groups, futures)):
            drawn = zip(*(each.tolist() for each in draws.later_rows(group, horizon)), strict=True)
            later.append([as_later(jobs[row], number, when, ran) for number, (row, when, ran) in enumerate(drawn)])
    asked = asked or QueueFacts()
    usage = usage_at(replace(case, jobs=tuple(jobs)), settings, at) if settings.multifactor else None
    absences = [draw_absences(case.windows, at, np.random.default_rng((seed, 4, group))) for group in range(len(later))]
    futures_of = SlurmFutures(case, settings, int(at), known, later, absences, usage, asked.priorities)
    chosen = np.flatnonzero([log.id[row] in asked.wanted for row in waiting.tolist()])
    chosen = chosen if len(chosen) else np.arange(len(waiting))
    waiting, wanted = waiting[chosen], len(running) + chosen
    # jobs last as they ask for now
    limits = np.array([jobs[row].limit for row in rows])
    lasts = runtime * np.array([asked.slower.get(jobs[row].id, 1.0) for row in rows])
    if asked.in_time is not None:
        for share in (lasts <= limits + 1.0).mean(0)[wanted].tolist():
            asked.in_time(share)
    runtime = np.minimum(lasts, np.maximum(limits, 1.0))

    def run(future: int) -> F8:
        return futures_of.run(future, runtime[future], seed, wanted)[wanted]

    starts = run_futures(run, futures, len(waiting), available_cores(), show)
    return forecast_of(log, float(at), waiting, [spreads[place] for place in wanted.tolist()], starts)


def draw_absences(absences: Sequence[Absence], at: float, rng: np.random.Generator) -> list[Absence]:
    """Reservations as they are; nodes that are away at a moment come back after as long as others did, that were away
    as long, or where none was after a multiple of the time so far. Who goes away later is not known."""
    ended = np.array([each.end - each.begin for each in absences if not each.reservation and each.end <= at])
    found = [each for each in absences if each.reservation]
    for each in absences:
        if not each.reservation and each.begin <= at < each.end:
            elapsed, share = at - each.begin, rng.random()
            longer = ended[ended > elapsed]
            # the half of what has lasted so long lasts as long again: nothing else is known
            lasts = rng.choice(longer) if len(longer) else elapsed / max(_LEAST_SHARE, share)
            found.append(replace(each, end=int(each.begin + max(elapsed + 1, lasts))))
    return found


def rows_of(forecast: Forecast, log: KnownJobs) -> I8:
    """(n,) Rows of the log of a forecast's jobs."""
    places = {name: row for row, name in enumerate(log.id)}
    return np.array([places[name] for name in forecast.id], np.int64)
