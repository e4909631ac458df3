"""Forecasts of starts: many futures of one moment, and their quantiles."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import pairwise
from queue import SimpleQueue

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.computer import available_cores
from decision.model.errors import heeding_nothing
from decision.model.platform import Platform
from decision.policies.policy import Policy
from decision.policies.prepared import CompiledPolicy

from .engine import Comers, EngineFutures, EngineQueue
from .history import HOUR, UNDER_WAY, WAITS, Arrivals, KnownJobs, Luck, RunTimes, TimeSpread, kind_number

QUANTILES = (0.1, 0.5, 0.9)
_LONGEST_HORIZON = 14 * 24 * HOUR  # for which later arrivals are drawn
_UNLIMITED = 365 * 24 * HOUR  # seconds that a job without a limit lasts by its limit
_MOST_LATER = 20_000  # jobs that come later, in a future

Progress = Callable[[int, int], None]  # futures done, and of how many


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """When the jobs that wait at a moment will start, as far as futures tell."""

    at: float  # seconds
    id: Sequence[str]  # (n,)
    submit: F8  # (n,) seconds
    size: I8  # (n,)
    limit: F8  # (n,) seconds
    basis: Sequence[str]  # (n,) whose run times its own is drawn from
    jobs: I8  # (n,) how many of them
    starts: F8  # (futures, n) seconds; inf where a job does not start

    def quantile(self, share: float) -> F8:
        """(n,) The times by which so large a share of the futures has started each job; inf for never."""
        return quantile_of(self.starts, share)

    def chance(self, before: float) -> F8:
        """(n,) The share of the futures in which each job has started before a time."""
        return (self.starts < before).mean(0)


def quantile_of(starts: F8, share: float) -> F8:
    """(n,) quantiles of each column of `starts` (m, n), between two as they lie; inf sorts last."""
    ordered = np.sort(starts, axis=0)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    with np.errstate(invalid="ignore"):
        mixed = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return np.where(np.isfinite(ordered[high]), mixed, ordered[high if place > low else low])


def known_times(log: KnownJobs, at: float, times: RunTimes | None = None, since: float = -np.inf) -> RunTimes:
    """What the jobs that ended by `at` (and after `since`) tell of run times, and that others still run."""
    times = times or RunTimes()
    end, states = log.end, log.states(at)
    ended = np.flatnonzero((end <= at) & (end > since))
    for row in ended[np.argsort(end[ended], kind="stable")].tolist():
        times.learn(int(log.user[row]), int(log.size[row]), float(log.limit[row]), float(log.runtime[row]))
    running = np.flatnonzero(states == UNDER_WAY).tolist()
    times.watch((int(log.user[r]), int(log.size[r]), float(log.limit[r]), at - float(log.start[r])) for r in running)
    return times


class Draws:
    """What differs between futures: how long jobs last, and who comes later.

    Args:
        log: the jobs as known at the moment, in order of submission.
        at: seconds, the moment.
        times: what the history tells of run times.
        futures: how many.
        seed: of all that is drawn.
    """

    def __init__(self, log: KnownJobs, at: float, times: RunTimes, futures: int, seed: int) -> None:
        self._log, self._at, self._times, self._seed = log, at, times, seed
        self._luck = Luck(seed, futures)
        self._arrivals = Arrivals(log.submit, at)
        self._known = np.where(log.end <= at, log.runtime, np.nan)

    def spread(self, row: int, elapsed: float = 0.0) -> TimeSpread:
        """How long the job of a row of the log may last."""
        log = self._log
        return self._times.spread(int(log.user[row]), int(log.size[row]), float(log.limit[row]), elapsed)

    def runtimes(self, rows: Iterable[int], elapsed: Iterable[float]) -> tuple[F8, list[TimeSpread]]:
        """(futures, n) seconds that jobs last in all that have run for `elapsed` seconds, and how they may spread."""
        log, columns, spreads = self._log, [], []
        for row, ran in zip(rows, elapsed, strict=True):
            spread = self.spread(row, ran)
            alike = kind_number(int(log.user[row]), int(log.size[row]), float(log.limit[row]))
            columns.append(spread.draw(self._luck.of(log.id[row], alike)))
            spreads.append(spread)
        return np.array(columns).reshape(len(columns), self._luck.futures).T, spreads

    def later(self, future: int, horizon: float) -> Comers:
        """Who comes in a future, and for how long."""
        log = self._log
        rows, when, runtime = self.later_rows(future, horizon)
        return Comers(when, log.size[rows], log.limit[rows], log.user[rows], runtime)

    def later_rows(self, future: int, horizon: float) -> tuple[I8, F8, F8]:
        """Rows of the log that come again in a future, when, and the seconds that they last."""
        rng = np.random.default_rng((self._seed, 2, future))
        rows, when = self._arrivals.draw(rng, horizon, _MOST_LATER)
        runtime = self._known[rows]
        # those that have not ended are drawn as all others
        for place in np.flatnonzero(np.isnan(runtime)).tolist():
            runtime[place] = self.spread(int(rows[place])).draw(rng.random(1))[0]
        return rows, when, runtime


def horizon_of(work: float, hosts: int) -> float:
    """Seconds for which later arrivals are drawn, where so many host-seconds are to be done."""
    return float(np.clip(3 * work / max(1, hosts), 6 * HOUR, _LONGEST_HORIZON))


def forecast_of(log: KnownJobs, at: float, waiting: I8, spreads: Sequence[TimeSpread], starts: F8) -> Forecast:
    """The forecast of jobs that wait (n,), of what their run times were drawn from and their starts (F, n)."""
    return Forecast(
        at=at,
        id=[log.id[row] for row in waiting.tolist()],
        submit=log.submit[waiting],
        size=log.size[waiting],
        limit=log.limit[waiting],
        basis=[spread.basis for spread in spreads],
        jobs=np.array([spread.jobs for spread in spreads], np.int64),
        starts=starts,
    )


def forecast(
    platform: Platform,
    policy: Policy,
    log: KnownJobs,
    at: float,
    *,
    futures: int = 200,
    seed: int = 0,
    times: RunTimes | None = None,
    hosts: Sequence[Sequence[tuple[int, int]]] | None = None,
    by_limits: bool = False,
    show: Progress | None = None,
) -> Forecast:
    """Continue the log from a moment on, under a policy.

    Args:
        platform: the hosts.
        policy: decides.
        log: jobs as known then; what happened later is not looked at.
        at: seconds, the moment.
        futures: how many.
        seed: of all that is drawn.
        times: what is known of run times then; learnt from the log if None.
        hosts: intervals of hosts of the jobs of the log that run then, by row; the lowest that are free if None.
        by_limits: one future in which all jobs last for their limits, and nobody comes.
        show: gets how many futures are done.

    Raises:
        ConfigError: if the jobs that run do not fit on the platform, or a job that waits is larger.
    """
    states = log.states(at)
    running, waiting = np.flatnonzero(states == UNDER_WAY), np.flatnonzero(states == WAITS)
    running = running[np.argsort(log.start[running], kind="stable")]
    running = running[np.cumsum(log.size[running]) <= len(platform.hosts)]
    futures = 1 if by_limits else futures
    draws = Draws(log, at, times or known_times(log, at), futures, seed)
    elapsed = at - log.start[running]
    rows = np.concatenate([running, waiting])
    runtime, spreads = draws.runtimes(rows.tolist(), [*elapsed.tolist(), *[0.0] * len(waiting)])
    work = float((np.median(runtime, 0) * log.size[rows]).sum())
    horizon = horizon_of(work, len(platform.hosts))
    if hosts is None:
        firsts = np.concatenate([[0], np.cumsum(log.size[running])]).tolist()
        hosts = [[(first, last - 1)] for first, last in pairwise(firsts)]
    queue = EngineQueue(log.size[rows], log.limit[rows], log.user[rows], log.submit[rows], log.start[running], hosts)
    if by_limits:
        runtime, horizon = np.minimum(log.limit[rows], _UNLIMITED)[None, :], 0.0
    later = [draws.later(future, horizon) for future in range(futures)]
    room = max((len(each.submit) for each in later), default=0)
    # a policy in Python would hold its lock all the time
    threads = min(futures, available_cores()) if isinstance(policy, CompiledPolicy) else 1
    engines = SimpleQueue[EngineFutures]()  # a future takes any: it begins with nothing of the one before
    for number in range(threads):
        engines.put(EngineFutures(platform, deepcopy(policy) if number else policy, at, queue, room))

    def run(future: int) -> F8:
        engine = engines.get()
        try:
            return engine.run(runtime[future], later[future])
        finally:
            engines.put(engine)

    starts = run_futures(run, futures, len(waiting), threads, show)
    return forecast_of(log, at, waiting, spreads[len(running) :], starts)


def run_futures(run: Callable[[int], F8], futures: int, jobs: int, threads: int, show: Progress | None) -> F8:
    """(futures, jobs) What `run` says of each future, on so many threads: kernels release Python's lock."""
    starts = np.full((futures, jobs), np.inf)

    def gather(results: Iterable[F8]) -> None:
        for future, found in enumerate(results):
            starts[future] = found
            if show:
                show(future + 1, futures)

    if threads == 1:
        gather(map(run, range(futures)))
        return starts
    with heeding_nothing(), ThreadPoolExecutor(threads) as pool:
        try:
            gather(pool.map(run, range(futures)))
        finally:
            pool.shutdown(cancel_futures=True)
    return starts
