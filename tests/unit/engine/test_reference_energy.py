"""What hosts draw in the reference engine, how they sleep and wake, and the rows of the energy files."""

import pytest
from helpers.reference_toys import call, host, job, kill, powered, query, run, start, switch, workload

from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError
from decision.model.platform import Platform, PowerState, SleepState
from decision.model.workload import Composed, Delay, ParallelHomogeneous

SLOW = PowerState(1.0, 10.0, 20.0, 100.0)  # flop/s; watts idle, at the least load, at full load
FAST = PowerState(4.0, 10.0, 20.0, 100.0)

AWAKE = PowerState(1.0, 100.0, 110.0, 200.0)
ASLEEP = PowerState(0.001, 5.0, 5.0, 5.0)
FALLING = PowerState(0.5, 50.0, 50.0, 50.0)  # one flop: 2 s
RISING = PowerState(0.1, 150.0, 150.0, 150.0)  # one flop: 10 s
SLEEP = SleepState(pstate=1, switch_off=2, switch_on=3)
SLEEPER = (AWAKE, ASLEEP, FALLING, RISING)


def rows(table):
    return list(zip(table.time.tolist(), map(float, table.energy), table.event, table.wattmin.tolist(), strict=True))


def test_a_fast_host_beside_a_slow_one_is_partly_idle():
    """10 flop each: the slow host draws 100 W for 10 s, the fast one 20 + 0.25 * 80 = 40 W, the idle one 10 W."""
    work = workload(job("a", "p", size=2), p=ParallelHomogeneous(10.0, 0.0))
    told = run(powered((SLOW,), (FAST,), (FAST,)), work, {"a arrives": [start("a", "0-1")]}, energy=True)
    assert rows(told.record.energy) == [(0.0, 0.0, "s", 60.0), (10.0, pytest.approx(1500.0), "e", 60.0)]
    assert told.record.jobs.energy.tolist() == [pytest.approx(1400.0)]
    assert told.record.joules == pytest.approx(1500.0)


def test_a_delay_puts_no_load_on_its_hosts():
    work = workload(job("a", "p", size=2), p=Delay(10.0))
    told = run(powered((SLOW,), (FAST,)), work, {"a arrives": [start("a", "0-1")]}, energy=True)
    assert told.record.jobs.energy.tolist() == [200.0]


def test_a_delay_before_a_task_counts_at_the_load_of_the_task_on_all_hosts_but_the_first():
    """SimGrid's own inaccuracy: of a job that sleeps it measures only the first host, and nothing as a task begins.

    Host 0: 5 s at 10 W, then 10 s at 100 W. Host 1: at the end of the task, 15 s at 100 W.
    """
    profiles = {"p": Composed(("x", "y")), "x": Delay(5.0), "y": ParallelHomogeneous(10.0, 0.0)}
    work = workload(job("a", "p", size=2), **profiles)
    told = run(powered((SLOW,), (SLOW,)), work, {"a arrives": [start("a", "0-1")]}, energy=True)
    assert told.record.jobs.energy.tolist() == [pytest.approx(1050.0 + 1500.0)]


def test_a_host_of_a_task_with_nothing_to_do_there_idles():
    work = workload(job("a", "p", size=3), p=ParallelHomogeneous(10.0, 0.0))
    on = start("a", "0-1", mapping={"0": "0", "1": "0", "2": "0"})
    told = run(powered((SLOW,), (SLOW,)), work, {"a arrives": [on]}, energy=True)
    assert told.record.jobs.energy.tolist() == [pytest.approx(30 * 100.0 + 30 * 10.0)]


def test_a_sleep_pstate_without_speed_counts_as_full_load():
    """That is how SimGrid avoids a division by zero. Falling asleep costs 2 s at 50 W, then it draws 30 W."""
    still = PowerState(0.0, 1.0, 2.0, 30.0)
    script = {"begins": [switch("0", 1), call(5.0)], "call 5": [query()]}
    told = run(powered((AWAKE, still, FALLING, RISING), sleep=[SLEEP]), workload(), script, energy=True)
    assert told.told[-1] == (5.0, "190 J")


def test_energy_counts_from_the_first_submission_to_the_last_end():
    """Idle at 10 W from 0 to 3, full at 100 W from 3 to 13, asked at 20."""
    work = workload(job("a", "p", submit=3.0), p=ParallelHomogeneous(10.0, 0.0))
    script = {"a arrives": [start("a", "0"), call(20.0)], "call 20": [query()]}
    told = run(powered((SLOW,)), work, script, energy=True)
    assert told.record.joules == pytest.approx(1000.0)
    assert told.told[-1] == (20.0, "1100 J")


def test_a_killed_job_has_used_energy_until_then():
    work = workload(job("a", "p"), p=ParallelHomogeneous(10.0, 0.0))
    script = {"a arrives": [start("a", "0"), call(4.0)], "call 4": [kill("a")]}
    told = run(powered((SLOW,)), work, script, energy=True)
    assert told.record.jobs.energy.tolist() == [pytest.approx(400.0)]
    assert [row[2] for row in rows(told.record.energy)] == ["s", "e"]


def test_a_new_pstate_changes_what_a_running_task_draws():
    """40 flop: 5 s at 4 flop/s and 100 W, then 20 s at 1 flop/s and 50 W."""
    eco = PowerState(1.0, 5.0, 10.0, 50.0)
    work = workload(job("a", "p"), p=ParallelHomogeneous(40.0, 0.0))
    script = {"a arrives": [start("a", "0"), call(5.0)], "call 5": [switch("0", 1)]}
    told = run(powered((FAST, eco)), work, script, energy=True)
    assert rows(told.record.energy) == [
        (0.0, 0.0, "s", 20.0),
        (5.0, pytest.approx(500.0), "p", 20.0),
        (5.0, pytest.approx(500.0), "p", 10.0),
        (25.0, pytest.approx(1500.0), "e", 10.0),
    ]
    assert (told.record.nb_switches, told.record.nb_grouped_switches) == (1, 1)
    assert told.record.host_states.time.tolist() == [0.0, 5.0, 25.0]


# --- Sleep ---------------------------------------------------------------------------------------------------


@pytest.fixture
def nap():
    """Both hosts fall asleep at 0; host 0 is woken at 12."""
    script = {"begins": [switch("0-1", 1), call(12.0)], "call 12": [switch("0", 0)]}
    return run(powered(SLEEPER, SLEEPER, sleep=[SLEEP]), workload(), script, energy=True)


def test_a_switch_takes_the_time_of_its_virtual_pstate(nap):
    assert nap.told == [(2.0, "hosts 0-1 in 1"), (12.0, "call 12"), (22.0, "hosts 0 in 0")]


def test_a_switch_draws_the_power_of_its_virtual_pstate(nap):
    assert rows(nap.record.energy) == [
        (0.0, 0.0, "p", 220.0),
        (2.0, pytest.approx(200.0), "p", 10.0),
        (12.0, pytest.approx(300.0), "p", 10.0),
        (22.0, pytest.approx(1850.0), "p", 115.0),
    ]


def test_pstate_changes_begin_with_those_of_time_0_and_mark_hosts_on_their_way(nap):
    table = nap.record.pstates
    assert list(zip(table.time.tolist(), table.hosts, table.pstate.tolist(), strict=True)) == [
        (0.0, "0-1", 0),
        (0.0, "0-1", -2),
        (2.0, "0-1", 1),
        (12.0, "0", -1),
        (22.0, "0", 0),
    ]


def test_host_states_are_written_when_a_switch_is_asked_for_and_when_it_is_done(nap):
    assert nap.record.host_states.time.tolist() == [0.0, 2.0, 12.0, 22.0]
    assert nap.record.host_states.counts[:, :4].tolist() == [[0, 0, 2, 0], [2, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1]]
    assert nap.record.time_in_state.tolist() == [10.0, 10.0, 4.0, 0.0, 0.0, 0.0]
    assert (nap.record.nb_switches, nap.record.nb_grouped_switches) == (3, 2)


def test_a_request_is_done_with_its_slowest_host():
    """Host 0 falls asleep in 2 s, host 1 in 8 s: one answer at 8, but host 0 sleeps from 2 on."""
    slow = (AWAKE, ASLEEP, PowerState(0.125, 50.0, 50.0, 50.0), RISING)
    told = run(powered(SLEEPER, slow, sleep=[SLEEP]), workload(), {"begins": [switch("0-1", 1)]}, energy=True)
    assert told.told == [(8.0, "hosts 0-1 in 1")]
    assert told.record.time_in_state.tolist()[:3] == [0.0, 0.0, 10.0]
    assert float(told.record.energy.energy[-1]) == pytest.approx(2 * 50 + 6 * 5 + 8 * 50)


def test_requests_for_the_same_pstate_are_answered_each_for_itself():
    slow = (AWAKE, ASLEEP, PowerState(0.125, 50.0, 50.0, 50.0), RISING)
    script = {"begins": [switch("1", 1), switch("0", 1)]}
    told = run(powered(SLEEPER, slow, sleep=[SLEEP]), workload(), script, energy=True)
    assert told.told == [(2.0, "hosts 0 in 1"), (8.0, "hosts 1 in 1")]


def test_a_woken_host_runs_jobs():
    work = workload(job("a", "p", submit=5.0), p=ParallelHomogeneous(3.0, 0.0))
    script = {"begins": [switch("0", 1)], "a arrives": [switch("0", 0)], "hosts 0 in 0": [start("a", "0")]}
    told = run(powered(SLEEPER, sleep=[SLEEP]), work, script, energy=True)
    assert told.told[-2:] == [(15.0, "hosts 0 in 0"), (18.0, "a done")]
    assert told.record.jobs.energy.tolist() == [pytest.approx(600.0)]


# --- Order at one instant ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("energy", "together"), [(False, ["a done", "call 10"]), (True, ["call 10", "a done"])])
def test_with_energy_an_end_is_told_after_a_call_of_the_same_instant(energy, together):
    """The job began before the call was asked for. With energy its actor first has the idle host measured."""
    work = workload(job("a", "p"), p=Delay(10.0))
    told = run(powered((SLOW,), (SLOW,)), work, {"a arrives": [start("a", "0"), call(10.0)]}, energy=energy)
    assert told.questions[3] == (10.0, together)


# --- Platforms -----------------------------------------------------------------------------------------------


def test_storage_hosts_follow_the_compute_hosts_and_draw_power():
    platform = Platform(hosts=(host(0, SLOW, has_power=True),), storage=(host(1, FAST, has_power=True),))
    work = workload(job("a", "p"), p=Delay(10.0))
    told = run(platform, work, {"a arrives": [start("a", "0")]}, energy=True)
    begins = told.events[0].data
    assert (begins.nb_resources, begins.nb_compute_resources, begins.nb_storage_resources) == (2, 1, 1)
    assert [resource.id for resource in begins.storage_resources] == [1]
    assert told.record.nb_hosts == 2
    assert float(told.record.energy.energy[-1]) == 200.0
    assert told.record.host_states.counts[:, 3:5].tolist() == [[0, 1], [1, 0]]  # Batsim counts compute hosts only


def test_energy_needs_hosts_that_say_what_they_draw():
    platform = Platform(hosts=(host(0, SLOW, has_power=True), host(1, SLOW)))
    with pytest.raises(ConfigError, match=r"host 'node-1' does not say what it draws; add wattage_per_state"):
        ReferenceEngine(platform, [workload()], (), EngineOptions(energy=True))


def test_a_host_that_cannot_compute_is_refused():
    platform = powered((SLOW, PowerState(0.0, 1.0, 2.0, 30.0)))
    with pytest.raises(ConfigError, match=r"host 'node-0' has no speed in pstate 1; give it one above 0"):
        ReferenceEngine(platform, [workload()], (), EngineOptions(energy=True))
    ReferenceEngine(platform, [workload()])  # which never leaves pstate 0
