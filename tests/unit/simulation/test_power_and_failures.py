"""Hosts that sleep, wake or are bound become unavailable and come back: known answers."""

import pytest
from helpers.day_toys import ENERGY
from helpers.policy_toys import platform
from helpers.power_toys import starts, switches, workload

from decision.model.workload import MachineEvent
from decision.simulation import simulate_workloads

PAIR = platform(2, sleeps=True, wake=20.0, doze=5.0)
TIMEOUT = "power=idle-timeout,idle_timeout=60"
AWAKE, BOUND = f"easy,{TIMEOUT}", f"fcfs+easy,start=bound,{TIMEOUT}"


def away(begin: float, end: float, host: int = 1) -> tuple[MachineEvent, ...]:
    """A host leaves and returns, seconds."""
    kinds = ((begin, "machine_unavailable"), (end, "machine_available"))
    return tuple(MachineEvent(timestamp=time, type=kind, hosts=(host,)) for time, kind in kinds)


def run(policy: str, events: tuple[MachineEvent, ...], *jobs: tuple[float, int, float, float]):
    return simulate_workloads(PAIR, [workload(*jobs)], policy, events=events, engine_options=ENERGY)


@pytest.mark.parametrize("policy", [AWAKE, BOUND, "easy,power=keep-awake,keep_awake=1", "joint"])
def test_a_run_ends_where_a_host_that_sleeps_is_away_for_a_while(policy):
    record = run(policy, away(300, 400), (0, 2, 10, 10), (900, 2, 10, 10))
    assert starts(record)[0] < 300 and starts(record)[1] >= 900


@pytest.mark.parametrize("policy", [AWAKE, BOUND])
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (300.0, 400.0),  # asleep since 75
        (72.0, 74.0),  # falls asleep from 70 to 75
        (72.0, 300.0),
        (20.0, 30.0),  # idle since 10: its 60 s begin again
    ],
)
def test_a_host_that_slept_still_sleeps_when_it_is_back(policy, begin, end):
    record = run(policy, away(begin, end), (0, 2, 10, 10), (500, 2, 10, 10))
    assert starts(record) == [0, 520], "both hosts are woken at 500, once"
    assert [row for row in switches(record) if row[2] == -1] == [(500, "0-1", -1)]


@pytest.mark.parametrize("policy", [AWAKE, BOUND])
def test_nothing_starts_on_a_host_that_is_away(policy):
    record = run(policy, away(300, 700), (0, 2, 10, 10), (500, 2, 10, 10))
    assert starts(record) == [0, 720]
    waking = run(policy, away(510, 560), (0, 2, 10, 10), (500, 2, 10, 10))
    assert starts(waking) == [0, 560], "it is awake since 520, and back only at 560"
    computing = run(policy, away(5, 700), (0, 2, 10, 10), (500, 1, 10, 10), (500, 1, 10, 10))
    assert starts(computing)[0] == 0 and sorted(starts(computing)[1:]) == [520, 530]
