"""Forecasts under a policy from a log: what ran and waited at a moment, as the policy or the log has it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.model.demand import recorded, runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.hosts import parse_intervals
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.policy import Policy
from decision.simulation import simulate_workloads

from .answer import ALWAYS_UNKNOWN, Starts, answer, learn_from_past
from .forecast import QUANTILES, Forecast, Progress, forecast, known_times
from .history import LONGEST, UNDER_WAY, WAITS, KnownJobs, RunTimes

_PAST_FUTURES = 40  # futures of each earlier moment

Intervals = Sequence[tuple[int, int]]


class LogState(NamedTuple):
    """The jobs of a log at a moment, and the hosts of those that run then where that is known."""

    jobs: KnownJobs
    hosts: dict[str, Intervals]


def log_until(platform: Platform, workload: Workload, policy: Policy, at: float, as_recorded: bool) -> LogState:
    """The jobs of a workload that came by `at`, with the starts that the log recorded, or those under the policy.

    Raises:
        ConfigError: if nothing is recorded, or the policy cannot run these jobs.
    """
    submit = submit_times(workload)
    rows = np.flatnonzero(submit <= at)
    rows = rows[np.argsort(submit[rows], kind="stable")]
    names = [workload.jobs[int(row)].id for row in rows]
    users: dict[str, int] = {}
    user = [workload.jobs[int(row)].user for row in rows]
    start = np.full(len(submit), np.nan)
    run, hosts = runtimes(workload), dict[str, Intervals]()
    if as_recorded:
        known = recorded(workload)
        if known is None:
            raise ConfigError("the log does not say when its jobs started", field="recorded")
        start[known.rows] = known.start
    elif len(rows):
        early = workload.jobs[: int(rows.max()) + 1] if (np.diff(submit) >= 0).all() else None
        jobs = early if early is not None else [workload.jobs[int(row)] for row in rows]
        record = simulate_workloads(platform, [replace(workload, jobs=jobs, trace=None)], policy)
        table = record.jobs
        place = {name: number for number, name in enumerate(table.id)}
        numbers = np.array([place.get(name, -1) for name in names])
        found = numbers >= 0
        start[rows[found]] = table.start_time[numbers[found]]
        now = rows[(start[rows] <= at) & (start[rows] + run[rows] > at)]
        for row in now.tolist():
            name = workload.jobs[row].id
            hosts[name] = parse_intervals(table.allocation[place[name]])
    limits = walltimes(workload)[rows]
    log = KnownJobs(
        id=names,
        submit=submit[rows],
        start=start[rows],
        runtime=np.minimum(run[rows], limits),
        size=sizes(workload)[rows].astype(np.int64),
        limit=np.where(limits > LONGEST, np.inf, limits),  # a limit of years stands for none
        user=np.array([users.setdefault(name, len(users)) if name else -1 for name in user], np.int64),
    )
    return LogState(log, hosts)


def log_starts(
    platform: Platform,
    workload: Workload,
    policy: Policy,
    at: float,
    *,
    as_recorded: bool = False,
    quantiles: Sequence[float] = QUANTILES,
    before: float | None = None,
    futures: int = 200,
    moments: int = 40,
    seed: int = 0,
    show: Progress | None = None,
    first: Callable[[Starts], None] | None = None,
) -> Starts:
    """When the jobs of a log start that wait at a moment, under a policy.

    Args:
        platform: the hosts.
        workload: the log; what is in it after the moment is not looked at.
        policy: decides.
        at: seconds, the moment.
        as_recorded: what ran and waited is as the log recorded it, not as the policy would have had it.
        quantiles: shares between 0 and 1.
        before: seconds: the time that chances are asked for.
        futures: how many.
        moments: earlier moments whose forecasts calibrate these; 0 for none.
        seed: of all that is drawn.
        show: gets how many futures are done.
        first: gets a first answer, of few futures, where all take long.

    Raises:
        ConfigError: if the inputs do not fit together.
    """
    log, hosts = log_until(platform, workload, policy, at, as_recorded)
    states = log.states(at)
    if not (states == WAITS).any():
        return Starts(at=at, futures=0, calibrated_by=0, jobs=(), before=before, notes=("no job waits at this moment",))
    running = np.flatnonzero(states == UNDER_WAY)
    running = running[np.argsort(log.start[running], kind="stable")]
    names = [log.id[row] for row in running.tolist()]
    placed = [hosts[name] for name in names] if all(name in hosts for name in names) else None

    def at_moment(moment: float, times: RunTimes, count: int) -> Forecast:
        return forecast(platform, policy, log, moment, futures=count, seed=seed, times=times)

    notes, count = list[str](), len(platform.hosts)
    if left := int((np.cumsum(log.size[running]) > count).sum()):
        notes.append(f"{left} of the jobs that ran then do not fit on {count:,} hosts beside the others: left out")
    if not as_recorded:
        notes.append("what ran and waited is as the policy would have had it; --recorded takes it from the log")
    if (log.user < 0).all():
        notes.append("the log names no users: run times are drawn from jobs of like size and limit")
    notes.append(ALWAYS_UNKNOWN)
    blend = learn_from_past(at_moment, log, at, 0, _PAST_FUTURES)
    times = known_times(log, at)

    def answered(found: Forecast) -> Starts:
        return answer(found, log, blend, quantiles=quantiles, before=before, notes=notes)

    if first is not None:
        early = forecast(platform, policy, log, at, futures=20, seed=seed, times=times, hosts=placed)
        first(answered(early))
    blend = learn_from_past(at_moment, log, at, moments, _PAST_FUTURES)
    return answered(
        forecast(platform, policy, log, at, futures=futures, seed=seed, times=times, hosts=placed, show=show)
    )
