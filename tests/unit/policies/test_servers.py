"""Hosts with the same property `server` are one machine. They take 5 s to fall asleep and 20 s to wake."""

import pytest
from helpers.policy_toys import Toy, platform
from helpers.power_toys import starts, switches, workload

from decision.engine.rules import EngineOptions
from decision.experiments.energy import split_energy
from decision.model.errors import PolicyError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.policies import Plan, check_plan
from decision.policies.options import PolicyConfig
from decision.simulation import simulate_workloads
from decision.state import transitions
from decision.state.cluster import platform_facts, server_name
from decision.state.plan_arrays import clear

ENERGY = EngineOptions(energy=True)


def run(policy, *jobs: tuple[float, int, float, float], on: Platform | None = None) -> RunRecord:
    """Jobs on two servers of two hosts each."""
    return simulate_workloads(on or platform(4, sleeps=True, cores=2), [workload(*jobs)], policy, engine_options=ENERGY)


def test_facts_know_the_hosts_of_each_server():
    mixed = platform(5, cores=2)
    hosts = list(mixed.hosts)
    hosts[1] = type(hosts[1])(**{f: getattr(hosts[1], f) for f in ("id", "name", "pstates")})  # a server of its own
    facts, _ = platform_facts(Platform(hosts=tuple(hosts)), energy=False)
    assert facts.server.tolist() == [0, 1, 2, 2, 3]
    assert facts.server_begin.tolist() == [0, 1, 2, 4, 5]
    assert facts.server_host.tolist() == [0, 1, 2, 3, 4]
    assert [server_name(facts, s) for s in range(4)] == ["s0", "", "s1", "s2"]


def test_a_server_sleeps_only_when_no_host_of_it_runs():
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (0, 1, 1000, 1000), (10, 1, 50, 50))
    # host 1 is free from 60 s on, but host 0 of its server runs till 1000 s
    assert switches(record) == [(100, "2-3", -2), (1100, "0-1", -2)]
    assert starts(record) == [0, 10]


def test_the_timeout_of_a_server_begins_when_the_last_of_its_hosts_is_idle():
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (0, 1, 50, 50), (0, 1, 80, 80))
    assert switches(record)[:2] == [(100, "2-3", -2), (180, "0-1", -2)]


def test_a_job_on_one_host_wakes_the_whole_server():
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (500, 1, 10, 10))
    assert switches(record) == [(100, "0-3", -2), (500, "0-1", -1), (630, "0-1", -2)]
    assert starts(record) == [520]


def test_keep_awake_lets_no_part_of_a_server_sleep():
    record = run("fcfs,power=keep-awake,keep_awake=1", (100, 1, 300, 300))
    assert switches(record)[0] == (0, "2-3", -2), "three hosts may sleep, and one whole server"


@pytest.fixture
def toy():
    """At t=3600 s on 3 servers of 2 hosts: w0!0 runs on host 0 of s0, server s2 sleeps; w0!1 waits for a host."""
    toy = Toy(6, PolicyConfig(), sleeps=True, cores=2)
    toy.submit(1, 1e4)
    toy.decide()
    toy.carry_out()
    for host in (4, 5):
        transitions.begin_switch(toy.state, toy.facts, host, 2, False)
        transitions.end_switch(toy.state, toy.facts, host, 1, False)
    toy.state.now = 3600.0
    toy.submit(1, 100.0)
    clear(toy.plan, toy.state)
    return toy


def complaint(toy, *actions) -> str:
    plan = Plan(toy.plan, toy.state, toy.facts)
    for action in actions:
        action(plan)
    with pytest.raises(PolicyError) as raised:
        check_plan(toy.state, toy.facts, toy.plan, ["w0!0", "w0!1"])
    return str(raised.value)


WHOLE = "and would stay so; a server is switched as a whole"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([lambda p: p.sleep([1])], "hosts 1 cannot go to pstate 1: host 0 of server s0 computes w0!0"),
        ([lambda p: p.sleep([0, 1])], "hosts 0-1 cannot go to pstate 1: host 0 of server s0 computes w0!0"),
        ([lambda p: p.sleep([2])], f"hosts 2 cannot go to pstate 1: host 3 of server s1 is idle {WHOLE}"),
        ([lambda p: p.wake([5])], f"hosts 5 cannot go to pstate 0: host 4 of server s2 is sleeping {WHOLE}"),
        (
            [lambda p: p.start(1, [3]), lambda p: p.sleep([2])],
            "hosts 2 cannot go to pstate 1: host 3 of server s1 is given to w0!1 by the plan",
        ),
        (
            [lambda p: p.start(1, [3]), lambda p: p.sleep([2, 3])],
            "hosts 2-3 cannot go to pstate 1: host 3 of server s1 is given to w0!1 by the plan",
        ),
    ],
)
def test_a_part_of_a_server_is_not_switched(toy, actions, expected):
    assert complaint(toy, *actions) == f"t=3600 s: {expected}"


def test_whole_servers_are_switched_in_one_action_or_several(toy):
    plan = Plan(toy.plan, toy.state, toy.facts)
    plan.sleep([2])
    plan.sleep([3])
    plan.wake([4, 5])
    check_plan(toy.state, toy.facts, toy.plan, ["w0!0", "w0!1"])


def test_a_host_that_left_does_not_keep_its_server_from_switching(toy):
    transitions.leave(toy.state, toy.facts, 3)
    Plan(toy.plan, toy.state, toy.facts).sleep([2])
    check_plan(toy.state, toy.facts, toy.plan, ["w0!0", "w0!1"])


def test_waste_is_of_whole_servers_until_the_last_is_off_by_hand():
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (0, 1, 30, 30), (10, 1, 50, 50))
    split = split_energy(record, platform(4, sleeps=True, cores=2))
    # server 0 (2 x 95 W) is idle from 60 to 160 s, server 1 until 100 s; both fall asleep in 5 s at 2 x 100 W;
    # the last is off at 165 s; server 1 sleeps (2 x 9 W) from 105 s
    assert switches(record) == [(100, "2-3", -2), (160, "0-1", -2)]
    assert split.idle == pytest.approx(190 * 100 + 190 * 100)
    assert split.switching == pytest.approx(2 * 200 * 5)
    assert split.sleeping == pytest.approx(18 * 60)
    assert split.computing == pytest.approx(190 * 60), "also the host of the server that has no job"
    assert split.total == pytest.approx(split.computing + split.waste + split.sleeping)


def test_where_servers_stay_awake_waste_is_counted_until_the_last_job_ends():
    record = run("fcfs", (0, 1, 30, 30), (10, 1, 50, 50))
    split = split_energy(record, platform(4, sleeps=True, cores=2))
    assert (split.idle, split.switching) == (pytest.approx(190 * 60), 0)


def test_hosts_without_the_property_are_counted_as_before():
    on = platform(4, sleeps=True)
    record = run("fcfs,power=idle-timeout,idle_timeout=100", (0, 1, 30, 30), (10, 1, 50, 50), on=on)
    split = split_energy(record, on)
    assert split.total == record.joules
    assert split.idle == pytest.approx(95 * (4 * 60 - 30 - 50)), "until 60 s, when the last job ends"
