"""Predictions say how sure they are, and are right about it; kernels and the predictor in Python are one."""

import numpy as np
import pytest

from decision.compiling.bundle import Bundle
from decision.policies.runtimes.kernels import (
    LEVELS,
    QuantileMemory,
    Quantiles,
    learn_quantiles,
    new_regression,
    quantile,
    room_for_habits,
    room_for_quantiles,
    say_quantiles,
)

INF = np.inf


def memory_for(jobs: int) -> Bundle:
    regression = new_regression(room_for_habits(jobs))
    spread = room_for_quantiles(len(regression.habit_key), jobs)
    return QuantileMemory(**regression.arrays(), **spread)


def test_kernels_say_what_the_predictor_in_python_says() -> None:
    rng, memory, twin = np.random.default_rng(5), memory_for(600), Quantiles()
    running: list[tuple[int, tuple[int, int, float]]] = []
    own, other = [], []
    for i in range(600):
        user, size = int(rng.integers(-1, 6)), int(2 ** rng.integers(0, 2))
        job = (user, size, float(rng.choice([600.0, 3600.0, INF])))
        say_quantiles(memory, i, *job)
        named = (str(user) if user >= 0 else "", *job[1:])
        twin.predict(*named, 500.0 * i)
        for elapsed, level in ((0.0, 0.5), (0.0, 0.93), (30.0, 0.2), (700.0, 0.8)):
            own.append(quantile(memory, *job, elapsed, level))
            other.append(twin.quantile(*named, elapsed, level))
        running.append((i, job))
        if rng.random() < 0.8:
            number, over = running.pop(int(rng.integers(len(running))))
            runtime = min(float(np.rint(rng.lognormal(4 + over[0] / 2, 1))), over[2])
            learn_quantiles(memory, number, *over, runtime)
            twin.observe(str(over[0]) if over[0] >= 0 else "", *over[1:], 500.0 * number, runtime)
    assert np.isfinite(own).mean() > 0.9
    assert own == pytest.approx(other)
    assert memory.levels == pytest.approx(twin.levels)


def learned(runtimes: list[float], user: str = "u", walltime: float = 1000.0) -> Quantiles:
    predictor = Quantiles()
    for runtime in runtimes:
        predictor.observe(user, 4, walltime, 0.0, runtime)
    return predictor


def test_a_job_that_has_run_takes_longer_than_that() -> None:
    """Ten jobs took 10 s and five took 500 s: half of all take 10 s, but none that has run for 11 s."""
    predictor = learned([10.0, 500.0, 10.0] * 5)
    assert predictor.quantile("u", 4, 1000.0, 0.0, 0.5) == 10
    assert predictor.quantile("u", 4, 1000.0, 11.0, 0.01) == 500
    assert predictor.quantile("u", 4, 1000.0, 501.0, 0.5) == 1000  # twice that, but no more than the walltime
    assert predictor.quantile("u", 4, 1000.0, 0.0, 0.95) == 500


def test_what_nobody_knows_is_the_walltime() -> None:
    assert Quantiles().quantile("u", 4, 1000.0, 0.0, 0.5) == 1000
    assert learned([10.0] * 5).quantile("u", 4, INF, 0.0, 0.5) == INF  # jobs without walltimes are apart


def test_other_jobs_take_the_same_share_of_their_walltimes() -> None:
    predictor = learned([100.0] * 10)
    assert predictor.quantile("u", 8, 5000.0, 0.0, 0.5) == 500  # another request of the user
    assert predictor.quantile("v", 8, 50.0, 0.0, 0.5) == 5  # another user


def test_jobs_that_all_take_the_same_keep_their_prediction() -> None:
    """They are all within an interval of one point, which is no reason to move its ends away."""
    predictor = Quantiles()
    for i in range(3000):
        predictor.predict("u", 4, 1000.0, float(i))
        predictor.observe("u", 4, 1000.0, float(i), 100.0)
    assert [predictor.quantile("u", 4, 1000.0, 0.0, level) for level in (0.1, 0.5, 0.9)] == [100, 100, 100]


@pytest.mark.parametrize("drift", [0.0, 2.0])
def test_intervals_of_80_percent_hold_80_percent_where_run_times_drift_and_where_not(drift: float) -> None:
    rng, memory, count = np.random.default_rng(1), memory_for(6000), 6000
    waiting: list[tuple[int, int, float]] = []
    held = []
    for i in range(count):
        user = int(rng.integers(5))
        say_quantiles(memory, i, user, 1, 86400.0)
        runtime = float(np.rint(np.exp(3 + user / 2 + drift * np.sin(i / 300) + 1.5 * rng.standard_normal()))) + 1
        waiting.append((i, user, runtime))
        if i >= 20:
            number, whose, took = waiting.pop(0)
            low, high = memory.said[number, 0], memory.said[number, -1]
            held.append(low <= took <= high)
            learn_quantiles(memory, number, whose, 1, 86400.0, took)
    assert (LEVELS[0], LEVELS[-1]) == (0.1, 0.9)
    assert 0.78 <= np.mean(held[200:]) <= 0.82
