"""Conservative backfilling on clusters too large for the slow twin, against a count of hosts for each second."""

import numpy as np
import pytest
from helpers.policy_toys import Given, Instant, run
from helpers.reference_policies import Job

from decision.policies.memory import FREED_ROOM
from decision.policies.options import Backfill, PolicyConfig

CONSERVATIVE = PolicyConfig(backfill=Backfill.CONSERVATIVE)
HORIZON = 20_000  # seconds


class Seconds:
    """The rules of conservative backfilling where all times are whole seconds."""

    def __init__(self, hosts: int) -> None:
        self.free = np.full(HORIZON, hosts)
        self.begin: dict[int, int] = {}
        self.planned: dict[int, tuple[Job, int]] = {}  # running jobs and their planned ends
        self.most_early = 0  # jobs that ended early at one instant

    def reserve(self, now: int, job: Job) -> None:
        """Put the job at the first second from which on enough hosts are free for long enough."""
        walltime = int(job.walltime)
        lacking = np.concatenate(([0], np.cumsum(self.free[now:] < job.size)))
        begin = now + int(np.argmax(lacking[walltime:] == lacking[:-walltime]))
        self.begin[job.number] = begin
        self.free[begin : begin + walltime] -= job.size

    def check(self, instant: Instant) -> None:
        """Decide, and compare."""
        now, early = int(instant.now), 0
        running = {r.job.number for r in instant.running}
        for number in self.planned.keys() - running:
            job, end = self.planned.pop(number)
            early += end > now
            self.free[now:end] += job.size
        self.most_early = max(self.most_early, early)
        for job in instant.queue:
            if job.number in self.begin and early:
                begin = self.begin[job.number]
                self.free[begin : begin + int(job.walltime)] += job.size
                self.reserve(now, job)
        for job in instant.queue:
            if job.number not in self.begin:
                self.reserve(now, job)
        starts = [job for job in instant.queue if self.begin[job.number] == now]
        self.planned |= {job.number: (job, now + int(job.walltime)) for job in starts}
        assert instant.starts == [job.number for job in starts]
        reserved = instant.toy.memory.reserved
        assert {j.number: reserved[j.number] for j in instant.queue} == {
            j.number: self.begin[j.number] for j in instant.queue
        }


def made(seed: int, hosts: int, jobs: int, serial: float) -> Given:
    """Bursts of jobs, a share of them on one host, most of which end early and many at the same instant."""
    rng = np.random.default_rng(seed)
    size = np.where(rng.random(jobs) < serial, 1, rng.integers(1, hosts + 1, jobs))
    walltime = rng.choice([10, 20, 60, 200], jobs)
    submit = np.sort(rng.choice([0, 1, 50, 51, 52, 300], jobs))
    runtime = np.where(rng.random(jobs) < 0.7, 7, walltime)
    made = [Job(i, float(submit[i]), int(size[i]), float(walltime[i])) for i in range(jobs)]
    return Given(made, runtime.astype(float).tolist(), hosts)


@pytest.mark.parametrize("seed", range(4))
def test_reservations_are_what_counting_every_second_gives(seed):
    work = made(seed, hosts=[16, 64, 100, 256][seed], jobs=200, serial=[0.3, 0.6, 0.9, 0.95][seed])
    run(work, CONSERVATIVE, Seconds(work.hosts).check)


def test_more_regions_may_come_free_than_the_list_has_room_for():
    work = made(9, hosts=150, jobs=900, serial=0.98)
    seconds = Seconds(work.hosts)
    run(work, CONSERVATIVE, seconds.check)
    assert seconds.most_early > FREED_ROOM
