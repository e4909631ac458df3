"""Runs of whole logs on shaken copies, and what each comes to without its warm-up and cool-down, which is kept."""

import functools
import hashlib
import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.files import load_platform
from decision.files.generate.platforms import simple_cluster
from decision.files.workload import Selection
from decision.model.columns import columns_of
from decision.model.dates import DAY
from decision.model.demand import runtimes, walltimes
from decision.model.errors import DecisionError, InputError
from decision.model.platform import Platform
from decision.model.record import Floats, Ints, JobTable
from decision.model.reshape import shaken
from decision.model.workload import Workload
from decision.policies.runtimes.walltimes import fill_missing
from decision.policies.traits import read_spec
from decision.rl.learning import find_checkpoint
from decision.simulation import simulate_workloads

from . import metrics as m
from .audit import Unsimulated, unsimulated
from .metrics import SHOWN_GROUPS, Membership, group_figures, memberships
from .tasks import Result, file_digest
from .worth import join_parts

# What a run of a whole log comes to, and without each block of time.
#
# A simulated machine begins empty, and its last jobs have no others behind them, so jobs of a warm-up and of a
# cool-down do not count (`part_of`). A run is kept as its metrics, and as what each would be without the jobs of one
# block of time: the jackknife's influence of each block, which is the same for means, for percentiles and for the
# longest wait. `decision.experiments.comparison` makes intervals of several runs.

WEEK = 7.0 * DAY
FEW_WEEKS = 8  # with fewer, blocks of time are days
FEW_DAYS = 5  # with fewer, the log is one block
FULL = 0.99  # share of the load that the machine has when the warm-up ends, were there hosts for all
LEAST_COUNTED = 0.5  # of the log's time and of its jobs; a warm-up that leaves less is not applied
MEANS = {
    "bounded_slowdown": m.bounded_slowdowns,
    "slowdown": m.slowdowns,
    "per_processor_slowdown": m.per_processor_slowdowns,
    "wait": m.waiting_times,
    "turnaround": m.turnaround_times,
}
PERCENTILES = {"p95_wait": 0.95, "p99_wait": 0.99}


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a log counts, by submission, and its blocks of time."""

    first: float  # seconds: when the log begins
    last: float  # and when its last job is submitted
    warm_up: float  # seconds that are not counted, at either end; 0 where all jobs count
    wanted: float  # seconds of the warm-up by the rule
    block: float  # seconds of a block

    @property
    def begin(self) -> float:
        """From when on jobs count."""
        return self.first + self.warm_up

    @property
    def end(self) -> float:
        """The end of the time of which jobs count, seconds."""
        return self.last - self.warm_up

    @property
    def blocks(self) -> int:
        """How many there are, at least 1; the last may be longer or shorter."""
        return max(1, round((self.end - self.begin) / self.block))

    def rows(self, submit: Floats) -> Ints:
        """The jobs that count, of these submissions (n,)."""
        inside = (submit >= self.begin) & (submit <= self.end)
        return np.flatnonzero(inside) if self.warm_up else np.arange(len(submit))

    def block_of(self, submit: Floats) -> Ints:
        """The block of each job that counts, (n,)."""
        return np.clip((submit - self.begin) // self.block, 0, self.blocks - 1).astype(np.int64)


def part_of(submit: Floats, size: Floats, runtime: Floats) -> LogPart:
    """The part of a log that counts: all but its first and last jobs, those of `warm_up` seconds.

    Where that would leave less than half of the log's time or of its jobs, all jobs count. Arguments are of its jobs,
    (n,).
    """
    first, last = float(submit.min()), float(submit.max())
    span, wanted = last - first, warm_up(size, runtime)
    inside = (submit >= first + wanted) & (submit <= last - wanted)
    enough = span - 2 * wanted > LEAST_COUNTED * span and inside.mean() >= LEAST_COUNTED
    applied = wanted if enough else 0.0
    counted = span - 2 * applied
    block = WEEK if counted >= FEW_WEEKS * WEEK else float(DAY) if counted >= FEW_DAYS * DAY else math.inf
    return LogPart(first=first, last=last, warm_up=applied, wanted=wanted, block=block)


def warm_up(size: Floats, runtime: Floats) -> float:
    """When a machine that begins empty is at 99 % of its load, had it hosts for all jobs at once: seconds.

    Jobs that arrive at a steady rate fill it as ``sum(q * min(p, t)) / sum(q * p)``: the M/G/infinity queue (Eick,
    Massey and Whitt, Operations Research 41, 1993), jobs weighted by their hosts q. A queue in front of the machine
    takes longer to build up; how long depends on the policy, so that no rule of the log can say it. That 99 % are
    enough, and that the cool-down is as long, is the package's choice.
    """
    order = np.argsort(runtime)
    seconds, hosts = runtime[order], size[order].astype(np.float64)
    ended = np.cumsum(hosts * seconds)
    left = hosts.sum() - np.cumsum(hosts)
    if not len(order) or ended[-1] <= 0:
        return 0.0
    reached = ended + left * seconds
    at = int(np.searchsorted(reached, FULL * ended[-1]))
    before = float(ended[at - 1]) if at else 0.0
    return (FULL * float(ended[-1]) - before) / float(left[at] + hosts[at])


def counted_text(part: LogPart) -> str:
    """Which jobs count, for people."""
    rule = f"{duration(part.wanted)} fill a machine that begins empty to {100 * FULL:.0f} % of this log's load"
    rule += " (M/G/infinity queue, Eick, Massey and Whitt 1993)"
    if not part.warm_up:
        rest = f"the rest of the log's {duration(part.last - part.first)}"
        return f"all jobs count: {rule}, and {rest} is too little for a warm-up"
    which = f"jobs submitted in the first and the last {duration(part.warm_up)} do not count"
    return f"{which}, except for the longest wait, late starts and what is of a whole run: {rule}"


def blocks_text(part: LogPart) -> str:
    """What intervals are made of, for people."""
    if part.blocks == 1:
        return "shaken copies alone: the log is too short for blocks of days"
    return f"{part.blocks} blocks of a {'week' if part.block == WEEK else 'day'} and shaken copies together"


def duration(seconds: float) -> str:
    """``3.2 days``, in the unit that suits."""
    unit, name = next((u, n) for u, n in ((DAY, "days"), (3600.0, "h"), (60.0, "min"), (0.0, "s")) if seconds >= 2 * u)
    number = seconds / (unit or 1.0)
    return f"{number:,.0f} {name}" if number >= 10 else f"{number:.2g} {name}"


# --- A run ----------------------------------------------------------------------------------------------------------


class JudgedRun(NamedTuple):
    """What a run of a whole log comes to."""

    metrics: dict[str, float]
    without: dict[str, list[float]]  # each metric without the jobs of one block; those that have no such are left out
    schedule: str  # equal for equal starts


def judge_run(table: JobTable, part: LogPart, hosts: int) -> JudgedRun:
    """A run's metrics over the jobs that count.

    Args:
        table: of the run; jobs that did not run count nowhere.
        part: of the log.
        hosts: of the machine.
    """
    jobs = m.only_ran(join_parts(table))
    order = np.lexsort((jobs.size, jobs.start_time, jobs.submit_time))
    starts = np.round([jobs.submit_time[order], jobs.start_time[order], jobs.size[order]], 3)
    schedule = hashlib.sha256(starts.tobytes()).hexdigest()[:16]
    rows = part.rows(jobs.submit_time)
    counted = jobs.take(rows)
    if not len(counted.size):
        return JudgedRun({}, {}, schedule)
    block, number = part.block_of(counted.submit_time), part.blocks
    metrics, without = {}, {}
    for name, of in MEANS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            values = of(counted)
        metrics[name] = m.mean(values)
        sums, jobs_in = np.bincount(block, values, number), np.bincount(block, minlength=number)
        without[name] = (sums.sum() - sums) / np.maximum(len(block) - jobs_in, 1)
    wait = m.waiting_times(counted)
    # Of each block, where its waits are among all in ascending order, ascending
    blocks = block[np.argsort(wait, kind="stable")]
    ranks = np.split(np.argsort(blocks, kind="stable"), np.cumsum(np.bincount(blocks, minlength=number))[:-1])
    ascending = np.sort(wait)
    for name, share in PERCENTILES.items():
        metrics[name] = m.percentile(wait, 100 * share)
        without[name] = np.array([_percentile_without(ascending, own, share) for own in ranks])
    metrics["late_starts"] = float(m.late_starts(jobs))
    metrics["max_wait"] = m.largest(m.waiting_times(jobs))
    longest = np.zeros(number)  # of the jobs that count
    np.maximum.at(longest, block, wait)
    others = float(np.delete(m.waiting_times(jobs), rows).max(initial=0.0))
    second, first = np.sort(np.append(longest, 0.0))[-2:]
    without["max_wait"] = np.maximum(others, np.where(longest == first, second, first))
    # Host-seconds in use, and those there are, in each block
    edges = part.begin + (part.block if number > 1 else 0.0) * np.arange(number + 1)
    edges[-1] = part.end
    done = np.zeros(len(edges))
    for times, sign in ((jobs.start_time, 1), (jobs.start_time + jobs.runtime, -1)):
        order = np.argsort(times)
        size = jobs.size[order].astype(np.float64)
        hosts_upto, moments = (np.concatenate([[0.0], np.cumsum(each)]) for each in (size, size * times[order]))
        at = np.searchsorted(times[order], edges)
        done += sign * (edges * hosts_upto[at] - moments[at])
    used, room = np.diff(done), hosts * np.diff(edges)
    if room.sum() > 0:
        metrics["arrival_utilization"] = float(used.sum() / room.sum())
        without["arrival_utilization"] = (used.sum() - used) / np.maximum(room.sum() - room, 1.0)
    kept = {name: each.tolist() for name, each in without.items() if number > 1 and np.isfinite(each).all()}
    return JudgedRun(metrics, kept, schedule)


def _percentile_without(ascending: Floats, own: Ints, share: float) -> float:
    """The percentile of all values but those at the places `own`; of all where no others are left."""
    left = len(ascending) - len(own)
    if left == 0:
        own, left = own[:0], len(ascending)
    place = share * (left - 1)
    others_before = own - np.arange(len(own))
    ranks = np.array([math.floor(place), math.ceil(place)])
    low, high = ascending[ranks + np.searchsorted(others_before, ranks, side="right")]
    return float(low + (place - ranks[0]) * (high - low))


SIZE_CLASSES = (1 / 64, 1 / 8, 1.0)  # of the machine: small, middle and large jobs
LENGTH_CLASSES = (600.0, 7200.0, np.inf)  # seconds: short, middle and long jobs
MOST_USERS = 20  # whose waits are kept, those with most jobs


class LogRead(NamedTuple):
    """A log that was read."""

    platform: Platform
    workload: Workload  # the jobs that fit the machine, the first at 0 s
    part: LogPart  # that counts
    runtimes: Floats  # (J,) seconds
    missing: float  # share of the jobs without a requested time
    user_of: dict[str, int]  # the number of each job's user, by the job's id
    not_simulated: list[Unsimulated]  # what the log says besides
    members: dict[str, Membership]  # whose the jobs are, by kind of group


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated: a log and its machine."""

    workload: Path
    platform: Path | None  # None: a flat machine
    hosts: int  # of that; 0: as many as the log says
    selection: Selection

    def read(self) -> LogRead:
        """What it says, read once in each process for the same content. Raises InputError."""
        return _read(self, self.digests())

    def digests(self) -> tuple[str, ...]:
        """Digests of the files that a run depends on."""
        return tuple(file_digest(path) for path in (self.workload, self.platform) if path is not None)


@functools.lru_cache(maxsize=4)
def _read(log: Log, digests: tuple[str, ...]) -> LogRead:
    workload = replace(log.selection, missing="none").read(log.workload, "w0")
    missing = float(np.isinf(walltimes(workload)).mean()) if len(workload.jobs) else 0.0
    platform = load_platform(log.platform) if log.platform else simple_cluster(log.hosts or workload.nb_res)
    speed = max(host.pstates[host.initial_pstate].speed for host in platform.hosts)
    workload = fill_missing(workload, log.selection.missing, speed=speed)
    jobs = columns_of(workload.jobs)
    rows = np.flatnonzero(jobs.size <= len(platform.hosts))
    if not len(rows):
        raise InputError(f"{log.workload}: no job fits {len(platform.hosts):,} hosts; choose a larger machine")
    larger = len(jobs) - len(rows)
    jobs = jobs.take(rows[np.argsort(jobs.submit_time[rows], kind="stable")])
    first = float(jobs.submit_time[0])
    jobs = jobs.replaced(submit_time=jobs.submit_time - first, source=None)
    unix_start = None if workload.unix_start is None else workload.unix_start + first
    dropped = {**workload.dropped, f"larger than {len(platform.hosts):,} hosts": larger} if larger else workload.dropped
    workload = replace(workload, jobs=jobs, dropped=dropped, unix_start=unix_start)
    not_simulated = unsimulated(workload, speed)
    members = memberships([workload], SHOWN_GROUPS)
    workload = replace(workload, trace=None)
    seconds = runtimes(workload, speed)
    part = part_of(jobs.submit_time, jobs.size.astype(np.float64), seconds)
    user_of = dict(zip(jobs.id, jobs.user.codes.tolist(), strict=True))
    return LogRead(platform, workload, part, seconds, missing, user_of, not_simulated, members)


class WholeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on a copy of a log."""

    log: Log
    policy: str
    copy: int

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        learned = find_checkpoint(read_spec(self.policy).place)
        return {
            "whole": 2,
            "policy": self.policy if learned is None else [self.policy, file_digest(learned)],
            "copy": self.copy,
            "digests": self.log.digests(),
            "hosts": self.log.hosts,
            "selection": self.log.selection.facts(),
        }


def perform_whole_run(run: WholeRun) -> Result:
    """What a run comes to: `judge_run`'s metrics, ``without`` each block, ``schedule``; and who waits.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    log = run.log.read()
    try:
        table = simulate_workloads(log.platform, [shaken(log.workload, run.copy)], run.policy).jobs
    except DecisionError as error:
        error.args = (f"{run.policy} on {run.log.workload}, copy {run.copy}: {error}",)
        raise
    ran, hosts = m.only_ran(table), len(log.platform.hosts)
    judged = judge_run(ran, log.part, hosts)
    return {
        **judged.metrics,
        "without": judged.without,
        "schedule": judged.schedule,
        **_who_waits(ran.take(log.part.rows(ran.submit_time)), log, hosts),
    }


def _who_waits(jobs: JobTable, log: LogRead, hosts: int) -> dict[str, Any]:
    """Jobs and sums of their waits, seconds, by block of time, class of size and length, user, and group."""
    wait, blocks = m.waiting_times(jobs), log.part.blocks
    classes = 3 * np.searchsorted(SIZE_CLASSES, jobs.size / hosts) + np.searchsorted(LENGTH_CLASSES, jobs.runtime)
    block = log.part.block_of(jobs.submit_time)
    names = list(columns_of(log.workload.jobs).user.labels)
    users = np.array([log.user_of[job] for job in jobs.id], np.int64) if any(names) else np.zeros(len(wait), np.int64)
    number, total = np.bincount(users, minlength=len(names)), np.bincount(users, wait, len(names))
    most = [at for at in np.argsort(-number, kind="stable")[:MOST_USERS].tolist() if number[at] and names[at]]
    return {
        "block_jobs": np.bincount(block, minlength=blocks).tolist(),
        "block_waits": np.bincount(block, wait, blocks).tolist(),
        "class_jobs": np.bincount(classes, minlength=9).tolist(),
        "class_waits": np.bincount(classes, wait, 9).tolist(),
        "users": {names[at]: [float(number[at]), float(total[at])] for at in most},
        "groups": [msgspec.to_builtins(row) for row in group_figures(jobs, log.members)],
    }
