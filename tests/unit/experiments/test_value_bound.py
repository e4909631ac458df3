"""The bound of values: by hand, against the linear program that it stands for, and against schedules."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from helpers.green_worlds import supply, workload

from decision.experiments.worth import join_parts, total_value, value_bound
from decision.model.errors import ConfigError
from decision.model.workload import POWER_SUPPLY, Delay, Job, MachineEvent, Workload, Worth
from decision.policies.traits import Battery
from decision.rl.envs.setup import equal_hosts
from decision.simulation import simulate_workloads


def jobs(*rows: tuple[float, int, float, float, float]) -> Workload:
    """Rows of submission, hosts, run time, value and deadline."""
    made = [
        Job(id=f"w0!{i}", submit_time=at, size=size, profile=f"d{run:g}", worth=Worth(value=value, deadline=end))
        for i, (at, size, run, value, end) in enumerate(rows)
    ]
    profiles = {f"d{run:g}": Delay(run) for _, _, run, _, _ in rows}
    return Workload(name="w0", jobs=made, profiles=profiles, nb_res=4)


def test_without_competition_all_value_can_be_had() -> None:
    assert value_bound(jobs((0, 2, 60, 5, 120), (0, 4, 60, 7, math.nan)), 4) == (12, 12)


def test_of_two_jobs_for_the_same_hosts_the_better_one_counts() -> None:
    found = value_bound(jobs((0, 4, 60, 5, 60), (0, 4, 60, 7, 60)), 4)
    assert found.value == pytest.approx(7, rel=1e-3)
    assert found.submitted == 12


def test_jobs_that_cannot_end_in_time_or_have_too_many_hosts_add_nothing() -> None:
    assert value_bound(jobs((0, 5, 60, 5, 90), (0, 1, 60, 7, 59), (0, 1, 60, 1, 60)), 4).value == pytest.approx(1)


def test_power_that_is_not_there_cannot_be_used() -> None:
    events = [MachineEvent(timestamp=at, type=POWER_SUPPLY, hosts=(hosts,)) for at, hosts in ((0.0, 1), (90.0, 4))]
    # a share x of the job of 4 hosts has 3 * 7.5 s until 90 s, and 30 x of its 60 x after that: x is 3 / 4
    found = value_bound(jobs((0, 4, 60, 8, 120)), 4, events, step=30.0)
    assert found.value == pytest.approx(8 * 3 / 4, rel=1e-3)


def test_no_schedule_is_above_it() -> None:
    stored = "beyond=battery,battery=0.1,battery_charge=2,battery_efficiency=0.8"
    for seed in range(6):
        made, events = workload(seed), supply(seed)
        bound = value_bound(made, 8, events, step=10.0, battery=Battery(360.0, charge=2, efficiency=0.8))
        assert bound.value < bound.submitted
        for policy in ("density+first-fit,suspend=density", "qos+first-fit", f"hvf+first-fit,suspend=value,{stored}"):
            record = simulate_workloads(equal_hosts(8), [made], policy, events=events)
            assert total_value(join_parts(record.jobs), record.worth) <= bound.value


@pytest.mark.parametrize(
    ("battery", "grid"),
    [(None, 0), (None, 2), (Battery(400.0, 3, 2, 0.7), 0), (Battery(900.0, 2, 5, 0.9), 1), (Battery(5000.0), 0)],
)
def test_it_is_that_of_the_linear_program(battery: Battery | None, grid: int) -> None:
    highspy = pytest.importorskip("highspy")
    made, step, hosts, battery = workload(3, 12), 20.0, 8, battery or Battery()
    supplied = () if not grid and not battery.capacity else supply(3, 12)
    rows = [
        (job.submit_time, job.size, float(job.profile[1:]), job.worth.value, job.worth.deadline) for job in made.jobs
    ]
    timed = [row for row in rows if not math.isnan(row[4]) and row[4] + 1e-3 - row[0] >= row[2]]
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    shares = [model.addVariable(0, 1) for _ in timed]
    used: dict[int, list] = {}
    for share, (begin, size, run, _, end) in zip(shares, timed, strict=True):
        mine = []
        for at in range(int(begin / step), int((end + 1e-3) / step) + 1):
            room = min(end + 1e-3, (at + 1) * step) - max(begin, at * step)
            part = model.addVariable(0, room)
            model.addConstr(part <= room * share)
            used.setdefault(at, []).append(size * part)
            mine.append(part)
        model.addConstr(sum(mine) == run * share)
    level = 0.0
    for at, power in enumerate(_power_by_step(supplied, hosts, step, max(used) + 1)):
        parts = sum(used.get(at, [0.0]))
        taken = model.addVariable(0, min(battery.charge * step, power))
        given = model.addVariable(0, min(battery.discharge, 1e6) * step)
        held = model.addVariable(0, battery.capacity)
        model.addConstr(held == level + battery.efficiency * taken - given)
        level = held
        if at in used:
            model.addConstr(parts <= hosts * step)
            model.addConstr(parts + taken - given <= power + grid * step)
        else:
            model.addConstr(taken - given <= power + grid * step)
    model.maximize(sum(row[3] * share for share, row in zip(shares, timed, strict=True)))
    free = sum(row[3] for row in rows if math.isnan(row[4]))
    best = model.getObjectiveValue() + free
    found = value_bound(made, hosts, supplied, step=step, rounds=5000, battery=battery, grid=grid).value
    assert best * (1 - 1e-6) <= found <= best * 1.005


def _power_by_step(events: Sequence[MachineEvent], hosts: int, step: float, steps: int) -> list[float]:
    """Host-seconds of a supply whose times are multiples of half a step."""
    halves = np.arange(2 * steps) * step / 2
    times, given = [e.timestamp for e in events], [hosts, *(e.hosts[0] for e in events)]
    now = np.array(given)[np.searchsorted(times, halves, side="right")] * step / 2
    return now.reshape(-1, 2).sum(axis=1).tolist()


def test_a_battery_moves_power_to_when_it_is_wanted() -> None:
    events = [MachineEvent(timestamp=at, type=POWER_SUPPLY, hosts=(hosts,)) for at, hosts in ((0.0, 2), (60.0, 0))]
    one = jobs((60, 2, 60, 8, 120))
    for battery, share in (
        (Battery(), 0),
        (Battery(1e9), 1),
        (Battery(60.0), 1 / 2),
        (Battery(1e9, charge=0.5), 1 / 4),
        (Battery(1e9, discharge=1), 1 / 2),
        (Battery(1e9, efficiency=0.6), 0.6),
    ):
        found = value_bound(one, 4, events, step=30.0, rounds=5000, battery=battery)
        assert found.value == pytest.approx(8 * share, rel=1e-3, abs=1e-3)


def test_a_workload_without_values_is_refused() -> None:
    with pytest.raises(ConfigError, match="no job has a 'value'"):
        value_bound(jobs((0, 1, 60, np.nan, 90)), 4)
