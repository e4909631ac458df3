"""Ranking: what it is where its weights make it a known policy, and what its three answers do."""

import numpy as np
import pytest

from decision.files.generate.jobs import workload_of
from decision.rl.envs import equal_hosts, evaluate, make_setup
from decision.rl.schedulers.ranking import (
    HOLD,
    RANKING_WEIGHTS,
    RESERVE,
    RankingPolicy,
    first_guess,
    random_units,
    smallest_area_first,
)
from decision.simulation import simulate_workloads, try_policy

HOSTS = 16


def jobs(seed, count=300):
    """More work than there is room for; no two areas are equal, so that no tie is broken by rounding."""
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 1, 2, 3, 5, 8, 16], count)
    run = np.ceil(np.exp(rng.uniform(np.log(10), np.log(7200), count))) + rng.random(count).round(4)
    submit = np.cumsum(np.round(rng.exponential((size * run).mean() / HOSTS, count)))
    return workload_of(submit, size, run, HOSTS, walltimes=run * rng.choice([1.0, 1.0, 1.5, 3.0], count))


def saf(keep, hold=-1.0):
    """Weights that always or never keep hosts, or hold jobs back; an overrun of a second is too much."""
    weights = smallest_area_first()
    weights[RESERVE, 0], weights[HOLD, 0] = keep, hold
    weights[HOLD, 1:] *= 1e6
    return weights


def starts(workload, policy):
    made = simulate_workloads(equal_hosts(HOSTS), [workload], policy).jobs
    return dict(zip(made.id, zip(made.start_time.tolist(), made.allocation, strict=True), strict=True))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("keep", "same"), [(1.0, "saf+easy"), (-1.0, "saf+first-fit")])
def test_with_weights_of_saf_it_is_saf_with_or_without_a_reservation(seed, keep, same):
    workload = jobs(seed)
    assert starts(workload, RankingPolicy(saf(keep))) == starts(workload, same)


def test_units_that_do_nothing_change_nothing_and_others_do():
    workload, rng = jobs(1), np.random.default_rng(0)
    plain, idle_units = saf(1.0), random_units(rng, 1.0)
    assert starts(workload, RankingPolicy(plain + idle_units)) == starts(workload, RankingPolicy(plain))
    busy = plain + 3 * rng.standard_normal(RANKING_WEIGHTS)
    assert starts(workload, RankingPolicy(busy)) != starts(workload, RankingPolicy(plain))


def test_held_back_jobs_start_on_an_idle_cluster_or_where_all_that_wait_could():
    made = simulate_workloads(equal_hosts(HOSTS), [jobs(2, 60)], RankingPolicy(saf(1.0, hold=1.0))).jobs
    submit, start, end = made.submit_time, made.start_time, made.start_time + made.runtime
    assert len(start) == 60
    alone = 0
    for now in start:
        busy = made.size[(start < now) & (end > now + 1e-6)].sum()
        wanted = made.size[(submit <= now) & (start >= now)].sum()
        assert busy == 0 or busy + wanted <= HOSTS
        alone += busy == 0 and wanted > HOSTS
    assert alone > 5


@pytest.mark.parametrize(("submit", "begins"), [([0, 1, 1], [0, 5000, 5000]), ([0, 4000, 4000], [0, 4000, 5000])])
def test_it_begins_with_holding_back_what_would_block_hosts_for_longer_than_the_last_jobs_took_to_come(submit, begins):
    """A sixteenth is one host: taking the last ones blocks it until the first job ends."""
    size, run = np.full(3, HOSTS // 2), np.array([5000.0, 3000.0, 4000.0])
    workload = workload_of(np.array(submit, float), size, run, HOSTS, walltimes=run)
    started = starts(workload, RankingPolicy(first_guess()))
    assert [started[job.id][0] for job in workload.jobs] == begins


def test_it_keeps_the_rules_of_all_policies():
    weights = saf(0.5) + random_units(np.random.default_rng(1), 3.0)
    assert try_policy(lambda: RankingPolicy(weights)) == []


def test_environments_give_what_the_engine_gives():
    workload, policy = jobs(3), RankingPolicy(saf(0.5) + random_units(np.random.default_rng(1), 1.0))
    placed = []
    setup = make_setup(workload, equal_hosts(HOSTS), jobs=None, online=False)
    metrics = evaluate(policy, setup, first=[0], placed=placed)
    started = starts(workload, policy)
    waits = [started[job.id][0] - job.submit_time for job in workload.jobs]
    assert placed[0].wait.tolist() == pytest.approx(waits, abs=1e-6)
    assert metrics["placed_waiting_time"][0] == pytest.approx(np.mean(waits))
