"""RLScheduler's and SchedInspector's environments in plain Python, read from their papers."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

from helpers.dbf_reference import Reference, Seen, Waiting

Rank = Callable[[Waiting], tuple[float, ...]]


def shortest(job: Waiting) -> tuple[float, ...]:
    return job.walltime, job.size


def f1(job: Waiting) -> tuple[float, ...]:
    return math.log10(job.walltime) * job.size + 870 * math.log10(max(job.submit, 1.0)), job.size


@dataclass
class Picks(Reference):
    """A job that is picked starts as soon as it fits; until then others are backfilled."""

    rank: Rank | None = None  # SchedInspector's base order; RLScheduler without
    next: Waiting | None = None

    def _cycle(self) -> Generator[Seen, int, None]:
        if self.next and not self._start_or_wait(self.next):
            return
        while self.queue and self.placed < self.jobs:
            job = yield from self._choose()
            if job is None or not self._start_or_wait(job):
                return

    def _choose(self) -> Generator[Seen, int, Waiting | None]:
        if self.rank is None:
            window = self._window()
            action = yield self._observe_window(window), [int(job is not None) for job in window], 0.0
            return window[action]
        job = min(self.queue, key=self.rank)
        refused = getattr(job, "refused", 0)
        action = yield self._observe_job(job, refused), [1, int(refused < 72)], 0.0
        if action == 1 and refused < 72:
            job.refused = refused + 1
            self.call = self.now + 600
            return None
        return job

    def _start_or_wait(self, job: Waiting) -> bool:
        if job.size <= self.until.count(0.0):
            self._place(job)
            self.next = None
            return True
        self.next = job
        begins = sorted(self.until)[job.size - 1]
        for other in list(self.queue):
            fits = other.size <= self.until.count(0.0) and self.now + other.walltime < begins
            if other is not job and fits and self.placed < self.jobs:
                self._place(other)
        return False

    def _observe_window(self, window: list[Waiting | None]) -> list[float]:
        numbers = self._observe(window)[self.cores :]
        for k, job in enumerate(window):
            if job is not None:
                numbers[4 * k + 2] = min((self.now - job.submit) / 43200, 1.0)
                numbers[4 * k + 3] = float(job.size <= self.until.count(0.0))
        return numbers

    def _observe_job(self, job: Waiting, refused: int) -> list[float]:
        free = self.until.count(0.0)
        delay = sum(600 / max(other.walltime, 10.0) for other in self.queue)
        return [
            min((self.now - job.submit) / 43200, 1.0),
            job.walltime / self.longest_run,
            job.size / self.cores,
            free / self.cores,
            float(job.size <= free),
            refused / 72,
            min(delay / (60 * 128), 1.0),
        ]
