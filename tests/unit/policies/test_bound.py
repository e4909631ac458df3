"""Bound starts: hosts at once, asleep or not. Hosts take 5 s to fall asleep and 20 s to wake."""

import pytest
from helpers.policy_toys import platform
from helpers.power_toys import starts, switches, workload

from decision.engine.rules import EngineOptions
from decision.experiments.energy import split_energy
from decision.model.errors import ConfigError
from decision.model.record import RunRecord
from decision.policies import find_policy
from decision.simulation import simulate_workloads

ENERGY = EngineOptions(energy=True)
SERVERS = platform(4, sleeps=True, cores=2)


def run(policy: str, *jobs: tuple[float, int, float, float], on=SERVERS, timeout: float = 100) -> RunRecord:
    spec = f"{policy},start=bound,power=idle-timeout,idle_timeout={timeout:g}"
    return simulate_workloads(on, [workload(*jobs)], spec, engine_options=ENERGY)


def hosts(record: RunRecord) -> list[str]:
    return [hosts for _, hosts in sorted(zip(record.jobs.id, record.jobs.allocation, strict=True))]


def test_a_job_waits_for_its_server_to_wake():
    record = run("first-fit", (500, 1, 10, 10))
    assert switches(record) == [(100, "0-3", -2), (500, "0-1", -1), (630, "0-1", -2)]
    assert (starts(record), hosts(record)) == ([520], ["0"])


def test_a_later_job_takes_the_free_host_of_a_server_that_wakes_for_another():
    record = run("first-fit", (500, 1, 10, 10), (505, 1, 10, 10))
    assert switches(record)[1:] == [(500, "0-1", -1), (630, "0-1", -2)]
    assert (starts(record), hosts(record)) == ([520, 520], ["0", "1"])


def test_a_bound_host_is_given_to_nobody_else():
    # 3 hosts at 50 s: host 1 is awake, 2 and 3 wake for it till 220 s; the job of 205 s may not take host 1 meanwhile
    record = run("first-fit", (0, 1, 1000, 1000), (200, 3, 10, 10), (205, 1, 5, 5))
    assert starts(record) == [0, 220, 230]
    assert hosts(record)[1] == "1-3"


def test_hosts_that_are_awake_go_before_those_that_sleep():
    record = run("first-fit", (0, 2, 50, 50), (0, 1, 300, 300), (200, 1, 10, 10))
    assert switches(record)[0] == (150, "0-1", -2), "server 1 has a job till 300 s"
    assert (starts(record)[2], hosts(record)[2]) == (200, "3")


def test_hosts_that_wake_go_before_those_that_sleep():
    three = platform(6, sleeps=True, cores=2)
    # all sleep from 105 s; the job of 500 s takes server 0 and half of server 1, that of 501 s the other half
    record = run("first-fit", (500, 3, 10, 10), (501, 1, 10, 10), on=three)
    assert (starts(record), hosts(record)) == ([520, 520], ["0-2", "3"])
    assert [row for row in switches(record) if row[2] == -1] == [(500, "0-3", -1)]


def test_hosts_that_sleep_go_before_those_that_fall_asleep():
    record = run("first-fit", (0, 2, 50, 50), (152, 2, 10, 10))
    # server 1 sleeps from 105 s; server 0 falls asleep from 150 to 155 s
    assert (starts(record)[1], hosts(record)[1]) == (172, "2-3")


def test_a_server_that_falls_asleep_wakes_once_it_sleeps():
    record = run("first-fit", (102, 4, 10, 10))
    assert switches(record)[:2] == [(100, "0-3", -2), (105, "0-3", -1)]
    assert starts(record) == [125]


def test_a_timeout_that_is_due_comes_before_the_choices_of_its_instant():
    record = run("first-fit", (100, 1, 10, 10))
    assert switches(record)[:2] == [(100, "0-3", -2), (105, "0-1", -1)]
    assert starts(record) == [125]


def test_a_job_that_comes_before_the_timeout_starts_at_once():
    record = run("first-fit", (99, 1, 10, 10))
    assert starts(record) == [99]
    assert switches(record)[0] == (100, "2-3", -2)


def test_the_server_of_a_bound_host_does_not_fall_asleep():
    # host 1 is bound from 480 s on, for 500 s; its server was idle since 390 s
    record = run("first-fit", (0, 2, 390, 390), (480, 3, 10, 10), timeout=100)
    assert switches(record)[:2] == [(100, "2-3", -2), (480, "2-3", -1)]
    assert starts(record)[1] == 500
    assert hosts(record)[1] == "0-2"


def test_waking_is_waiting_and_waste_by_hand():
    record = run("first-fit", (500, 1, 10, 10))
    split = split_energy(record, SERVERS)
    # from 500 s: server 0 wakes 20 s, computes 10 s, is idle 100 s, falls asleep 5 s: 635 s; server 1 sleeps
    assert split.switching == pytest.approx(2 * (125 * 20 + 100 * 5))
    assert split.idle == pytest.approx(190 * 100)
    assert split.sleeping == pytest.approx(2 * 9 * 135)


@pytest.mark.parametrize(("allocation", "expected"), [("first-fit", "0"), ("pack", "3")])
def test_packing_fills_the_fullest_server_first(allocation, expected):
    jobs = ((0, 1, 50, 50), (0, 2, 500, 500), (60, 1, 10, 10))
    record = run(f"first-fit,allocation={allocation}", *jobs, timeout=1000)
    assert hosts(record)[1] == "1-2", "host 3 is free on the server of host 2, and at 60 s host 0 on that of host 1"
    assert hosts(record)[2] == "0", "both servers have one free host: the lowest"
    jobs = ((0, 1, 50, 50), (0, 1, 50, 50), (0, 1, 500, 500), (60, 1, 10, 10))
    assert hosts(run(f"first-fit,allocation={allocation}", *jobs, timeout=1000))[3] == expected


def test_packing_counts_without_bound_starts_too():
    jobs = ((0, 1, 50, 50), (0, 1, 50, 50), (0, 1, 500, 500), (60, 1, 10, 10))
    record = simulate_workloads(platform(4, cores=2), [workload(*jobs)], "first-fit,allocation=pack")
    assert hosts(record) == ["0", "1", "2", "3"]
    alone = simulate_workloads(platform(4), [workload(*jobs)], "first-fit,allocation=pack")
    assert hosts(alone) == ["0", "1", "2", "0"], "hosts that are servers of their own"


def test_no_server_is_woken_for_a_job_that_has_waited_for_less():
    jobs = ((0, 2, 400, 400), (200, 1, 10, 10), (210, 1, 10, 10))
    assert starts(run("first-fit", *jobs))[1:] == [220, 220]
    patient = run("first-fit,patience=60", *jobs)
    assert [row for row in switches(patient) if row[2] == -1] == [(260, "2-3", -1)]
    assert starts(patient)[1:] == [280, 280], "the second one takes a host of the server that wakes for the first"
    assert starts(run("first-fit,patience=300", *jobs))[1:] == [400, 400], "the first job ends before"


def test_a_bound_start_keeps_the_order_where_nothing_backfills():
    jobs = ((0, 2, 400, 400), (200, 4, 10, 10), (210, 1, 10, 10))
    assert starts(run("fcfs", *jobs)) == [0, 420, 430]
    assert starts(run("first-fit", *jobs)) == [0, 420, 230]


def test_easy_starts_what_ends_before_the_head_may():
    # the head of 4 hosts may start at 400 s; a job that wakes 2 hosts from 210 s on begins at 230 s
    jobs = ((0, 2, 400, 400), (200, 4, 10, 10))
    assert starts(run("easy", *jobs, (210, 1, 170, 170)))[2] == 230
    late = starts(run("easy", *jobs, (210, 1, 171, 171)))
    assert late[2] >= late[1] + 10


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("easy,start=bound", "policy easy: start=bound needs power=idle-timeout"),
        ("easy,start=bound,power=keep-awake", "policy easy: start=bound needs power=idle-timeout"),
        (
            "conservative,start=bound,power=idle-timeout",
            "policy conservative: start=bound keeps no reservations: it needs backfill=none, first-fit or easy",
        ),
        (
            "easy,start=bound,power=idle-timeout,guard=60",
            "policy easy: start=bound keeps no reservations: it cannot have the option guard",
        ),
        (
            "easy,start=bound,power=idle-timeout,guard=60,estimate=last2",
            "policy easy: start=bound keeps no reservations: it cannot have the option guard",
        ),
        (
            "easy,start=bound,power=idle-timeout,allocation=random",
            "policy easy: start=bound needs allocation=first-fit or allocation=pack",
        ),
        ("easy,power=idle-timeout,patience=60", "policy easy: option patience does nothing without start=bound"),
        (
            "easy,power=idle-timeout,start=bound,patience=-1",
            "policy easy: option patience=-1 must be finite and not negative",
        ),
        ("easy,start=band", "policy easy: there is no start 'band'; did you mean bound? (there are awake, bound)"),
    ],
)
def test_what_does_not_go_together_is_refused(spec, complaint):
    with pytest.raises(ConfigError) as raised:
        find_policy(spec)
    assert str(raised.value) == complaint


def test_hosts_that_cannot_sleep_are_refused():
    with pytest.raises(ConfigError, match="start=bound needs hosts that sleep"):
        run("first-fit", (0, 1, 10, 10), on=platform(4, cores=2))
