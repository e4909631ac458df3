"""Slow plain-Python twin of the policy kamelot, written from its definition.

Each decision makes all reservations again. Sets of hosts are whole numbers, bit h for host h.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from decision.model.platform import Platform
from decision.policies import ClusterView, Plan
from decision.policies.profile import TOLERANCE


class PlainKamelot:
    """Conservative backfilling over hosts, in order of submission; options as those of `Kamelot`."""

    needs_walltime = True

    def __init__(self, security_time: float = 60.0, reaction: float = 0.0) -> None:
        self._security, self._reaction = security_time, reaction
        self._due = math.nan  # seconds: when the next decision is made, nan where nothing waits for one

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins."""
        self._due = math.nan

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Start the jobs whose reservations begin now, once the time to react is over."""
        if self._waits(cluster.now, plan):
            return
        gantt = self._running(cluster, _bits(plan.free_hosts))
        for job in cluster.queue:
            begin, hosts = gantt.reserve(job.size, job.walltime + self._security)
            if begin == cluster.now:
                plan.start(job, _members(hosts))

    def _waits(self, now: float, plan: Plan) -> bool:
        """Whether it is too early to react; asks once to be called, because a peer keeps every request."""
        if self._reaction == 0:
            return False
        if math.isnan(self._due):
            self._due = now + self._reaction
            plan.call_at(self._due)
        waits = now < self._due - TOLERANCE
        if not waits:
            self._due = math.nan
        return waits

    def _running(self, cluster: ClusterView, free: int) -> "PlainGantt":
        """What running jobs leave; one that should have ended by now is taken to run without end."""
        gantt = PlainGantt(cluster.now, free)
        for job in cluster.running:
            end = job.expected_end + self._security
            if end > cluster.now:
                gantt.release(end, _bits(job.hosts))
        return gantt


class PlainGantt:
    """Which hosts are free when: ``free[i]`` from ``begin[i]`` (seconds) to ``begin[i + 1]``, the last one without end.

    Args:
        now: seconds.
        free: hosts that are free from now on.
    """

    def __init__(self, now: float, free: int) -> None:
        self.begin, self.free = [now], [free]

    def release(self, time: float, hosts: int) -> None:
        """Hosts come free at `time` (seconds)."""
        for i in range(self._cut(time), len(self.free)):
            self.free[i] |= hosts

    def reserve(self, size: int, duration: float) -> tuple[float, int]:
        """Take `size` hosts for `duration` seconds as early as possible.

        Returns:
            The begin in seconds and the hosts; inf and none if there will never be enough.
        """
        for first, begin in enumerate(self.begin):
            hosts = self._free_throughout(first, begin + duration)
            if hosts.bit_count() >= size:
                hosts = _lowest(hosts, size)
                for i in range(first, self._cut(begin + duration)):
                    self.free[i] &= ~hosts
                return begin, hosts
        return math.inf, 0

    def _free_throughout(self, first: int, end: float) -> int:
        """Hosts that are free from step `first` until `end` (seconds)."""
        hosts = self.free[first]
        for i in range(first + 1, len(self.begin)):
            if self.begin[i] >= end:
                break
            hosts &= self.free[i]
        return hosts

    def _cut(self, time: float) -> int:
        """The index of the step that begins at `time`, which is made where there is none."""
        at = bisect_left(self.begin, time)
        if at == len(self.begin) or self.begin[at] != time:
            self.begin.insert(at, time)
            self.free.insert(at, self.free[at - 1])
        return at


def _bits(hosts: Iterable[int]) -> int:
    return sum(1 << host for host in hosts)


def _lowest(hosts: int, size: int) -> int:
    """The `size` lowest of the hosts."""
    rest = hosts
    for _ in range(size):
        rest &= rest - 1
    return hosts ^ rest


def _members(hosts: int) -> Iterator[int]:
    while hosts:
        yield (hosts & -hosts).bit_length() - 1
        hosts &= hosts - 1
