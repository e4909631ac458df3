"""Metrics with answers worked out by hand, and Batsim's own."""

import math

import numpy as np
import pytest
from helpers.golden import SCENARIOS, SESSIONS
from helpers.run_samples import THREE, job_table
from hypothesis import given
from hypothesis import strategies as st

from decision.experiments import metrics as m
from decision.experiments.metric_list import METRICS, find_metric, measure_run, summarise
from decision.files.outputs_read import find_run, read_run_record, read_schedule
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.model.record import HostTable, RunRecord


def test_the_metrics_of_three_jobs():
    summary = summarise(THREE, nb_hosts=4, joules=7.5)
    assert (summary.jobs, summary.rejected) == (3, 1)
    assert summary.makespan == 150.0  # from the first submission, at 10
    assert summary.wait == pytest.approx((0 + 90 + 0) / 3)
    assert summary.max_wait == 90.0
    assert summary.bounded_slowdown == pytest.approx((1 + 140 / 50 + 1) / 3)  # 1 s counts as 10 s, and never below 1
    assert summary.utilization == pytest.approx((2 * 100 + 4 * 50 + 1 * 1) / (4 * (160 - 10)))
    assert summary.energy == 7.5


def test_what_comes_after_the_last_arrival_is_told_apart():
    jobs = job_table((0.0, 2, 0.0, 100.0, "0-1"), (10.0, 1, 30.0, 10.0, "2"), (50.0, 4, 100.0, 20.0, "0-3"))
    assert m.late_starts(jobs) == 1
    assert m.arrival_utilization(jobs, 4) == (2 * 50 + 10) / (4 * 50)
    assert math.isnan(m.arrival_utilization(jobs.take(np.array([0])), 4)), "all came at once"
    summary = summarise(jobs, 4)
    assert (summary.p95_wait, summary.max_wait) == (pytest.approx(20 + 0.9 * 30), 50)


def test_a_run_in_which_no_job_ran_has_no_metrics():
    summary = summarise(job_table((0.0, 9, math.nan, math.nan, "")), nb_hosts=4)
    assert (summary.jobs, summary.rejected) == (0, 1)
    values = (summary.makespan, summary.wait, summary.max_wait, summary.utilization, summary.energy)
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
    assert summary.bounded_slowdown >= 1


def test_each_metric_of_three_jobs_by_hand():
    jobs = m.only_ran(THREE)  # waits of 0, 90 and 0 s, runtimes of 100, 50 and 1 s, on 2, 4 and 1 hosts
    assert m.turnaround_times(jobs).tolist() == [100.0, 140.0, 1.0]
    assert m.slowdowns(jobs).tolist() == [1.0, 140 / 50, 1.0]
    assert m.bounded_slowdowns(jobs, bound=200.0).tolist() == [1.0, 1.0, 1.0]
    assert m.bounded_slowdowns(jobs, bound=70.0).tolist() == [1.0, 2.0, 1.0]
    assert m.per_processor_slowdowns(jobs).tolist() == [1.0, 1.0, 1.0]  # 140 / (4 * 50) is below 1
    assert m.makespan(jobs) == 160.0
    assert m.makespan_from_submission(jobs) == 150.0
    assert m.mean_queue_length(jobs) == pytest.approx(90 / 150)
    assert m.mean_job_load(jobs) == pytest.approx(90 * (4 * 50) / 150)  # no walltimes: runtimes count
    assert m.throughput(jobs) == pytest.approx(3 * 3600 / 150)


def test_a_job_on_few_hosts_must_wait_less_for_the_same_per_processor_slowdown():
    jobs = job_table((0.0, 2, 100.0, 10.0, "0-1"), (0.0, 11, 100.0, 10.0, "0-10"))
    assert m.per_processor_slowdowns(jobs).tolist() == [110 / 20, 1.0]


def test_job_load_counts_walltimes_where_there_are_some():
    jobs = job_table((0.0, 2, 5.0, 10.0, "0-1"))
    jobs.walltime = np.array([30.0])
    assert m.mean_job_load(jobs) == pytest.approx(5 * (2 * 30) / 15)


def test_fairness_is_jains_index_of_users_mean_slowdowns():
    jobs = m.only_ran(THREE)  # bounded slowdowns of 1, 2.8 and 1
    assert m.fairness(jobs, {}) == pytest.approx((1 + 2.8 + 1) ** 2 / (3 * (1 + 2.8**2 + 1)))
    together = {"w0!0": "ada", "w0!1": "ada", "w0!2": "eve"}  # 1.9 and 1
    assert m.fairness(jobs, together) == pytest.approx((1.9 + 1) ** 2 / (2 * (1.9**2 + 1)))
    assert m.fairness(jobs, dict.fromkeys(together, "ada")) == 1.0


def test_communication_hops_are_summed_over_pairs_in_both_directions_and_divided_by_the_size():
    def distance(a, b):
        return np.where(a // 2 == b // 2, 2, 6)  # two hosts to a switch

    jobs = job_table((0.0, 1, 0.0, 1.0, "3"), (0.0, 2, 0.0, 1.0, "0-1"), (0.0, 3, 0.0, 1.0, "4-6"))
    assert m.communication_hops(jobs, distance).tolist() == [0.0, 2 * 2 / 2, 2 * (2 + 6 + 6) / 3]


def test_stretch_is_run_time_over_recorded_run_time_of_jobs_that_have_one():
    jobs = job_table((0.0, 1, 0.0, 3.0, "3"), (0.0, 2, 0.0, 1.0, "0-1"), (0.0, 1, 0.0, 1.0, "4"))
    assert m.stretches(jobs, {"w0!0": 2.0, "w0!1": 1.0, "w0!2": 0.0}).tolist() == [1.5, 1.0]


def test_every_metric_of_the_catalogue_is_measured():
    host_states = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    record = RunRecord(nb_hosts=4, jobs=THREE, host_states=host_states, time_in_state=np.zeros(6))
    hosts = tuple(Host(id=i, name=f"n{i}", pstates=(PowerState(1e9),)) for i in range(4))
    measured = measure_run(record, Platform(hosts=hosts), {})
    assert set(measured) == set(METRICS)
    assert (measured["wait"], measured["makespan"], measured["end"], measured["rejected"]) == (30.0, 150.0, 160.0, 1.0)
    assert math.isnan(measured["energy"])
    with pytest.raises(ConfigError, match="unknown metric 'waiting'"):
        find_metric("waiting")


@pytest.mark.parametrize("session", SCENARIOS)
def test_figures_are_batsims(session):
    folder = SESSIONS / session
    batsim = {name: float(value) for name, value in read_schedule(find_run(folder).schedule).items() if name[0] != "b"}
    record = read_run_record(folder)
    jobs = m.only_ran(record.jobs)
    share = len(jobs.id) / len(record.jobs.id)  # Batsim's means count rejected jobs
    figures = {
        "makespan": m.makespan(jobs),
        "mean_waiting_time": m.mean(m.waiting_times(jobs)) * share,
        "max_waiting_time": m.largest(m.waiting_times(jobs)),
        "mean_turnaround_time": m.mean(m.turnaround_times(jobs)) * share,
        "max_turnaround_time": m.largest(m.turnaround_times(jobs)),
        "mean_slowdown": m.mean(m.slowdowns(jobs)) * share,
        "max_slowdown": m.largest(m.slowdowns(jobs)),
        "nb_jobs_rejected": len(record.jobs.id) - len(jobs.id),
    }
    assert figures == pytest.approx({name: batsim[name] for name in figures}, abs=2e-6)
