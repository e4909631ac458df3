"""Runs of whole logs, each repeated on shaken copies; what each comes to is small, and is kept.

The first and the last hundredth of the jobs, in order of submission, are simulated and not counted: the machine is not
yet full, or empties without others that compete. The share is that of Frachtenberg and Feitelson, Pitfalls in parallel
job scheduling evaluation (JSSPP 2005); the end is by submission, since a rule by termination would leave out the jobs
that a policy lets wait. The longest wait is that of all jobs.
"""

import functools
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.analysis import metrics as m
from decision.analysis.whole import block_seconds
from decision.formats import load_platform
from decision.formats.selection import Selection
from decision.generate.clusters import simple_cluster
from decision.model.columns import columns_of
from decision.model.errors import DecisionError, InputError
from decision.model.platform import Platform
from decision.model.resample import SHAKE, shaken
from decision.model.workload import Workload
from decision.simulation import simulate_workloads

from .tasks import Result, file_digest

WARM_UP = 0.01  # share of the jobs that is not counted, at either end
SIZE_CLASSES = (1 / 64, 1 / 8, 1.0)  # of the machine: small, middle and large jobs
LENGTH_CLASSES = (600.0, 7200.0, np.inf)  # seconds: short, middle and long jobs
MOST_USERS = 20  # whose waits are kept, those with most jobs


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated: a log and its machine."""

    workload: Path
    platform: Path | None  # None: a flat machine
    hosts: int  # of that; 0: as many as the log says
    selection: Selection

    def read(self) -> tuple[Platform, Workload]:
        """The machine, and the jobs that fit it, the first at 0 s. Raises InputError."""
        return _read(self, self.digests())

    def digests(self) -> tuple[str, ...]:
        """Of the files."""
        return tuple(file_digest(path) for path in (self.workload, self.platform) if path is not None)


@functools.lru_cache(maxsize=4)
def _read(log: Log, digests: tuple[str, ...]) -> tuple[Platform, Workload]:
    workload = log.selection.read(log.workload, "w0")
    platform = load_platform(log.platform) if log.platform else simple_cluster(log.hosts or workload.nb_res)
    jobs = columns_of(workload.jobs)
    rows = np.flatnonzero(jobs.size <= len(platform.hosts))
    if not len(rows):
        raise InputError(f"{log.workload}: no job fits {len(platform.hosts):,} hosts; choose a larger machine")
    larger = len(jobs) - len(rows)
    jobs = jobs.take(rows[np.argsort(jobs.submit_time[rows], kind="stable")])
    jobs = jobs.replaced(submit_time=jobs.submit_time - jobs.submit_time[0], source=None)
    dropped = {**workload.dropped, f"larger than {len(platform.hosts):,} hosts": larger} if larger else workload.dropped
    return platform, replace(workload, jobs=jobs, trace=None, dropped=dropped)


class WholeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on a copy of a log."""

    log: Log
    policy: str
    copy: int

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        selection = msgspec.to_builtins(self.log.selection)
        return {
            "whole": 1,
            "policy": self.policy,
            "copy": self.copy,
            "shake": SHAKE,
            "digests": self.log.digests(),
            "hosts": self.log.hosts,
            "selection": selection,
        }


def counted(jobs: int) -> slice:
    """Which of so many jobs count, in order of submission."""
    left_out = int(WARM_UP * jobs)
    return slice(left_out, jobs - left_out)


def perform_whole_run(run: WholeRun) -> Result:
    """What a run comes to.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    platform, workload = run.log.read()
    try:
        table = simulate_workloads(platform, [shaken(workload, run.copy)], run.policy).jobs
    except DecisionError as error:
        error.args = (f"{run.policy} on {run.log.workload}, copy {run.copy}: {error}",)
        raise
    jobs = columns_of(workload.jobs)
    row_of = {name: row for row, name in enumerate(jobs.id)}
    rank = np.array([row_of[name] for name in table.id])
    ordered = table.take(np.argsort(rank))
    starts = hashlib.sha256(np.round(ordered.start_time, 3).tobytes()).hexdigest()[:16]
    chosen = np.arange(len(rank))[counted(len(rank))]
    part = ordered.take(chosen)
    wait, slowdown = m.waiting_times(part), m.bounded_slowdowns(part)
    size_class = np.searchsorted(SIZE_CLASSES, part.size / len(platform.hosts))
    length_class = np.searchsorted(LENGTH_CLASSES, part.runtime)
    block = (jobs.submit_time[chosen] // block_seconds(float(jobs.submit_time[-1]))).astype(np.int64)
    users = np.array([jobs.user.codes[row] for row in chosen])
    return {
        "starts": starts,
        "jobs": np.bincount(block).tolist(),
        "wait": np.bincount(block, wait).tolist(),
        "bounded_slowdown": np.bincount(block, slowdown).tolist(),
        "p95_wait": m.percentile(wait, 95),
        "p99_wait": m.percentile(wait, 99),
        "max_wait": float(m.waiting_times(ordered).max()),
        "late_starts": float(m.late_starts(ordered)),
        "arrival_utilization": m.arrival_utilization(ordered, len(platform.hosts)),
        "classes": np.bincount(3 * size_class + length_class, wait, 9).tolist(),
        "class_jobs": np.bincount(3 * size_class + length_class, minlength=9).tolist(),
        "users": _by_user(list(jobs.user.labels), users, wait),
    }


def _by_user(names: list[str], users: np.ndarray, wait: np.ndarray) -> dict[str, list[float]]:
    """Jobs and the sum of waits (seconds) of those with most jobs."""
    number, total = np.bincount(users, minlength=len(names)), np.bincount(users, wait, len(names))
    most = np.argsort(-number, kind="stable")[:MOST_USERS]
    return {names[at]: [float(number[at]), float(total[at])] for at in most.tolist() if number[at] and names[at]}
