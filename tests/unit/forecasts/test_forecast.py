"""Futures in the embedded engine: known answers, and what they may not see."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.known_jobs import known_jobs
from msgspec.structs import replace

from decision.forecasts.forecast import forecast, quantile_of
from decision.forecasts.log import log_starts
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy


def _platform(hosts: int) -> Platform:
    one = (PowerState(speed=1e9),)
    return Platform(hosts=tuple(Host(id=i, name=f"h{i}", pstates=one) for i in range(hosts)))


NEVER = np.nan


def test_a_job_starts_when_the_one_that_runs_ends() -> None:
    # two jobs alike took 100 s and 300 s: the third, which has run for 50 s, ends in 50 s or in 250 s
    log = known_jobs(
        (0, 0, 100, 4, 1000), (0, 100, 300, 4, 1000), (400, 400, NEVER, 4, 1000), (410, NEVER, NEVER, 4, 1000)
    )
    said = forecast(_platform(4), find_policy("fcfs"), log, 450.0, futures=50)
    assert said.id == ["w0!3"]
    assert set((said.starts[:, 0] - 450.0).round().tolist()) == {50.0, 250.0}


def test_by_limits_the_start_is_that_of_the_limit() -> None:
    log = known_jobs((0, 0, 100, 4, 1000), (400, 400, NEVER, 4, 1000), (410, NEVER, NEVER, 4, 1000))
    said = forecast(_platform(4), find_policy("easy"), log, 450.0, by_limits=True)
    assert said.starts[0, 0] == pytest.approx(1400.0, abs=1.5)


def test_easy_lets_a_small_job_pass_and_fcfs_does_not() -> None:
    jobs = [(0, 0, 100, 3, 1000), (10, NEVER, NEVER, 4, 1000), (20, NEVER, NEVER, 1, 100)]
    for policy, passes in (("easy", True), ("fcfs", False)):
        said = forecast(_platform(4), find_policy(policy), known_jobs(*jobs), 30.0, futures=20)
        assert bool((said.starts[:, 1] < said.starts[:, 0]).all()) == passes


def test_ages_count() -> None:
    # the job that waited for longer is first under wfp3, though it came second in the queue's arrays
    log = known_jobs((0, 0, NEVER, 2, 10_000), (100, NEVER, NEVER, 2, 500), (9000, NEVER, NEVER, 2, 500))
    said = forecast(_platform(2), find_policy("wfp3"), log, 9500.0, futures=20)
    assert (said.starts[:, 0] < said.starts[:, 1]).all()


def test_what_happens_after_the_moment_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    submit = np.sort(rng.uniform(0, 20_000, 200))
    jobs = [(s, s + 10 * i, rng.uniform(10, 500), 1 + i % 4, 600.0) for i, s in enumerate(submit.tolist())]
    at, log = 9000.0, known_jobs(*jobs)
    later = np.where(log.start > at, log.start + 5000, log.start)
    other = replace(log, start=later, runtime=np.where(log.end > at, 7.0, log.runtime))
    # a job that runs is known by its start alone; its end, early or late, is beyond the moment
    other = replace(other, runtime=np.where((log.start <= at) & (log.end > at), at - log.start + 1, other.runtime))
    one, two = (forecast(_platform(8), find_policy("easy"), each, at, futures=10) for each in (log, other))
    assert len(one.id) > 3
    assert one.starts.tolist() == two.starts.tolist()


def test_quantiles_lie_between_futures_and_never_is_last() -> None:
    starts = np.array([[1.0], [2.0], [3.0], [np.inf], [np.inf]])
    found = [float(quantile_of(starts, share)[0]) for share in (0.0, 0.25, 0.375, 0.9)]
    assert found == [1.0, 2.0, 2.5, np.inf]


def _workload(count: int) -> Workload:
    rng = np.random.default_rng(3)
    submit = np.cumsum(rng.exponential(60.0, count))
    jobs = [
        Job(id=f"w0!{i}", submit_time=float(s), size=1 + i % 3, walltime=900.0, profile=f"p{i % 7}", user=f"u{i % 2}")
        for i, s in enumerate(submit)
    ]
    return Workload(name="w0", jobs=jobs, profiles={f"p{i}": Delay(100.0 + 60 * i) for i in range(7)}, nb_res=4)


def test_a_log_under_a_policy_answers_for_each_job_that_waits() -> None:
    found = log_starts(_platform(4), _workload(300), find_policy("easy"), 9000.0, futures=40, moments=10, before=9600.0)
    assert found.jobs
    for job in found.jobs:
        times = list(job.by.values())
        assert all(early <= late for early, late in pairwise(times))
        assert times[0] >= 9000.0
        assert job.chance is not None
        assert 0 <= job.chance <= 1
    assert found.calibrated_by > 0
    assert any("policy would have had it" in line for line in found.notes)


def test_recorded_starts_are_asked_of_a_log_that_has_none() -> None:
    with pytest.raises(ConfigError, match="does not say when its jobs started"):
        log_starts(_platform(4), _workload(20), find_policy("easy"), 500.0, as_recorded=True)
