"""How long jobs last and who comes later, as drawn from a history."""

import numpy as np
import pytest

from decision.forecasts.history import SEVEN_DAYS, Arrivals, Luck, RunTimes


def _times(*runtimes: float) -> RunTimes:
    times = RunTimes()
    for runtime in runtimes:
        times.learn(0, 4, 1000.0, runtime)
    return times


def test_a_run_time_is_one_of_those_of_jobs_alike() -> None:
    spread = _times(100.0, 200.0, 300.0).spread(0, 4, 1000.0)
    drawn = spread.draw(np.linspace(0.01, 0.99, 99))
    assert set(drawn.round().tolist()) == {100.0, 200.0, 300.0}
    assert (spread.basis, spread.jobs) == ("jobs alike of the user", 3)


def test_a_job_that_runs_lasts_longer_than_it_has() -> None:
    spread = _times(100.0, 200.0, 300.0).spread(0, 4, 1000.0, elapsed=150.0)
    assert set(spread.draw(np.linspace(0.01, 0.99, 99)).round().tolist()) == {200.0, 300.0}


def test_jobs_that_still_run_make_run_times_longer() -> None:
    alone, beside = _times(100.0, 200.0), _times(100.0, 200.0)
    beside.watch([(0, 4, 1000.0, 500.0)] * 3)
    shares = np.linspace(0.01, 0.99, 99)
    assert beside.spread(0, 4, 1000.0).draw(shares).mean() > 1.5 * alone.spread(0, 4, 1000.0).draw(shares).mean()


def test_nothing_lasts_longer_than_its_limit() -> None:
    times = _times(100.0, 990.0)
    times.watch([(0, 4, 1000.0, 999.0)])
    for elapsed in (0.0, 500.0, 995.0):
        drawn = times.spread(0, 4, 1000.0, elapsed).draw(np.linspace(0, 1, 101))
        assert drawn.max() <= 1000.0
        assert drawn.min() > elapsed or elapsed == 0


def test_without_history_a_job_lasts_for_its_limit() -> None:
    spread = RunTimes().spread(3, 1, 600.0)
    assert spread.draw(np.array([0.1, 0.9])).tolist() == [600.0, 600.0]
    assert spread.basis == "the limit alone"


def test_random_numbers_belong_to_jobs_and_are_spread_evenly() -> None:
    one, other = Luck(1, 100), Luck(1, 100)
    other.of("another job", 7)
    mine = one.of("w0!1", 5)
    assert mine.tolist() == other.of("w0!1", 5).tolist()
    assert mine.mean() == pytest.approx(0.5)
    # a part of the luck is common to jobs alike, and none to others
    assert np.corrcoef(mine, one.of("w0!2", 5))[0, 1] > 0.5
    assert abs(np.corrcoef(mine, one.of("w0!3", 6))[0, 1]) < 0.4


def test_arrivals_come_at_the_hour_and_weekday_of_earlier_weeks() -> None:
    mondays = np.array([week * SEVEN_DAYS + 9 * 3600.0 + minute for week in range(5) for minute in (0.0, 60.0)])
    at = 5 * SEVEN_DAYS  # a week after the last one, at midnight
    rows, times = Arrivals(mondays, at).draw(np.random.default_rng(0), 2 * 86_400.0, 100)
    assert times.tolist() == [at + 9 * 3600.0, at + 9 * 3600.0 + 60.0]
    assert (mondays[rows] % SEVEN_DAYS == times % SEVEN_DAYS).all()


def test_what_comes_after_the_moment_is_not_drawn() -> None:
    submit = np.arange(0.0, 4000.0, 10.0)
    rows, times = Arrivals(submit, 2000.0).draw(np.random.default_rng(0), 1000.0, 1000)
    assert submit[rows].max() <= 2000.0
    assert times.min() >= 2000.0
