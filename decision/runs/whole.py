"""Runs of whole logs, each repeated on shaken copies; what each comes to is small, and is kept."""

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.analysis import metrics as m
from decision.analysis.groups import SHOWN_GROUPS, Membership, group_figures, memberships
from decision.analysis.unsimulated import Unsimulated, unsimulated
from decision.analysis.whole import LogPart, judge_run, part_of
from decision.estimates.missing import fill_missing
from decision.formats import load_platform
from decision.formats.selection import Selection
from decision.generate.clusters import simple_cluster
from decision.learn import find_checkpoint
from decision.model.columns import columns_of
from decision.model.demand import runtimes, walltimes
from decision.model.errors import DecisionError, InputError
from decision.model.platform import Platform
from decision.model.record import Floats, JobTable
from decision.model.resample import shaken
from decision.model.workload import Workload
from decision.simulation import simulate_workloads

from .tasks import Result, file_digest

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
        """Of the files."""
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
        learned = find_checkpoint(re.split("[:,]", self.policy)[0])
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
