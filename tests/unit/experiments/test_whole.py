"""Whole logs: which jobs count, what a run is without a block, and intervals from blocks and shaken copies."""

import math

import numpy as np
import pytest

from decision.experiments import metrics as m
from decision.experiments.comparison import MeasuredRun, Runs, change, estimate, judge_runs, rounded
from decision.experiments.metric_list import METRICS
from decision.experiments.statistics import Estimate
from decision.experiments.whole import WEEK, LogPart, counted_text, duration, judge_run, part_of, warm_up
from decision.model.dates import DAY
from decision.model.record import FinalState, JobTable
from decision.model.reshape import SHAKE, shaken
from decision.model.workload import Delay, Job, Workload


def table(submit, wait, runtime, size):
    jobs = len(submit)
    return JobTable(
        id=[str(k) for k in range(jobs)],
        profile=["p"] * jobs,
        submit_time=submit,
        size=size,
        walltime=runtime,
        final_state=np.full(jobs, FinalState.COMPLETED_SUCCESSFULLY),
        start_time=submit + wait,
        runtime=runtime,
        allocation=[""] * jobs,
        energy=np.full(jobs, -1.0),
        metadata=[""] * jobs,
    )


def random_table(jobs=400, days=10, seed=0):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, days * DAY, jobs))
    return table(submit, rng.exponential(3000, jobs), rng.uniform(60, 7200, jobs), rng.integers(1, 9, jobs))


def test_the_warm_up_of_equal_jobs_is_nearly_their_run_time():
    assert warm_up(np.ones(5), np.full(5, 100.0)) == pytest.approx(99.0)
    assert warm_up(np.array([1.0, 99.0]), np.array([1000.0, 1.0])) == pytest.approx(1000.0 - 0.01 * 1099.0)
    assert warm_up(np.ones(2), np.zeros(2)) == 0.0


def test_jobs_of_the_warm_up_and_the_cool_down_do_not_count_and_all_do_in_a_log_that_is_too_short():
    submit = np.arange(0.0, 11.0)
    part = part_of(submit, np.ones(11), np.full(11, 1.0))
    assert part.rows(submit).tolist() == list(range(1, 10)) and part.blocks == 1
    part = part_of(submit, np.ones(11), np.full(11, 4.0))
    assert part.rows(submit + 5.0).tolist() == list(range(11)) and "too little for a warm-up" in counted_text(part)
    submit = np.array([0.0, 1.0, 2.0, 998.0, 999.0, 1000.0])  # none comes after the warm-up and before the cool-down
    assert part_of(submit, np.ones(6), np.full(6, 10.0)).warm_up == 0.0


@pytest.mark.parametrize(("days", "block", "blocks"), [(4, math.inf, 1), (10, DAY, 10), (60, WEEK, 9)])
def test_blocks_are_weeks_or_days(days, block, blocks):
    part = part_of(np.array([0.0, days * DAY]), np.ones(2), np.ones(2))
    assert (part.block, part.blocks) == (block, blocks)


def test_a_metric_without_a_block_is_that_of_the_other_jobs():
    jobs = random_table()
    part = LogPart(first=0.0, last=10 * DAY, warm_up=DAY, wanted=DAY, block=DAY)
    found = judge_run(jobs, part, 8)
    rows = part.rows(jobs.submit_time)
    block = part.block_of(jobs.submit_time[rows])
    for at in range(part.blocks):
        others = jobs.take(rows[block != at])
        wait = m.waiting_times(others)
        wanted = {
            "wait": wait.mean(),
            "bounded_slowdown": m.bounded_slowdowns(others).mean(),
            "p95_wait": np.percentile(wait, 95),
            "p99_wait": np.percentile(wait, 99),
            "max_wait": m.waiting_times(jobs.take(np.setdiff1d(np.arange(400), rows[block == at]))).max(),
        }
        assert {name: found.without[name][at] for name in wanted} == pytest.approx(wanted)


def test_utilization_is_that_between_warm_up_and_cool_down():
    jobs = table(np.array([0.0, 4.0, 10.0]), np.zeros(3), np.array([6.0, 10.0, 1.0]), np.array([2, 1, 4]))
    part = LogPart(first=0.0, last=10.0, warm_up=2.0, wanted=2.0, block=3.0)
    found = judge_run(jobs, part, 4)  # from 2 to 8 s: two hosts until 6 s, one from 4 s on
    assert found.metrics["arrival_utilization"] == pytest.approx((2 * 4 + 4) / 24)
    assert found.without["arrival_utilization"] == pytest.approx([(2 + 3) / 12, (2 * 3 + 1) / 12])


def test_equal_starts_are_the_same_schedule_whatever_ended_first():
    jobs, part = random_table(), LogPart(first=0.0, last=10 * DAY, warm_up=0.0, wanted=0.0, block=DAY)
    turned = jobs.take(np.arange(400)[::-1])
    later = table(jobs.submit_time, jobs.start_time - jobs.submit_time + 1.0, jobs.runtime, jobs.size)
    assert (
        judge_run(jobs, part, 8).schedule == judge_run(turned, part, 8).schedule != judge_run(later, part, 8).schedule
    )


def test_shaken_copies_move_each_job_by_less_than_a_minute_and_differ():
    jobs = [Job(id=f"w0!{k}", submit_time=100.0 * k, size=1, profile="p") for k in range(50)]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=1.0)}, nb_res=1)
    assert shaken(workload, 0) is workload
    one, two = (shaken(workload, copy).jobs for copy in (1, 2))
    assert [job.submit_time for job in one] != [job.submit_time for job in two]
    times = [job.submit_time for job in one]
    assert times == sorted(times)
    assert all(0 <= job.submit_time - 100.0 * int(job.name) < SHAKE for job in one)
    assert [job.submit_time for job in shaken(workload, 1).jobs] == times


def test_jobs_that_come_each_second_move_by_a_second_and_those_that_come_at_once_not_at_all():
    for step in (1.0, 0.0):
        jobs = [Job(id=f"w0!{k}", submit_time=step * k, size=1, profile="p") for k in range(20)]
        moved = shaken(Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=1.0)}, nb_res=1), 1).jobs
        assert all(0 <= job.submit_time - step * int(job.name) <= step for job in moved)


def _runs(sums):
    """The mean of blocks' sums, (copies, blocks)."""
    blocks = sums.shape[1]
    return Runs(sums.mean(axis=1), (sums.sum(axis=1, keepdims=True) - sums) / (blocks - 1))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Weeks and copies with known variances: a policy that waits 0.8 times as long in truth."""
    rng, hits, of = np.random.default_rng(0), np.zeros(2), 300
    for _ in range(of):
        base = rng.gamma(4.0, 1.0, 40)
        own = 0.8 * base * rng.lognormal(-0.02, 0.2, 40)
        copies = np.exp(rng.normal(0, 0.03, (2, 10, 1)))
        pair = _runs(own * copies[0]), _runs(base * copies[1])
        found, score = change(*pair), estimate(pair[1])
        hits += found.low <= -0.2 <= found.high, score.low <= 4.0 <= score.high
    assert ((hits / of >= 0.91) & (hits / of <= 0.99)).all()


def test_an_interval_that_is_wider_than_numbers_go_has_no_end():
    """As p95 of waits that one week decides (seen on a log)."""
    values = np.array([0.01, 0.02])
    found = estimate(Runs(values, np.array([[0.015, 0.015, 50.0, 0.015]] * 2)))
    assert found.high == math.inf and found.low == pytest.approx(0.0)
    assert rounded(found)[1:] == ("0.00000", "inf")


def test_the_same_schedules_are_no_change_and_there_is_none_of_nothing():
    runs = _runs(np.arange(12.0).reshape(3, 4))
    assert change(runs, runs) == Estimate(0.0, 0.0, 0.0)
    none = _runs(np.zeros((3, 4)))
    assert change(runs, none) is None and change(none, runs) == Estimate(-1.0, -1.0, -1.0)


@pytest.mark.parametrize(
    ("found", "texts"),
    [
        (Estimate(12_345.6, 11_000.0, 13_700.0), ("12,300", "11,000", "13,700")),
        (Estimate(12_345.6, 7_000.0, 17_000.0), ("12,000", "7,000", "17,000")),
        (Estimate(1.23456, 1.23, 1.24), ("1.235", "1.230", "1.240")),
        (Estimate(20.0, 20.0, 20.0), ("20.00", "20.00", "20.00")),
        (Estimate(0.8248783, 0.8248781, 0.8248785), ("0.8249", "0.8249", "0.8249")),
        (Estimate(4.9e-7, 4.8e-7, 5e-7), ("0", "0", "0")),
    ],
)
def test_digits_that_are_noise_are_not_printed(found, texts):
    assert rounded(found) == texts


def _run(policy, copy, wait, schedule, late=0.0):
    return MeasuredRun(
        workload="log",
        contender=policy,
        first_job=0,
        seed=0,
        copy=copy,
        metrics={"wait": wait, "late_starts": late},
        schedule=schedule,
    )


def test_policies_are_better_or_worse_beyond_the_interval_and_equal_schedules_have_one_row():
    noise = (0.0, 1.0, -1.0, 0.5)
    runs = [
        _run(policy, copy, wait + noise[copy], f"{schedule}{copy}", late)
        for policy, wait, schedule, late in (
            ("easy", 100.0, "a", 0.0),
            ("good", 50.0, "b", 0.0),
            ("twin", 50.0, "b", 0.0),
            ("bad", 150.0, "c", 3.0),
            ("like", 100.4 - 0.8, "d", 0.0),
        )
        for copy in range(4)
    ]
    runs = [r if r.contender != "like" else _run("like", r.copy, 100.0 - noise[r.copy], r.schedule) for r in runs]
    metrics = [METRICS["wait"], METRICS["late_starts"]]
    found = judge_runs(runs, metrics, "easy", named=["easy"])
    verdicts = {(row.contender, row.metric): row.verdict for row in found.rows}
    assert {name: verdicts[name, "wait"] for name in ("easy", "good", "bad", "like")} == {
        "easy": "baseline",
        "good": "better",
        "bad": "worse",
        "like": "open",
    }
    assert verdicts["bad", "late_starts"] == "worse" and verdicts["good", "late_starts"] == "open"
    assert {row.contender for row in found.rows} == {"easy", "good", "bad", "like"}
    assert "twin makes the schedules of good, and is listed once" in found.reading
    both = judge_runs(runs, metrics, "easy", named=["easy", "twin"])
    assert {row.contender for row in both.rows} == {"easy", "twin", "bad", "like"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (90.0, "90 s"), (46_800.0, "13 h"), (5.25 * DAY, "5.2 days"), (1_234.0 * DAY, "1,234 days")],
)
def test_a_duration_has_no_power_of_ten(seconds, text):
    assert duration(seconds) == text
