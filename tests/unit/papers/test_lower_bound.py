"""The lower bound: below every schedule, and near the best one where that is known."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.experiments.metrics import bounded_slowdowns, waiting_times
from decision.model.workload import Delay, Job, Workload
from decision.papers.own.coverage import lower_bound
from decision.rl.envs import equal_hosts
from decision.simulation import simulate_workloads


def run(rows, hosts, policy="easy"):
    """The jobs of rows of (submission, hosts, seconds), as a policy runs them."""
    jobs = [Job(id=f"w0!{i}", submit_time=t, size=n, walltime=p, profile=f"{p}") for i, (t, n, p) in enumerate(rows)]
    profiles = {f"{p}": Delay(duration=p) for *_, p in rows}
    workload = Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=hosts)
    return simulate_workloads(equal_hosts(hosts), [workload], policy).jobs


def test_jobs_that_never_wait_have_a_bound_of_nothing():
    assert lower_bound(run([(0.0, 1, 100.0), (5.0, 2, 30.0)], 4), 4) == (0.0, 1.0)


def test_on_one_host_the_bound_is_near_the_shortest_job_first():
    lengths = [100.0, 20.0, 300.0, 50.0, 150.0]
    best = min(np.cumsum([0, *order[:-1]]).mean() for order in permutations(lengths))
    bound = lower_bound(run([(0.0, 1, length) for length in lengths], 1, "fcfs"), 1)
    assert 0.9 * best < bound.wait <= best * (1 + 1e-9)


rows = st.tuples(st.floats(0.0, 50.0), st.integers(1, 4), st.sampled_from([1.0, 8.0, 20.0, 75.0]))


@settings(deadline=None, max_examples=30)
@given(st.lists(rows, min_size=1, max_size=12), st.sampled_from(["easy", "sjf+first-fit", "saf+easy", "conservative"]))
def test_no_schedule_is_below_the_bound(rows, policy):
    table = run(sorted(rows), 4, policy)
    wait, slowdown = lower_bound(run(sorted(rows), 4, "fcfs"), 4)
    assert 0 <= wait <= waiting_times(table).mean() + 1e-6
    assert 1 <= slowdown <= bounded_slowdowns(table).mean() + 1e-6


def test_the_bound_of_the_slowdown_knows_that_short_waits_cost_nothing():
    """Of two jobs of a second one waits a second: both count as ten seconds long."""
    bound = lower_bound(run([(0.0, 1, 1.0), (0.0, 1, 1.0)], 1), 1)
    assert bound.slowdown == 1.0
    assert bound.wait == pytest.approx(0.5, rel=0.1)
