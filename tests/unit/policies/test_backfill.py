"""Known answers of the backfilling rules, worked out by hand."""

import math

import pytest
from helpers.policy_toys import Given, Toy, given, run
from helpers.reference_policies import Job

from decision.policies.options import Backfill, Order, PolicyConfig

# (submission, hosts, walltime, runtime)
TOY = given(4, (0, 2, 4, 4), (0, 4, 4, 4), (0, 2, 4, 4))


def starts(work: Given, backfill: Backfill, order: Order = Order.FCFS) -> list[float]:
    return run(work, PolicyConfig(order=order, backfill=backfill)).tolist()


def makespan(work: Given, backfill: Backfill) -> float:
    return max(s + r for s, r in zip(starts(work, backfill), work.runtimes, strict=True))


def test_easy_finishes_the_toy_at_8_and_fcfs_at_12():
    assert makespan(TOY, Backfill.NONE) == 12
    assert makespan(TOY, Backfill.EASY) == 8
    assert makespan(TOY, Backfill.CONSERVATIVE) == 8


def test_fcfs_starts_nothing_before_the_job_that_waits():
    work = given(4, (0, 3, 10, 10), (1, 2, 5, 5), (2, 1, 1, 1))
    assert starts(work, Backfill.NONE) == [0, 10, 10]


def test_first_fit_lets_a_large_job_starve():
    work = given(4, (0, 2, 10, 10), (1, 4, 5, 5), (2, 2, 20, 20), (12, 2, 20, 20))
    assert starts(work, Backfill.FIRST_FIT) == [0, 32, 2, 12]


def test_easy_lets_a_long_job_pass_only_on_hosts_that_the_reservation_leaves_over():
    # at 10 the first job's 3 hosts and the free one make 4; the head needs 3: one is left over
    work = given(4, (0, 3, 10, 10), (1, 3, 5, 5), (2, 1, 100, 100), (3, 1, 100, 100))
    assert starts(work, Backfill.EASY) == [0, 10, 2, 15]


def test_easy_lets_a_job_pass_that_ends_exactly_when_the_reservation_begins():
    work = given(4, (0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 8, 8), (2, 1, 8.5, 8.5))
    assert starts(work, Backfill.EASY) == [0, 10, 2, 15]


def test_easy_counts_all_hosts_that_come_free_at_the_shadow_time_as_left_over():
    toy = Toy(8, PolicyConfig(backfill=Backfill.EASY))
    toy.submit(3, 10.0), toy.submit(4, 10.0), toy.submit(6, 5.0)
    assert toy.decide() == [0, 1]
    assert toy.memory.head_start == 10.0
    assert toy.memory.extra == 2


def test_easy_may_delay_the_second_job_that_waits_and_conservative_may_not():
    # head (4 hosts) at 10; the next (2 hosts) would start at 15; a long job of 1 host is within EASY's limits
    work = given(5, (0, 4, 10, 10), (1, 4, 5, 5), (2, 5, 5, 5), (3, 1, 100, 100))
    assert starts(work, Backfill.EASY) == [0, 10, 103, 3]
    assert starts(work, Backfill.CONSERVATIVE) == [0, 10, 15, 20]


def test_conservative_moves_reservations_up_when_a_job_ends_early():
    work = given(4, (0, 4, 100, 10), (1, 4, 50, 50), (2, 2, 10, 10))
    assert starts(work, Backfill.CONSERVATIVE) == [0, 10, 60]


def test_conservative_compresses_in_queue_order_and_once():
    # the case that first needed a call: after one pass the fourth job's place (4.0) is announced by no other event
    work = given(4, (0, 2, 3, 3), (0, 1, 5, 2.5), (0, 1, 5, 2.5), (0, 1, 2, 2), (0, 3, 1, 1), (0, 1, 1, 1))
    assert starts(work, Backfill.CONSERVATIVE) == [0, 0, 0, 2.5, 4.0, 2.5]


@pytest.mark.parametrize("backfill", Backfill)
def test_a_job_without_walltime_is_taken_as_endless(backfill):
    work = Given([Job(0, 0.0, 3, math.inf), Job(1, 1.0, 2, 5.0), Job(2, 2.0, 1, 5.0)], [10.0, 5.0, 5.0], 4)
    last = 10.0 if backfill == Backfill.NONE else 2.0
    assert starts(work, backfill) == [0, 10.0, last]


@pytest.mark.parametrize("backfill", Backfill)
def test_a_job_larger_than_what_is_left_of_the_platform_waits_for_hosts_to_return(backfill):
    work = Given([Job(0, 1.0, 4, 5.0), Job(1, 2.0, 1, 5.0)], [5.0, 5.0], 4, [(0.0, 3, False), (30.0, 3, True)])
    passing = 35.0 if backfill == Backfill.NONE else 2.0
    assert starts(work, backfill) == [30.0, passing]


def test_backfilling_goes_through_the_queue_in_the_order_of_the_policy():
    work = given(4, (0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 8, 8), (2, 1, 3, 3), (2, 1, 5, 5))
    assert starts(work, Backfill.EASY) == [0, 10, 2, 15, 15]
    assert starts(work, Backfill.EASY, Order.SJF) == [0, 10, 15, 2, 5]


def test_a_decision_with_nothing_free_changes_nothing():
    toy = Toy(2, PolicyConfig(backfill=Backfill.EASY))
    toy.submit(2, 10.0)
    assert toy.decide() == [0]
    toy.carry_out()
    toy.submit(1, 1.0)
    assert toy.decide() == []
    assert list(toy.actions()) == []


def test_asking_twice_at_one_instant_gives_the_same_plan():
    for backfill in Backfill:
        toy = Toy(4, PolicyConfig(backfill=backfill))
        for size in (3, 2, 1):
            toy.submit(size, 10.0)
        assert toy.decide() == toy.decide(), backfill


@pytest.mark.parametrize("backfill", Backfill)
@pytest.mark.parametrize("order", [Order.FCFS, Order.SJF, Order.WFP3])
def test_a_memory_that_grows_forgets_nothing(backfill, order):
    config = PolicyConfig(order=order, backfill=backfill)
    small, roomy = Toy(4, config, jobs=1), Toy(4, config, jobs=64)
    for i in range(40):
        for toy in (small, roomy):
            toy.state.now = float(i)
            if i % 3 == 2 and toy.state.nb_running:
                toy.end(int(toy.state.running[0]))
            toy.grow(i + 1)
            toy.submit(1 + i % 4, 5.0 + i % 7)
        assert small.decide() == roomy.decide(), f"decision {i}"
        small.carry_out(), roomy.carry_out()
