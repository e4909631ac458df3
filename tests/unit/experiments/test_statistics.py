"""Statistics with answers worked out by hand, and the promises of stratified bootstrap intervals."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decision.experiments.statistics import (
    bootstrap_mean,
    interquartile_mean,
    probability_of_improvement,
    ratio_of_means,
)


def rng():
    return np.random.default_rng(0)


def column(*values):
    return np.array(values, float)[:, None]


def test_the_interquartile_mean_leaves_a_quarter_out_at_either_end():
    assert interquartile_mean(column(100, 3, 1, 0, 2, -50, 4, 5), rng()).value == (1 + 2 + 3 + 4) / 4
    assert interquartile_mean(column(9, 1, 2), rng()).value == 4  # a quarter of three is none
    assert interquartile_mean(column(9, 1, 2, 3, 4), rng()).value == 3  # one at either end


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_interquartile_mean_is_that_of_the_sorted_middle(values):
    middle = sorted(values)[len(values) // 4 : len(values) - len(values) // 4]
    assert interquartile_mean(column(*values), rng()).value == pytest.approx(math.fsum(middle) / len(middle), abs=1e-6)


def test_scores_of_all_tasks_are_trimmed_together():
    scores = np.array([[1.0, 100.0], [2.0, 200.0]])
    assert interquartile_mean(scores, rng()).value == (2 + 100) / 2


def test_the_probability_of_improvement_counts_pairs_and_halves_ties():
    found = probability_of_improvement(column(1, 2), column(2, 3), rng())
    assert found.value == (1 + 1 + 0.5 + 1) / 4
    assert probability_of_improvement(column(5, 5), column(5, 5, 5), rng()) == (0.5, 0.5, 0.5)
    assert probability_of_improvement(column(1, 2), column(3, 4), rng()) == (1.0, 1.0, 1.0)


def test_the_probability_of_improvement_is_averaged_over_tasks():
    better_at_one = probability_of_improvement(np.array([[1.0, 9.0]]), np.array([[2.0, 8.0]]), rng())
    assert better_at_one.value == 0.5


def test_the_bootstrap_draws_within_tasks():
    """Tasks of constant scores leave nothing to chance, however far apart they are."""
    scores = np.array([[0.0, 100.0]] * 10)
    assert bootstrap_mean(scores, rng()) == (50.0, 50.0, 50.0)
    assert interquartile_mean(scores, rng()) == (50.0, 50.0, 50.0)


def test_the_interval_of_a_mean_is_as_wide_as_theory_says():
    scores = np.random.default_rng(1).normal(10, 2, (400, 1))
    found = bootstrap_mean(scores, rng())
    half = 1.96 * scores.std() / math.sqrt(len(scores))
    assert found.value == pytest.approx(scores.mean())
    assert found.low == pytest.approx(found.value - half, abs=0.05 * half)
    assert found.high == pytest.approx(found.value + half, abs=0.05 * half)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    draw = np.random.default_rng(2)
    held = sum(low <= 0.5 <= high for _, low, high in (improvement(draw) for _ in range(60)))
    assert held >= 52  # of 60; of 57 on average


def improvement(draw):
    return probability_of_improvement(draw.normal(size=(20, 1)), draw.normal(size=(20, 1)), draw)


def test_the_same_seed_gives_the_same_interval():
    scores = np.random.default_rng(3).lognormal(size=(12, 2))
    assert interquartile_mean(scores, rng()) == interquartile_mean(scores, rng())


def test_the_probability_of_improvement_of_many_runs_takes_little_memory():
    scores, baseline = (np.random.default_rng(seed).integers(0, 50, (20_000, 1)).astype(float) for seed in (0, 1))
    tracemalloc.start()
    found = probability_of_improvement(scores, baseline, np.random.default_rng(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6  # pairs would take 3.2 GB
    few, fewer = scores[:300, 0], baseline[:200, 0]
    pairs = np.mean((few[:, None] < fewer) + 0.5 * (few[:, None] == fewer))
    assert probability_of_improvement(few[:, None], fewer[:, None], np.random.default_rng(2)).value == pairs
    assert 0.4 < found.low < found.value < found.high < 0.6


def test_a_ratio_of_means_has_the_interval_of_its_logarithm():
    draw = np.random.default_rng(5)
    own, other = draw.gamma(4.0, 2.0, 3000), draw.gamma(4.0, 1.0, 3000)
    found = ratio_of_means(own, other)
    half = 1.96 * math.sqrt(2 * 0.25 / 3000)  # both have a deviation of half their mean
    assert found.value == own.mean() / other.mean()
    assert math.log(found.high / found.value) == pytest.approx(half, rel=0.3)
    assert found.low * found.high == pytest.approx(found.value**2)


def test_neighbours_that_are_alike_widen_the_interval_of_a_ratio():
    draw = np.random.default_rng(6)
    own, other = draw.gamma(4.0, 2.0, 300), draw.gamma(4.0, 1.0, 300)
    alone, together = ratio_of_means(own, other), ratio_of_means(np.repeat(own, 20), np.repeat(other, 20))
    assert together.value == pytest.approx(alone.value)
    assert together.high - together.low > 0.8 * (alone.high - alone.low), "no more is known than before"
