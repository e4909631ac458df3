"""Kamelot decides what its slow twin decides, jobs and hosts, at every instant."""

import numpy as np
import pytest
from helpers import policy_toys
from helpers.cases import by_day
from helpers.kamelot_reference import PlainKamelot
from helpers.policy_toys import Given, Toy, platform, run_toy
from helpers.policy_worlds import workloads
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.workload import Delay, Job, Workload
from decision.policies import ClusterView, Plan
from decision.policies.kamelot import Kamelot
from decision.policies.options import PolicyConfig
from decision.simulation import simulate_workloads
from decision.state.plan_arrays import new_plan

SECURITY = st.sampled_from([0.0, 0.0, 0.3, 1.0, 60.0])  # seconds
REACTION = st.sampled_from([0.0, 0.0, 1.5])  # seconds


class Both(Toy):
    """A cluster on which the policy decides beside its twin; its arrays grow as jobs arrive."""

    def __init__(self, hosts: int, security_time: float, reaction: float) -> None:
        super().__init__(hosts, PolicyConfig(), jobs=2)
        self.fast, self.slow = Kamelot(security_time, reaction), PlainKamelot(security_time, reaction)
        for policy in (self.fast, self.slow):
            policy.reset(platform(hosts), 0)

    def submit(self, size: int, walltime: float = np.inf) -> int:
        if self.state.nb_jobs == len(self.state.size):
            self.grow(2 * len(self.state.size))
        return super().submit(size, walltime)

    def decide(self) -> list[int]:
        plans = []
        for policy in (self.fast, self.slow):
            self.plan = new_plan(self.state)
            policy.decide(ClusterView(self.state, self.facts, ()), Plan(self.plan, self.state, self.facts))
            plans.append((list(self.actions()), self.plan.time[: self.plan.nb_actions].tolist()))
        assert plans[0] == plans[1], f"t={self.state.now}"
        return [job for job, _ in self.starts()]


@given(work=workloads(most=40), security=SECURITY, reaction=REACTION)
@settings(max_examples=by_day(80, of=300), deadline=None, derandomize=True)
def test_it_decides_as_its_twin(work: Given, security: float, reaction: float) -> None:
    run_toy(work, Both(work.hosts, security, reaction))


@given(work=workloads(largest=130, most=40, overruns=True, moves=True), security=SECURITY, reaction=REACTION)
@settings(max_examples=by_day(80, of=300), deadline=None, derandomize=True)
def test_it_is_its_twin_when_jobs_overrun_and_hosts_move(work: Given, security: float, reaction: float) -> None:
    run_toy(work, Both(work.hosts, security, reaction))


def test_a_job_that_never_fits_holds_nobody_up() -> None:
    work = policy_toys.given(4, (0, 3, 10, 10), (0, 100, 5, 5), (1, 2, 5, 5), (1, 1, 5, 5), (2, 1, np.inf, 9))
    starts = run_toy(work, Both(4, 0.0, 0.0))
    assert np.isnan(starts[1])
    assert np.delete(starts, 1).tolist() == [0, 10, 1, 6]


@pytest.mark.parametrize("seed", range(12))
def test_with_a_long_queue_the_schedule_is_that_of_its_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hosts = int(rng.choice([5, 64, 70, 200]))
    work = _overload(rng, hosts)
    fast, slow = (
        simulate_workloads(platform(hosts), [work], make(security_time=float(seed % 3)))
        for make in (Kamelot, PlainKamelot)
    )
    assert fast.jobs.id == slow.jobs.id
    assert fast.jobs.allocation == slow.jobs.allocation
    assert np.array_equal(fast.jobs.start_time, slow.jobs.start_time)


def _overload(rng: np.random.Generator, hosts: int) -> Workload:
    """200 jobs that come twice as fast as they can run, some wide; times whole, or with rounding; most end early."""
    nb_jobs = 200
    widest = np.where(rng.random(nb_jobs) < 0.7, hosts // 4 + 1, hosts)
    size = rng.integers(1, widest + 1)
    walltime = np.exp(rng.uniform(0, 6, nb_jobs)).round(int(rng.choice([0, 3])))
    runtime = walltime * rng.choice([1.0, 0.5, 0.1], nb_jobs)
    gap = (size * runtime).mean() / hosts / 2
    submit = np.cumsum(rng.exponential(gap, nb_jobs)).round(int(rng.choice([0, 3])))
    columns = zip(submit.tolist(), size.tolist(), walltime.tolist(), strict=True)
    jobs = [
        Job(id=f"w0!{i}", submit_time=when, size=width, walltime=limit, profile=f"{i}")
        for i, (when, width, limit) in enumerate(columns)
    ]
    profiles = {f"{i}": Delay(seconds) for i, seconds in enumerate(runtime.tolist())}
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=hosts)
