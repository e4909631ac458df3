"""When hosts sleep and wake. They take 5 s to fall asleep and 20 s to wake."""

import math

import numpy as np
import pytest
from helpers.policy_toys import Toy, platform
from helpers.power_toys import starts, switches, workload
from hypothesis import given as on
from hypothesis import settings
from hypothesis import strategies as st

from decision.engine.rules import EngineOptions
from decision.model.errors import warn_once
from decision.model.record import RunRecord
from decision.policies.options import Backfill, PolicyConfig, Power
from decision.simulation import simulate_workloads
from decision.state import plan_arrays as p

ENERGY = EngineOptions(energy=True)
ASLEEP = 1  # pstate


def run(policy: str, *jobs: tuple[float, int, float, float], hosts: int = 4) -> RunRecord:
    return simulate_workloads(platform(hosts, sleeps=True), [workload(*jobs)], policy, engine_options=ENERGY)


def test_never_lets_no_host_sleep():
    record = run("fcfs", (0, 2, 10, 10), (5000, 2, 10, 10))
    assert switches(record) == []
    assert starts(record) == [0, 5000]


def test_idle_hosts_sleep_after_the_timeout_and_wake_when_a_job_needs_them():
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (0, 1, 10, 10), (500, 2, 10, 10))
    assert switches(record)[:3] == [(100, "1-3", -2), (110, "0", -2), (500, "0-1", -1)]
    assert starts(record) == [0, 520]


@pytest.mark.parametrize(
    ("policy", "energy", "says_so"),
    [
        ("fcfs,power=idle-timeout", False, True),
        ("easy,power=idle-timeout,guard=900", False, True),
        ("joint", False, True),
        ("fcfs", False, False),
        ("fcfs,power=idle-timeout", True, False),
    ],
)
def test_a_policy_whose_hosts_cannot_sleep_says_so(policy, energy, says_so, caplog):
    caplog.set_level("WARNING", logger="decision")  # a command in the same process may have set another
    warn_once.cache_clear()
    options = EngineOptions(energy=energy)
    simulate_workloads(platform(4, sleeps=True), [workload((0, 1, 10, 10))], policy, engine_options=options)
    assert ("puts hosts to sleep, and none can" in caplog.text) is says_so


def test_only_idle_hosts_above_the_number_sleep_and_a_reserve_is_kept():
    record = run("fcfs,power=keep-awake,keep_awake=1", (100, 1, 300, 300), (200, 1, 50, 50))
    assert switches(record)[:3] == [(0, "1-3", -2), (100, "1", -1), (200, "2", -1)]
    assert starts(record) == [100, 200]


def test_keeping_none_awake_lets_all_idle_hosts_sleep():
    record = run("fcfs,power=keep-awake,keep_awake=0", (100, 1, 300, 300))
    assert switches(record) == [(0, "0-3", -2), (100, "0", -1), (420, "0", -2)]
    assert starts(record) == [120]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sjf+easy"])
def test_hosts_are_woken_in_time_for_a_reservation(policy):
    record = run(f"{policy},power=idle-timeout,idle_timeout=50", (0, 3, 1000, 1000), (10, 4, 100, 100))
    assert switches(record)[:2] == [(50, "3", -2), (980, "3", -1)]
    assert starts(record) == [0, 1000]


def test_first_fit_keeps_no_reservation_and_wakes_when_a_job_could_start():
    record = run("first-fit,power=idle-timeout,idle_timeout=50", (0, 3, 1000, 1000), (10, 4, 100, 100))
    assert switches(record)[1] == (1000, "3", -1)
    assert starts(record) == [0, 1020]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("needed", [20, 32])  # before host 3, asleep at 15, could be awake at 30; and while it wakes
def test_hosts_that_are_needed_before_they_could_be_awake_again_stay_awake(policy, needed):
    record = run(f"{policy},power=idle-timeout,idle_timeout=10", (0, 3, needed, needed), (1, 4, 100, 100))
    assert all(hosts != "3" for time, hosts, _ in switches(record) if 1 <= time < needed)
    assert starts(record)[1] == needed


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_sleeping_hosts_count_as_capacity_for_reservations(policy):
    # 2 hosts run till 1000, 2 sleep: the job of 3 hosts must wait till 1000, and the one of 2 hosts may not take hosts
    # beyond that, for it would delay it; the short one may
    jobs = ((0, 2, 1000, 1000), (200, 3, 100, 100), (201, 2, 2000, 2000), (202, 2, 500, 500))
    record = run(f"{policy},power=idle-timeout,idle_timeout=50", *jobs)
    assert starts(record)[1] == 1000
    assert starts(record)[3] == pytest.approx(222, abs=1e-9)
    assert starts(record)[2] >= 1000


@pytest.mark.parametrize("backfill", Backfill)
def test_a_policy_lets_nothing_sleep_that_cannot(backfill):
    toy = Toy(4, PolicyConfig(backfill=backfill, power=Power.KEEP_AWAKE, keep_awake=0))
    toy.decide()
    assert list(toy.actions()) == []


def test_hosts_of_one_target_pstate_are_one_action():
    toy = Toy(8, PolicyConfig(power=Power.KEEP_AWAKE, keep_awake=3), sleeps=True)
    toy.submit(2, 10.0)
    toy.decide()
    assert list(toy.actions()) == [(p.START, 0, [0, 1]), (p.SET_PSTATE, -1, [5, 6, 7])]
    assert toy.plan.value[1] == ASLEEP


def test_a_call_is_asked_for_once():
    toy = Toy(2, PolicyConfig(power=Power.IDLE_TIMEOUT, idle_timeout=100.0), sleeps=True)
    toy.decide()
    assert [(kind, toy.plan.time[i]) for i, (kind, *_) in enumerate(toy.actions())] == [(p.CALL_AT, 100.0)]
    toy.state.now = 50.0
    toy.decide()
    assert list(toy.actions()) == []
    toy.state.now = 100.0
    toy.decide()
    assert [kind for kind, *_ in toy.actions()] == [p.SET_PSTATE]


@pytest.mark.parametrize("backfill", Backfill)
def test_there_is_room_for_a_reservation_of_every_job_that_waits(backfill):
    config = PolicyConfig(backfill=backfill, power=Power.IDLE_TIMEOUT, idle_timeout=600.0, wake_time=1000.0)
    toy = Toy(4, config, sleeps=True, jobs=400)
    for i in range(400):
        toy.submit(3 + i % 2, 1.0)
    assert toy.decide() == [0]
    assert 400 < toy.memory.end_step <= len(toy.memory.step_time)


POLICIES = ["fcfs", "first-fit", "easy", "conservative", "saf+easy", "wfp3+conservative"]
POWERS = ["idle-timeout,idle_timeout=0", "idle-timeout,idle_timeout=30", "keep-awake,keep_awake=1"]


@on(
    st.lists(
        st.tuples(st.integers(0, 300).map(float), st.integers(1, 4), st.integers(1, 60).map(float), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(POLICIES),
    st.sampled_from(POWERS),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_every_job_runs_whatever_sleeps(jobs, policy, power):
    jobs = [(submit, size, walltime, walltime / 2 if early else walltime) for submit, size, walltime, early in jobs]
    record = run(f"{policy},power={power}", *sorted(jobs))
    assert len(record.jobs.id) == len(jobs)
    assert not any(math.isnan(start) for start in record.jobs.start_time)
    alone = simulate_workloads(platform(4), [workload(*sorted(jobs))], policy)
    waits = {policy: (r.jobs.start_time - r.jobs.submit_time).max() for policy, r in (("on", record), ("off", alone))}
    assert waits["on"] <= waits["off"] + 25.0 * (len(jobs) + 1), "waking costs no more than a wake for each job"
    assert np.isfinite(record.joules)
