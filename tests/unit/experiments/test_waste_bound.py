"""The least waste of any shutdown with the same starts: by hand, and against trying every second."""

import math

import numpy as np
import pytest
from helpers.day_toys import ENERGY, busy_days_of
from helpers.policy_toys import platform
from helpers.power_toys import workload

from decision.experiments.energy import split_energy, waste_bound
from decision.model.dates import DAY_LEAD, busy_days, of_day
from decision.simulation import simulate_workloads

SERVERS = platform(4, sleeps=True, cores=2)  # asleep in 5 s at 2 x 100 W, awake in 20 s at 2 x 125 W, idle at 2 x 95 W
RULE = "first-fit,start=bound,power=idle-timeout"
FALL, WAKE, IDLE = 2 * 100 * 5, 2 * 125 * 20, 2 * 95


def run(*jobs, on=SERVERS, policy=RULE + ",idle_timeout=100"):
    return simulate_workloads(on, [workload(*jobs)], policy, engine_options=ENERGY)


def test_a_gap_that_is_long_enough_is_slept_through_and_a_short_one_is_not():
    # server 0 has gaps of 30 s and 50 s; 6,000 J of switches are 31.6 s x 190 W; both servers fall asleep in the end
    assert waste_bound(run((0, 1, 10, 10), (40, 1, 10, 10)), SERVERS) == 2 * FALL + IDLE * 30
    assert waste_bound(run((0, 1, 10, 10), (60, 1, 10, 10)), SERVERS) == 3 * FALL + WAKE


def test_a_gap_too_short_for_both_switches_is_idle_whatever_they_draw():
    frugal = platform(2, sleeps=True, wake=40.0, doze=30.0)
    record = run((0, 1, 10, 10), (79, 1, 1, 1), on=frugal, policy="fcfs")
    assert waste_bound(record, frugal) == 95 * 69 + 100 * 30, "host 1 falls asleep at once"


@pytest.mark.parametrize("policy", ["fcfs", RULE + ",idle_timeout=0", RULE + ",idle_timeout=300"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_trying_every_second_finds(policy, seed):
    rng = np.random.default_rng(seed)
    jobs = [
        (int(at), int(rng.integers(1, 5)), wall := int(rng.integers(1, 60)), wall) for at in rng.integers(0, 600, 8)
    ]
    record = run(*sorted(jobs), policy=policy)
    found = waste_bound(record, SERVERS)
    assert found == pytest.approx(by_every_second(record, SERVERS, 5, 20))
    assert found <= split_energy(record, SERVERS).waste + 1e-6


def test_days_count_from_midnight_and_nobody_wastes_less():
    trace, on = busy_days_of(2, seed=1), platform(4, sleeps=True, wake=60.0, doze=180.0, cores=2)
    for day in busy_days(trace):
        record = simulate_workloads(on, [of_day(trace, day)], RULE, engine_options=ENERGY)
        found = waste_bound(record, on, DAY_LEAD)
        assert found == pytest.approx(by_every_second(record, on, 180, 60, int(DAY_LEAD)))
        assert 0 < found <= split_energy(record, on, DAY_LEAD).waste


def test_without_energy_there_is_none():
    assert math.isnan(waste_bound(simulate_workloads(SERVERS, [workload((0, 1, 10, 10))], "fcfs"), SERVERS))


def by_every_second(record, on, doze, wake, first=None) -> float:
    """Each server decides every second whether to switch; whole seconds only."""
    first = int(record.jobs.submit_time.min()) if first is None else first
    last_job = int((record.jobs.start_time + record.jobs.runtime).max())
    asleep_at_last = {
        h: p
        for row, hosts in enumerate(record.pstates.hosts)
        for h in spread(hosts)
        for p in [record.pstates.pstate[row]]
    }
    drained = all(pstate == 1 for pstate in asleep_at_last.values())
    total = 0.0
    for server in (0, 1):
        busy = np.zeros(last_job + 1 + doze + wake, bool)
        for hosts, start, runtime in zip(
            record.jobs.allocation, record.jobs.start_time, record.jobs.runtime, strict=True
        ):
            if any(host // 2 == server for host in spread(hosts)):
                busy[int(start) : int(start + runtime)] = True
        end = int(np.flatnonzero(busy).max(initial=-1)) + 1 + doze if drained else last_job
        total += cheapest(busy[: max(end, doze)], first, doze, wake, drained)
    return total


def spread(hosts: str) -> list[int]:
    parts = [part.split("-") for part in hosts.split()]
    return [host for part in parts for host in range(int(part[0]), int(part[-1]) + 1)]


def cheapest(busy, first, doze, wake, drained) -> float:
    """Least joules of a server that is awake at first; from the end on it must sleep, where that is asked for."""
    awake, asleep = [math.inf] * (len(busy) + 1), [math.inf] * (len(busy) + 1)
    awake[0] = 0.0
    best, used = math.inf, np.append(0, np.cumsum(busy)).tolist()
    for t in range(len(busy)):
        counted = float(t >= first)
        awake[t + 1] = min(awake[t + 1], awake[t] + (0.0 if busy[t] else 2 * 95 * counted))
        if not busy[t]:
            asleep[t + 1] = min(asleep[t + 1], asleep[t])
        for begin, after, seconds, watts in ((awake, asleep, doze, 100), (asleep, awake, wake, 125)):
            end = t + seconds
            fits, until = end <= len(busy), min(end, len(busy))
            cost = begin[t] + 2 * watts * max(until - max(t, first), 0)
            free = used[until] == used[t]
            if fits and free:
                after[end] = min(after[end], cost)
            elif free and not drained:
                best = min(best, cost)
    return min(asleep[-1], math.inf if drained else awake[-1], best)
