"""The paper's environment in plain Python, read from its text: jobs as tuples, time as a list of events."""

import math
from collections.abc import Generator
from dataclasses import dataclass, field

from decision.model.workload import Delay, Workload

Seen = tuple[list[float], list[int], float]  # observation, mask, reward of the last choice


@dataclass
class Waiting:
    """A job in the queue."""

    submit: float
    size: int
    walltime: float
    run: float


@dataclass
class Reference:
    """One episode on `cores` cores; all jobs come once, from the first on."""

    workload: Workload
    cores: int
    head: int
    tail: int
    jobs: int  # to be placed
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    paper: bool = True
    queue: list[Waiting] = field(default_factory=list)
    until: list[float] = field(default_factory=list)  # expected end per core, 0 where free
    ends: list[tuple[float, list[int]]] = field(default_factory=list)  # real end, cores
    placed: int = 0
    now: float = 0.0
    longest: int = 0
    longest_wait: float = 0.0
    call: float = math.inf  # when a cycle was asked for
    slowdowns: list[float] = field(default_factory=list)
    integrals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("used", "queued", "load"), 0.0))

    def play(self) -> Generator[Seen, int, None]:
        """Yields what a scheduler sees, and takes its choice."""
        self.until = [0.0] * self.cores
        jobs = sorted(self.workload.jobs, key=lambda job: (job.submit_time, job.id))
        arrivals = [Waiting(j.submit_time, j.size, j.walltime, self._run(j)) for j in jobs]
        self.now, self.reward, self.arrived = arrivals[0].submit, 0.0, 0
        self.longest_run = max(job.walltime for job in arrivals)
        while arrivals or self.ends or self.call < math.inf:
            self._pass_time(min([self.call] + [job.submit for job in arrivals[:1]] + [end for end, _ in self.ends]))
            called = self.call == self.now
            self.call = math.inf if called else self.call
            over = [cores for end, cores in self.ends if end == self.now]
            self.ends = [(end, cores) for end, cores in self.ends if end > self.now]
            for cores in over:
                for core in cores:
                    self.until[core] = 0.0
            if over or called:
                yield from self._cycle()
            while arrivals and arrivals[0].submit == self.now:
                self.queue.append(arrivals.pop(0))
                self.arrived += 1
                yield from self._cycle()

    def _run(self, job) -> float:
        profile = self.workload.profiles[job.profile]
        assert isinstance(profile, Delay)
        return min(profile.duration, job.walltime)

    def _pass_time(self, to: float) -> None:
        seconds, self.now = to - self.now, to
        self.integrals["used"] += seconds * sum(end > 0 for end in self.until)
        self.integrals["queued"] += seconds * len(self.queue)
        self.integrals["load"] += seconds * sum(job.size * job.walltime for job in self.queue)

    def _cycle(self) -> Generator[Seen, int, None]:
        self.longest = max(self.longest, len(self.queue))
        self.longest_wait = max(self.longest_wait, self._waiting())
        while self.placed < self.jobs:
            window = self._window()
            action = yield self._observe(window), self._mask(window), self.reward
            job = window[action] if 0 <= action < len(window) else None
            if job is None or job.size > self.until.count(0.0):
                self.reward = self._penalty()
                return
            self._place(job)
            self.reward = 0.0

    def _place(self, job: Waiting) -> None:
        cores = [core for core, end in enumerate(self.until) if end == 0.0][: job.size]
        for core in cores:
            self.until[core] = self.now + job.walltime
        self.ends.append((self.now + job.run, cores))
        self.queue = [other for other in self.queue if other is not job]
        self.placed += 1
        self.slowdowns.append(max(1.0, (self.now - job.submit + job.run) / max(job.run, 10.0)))

    def _window(self) -> list[Waiting | None]:
        first, rest = self.queue[: self.head], self.queue[self.head :]
        last = rest[::-1][: self.tail]
        return [*first, *[None] * (self.head - len(first)), *last, *[None] * (self.tail - len(last))]

    def _observe(self, window: list[Waiting | None]) -> list[float]:
        out = [max(end - self.now, 0.0) / self.longest_run for end in self.until]
        for job in window:
            if job is None:
                out += [0.0] * 4
            else:
                waited = (self.now - job.submit) / self.longest_run
                waited = min(waited, 1.0) if self.paper else waited / (waited + 1)
                out += [job.size / self.cores, job.walltime / self.longest_run, waited, 1.0]
        return out

    def _mask(self, window: list[Waiting | None]) -> list[int]:
        fits = [int(job is not None and job.size <= self.until.count(0.0)) for job in window]
        idle, all_fit = not any(self.until), sum(job.size for job in self.queue) <= self.until.count(0.0)
        return [*fits, int(not (any(fits) and (idle or (all_fit and not self.paper))))]

    def _waiting(self) -> float:
        return sum(self.now - job.submit for job in self.queue)

    def _penalty(self) -> float:
        idle = self.until.count(0.0) / self.cores
        queued = len(self.queue) / self.longest if self.longest else 0.0
        waiting = self._waiting() / self.longest_wait if self.longest_wait else 0.0
        return -(self.weights[0] * idle + self.weights[1] * queued + self.weights[2] * waiting)
