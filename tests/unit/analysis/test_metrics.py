"""Metrics with answers worked out by hand, and Batsim's own."""

import csv
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_samples import THREE, job_table

from decision.analysis.batsim_files import read_jobs
from decision.analysis.metrics import summarise


def test_the_metrics_of_three_jobs():
    summary = summarise(THREE, nb_hosts=4, joules=7.5)
    assert (summary.jobs, summary.rejected) == (3, 1)
    assert summary.makespan == 160.0
    assert summary.mean_waiting_time == pytest.approx((0 + 90 + 0) / 3)
    assert summary.max_waiting_time == 90.0
    assert summary.mean_bounded_slowdown == pytest.approx(
        (1 + 140 / 50 + 1) / 3
    )  # 1 s counts as 10 s, and never below 1
    assert summary.utilization == pytest.approx((2 * 100 + 4 * 50 + 1 * 1) / (4 * (160 - 10)))
    assert summary.energy == 7.5


def test_a_run_in_which_no_job_ran_has_no_metrics():
    summary = summarise(job_table((0.0, 9, math.nan, math.nan, "")), nb_hosts=4)
    assert (summary.jobs, summary.rejected) == (0, 1)
    values = (
        summary.makespan,
        summary.mean_waiting_time,
        summary.max_waiting_time,
        summary.utilization,
        summary.energy,
    )
    assert all(math.isnan(value) for value in values)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1, 1e6)), min_size=1, max_size=20))
def test_utilization_of_one_host_never_exceeds_one_and_slowdown_is_never_below_one(rows):
    clock, jobs = 0.0, []
    for submit, wait, runtime in rows:
        start = max(clock, submit) + wait
        jobs.append((submit, 1, start, runtime, "0"))
        clock = start + runtime
    summary = summarise(job_table(*jobs), nb_hosts=1)
    assert 0 < summary.utilization <= 1 + 1e-6
    assert summary.mean_bounded_slowdown >= 1


def test_makespan_and_waiting_times_are_batsims(shared):
    for folder in sorted((shared / "golden" / "sessions-batsim-4.2.1").iterdir()):
        with (folder / "out_schedule.csv").open() as file:
            batsim = next(csv.DictReader(file))
        if batsim["nb_jobs_rejected"] != "0":
            continue  # Batsim's means count rejected jobs
        summary = summarise(read_jobs(str(folder / "out")), int(batsim["nb_computing_machines"]))
        assert summary.makespan == pytest.approx(float(batsim["makespan"]), abs=1e-6)
        assert summary.mean_waiting_time == pytest.approx(float(batsim["mean_waiting_time"]), abs=1e-6)
        assert summary.max_waiting_time == pytest.approx(float(batsim["max_waiting_time"]), abs=1e-6)
