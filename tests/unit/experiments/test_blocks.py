"""Windows that share jobs: how many are drawn together, and how often intervals hold the truth."""

import numpy as np
import pytest

from decision.experiments.comparison import MeasuredRun, compare_runs
from decision.experiments.metric_list import METRICS
from decision.experiments.statistics import (
    Blocks,
    Windows,
    block_length,
    bootstrap_mean,
    draw_blocks,
    find_blocks,
    interquartile_mean,
    probability_of_improvement,
    student,
    wilson,
)
from decision.report.comparison import too_few_blocks

LENGTH, JOBS, NUMBER = 100, 2000, 40


def rng(seed=0):
    return np.random.default_rng(seed)


def windows_over(jobs, seed, number=NUMBER):
    """Means of random windows of a log whose jobs have these values: (number, 1), and where they lie."""
    first = rng(seed).integers(0, len(jobs) - LENGTH + 1, number)
    scores = np.array([jobs[begin : begin + LENGTH].mean() for begin in first])[:, None]
    return scores, [Windows(first, LENGTH, len(jobs))]


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.706), (2, 4.303), (9, 2.262), (4.5, 2.659), (1e4, 1.960)])
def test_students_distribution_is_that_of_the_tables(degrees, expected):
    assert student(degrees, 0.95) == pytest.approx(expected, abs=1e-3)


def test_wilsons_interval_is_that_of_the_tables():
    assert wilson(0.4, np.sqrt(0.4 * 0.6 / 10), 10, 1.96) == pytest.approx((0.1682, 0.6873), abs=1e-4)
    assert wilson(1.0, 0.0, 10, 1.96) == pytest.approx((0.7225, 1.0), abs=1e-4), "ten of ten are no certainty"


def test_blocks_of_independent_scores_are_short_and_of_dependent_ones_long():
    noise = rng().normal(size=1000)
    slow = np.convolve(noise, 0.9 ** np.arange(60))[:1000]
    assert block_length(noise) <= 4
    assert 20 <= block_length(slow) <= 60
    assert block_length(np.full(1000, 3.0)) == 1


def test_a_block_is_at_least_as_long_as_windows_overlap():
    _, (windows,) = windows_over(np.ones(JOBS), 1)
    assert windows.overlap == 3  # 40 windows at 1,901 places, each over 100 of them
    assert find_blocks(rng().normal(size=NUMBER), windows).length >= 6
    apart = Windows(np.arange(0, 2000, 200), 100, 2000)
    assert find_blocks(np.array([1.0, -1.0] * 5), apart).seen == 1.0, "no windows share jobs"


def test_a_drawn_block_has_neighbours_in_the_order_of_their_jobs():
    order = np.array([4, 1, 2, 0, 3, 5])
    drawn = draw_blocks(500, Blocks(order, length=3, number=2, seen=1.0), rng())[:, order]
    block = np.array([1, 1, 1, 0, 0, 0])
    possible = {tuple(np.roll(block, one) + np.roll(block, other)) for one in range(6) for other in range(6)}
    assert set(map(tuple, drawn.astype(int))) == possible


def test_more_windows_of_a_log_do_not_shrink_an_interval_without_limit():
    jobs = rng(2).lognormal(size=JOBS)
    widths = []
    for number in (40, 400, 4000):
        scores, windows = windows_over(jobs, 3, number)
        low, high = bootstrap_mean(scores, rng(), windows)[1:]
        widths.append(high - low)
    theory = 2 * 1.96 * jobs.std() / np.sqrt(JOBS)
    assert min(widths) > 0.8 * theory
    assert max(widths) < 1.8 * theory, "the price of not knowing that windows far apart share nothing"
    assert (bootstrap_mean(scores, rng()).high - scores.mean()) < 0.3 * theory, "as if they shared no jobs"


def test_intervals_of_overlapping_windows_hold_the_truth_as_often_as_they_say(monkeypatch):
    """Of 200 logs of 20 window lengths, as `decision reproduce coverage` does it with schedules."""
    monkeypatch.setattr("decision.experiments.statistics._SAMPLES", 400)
    held = {"mean": 0, "middle": 0, "better": 0}
    grids = [rng(10**6 + k).lognormal(size=(2000, LENGTH, 2)).mean(axis=1) for k in range(2)]
    middle = np.mean([np.sort(grid[:, 0])[500:1500].mean() for grid in grids])
    for log in range(200):
        jobs = rng(log).lognormal(size=(JOBS, 2))
        (own, windows), (other, _) = (windows_over(column, log) for column in jobs.T)
        estimates = {
            "mean": (bootstrap_mean(own, rng(), windows), np.exp(0.5)),
            "middle": (interquartile_mean(own, rng(), windows), middle),
            "better": (probability_of_improvement(own, other, rng(), windows), 0.5),
        }
        for name, (found, truth) in estimates.items():
            held[name] += found.low <= truth <= found.high
    assert all(0.91 * 200 <= number <= 0.99 * 200 for number in held.values()), held


def compared(first, length, jobs):
    noise = rng(4).normal(size=len(first))
    runs = [
        MeasuredRun(workload="log", contender=name, first_job=int(at), seed=0, metrics={"wait": wait + more})
        for name, wait in (("easy", 20.0), ("sjf", 10.0))
        for at, more in zip(first, noise, strict=True)
    ]
    return compare_runs(runs, [METRICS["wait"]], "easy", windows=(length, {"log": jobs}))


def test_too_few_blocks_are_a_warning_that_says_how_many_there_are():
    few = compared(range(0, 700, 10), 300, 1000)
    assert too_few_blocks(few).startswith("the windows of log are worth 2.3 independent ones, too few")
    assert all(row.verdict != "better" for row in few.rows), "as with too few runs"
    assert too_few_blocks(compared(range(0, 10_000, 500), 300, 10_000)) == ""
