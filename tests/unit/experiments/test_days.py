"""Days of a workload as runs of their own."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.policy_toys import platform

from decision.cli.app import app
from decision.experiments.compare import run_comparison
from decision.experiments.plan import ComparisonPlan
from decision.files import write_platform, write_workload
from decision.model.dates import BusyDay, busy_days, chosen_days, of_day
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload

DAY = 86_400.0
POLICY = "first-fit,start=bound,power=idle-timeout,idle_timeout=100"


def workload(*submissions: float) -> Workload:
    jobs = [Job(id=f"w0!{i}", submit_time=at, size=1, walltime=20.0, profile="d") for i, at in enumerate(submissions)]
    return Workload(name="w0", jobs=jobs, profiles={"d": Delay(10.0)}, nb_res=4)


THREE = workload(100.0, 200.0, DAY + 5.0, 3 * DAY, 3 * DAY + 50.0, 5 * DAY + 300.0, 5 * DAY + 86_390.0)


def test_days_with_one_submission_are_left_out():
    assert busy_days(THREE) == [BusyDay(0.0, 0, 2), BusyDay(3 * DAY, 3, 2), BusyDay(5 * DAY, 5, 2)]
    assert chosen_days(THREE, slice(1, 2)) == [BusyDay(3 * DAY, 3, 2)]
    with pytest.raises(ConfigError, match="no day is left of 3:; it has 3 days with two submissions or more"):
        chosen_days(THREE, slice(3, None))


def test_a_days_run_begins_an_hour_before_midnight():
    day = of_day(THREE, BusyDay(3 * DAY, 3, 2))
    assert [(job.id, job.submit_time) for job in day.jobs] == [("w0!3", 3600.0), ("w0!4", 3650.0)]


@pytest.fixture
def plan(tmp_path):
    servers, jobs = tmp_path / "servers.xml", tmp_path / "days.json"
    write_platform(servers, platform(4, sleeps=True, cores=2))
    write_workload(jobs, THREE)
    return ComparisonPlan(platform=servers, workloads=(jobs,), policies=(POLICY,), energy=True, days=(0, None))


def test_each_day_is_counted_from_midnight_until_the_last_server_is_off(plan, tmp_path):
    first, second, third = (outcome.metrics for outcome in run_comparison(plan, tmp_path / "out"))
    # day 1: the job of 100 s wakes server 0 in 20 s and runs till 130 s; that of 200 s finds it awake till 210 s;
    # the server falls asleep from 310 to 315 s; server 1 (2 x 9 W) sleeps all the time
    assert first["wait"] == pytest.approx((20 + 0) / 2)
    assert first["switches"] == 2
    assert first["switching_energy"] == pytest.approx(2 * (125 * 20 + 100 * 5))
    assert first["idle_energy"] == pytest.approx(190 * (70 + 100))
    assert first["wait_over_walltime"] == pytest.approx(0.5)
    # day 2: a job at midnight itself
    assert second["wait"] == pytest.approx((20 + 0) / 2)
    # day 3: two bursts far apart; the last job ends in the day after
    assert third["switches"] == 4
    assert third["switching_energy"] == pytest.approx(2 * first["switching_energy"])


def test_days_are_chosen_by_number(plan, tmp_path):
    import msgspec

    some = run_comparison(msgspec.structs.replace(plan, days=(1, 3)), tmp_path / "some")
    every = run_comparison(plan, tmp_path / "every")
    assert [run.first_job for run in some] == [3, 5]
    assert [run.metrics for run in some] == [run.metrics for run in every[1:]]
    assert np.isfinite([run.metrics["energy"] for run in every]).all()


def test_evaluate_runs_the_days_that_compare_runs(plan, tmp_path):
    table = tmp_path / "days.csv"
    files = ("-p", str(plan.platform), "-w", str(plan.workloads[0]), "-E", "--days", "0:2", "-o", str(table))
    done = CliRunner().invoke(app, ["evaluate", POLICY, *files, "--json"])
    assert done.exit_code == 0, done.output
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["energy_waste"]) for row in rows] == [
        run.metrics["energy_waste"] for run in run_comparison(plan, tmp_path / "out")[:2]
    ]


def test_energy_of_evaluate_needs_days(plan):
    files = ("-p", str(plan.platform), "-w", str(plan.workloads[0]))
    refused = CliRunner().invoke(app, ["evaluate", "easy", *files, "-E"])
    assert (refused.exit_code, "it needs --days; leave the option out" in refused.stderr) == (2, True)
