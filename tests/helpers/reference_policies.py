"""Slow plain-Python twins of the composed policies, written from their definitions.

They know nothing of kernels, incremental profiles or kept lists: each decision starts from scratch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from decision.policies.options import Order


@dataclass(frozen=True)
class Job:
    """A job as a scheduler knows it."""

    number: int
    submit_time: float  # seconds
    size: int  # hosts
    walltime: float  # seconds


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    job: Job
    start_time: float  # seconds


Starts = list[Job]


def fcfs(now: float, queue: Sequence[Job], running: Sequence[Running], free: int) -> Starts:
    """Jobs from the front while they fit."""
    starts: Starts = []
    for job in queue:
        if job.size > free:
            break
        starts.append(job)
        free -= job.size
    return starts


def first_fit(now: float, queue: Sequence[Job], running: Sequence[Running], free: int) -> Starts:
    """Every job that fits."""
    starts: Starts = []
    for job in queue:
        if job.size <= free:
            starts.append(job)
            free -= job.size
    return starts


def easy(now: float, queue: Sequence[Job], running: Sequence[Running], free: int) -> Starts:
    """Mu'alem and Feitelson (2001), count-based."""
    starts = fcfs(now, queue, running, free)
    waiting = list(queue[len(starts) :])
    if not waiting:
        return starts
    free -= sum(job.size for job in starts)
    ends = [(r.start_time + r.job.walltime, r.job.size) for r in running] + [(now + j.walltime, j.size) for j in starts]
    shadow, extra = _shadow(ends, free, waiting[0].size)
    for job in waiting[1:]:
        if job.size > free:
            continue
        if now + job.walltime > shadow:
            if job.size > extra:
                continue
            extra -= job.size
        starts.append(job)
        free -= job.size
    return starts


def _shadow(ends: Sequence[tuple[float, int]], free: int, wanted: int) -> tuple[float, int]:
    """When `wanted` hosts are free, and how many more are free then."""
    for time, _ in sorted(ends):
        then = free + sum(hosts for end, hosts in ends if end <= time)
        if then >= wanted:
            return time, then - wanted
    return math.inf, 0


Rank = Callable[[Job, float, int], float]

ORDERS: dict[Order, Rank] = {
    Order.LCFS: lambda job, now, hosts: -job.submit_time,
    Order.SJF: lambda job, now, hosts: job.walltime,
    Order.LJF: lambda job, now, hosts: -job.walltime,
    Order.SAF: lambda job, now, hosts: job.walltime * job.size,
    Order.LAF: lambda job, now, hosts: -job.walltime * job.size,
    Order.SQF: lambda job, now, hosts: job.size,
    Order.LQF: lambda job, now, hosts: -job.size,
    Order.F1: lambda job, now, hosts: math.log10(job.walltime) * job.size + 870.0 * _log_submission(job),
    Order.F2: lambda job, now, hosts: math.sqrt(job.walltime) * job.size + 2.56e4 * _log_submission(job),
    Order.F3: lambda job, now, hosts: job.walltime * job.size + 6.86e6 * _log_submission(job),
    Order.F4: lambda job, now, hosts: job.walltime * math.sqrt(job.size) + 5.3e5 * _log_submission(job),
    Order.WFP3: lambda job, now, hosts: -(((now - job.submit_time) / job.walltime) ** 3) * job.size,
    Order.UNICEP: lambda job, now, hosts: (
        -math.inf if job.size == 1 else -(now - job.submit_time) / (math.log2(job.size) * job.walltime)
    ),
    Order.MULTIFACTOR: lambda job, now, hosts: (
        -(1000.0 * min((now - job.submit_time) / 604800.0, 1.0) + 1000.0 * job.size / hosts)
    ),
}


def _log_submission(job: Job) -> float:
    return math.log10(max(job.submit_time, 1.0))


CLOCK = 1e-3  # seconds by which a start may be late without anything being planned anew


@dataclass
class Conservative:
    """Reservations, each a begin per job; how many hosts are free when is computed anew for each question."""

    begin: dict[int, float] = field(default_factory=dict)  # by job number: waiting and running jobs
    ran: dict[int, Running] = field(default_factory=dict)  # after the last decision
    doubt: bool = False  # the last decision, or one just before it, found the plan overtaken by events
    capacity: int = -1  # hosts at the last decision
    last: float = -1.0  # its time

    def __call__(self, now: float, queue: Sequence[Job], running: Sequence[Running], free: int) -> Starts:
        """Compress after early ends, reserve for arrivals, start what is due."""
        known = [job for job in queue if job.number in self.begin]
        busy = [self._occupied(r, now) for r in running]
        capacity = free + sum(r.job.size for r in running)
        overrun = any(self.begin[r.job.number] + r.job.walltime <= now for r in running)
        late = [job for job in known if self.begin[job.number] < now - CLOCK]
        self.begin |= {job.number: now for job in late}
        doubt = overrun or bool(late) or capacity != self.capacity or (self.doubt and now < self.last + CLOCK)
        if not self._feasible(capacity, now, busy + [self._reserved(job) for job in known]):
            for job in known:
                del self.begin[job.number]
            for job in known:
                self._reserve(capacity, now, busy, known, job)
        elif doubt or self.doubt or self._some_ended_early(now, running):
            for job in known:
                if self.begin[job.number] > now:
                    del self.begin[job.number]
                    self._reserve(capacity, now, busy, known, job)
        for job in queue:
            if job.number not in self.begin:
                self._reserve(capacity, now, busy, queue, job)
        starts = []
        for job in queue:
            if self.begin[job.number] <= now and job.size <= free:
                starts.append(job)
                free -= job.size
        self.ran = {r.job.number: r for r in running} | {job.number: Running(job, now) for job in starts}
        self.doubt, self.capacity, self.last = doubt, capacity, now
        return starts

    def _some_ended_early(self, now: float, running: Sequence[Running]) -> bool:
        ended = self.ran.keys() - {r.job.number for r in running}
        return any(self.begin[number] + self.ran[number].job.walltime > now for number in ended)

    def _occupied(self, run: Running, now: float) -> tuple[float, float, int]:
        end = self.begin[run.job.number] + run.job.walltime
        return now, end if end > now else now + CLOCK, run.job.size

    def _reserved(self, job: Job) -> tuple[float, float, int]:
        begin = self.begin[job.number]
        return begin, begin + job.walltime, job.size

    def _reserve(self, capacity: int, now: float, busy: list, queue: Sequence[Job], job: Job) -> None:
        taken = busy + [self._reserved(other) for other in queue if other.number in self.begin]
        for begin in sorted({now, *(end for _, end, _ in taken if end > now)}):
            candidate = (begin, begin + job.walltime, job.size)
            if begin < math.inf and self._feasible(capacity, begin, [*taken, candidate], candidate[1]):
                self.begin[job.number] = begin
                return
        self.begin[job.number] = math.inf

    @staticmethod
    def _feasible(capacity: int, begin: float, taken: list, end: float = math.inf) -> bool:
        """Whether no more hosts are taken than there are, at any moment from `begin` to before `end`."""
        moments = {begin, *(b for b, _, _ in taken if begin < b < end)}
        return all(sum(n for b, e, n in taken if b <= moment < e) <= capacity for moment in moments)
