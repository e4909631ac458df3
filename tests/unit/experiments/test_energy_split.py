"""Where energy goes: by hand, and against what Batsim says of the whole."""

import math

import numpy as np
import pytest
from helpers.run_samples import job_table

from decision.engine.rules import EngineOptions
from decision.experiments.energy import split_energy
from decision.files import load_platform, load_workload
from decision.files.outputs_read import read_run_record
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.record import HostTable, PstateTable, RunRecord
from decision.simulation import simulate_workloads

COMPUTE, ASLEEP = PowerState(1e9, 100.0, 100.0, 200.0), PowerState(1.0, 10.0, 10.0, 10.0)
OFF, ON = PowerState(0.5, 50.0, 50.0, 50.0), PowerState(0.25, 80.0, 80.0, 80.0)
SLEEPS = (SleepState(pstate=1, switch_off=2, switch_on=3),)
TWO = Platform(hosts=tuple(Host(id=i, name=f"n{i}", pstates=(COMPUTE, ASLEEP, OFF, ON), sleep=SLEEPS) for i in (0, 1)))


def record(jobs, pstates, joules=0.0):
    table = None
    if pstates is not None:
        time, hosts, pstate = zip(*pstates, strict=True)
        table = PstateTable(time=np.array(time), hosts=list(hosts), pstate=np.array(pstate))
    states = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    return RunRecord(nb_hosts=2, jobs=jobs, host_states=states, pstates=table, time_in_state=np.zeros(6), joules=joules)


def test_a_host_that_sleeps_and_wakes_by_hand():
    jobs = job_table((10.0, 1, 10.0, 20.0, "0"), (15.0, 2, 60.0, 40.0, "0-1"))  # counted from 10 s to 100 s
    jobs.energy = np.array([4000.0, 16000.0])
    changes = [(0.0, "0-1", 0), (20.0, "1", -2), (22.0, "1", 1), (50.0, "1", -1), (54.0, "1", 0)]
    split = split_energy(record(jobs, changes, joules=1.0), TWO)
    assert split.total == 1.0
    assert split.computing == 20000.0
    assert split.idle == 100 * 30 + 100 * (10 + 6)  # host 0 between its jobs; host 1 before it sleeps and once awake
    assert split.switching == 50 * 2 + 80 * 4
    assert split.sleeping == 10 * 28
    assert split.waste == split.idle + split.switching


def test_a_run_that_ends_while_a_host_falls_asleep_counts_the_switch_so_far():
    jobs = job_table((0.0, 1, 0.0, 30.0, "0"))
    split = split_energy(record(jobs, [(0.0, "0-1", 0), (29.0, "1", -2)]), TWO)
    assert (split.idle, split.switching) == (100 * 29, 50 * 1)


def test_a_host_that_cannot_sleep_may_still_change_its_speed():
    slow = PowerState(5e8, 60.0, 60.0, 90.0)
    one = Platform(hosts=(Host(id=0, name="n0", pstates=(COMPUTE, slow)),))
    changes = [(0.0, "0", 0), (20.0, "0", -1), (20.0, "0", 1)]
    split = split_energy(record(job_table((0.0, 1, 0.0, 10.0, "0"), (0.0, 1, 40.0, 10.0, "0")), changes), one)
    assert (split.idle, split.switching) == (100 * 10 + 60 * 20, 0)


def test_without_energy_there_is_nothing_to_split():
    split = split_energy(record(job_table((0.0, 1, 0.0, 30.0, "0")), None), TWO)
    assert math.isnan(split.total) and math.isnan(split.waste)


def test_the_parts_of_a_recorded_run_add_up_to_batsims_total(root):
    folder = root / "tests" / "golden" / "sessions" / "energy_sleep"
    split = split_energy(read_run_record(folder), load_platform(folder / "platform.xml", energy=True))
    parts = split.computing + split.idle + split.switching + split.sleeping
    assert parts == pytest.approx(split.total, rel=1e-9)
    assert min(split.computing, split.idle, split.switching, split.sleeping) > 0.02 * split.total


def test_the_parts_of_our_own_run_add_up_exactly(root):
    folder = root / "tests" / "golden" / "sessions" / "energy_sleep"
    platform = load_platform(folder / "platform.xml", energy=True)
    run = simulate_workloads(
        platform,
        [load_workload(folder / "workload0.json")],
        "easy,power=idle-timeout,idle_timeout=60",
        engine_options=EngineOptions(energy=True),
    )
    split = split_energy(run, platform)
    parts = split.computing + split.idle + split.switching + split.sleeping
    assert split.switching > 0
    assert parts == pytest.approx(split.total, rel=1e-9)
