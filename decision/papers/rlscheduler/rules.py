"""RLScheduler's simulator, with its peculiarities: the compatibility mode of the experiment.

Zhang, Dai, He, Bao and Xie, RLScheduler: an automated HPC batch job scheduler using reinforcement learning (SC 2020);
the rules are those of the program that the authors published with it. Where they differ from what the names say:

1. The job that the order puts first is committed to: it blocks until it starts, and jobs that arrive meanwhile cannot
   overtake it, however early the order would put them.
2. Time passes only while the committed job waits for hosts or the queue is empty. Then arrivals and ends are taken one
   by one, arrivals first at the same instant, until the job fits; what else happens at that instant is seen later. A
   job that has arrived may thus be missing from the queue when the next one is chosen.
3. WFP3 and UNICEP compute the waiting time as start - submission of a job whose start is still -1: it is
   -1 - submission, negative and the larger the later. They become fixed orders (WFP3 prefers jobs that are early, long
   and small; UNICEP puts jobs on one host last, where the formula would put them first).
4. Backfilling looks for jobs in order of arrival, whatever the order.
5. It takes a job only if ``now + requested < shadow``, strictly, and has no rule for hosts that the reservation leaves
   over: a job that never gets in the committed job's way but runs beyond the shadow time waits.
6. The shadow time is computed once, when the job is committed to, and does not move when jobs end early.
7. A job of unknown runtime (-1) runs 10 s; its requested time, where that is unknown too, stays -1.
8. (Not in this table:) its utilization is over the time until the last start, and negative.

The bounded slowdown is the usual one (10 s).
"""

import heapq
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.model.errors import InputError
from decision.model.record import SHORTEST_RUNTIME, Floats, Ints

_FIELDS = 18  # of a log's line
_ID, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _TIME = 0, 1, 3, 4, 7, 8
_ASSUMED = 10.0  # seconds, rule 7
_TINY = 1e-15  # UNICEP's guard against 0, as the authors chose it
_START_IN_QUEUE = -1.0  # seconds, rule 3


class JobSequence(NamedTuple):
    """Jobs in the order of their numbers. Columns of length n."""

    submit: Floats  # seconds
    runtime: Floats  # seconds
    requested: Floats  # seconds
    size: Ints  # hosts


def _wfp3(jobs: JobSequence, wait: Floats) -> Floats:
    return -((wait / jobs.requested) ** 3) * jobs.size


def _unicep(jobs: JobSequence, wait: Floats) -> Floats:
    return -(wait + _TINY) / (np.log2(jobs.size + _TINY) * jobs.requested)


def _f1(jobs: JobSequence, wait: Floats) -> Floats:
    requested, submit = (np.where(column > 0, column, 0.1) for column in (jobs.requested, jobs.submit))
    return np.log10(requested) * jobs.size + 870 * np.log10(submit)


SCORES: dict[str, Callable[[JobSequence, Floats], Floats]] = {  # of jobs by their waits; the lowest goes first
    "fcfs": lambda jobs, wait: jobs.submit,
    "wfp3": _wfp3,
    "unicep": _unicep,
    "sjf": lambda jobs, wait: jobs.requested,
    "f1": _f1,
}


def read_sequence(path: Path) -> JobSequence:
    """All jobs of a log, in the order of their numbers, as the authors' program reads them.

    Raises:
        InputError: if it is not a log in the Standard Workload Format.
    """
    try:
        table = np.loadtxt(path, comments=";", ndmin=2)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: no log in the Standard Workload Format ({error})") from None
    if table.shape[1:] != (_FIELDS,):
        raise InputError(f"{path}: no log in the Standard Workload Format; its lines need {_FIELDS} numbers")
    table = table[np.argsort(table[:, _ID], kind="stable")]
    runtime, requested = table[:, _RUN], table[:, _TIME]
    requested = np.where(requested == -1, runtime, requested)
    runtime = np.where(runtime < 0, _ASSUMED, runtime)
    size = np.maximum(table[:, _ALLOCATED], table[:, _REQUESTED]).astype(np.int64)
    ran = runtime > 0
    return JobSequence(table[ran, _SUBMIT], runtime[ran], requested[ran], size[ran])


def cut_sequence(jobs: JobSequence, first: int, length: int) -> JobSequence:
    """`length` jobs from number `first` on, counted from 0."""
    wanted = slice(first, first + length)
    return JobSequence(jobs.submit[wanted], jobs.runtime[wanted], jobs.requested[wanted], jobs.size[wanted])


def mean_bounded_slowdown(jobs: JobSequence, start: Floats) -> float:
    """``mean(max(1, (w + p) / max(p, 10)))`` of jobs that start then."""
    wait = start - jobs.submit
    return float(np.maximum(1.0, (wait + jobs.runtime) / np.maximum(jobs.runtime, SHORTEST_RUNTIME)).mean())


def rule_starts(jobs: JobSequence, order: str, backfilling: bool, nb_hosts: int, true_waits: bool = False) -> Floats:
    """When each job starts, seconds.

    Args:
        jobs: the sequence; no job is larger than the machine.
        order: a name of `SCORES`.
        backfilling: whether other jobs may start while the committed one waits.
        nb_hosts: of the machine.
        true_waits: leave rule 3 out, to see what it does.
    """
    run = Run(jobs, order, nb_hosts, true_waits)
    while run.fill_queue():
        run.start_first(backfilling)
    return np.array(run.start)


class Run:
    """A simulation by these rules; what places jobs on hosts overrides `take` and `give_back`."""

    def __init__(self, jobs: JobSequence, order: str, nb_hosts: int, true_waits: bool) -> None:
        self.jobs, self.order, self.true_waits = jobs, order, true_waits
        self.submit, self.runtime, self.requested = (column.tolist() for column in jobs[:3])
        self.size = jobs.size.tolist()
        self.scores = SCORES[order](jobs, _START_IN_QUEUE - jobs.submit).tolist()
        self.start = [math.nan] * len(self.submit)
        self.free, self.now, self.arrived, self.started = nb_hosts, 0.0, 0, 0
        self.queue: dict[int, None] = {}  # an ordered set: job numbers by arrival
        self.ranks: list[tuple[float, int]] = []  # a heap of those that came, and their scores where these stay
        self.ends: list[tuple[float, int, int]] = []  # a heap of (end, serial, job)

    def fill_queue(self) -> bool:
        """Let time pass until a job waits; False if none will ever."""
        while not self.queue and self.arrived < len(self.submit):
            self.step()
        return bool(self.queue)

    def step(self) -> None:
        """Take the next arrival or end."""
        if self.arrived < len(self.submit) and (not self.ends or self.submit[self.arrived] <= self.ends[0][0]):
            self.now = max(self.now, self.submit[self.arrived])
            self.queue[self.arrived] = None
            heapq.heappush(self.ranks, (self.scores[self.arrived], self.arrived))
            self.arrived += 1
        else:
            end, _, job = heapq.heappop(self.ends)
            self.now = max(self.now, end)
            self.give_back(job)

    def start_first(self, backfilling: bool) -> None:
        """Commit to the first job of the order and start it as soon as it fits."""
        if self.true_waits:
            waiting = np.fromiter(self.queue, np.int64)
            submit, runtime, requested, size = self.jobs
            jobs = JobSequence(submit[waiting], runtime[waiting], requested[waiting], size[waiting])
            first = int(waiting[SCORES[self.order](jobs, self.now - jobs.submit).argmin()])  # ties by arrival
        else:
            while self.ranks[0][1] not in self.queue:  # it was backfilled
                heapq.heappop(self.ranks)
            first = heapq.heappop(self.ranks)[1]
        shadow = self.shadow(first) if backfilling and self.size[first] > self.free else -math.inf
        while self.size[first] > self.free:
            self.backfill(shadow)
            self.step()
        self.begin(first)

    def shadow(self, first: int) -> float:
        """When enough hosts will be free for a job if those that run take all the time that they requested."""
        free = self.free
        ends = sorted((self.start[job] + self.requested[job], serial, job) for _, serial, job in self.ends)
        for end, _, job in ends:
            free += self.size[job]
            if free >= self.size[first]:
                return end
        return math.inf

    def backfill(self, shadow: float) -> None:
        """Start the jobs that fit and should be over before the shadow time."""
        if not self.free:
            return
        size, free, requested, now = self.size, self.free, self.requested, self.now
        for job in [job for job in self.queue if size[job] <= free and now + requested[job] < shadow]:
            if size[job] <= self.free:
                self.begin(job)

    def begin(self, job: int) -> None:
        del self.queue[job]
        self.start[job] = self.now
        self.take(job)
        heapq.heappush(self.ends, (self.now + self.runtime[job], self.started, job))
        self.started += 1

    def take(self, job: int) -> None:
        """Let a job have its hosts."""
        self.free -= self.size[job]

    def give_back(self, job: int) -> None:
        """Take a job's hosts back."""
        self.free += self.size[job]
