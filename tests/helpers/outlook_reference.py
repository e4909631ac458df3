"""EASY with predicted run times in plain Python: what the compiled outlook and policies are held to."""

import math

import numpy as np

from decision.model.record import FinalState
from decision.model.workload import Delay, Job, Workload
from decision.policies.runtimes.predictors import PREDICTORS, Predictor
from decision.state.cluster import ENDED

HOSTS = 8
INCREMENTS = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


class ReferenceEasy:
    """EASY whose candidates are in order of submission or of expected run time; made again at each decision."""

    needs_walltime = True

    def __init__(
        self, estimate: str, correction: str = "walltime", shortest_first: bool = False, levels: tuple = (0.5, 0.8)
    ) -> None:
        self.estimate, self.correction, self.shortest_first = estimate, correction, shortest_first
        self.shadow, self.fill = levels

    def reset(self, platform, seed) -> None:
        self.predictor: Predictor | None = PREDICTORS[self.estimate]() if self.estimate in PREDICTORS else None
        self.predicted: dict[int, float] = {}
        self.expected: dict[int, float] = {}
        self.corrections: dict[int, int] = {}
        self.begun: set[int] = set()

    def decide(self, cluster, plan) -> None:
        self._learn(cluster)
        for number in range(len(self.predicted), int(cluster.arrays.nb_jobs)):
            self._predict(cluster.job(number), cluster)
        for job in cluster.running:
            if self.estimate == "quantiles":
                self._predict_left(job, cluster.now)
            else:
                self._correct(job, cluster.now)
        self._plan(cluster, plan)

    def _learn(self, cluster) -> None:
        for job in cluster.ended:
            killed = cluster.arrays.job_state[job.number] == ENDED + FinalState.COMPLETED_KILLED
            if self.predictor is not None and not killed:
                runtime = min(job.end_time - job.start_time, job.walltime)
                self.predictor.observe(self._user(job), job.size, job.walltime, job.submit_time, runtime)

    def _user(self, job) -> str:
        return str(job.user) if job.user >= 0 else ""

    def _predict(self, job, cluster) -> None:
        if self.predictor is not None:
            seconds = self.predictor.predict(self._user(job), job.size, job.walltime, job.submit_time)
            if self.estimate == "quantiles":
                seconds = self.predictor.quantile(self._user(job), job.size, job.walltime, 0.0, self.fill)
        else:
            seconds = float(cluster.arrays.estimate[job.number])
        self.predicted[job.number] = self.expected[job.number] = min(max(seconds, 1.0), job.walltime)

    def _predict_left(self, job, now: float) -> None:
        over = job.start_time + self.expected[job.number] <= now and self.expected[job.number] < job.walltime
        if over or job.number not in self.begun:
            elapsed = now - job.start_time
            left = self.predictor.quantile(self._user(job), job.size, job.walltime, elapsed, self.shadow)
            self.expected[job.number] = min(max(left, 1.0), job.walltime)
            self.begun.add(job.number)

    def _correct(self, job, now: float) -> None:
        while job.start_time + self.expected[job.number] <= now and self.expected[job.number] < job.walltime:
            step = self.corrections.get(job.number, 0)
            self.corrections[job.number] = step + 1
            longer = job.walltime
            if self.correction == "doubling":
                longer = 2 * self.expected[job.number]
            elif self.correction == "increments" and step < len(INCREMENTS):
                longer = self.predicted[job.number] + INCREMENTS[step]
            self.expected[job.number] = min(longer, job.walltime)

    def _plan(self, cluster, plan) -> None:
        queue, free, ends = list(cluster.queue), cluster.nb_free, []
        ends = [(job.start_time + self.expected[job.number], job.size) for job in cluster.running]
        while queue and queue[0].size <= free:
            head = queue.pop(0)
            plan.start(head)
            free -= head.size
            ends.append((cluster.now + self.expected[head.number], head.size))
        if not queue:
            return
        shadow, there = math.inf, free
        for end in sorted({end for end, _ in ends}):
            there += sum(size for at, size in ends if at == end)
            if there >= queue[0].size:
                shadow = end
                break
        extra = max(there - queue[0].size, 0)
        rest = queue[1:]
        if self.shortest_first:
            rest.sort(key=lambda job: (self.expected[job.number], job.number))
        for job in rest:
            if job.size > free:
                continue
            if cluster.now + self.expected[job.number] > shadow:
                if job.size > extra:
                    continue
                extra -= job.size
            plan.start(job)
            free -= job.size


def made(seed: int, count: int = 120, users: int = 3) -> Workload:
    """Jobs that use very different parts of their walltimes, at whole seconds so that instants are shared."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 40 * count, count)).astype(float)
    walltime = rng.choice([60.0, 600.0, 3600.0, 7200.0], count)
    share = rng.choice([0.01, 0.3, 0.9, 1.0, 1.2], count)  # the last ones are killed by their walltimes
    runtime = np.maximum(np.rint(walltime * share * rng.uniform(0.5, 1.0, count)), 1.0)
    estimate = np.rint(runtime * rng.choice([0.01, 0.5, 1.0, 3.0], count)) + 1.0
    jobs, profiles = [], {}
    for i in range(count):
        profiles[f"p{i}"] = Delay(float(runtime[i]))
        user = f"u{rng.integers(users)}" if users else ""
        size = int(rng.integers(1, HOSTS + 1))
        jobs.append(
            Job(
                id=f"w0!{i}",
                submit_time=float(submit[i]),
                size=size,
                walltime=float(walltime[i]),
                profile=f"p{i}",
                user=user,
                estimate=float(estimate[i]),
            )
        )
    return Workload(name="w0", jobs=tuple(jobs), profiles=profiles, nb_res=HOSTS)
