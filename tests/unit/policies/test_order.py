"""In which order jobs are looked at."""

import numpy as np
import pytest
from helpers.policy_toys import Toy

from decision.policies.options import Backfill, Order, PolicyConfig
from decision.policies.order import sort_queue
from decision.state import transitions
from decision.state.cluster import QUEUED, RUNNING

# (hosts, walltime) of jobs that arrive at 0, 10, 20, ... seconds
JOBS = [(4, 100.0), (1, 300.0), (2, 50.0), (4, 50.0), (8, 10.0)]


def order_of(order: Order, jobs=JOBS, now: float = 100.0, **numbers: float) -> list[int]:
    toy = Toy(8, PolicyConfig(order=order, backfill=Backfill.EASY, **numbers))
    for i, (size, walltime) in enumerate(jobs):
        toy.state.now = 10.0 * i
        toy.submit(size, walltime)
    toy.state.now = now
    return toy.memory.sorted[: sort_queue(toy.state, toy.memory)].tolist()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.LCFS, [4, 3, 2, 1, 0]),
        (Order.SJF, [4, 2, 3, 0, 1]),
        (Order.LJF, [1, 0, 2, 3, 4]),
        (Order.SAF, [4, 2, 3, 1, 0]),  # areas 400, 300, 100, 200, 80
        (Order.LAF, [0, 1, 3, 2, 4]),
        (Order.SQF, [1, 2, 0, 3, 4]),
        (Order.LQF, [4, 0, 3, 2, 1]),
        (Order.WFP3, [4, 3, 2, 0, 1]),  # waits 100, 90, 80, 70, 60
        (Order.UNICEP, [1, 4, 2, 3, 0]),
    ],
)
def test_jobs_stand_in_the_order_of_their_rule(order, expected):
    assert order_of(order) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        # at 1, 10 and 100 s: log10 0, 1 and 2
        (Order.F1, [0, 1, 2]),  # 8, 2 * 1 + 870, 2 * 4 + 1740
        (Order.F4, [0, 1, 2]),
    ],
)
def test_early_jobs_come_first_in_the_fitted_orders_when_all_else_is_equal(order, expected):
    assert order_of(order, [(4, 100.0)] * 3) == expected


def test_f3_trades_area_against_the_time_of_submission():
    # submitted at 0 (counted as 1 s) and 10 s: the second comes first if its area is smaller by more than 6.86e6
    assert order_of(Order.F3, [(8, 1e6), (8, 1e4)]) == [1, 0]
    assert order_of(Order.F3, [(8, 8e5), (8, 1e4)]) == [0, 1]


def test_multifactor_weighs_age_against_size():
    jobs = [(1, 10.0), (8, 10.0)]
    assert order_of(Order.MULTIFACTOR, jobs, age_weight=0.0) == [1, 0]
    assert order_of(Order.MULTIFACTOR, jobs, size_weight=0.0) == [0, 1]
    assert order_of(Order.MULTIFACTOR, jobs, max_age=50.0, size_weight=1.0) == [1, 0], "both are as old as counts"


def test_ties_are_broken_by_arrival():
    for order in set(Order) - {Order.FCFS, Order.LCFS, Order.RANDOM, Order.WFP3, Order.UNICEP, Order.MULTIFACTOR}:
        toy = Toy(8, PolicyConfig(order=order))
        for _ in range(40):
            toy.submit(2, 60.0)
        assert toy.memory.sorted[: sort_queue(toy.state, toy.memory)].tolist() == list(range(40)), order


def test_a_random_order_depends_on_the_seed_and_on_nothing_else():
    jobs = [(1, 10.0)] * 20
    assert order_of(Order.RANDOM, jobs, seed=1) == order_of(Order.RANDOM, jobs, now=1e6, seed=1)
    assert order_of(Order.RANDOM, jobs, seed=1) != order_of(Order.RANDOM, jobs, seed=2)
    assert sorted(order_of(Order.RANDOM, jobs, seed=1)) == list(range(20))


@pytest.mark.parametrize("order", sorted(set(Order) - {Order.FCFS}))
def test_the_kept_list_is_what_sorting_anew_gives(order):
    rng = np.random.default_rng(int(order))
    toy = Toy(8, PolicyConfig(order=order), jobs=4096)
    for _ in range(40):
        toy.state.now += 1.0 + rng.integers(0, 50)
        for _ in range(int(rng.choice([0, 1, 2, 60]))):
            toy.submit(int(rng.integers(1, 9)), float(rng.integers(1, 30)))
        waiting = np.flatnonzero(toy.state.job_state[: toy.state.nb_jobs] == QUEUED)
        for job in rng.choice(waiting, size=len(waiting) // 3, replace=False):
            toy.state.job_state[job] = RUNNING  # as if it had been started
        transitions.drop_started(toy.state)
        kept = toy.memory.sorted[: sort_queue(toy.state, toy.memory)].tolist()
        key = toy.memory.key
        assert kept == sorted(toy.queue, key=lambda job: (key[job], job))


def test_a_job_without_walltime_comes_last_where_short_jobs_come_first():
    for order in (Order.SJF, Order.SAF, Order.F1, Order.F2, Order.F3, Order.F4, Order.WFP3):
        assert order_of(order, [(2, np.inf), (2, 50.0)])[-1] == 0, order
