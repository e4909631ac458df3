"""Comparisons of prices: which schedules are made, pairs with known answers, and waits that prices do not change."""

import pytest

from decision.papers.topology.parts import COMPARISONS, Lengths, Priced, compared, price_table, priced_tasks


def test_every_comparison_has_the_same_jobs_under_both_policies():
    tasks = priced_tasks([Lengths(3, 20), Lengths(1, 50)], batsim=False)
    assert len(tasks) == len(set(tasks))
    for metric, tree, *policies, _ in COMPARISONS:
        same = [task for task in tasks if (task.metric, task.tree) == (metric, tree)]
        own, reference = ({(task.seed, task.jobs) for task in same if task.policy == policy} for policy in policies)
        assert own == reference
        assert len(own) == (3 if metric == "stretch" else 4)


def test_under_batsim_only_stretch_is_compared_again():
    again = set(priced_tasks([Lengths(2, 20)], batsim=True)) - set(priced_tasks([Lengths(2, 20)], batsim=False))
    assert {task.metric for task in again} == {"stretch"}
    assert all(task.batsim for task in again)


def test_savings_are_shares_of_the_references_mean_over_pairs():
    found = {task: {task.metric: 1.0, "wait": 5.0} for task in priced_tasks([Lengths(2, 20)], batsim=False)}
    one = COMPARISONS[0]
    for seed, (own, reference) in enumerate([(9.0, 10.0), (27.0, 30.0)], 2001):
        found[Priced(one.metric, one.tree, one.policy, seed, 20)] = {"hops": own, "wait": 5.0}
        found[Priced(one.metric, one.tree, one.reference, seed, 20)] = {"hops": reference, "wait": 5.0}
    pairs = list(compared(found))
    assert len(pairs) == len(COMPARISONS)
    assert pairs[0].less.value == pytest.approx(10)
    assert (pairs[0].less.low, pairs[0].less.high) == pytest.approx((5, 15)), "of the pairs, not of the means"
    assert price_table(pairs).rows[0][4:7] == ("2 of 20", "18.00", "20.00")


def test_prices_in_windows_change_no_wait():
    policies = "window,solver=exact", "window,solver=sequential,strategy=free,prices=hops"
    exact, priced = (Priced("hops", "program", policy, 2001, 40).work()["wait"] for policy in policies)
    assert exact == pytest.approx(priced)
