"""Step functions of a schedule: by hand, and their time averages are the closed formulas of the metrics."""

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table
from hypothesis import given
from hypothesis import strategies as st

from decision.experiments import metrics as m
from decision.experiments.results import Steps, queue_over_time, utilization_over_time


def average(steps: Steps, begin: float, end: float) -> float:
    """``1 / (end - begin) * integral from begin to end``, times in seconds."""
    edges = np.clip(np.append(steps.times, np.inf), begin, end)
    return float((steps.values * np.diff(edges)).sum()) / (end - begin)


def job_load_over_time(jobs) -> Steps:
    """The load (host-seconds) of the jobs that wait after each submission and start."""
    times = np.unique(np.concatenate([jobs.submit_time, jobs.start_time]))
    waits = (jobs.submit_time <= times[:, None]) & (times[:, None] < jobs.start_time)
    return Steps(times, waits @ m.loads(jobs))


def test_three_jobs_by_hand():
    jobs = m.only_ran(THREE)
    busy = utilization_over_time(jobs, 4)
    assert busy.times.tolist() == [10.0, 30.0, 31.0, 110.0, 160.0]
    assert busy.values.tolist() == [0.5, 0.75, 0.5, 1.0, 0.0]
    queue = queue_over_time(jobs)
    assert dict(zip(queue.times, queue.values, strict=True)) == {10.0: 0, 20.0: 1, 30.0: 1, 110.0: 0}
    assert job_load_over_time(jobs).values.max() == 4 * 50


def test_an_average_counts_zero_before_the_first_and_the_last_value_to_the_end():
    busy = utilization_over_time(job_table((0.0, 1, 10.0, 10.0, "0")), 1)
    assert average(busy, 0.0, 40.0) == pytest.approx(0.25)
    assert average(busy, 15.0, 20.0) == pytest.approx(1.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.integers(1, 8), st.floats(0, 1e5), st.floats(1, 1e5)), min_size=1, max_size=20
    )
)
def test_time_averages_are_the_closed_formulas(rows):
    jobs = job_table(*((submit, size, submit + wait, runtime, "0") for submit, size, wait, runtime in rows))
    span = float(jobs.submit_time.min()), m.makespan(jobs)
    assert average(queue_over_time(jobs), *span) == pytest.approx(m.mean_queue_length(jobs), abs=1e-6)
    assert average(job_load_over_time(jobs), *span) == pytest.approx(m.mean_job_load(jobs), rel=1e-6, abs=1e-3)
    assert average(utilization_over_time(jobs, 8), *span) == pytest.approx(m.utilization(jobs, 8), rel=1e-6)
