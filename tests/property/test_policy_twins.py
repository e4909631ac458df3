"""The kernels decide what the slow twins decide, at every instant."""

import math

import pytest
from helpers.cases import by_day
from helpers.policy_toys import Instant, run
from helpers.policy_worlds import Given, workloads
from helpers.reference_policies import ORDERS, Conservative, Job, easy, fcfs, first_fit
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.policies.options import Backfill, Order, PolicyConfig

TWINS = settings(max_examples=by_day(50, of=150), deadline=None, derandomize=True)
RULES = {Backfill.NONE: fcfs, Backfill.FIRST_FIT: first_fit, Backfill.EASY: easy}


def check_against(rule, work: Given, config: PolicyConfig) -> None:
    def look(instant: Instant) -> None:
        queue = instant.queue
        if config.order in ORDERS:
            queue = sorted(queue, key=lambda job: (ORDERS[config.order](job, instant.now, work.hosts), job.number))
        expected = [job.number for job in rule(instant.now, queue, instant.running, instant.free)]
        assert instant.starts == expected, f"t={instant.now}"

    run(work, config, look)


@pytest.mark.parametrize("backfill", RULES)
@given(work=workloads(overruns=True, moves=True))
@TWINS
def test_rules_that_count_decide_as_their_twins(backfill: Backfill, work: Given) -> None:
    check_against(RULES[backfill], work, PolicyConfig(backfill=backfill))


@given(work=workloads(), order=st.sampled_from(sorted(ORDERS)), backfill=st.sampled_from(sorted(RULES)))
@TWINS
def test_orders_decide_as_their_twins(work: Given, order: Order, backfill: Backfill) -> None:
    check_against(RULES[backfill], work, PolicyConfig(order=order, backfill=backfill))


@given(work=workloads())
@TWINS
def test_conservative_decides_and_reserves_as_its_twin(work: Given) -> None:
    check_conservative(work)


@given(work=workloads(overruns=True, moves=True))
@TWINS
def test_conservative_is_its_twin_when_jobs_overrun_and_hosts_move(work: Given) -> None:
    check_conservative(work)


@given(work=workloads(), order=st.sampled_from(sorted(ORDERS)))
@TWINS
def test_conservative_is_its_twin_in_other_orders(work: Given, order: Order) -> None:
    check_conservative(work, order)


def check_conservative(work: Given, order: Order = Order.FCFS) -> None:
    twin = Conservative()

    def look(instant: Instant) -> None:
        queue = instant.queue
        if order in ORDERS:
            queue = sorted(queue, key=lambda job: (ORDERS[order](job, instant.now, work.hosts), job.number))
        expected = [job.number for job in twin(instant.now, queue, instant.running, instant.free)]
        reserved = {job.number: instant.toy.memory.reserved[job.number] for job in queue}
        assert reserved == {job.number: twin.begin[job.number] for job in queue}, f"t={instant.now}"
        assert instant.starts == expected, f"t={instant.now}"

    run(work, PolicyConfig(order=order, backfill=Backfill.CONSERVATIVE), look)


def test_the_twins_need_no_walltime_to_agree() -> None:
    work = Given([*_endless()], [5.0, 3.0, 2.0, 1.0], 4)
    for backfill, rule in RULES.items():
        check_against(rule, work, PolicyConfig(backfill=backfill))
    check_conservative(work)


def _endless():
    yield Job(0, 0.0, 3, math.inf)
    yield Job(1, 0.0, 2, 3.0)
    yield Job(2, 1.0, 1, 2.0)
    yield Job(3, 1.0, 4, math.inf)
