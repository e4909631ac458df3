"""A battery beside a supply: jobs run on while it lasts, by hand and against what the record says."""

import numpy as np
import pytest
from helpers.green_worlds import HOSTS, platform, supply, workload
from unit.policies.test_suspension import KILLED, job, run

from decision.experiments.metrics import only_ran
from decision.experiments.worth import power_course
from decision.model.errors import ConfigError
from decision.model.record import BatteryTable, FinalState, JobTable, SupplyTable
from decision.policies.registry import find_policy
from decision.policies.wrappers.supply import battery_table
from decision.simulation import simulate_workloads

IDLE = ((0, 4), (100, 1))  # 4 hosts for 100 s, then 1


def with_battery(hours: float, *options: str) -> str:
    return ",".join(("fcfs", "beyond=battery", f"battery={hours}", *options))


@pytest.mark.parametrize(
    ("policy", "end"),
    [
        (with_battery(1), 140),  # 200 host-seconds were stored, 40 s need 120
        (with_battery(0.02), 124),  # 72 last 24 s
        (with_battery(1, "battery_charge=1.5"), 125),  # 75 in 50 s
        (with_battery(1, "battery_efficiency=0.3"), 120),
        (with_battery(1, "battery_discharge=2"), 100),  # no part of a job can go
        ("fcfs", 100),
    ],
)
def test_a_job_beyond_the_supply_runs_on_while_the_battery_lasts(policy: str, end: float) -> None:
    done = run(policy, job("a", 50, 4, 90), supply=(*IDLE, (400, 4)))
    assert done["a"] == ((50, 140) if end == 140 else KILLED)
    if end < 140:
        assert done["a#1"] == (400, 400 + 140 - end)


def test_those_of_least_value_make_way_for_what_the_battery_can_give() -> None:
    jobs = [job(name, 10, 1, 200, value) for name, value in (("a", 5), ("b", 1), ("c", 3))]
    done = run(with_battery(1, "battery_discharge=1"), *jobs, supply=((0, 4), (100, 1)))
    assert done["a"] == done["c"] == (10, 210)
    assert done["b"] == KILLED


def test_no_job_starts_on_the_battery() -> None:
    assert run(with_battery(1), job("a", 110, 2, 50), supply=(*IDLE, (300, 4)))["a"] == (300, 350)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["qos+first-fit", "hvf+first-fit,suspend=value", "helpers.green_worlds:Restful"])
def test_jobs_get_no_more_than_supply_and_battery_have(policy: str, seed: int) -> None:
    spec = f"{policy},beyond=battery,battery=0.2,battery_charge=3,battery_discharge=4,battery_efficiency=0.8"
    record = simulate_workloads(platform(), [workload(seed)], spec, events=supply(seed))
    course = power_course(only_ran(record.jobs), record.supply, record.battery)
    assert (course.grid * np.diff(course.edges)).sum() < 1e-4  # calls have microseconds
    assert course.given.max() > 0
    assert course.level.max() <= 720
    assert course.busy.max() <= HOSTS


def test_a_course_of_power_by_hand() -> None:
    jobs = JobTable(
        id=["a"],
        submit_time=np.zeros(1),
        size=np.array([3]),
        profile=["d"],
        walltime=np.full(1, 99.0),
        final_state=np.array([FinalState.COMPLETED_SUCCESSFULLY]),
        start_time=np.array([10.0]),
        runtime=np.array([30.0]),
        allocation=["0-2"],
        energy=np.zeros(1),
        metadata=[""],
    )
    table = SupplyTable(time=np.array([0.0, 20.0, 50.0]), hosts=np.array([4.0, 1.0, 4.0]))
    limits = {"capacity": 30.0, "charge": 4.0, "discharge": 9.0, "efficiency": 0.5}
    battery = BatteryTable(**{name: np.array([value]) for name, value in limits.items()})
    course = power_course(jobs, table, battery)
    assert course.edges.tolist() == [0, 10, 20, 32.5, 40, 50]
    assert course.level.tolist() == [0, 20, 25, 0, 0, 5]
    assert course.taken.tolist() == [4, 1, 0, 0, 1]
    assert course.given.tolist() == [0, 0, 2, 0, 0]
    assert course.grid.tolist() == [0, 0, 0, 2, 0]
    assert course.waste.tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("beyond=battery", "beyond=battery needs battery=HOST-HOURS above 0"),
        ("battery=3", "option battery goes with beyond=battery"),
        ("beyond=grid,battery_charge=3", "option battery_charge goes with beyond=battery"),
        ("beyond=battery,battery=1,battery_efficiency=2", "battery_efficiency=2 must be above 0 and at most 1"),
        ("beyond=battery,battery=1,battery_discharge=0.5", "battery_discharge=0.5 must be 1 host or more"),
    ],
)
def test_what_is_no_battery_is_refused(options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"policy fcfs: (option )?{message}"):
        find_policy(f"fcfs,{options}")


def test_its_numbers_are_in_the_record() -> None:
    table = battery_table(find_policy(with_battery(2, "battery_charge=3", "battery_efficiency=0.9")))
    assert [float(getattr(table, name)[0]) for name in table.__struct_fields__] == [7200, 3, np.inf, 0.9]
