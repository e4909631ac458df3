"""Predictors learn from ended jobs only, and their errors are measured as published."""

import math

import numpy as np
import pytest

from decision.model.workload import Delay, Job, Workload
from decision.policies.runtimes import PREDICTORS, LastTwo, Regression
from decision.policies.runtimes.predictors import History, history_of, measure_errors, predict_history

INF = math.inf


def history(*jobs: tuple[str, float, float, float, float]) -> History:
    """Jobs of (user, submission, end, run time, walltime) on one host."""
    users, submit, end, runtime, walltime = zip(*jobs, strict=True)
    columns = {"submit": submit, "end": end, "runtime": runtime, "walltime": walltime}
    return History(
        user=list(users), size=np.ones(len(jobs), np.int64), **{name: np.array(v, float) for name, v in columns.items()}
    )


def test_the_prediction_is_the_mean_of_the_last_two_of_the_user() -> None:
    predictor = LastTwo()
    for user, runtime in (("a", 1.0), ("a", 10.0), ("b", 99.0), ("a", 30.0)):
        predictor.observe(user, 1, INF, 0, runtime)
    assert predictor.predict("a", 1, 100, 0) == 20
    assert predictor.predict("a", 1, 15, 0) == 15  # it would be killed then
    assert predictor.predict("b", 1, 100, 0) == 100  # one job is too few
    assert predictor.predict("c", 1, INF, 0) == INF


def test_a_run_time_is_known_from_its_end_on_and_not_before() -> None:
    log = history(
        ("a", 0, 100, 10, 50),
        ("a", 0, 200, 20, 50),
        ("a", 199, 999, 1, 50),  # before the second end
        ("a", 200, 999, 1, 50),  # at it
    )
    assert predict_history(log, LastTwo()).tolist() == [50, 50, 50, 15]


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_prediction_does_not_depend_on_what_comes_later(name: str) -> None:
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 1e5, 300))
    runtime = np.ceil(rng.lognormal(6, 1, 300))
    jobs = [
        (f"u{i % 5}", at, at + 50 + run, run, 3600.0) for i, (at, run) in enumerate(zip(submit, runtime, strict=True))
    ]
    changed = [(u, at, end, run if end < 5e4 else run * 7, wall) for u, at, end, run, wall in jobs]
    before = int((submit < 5e4).sum())
    predictions = [predict_history(history(*log), PREDICTORS[name]()) for log in (jobs, changed)]
    assert predictions[0][:before].tolist() == predictions[1][:before].tolist()
    assert (predictions[0] <= 3600).all()


def test_the_regression_learns_that_users_use_a_part_of_their_walltime() -> None:
    rng = np.random.default_rng(1)
    walltime = np.exp(rng.uniform(5, 11, 2000))
    jobs = [("u", 1000.0 * i, 1000.0 * i + 1, wall / 10, wall) for i, wall in enumerate(walltime.tolist())]
    log = history(*jobs)
    late = predict_history(log, Regression())[1000:]
    assert np.abs(np.log(late / log.runtime[1000:])).max() < 0.1


def test_the_regression_learns_users_hours_and_sizes() -> None:
    """Three effects on a logarithmic scale, of which the last two jobs of the user know only the first."""
    rng = np.random.default_rng(2)
    predictor, errors, simple = Regression(), [], []
    last = LastTwo()
    for i in range(4000):
        user, size, hour = f"u{rng.integers(10)}", int(2 ** rng.integers(0, 6)), float(rng.integers(24))
        runtime = math.exp(5 + 0.2 * int(user[1:]) + 0.3 * math.log2(size) + math.sin(2 * math.pi * hour / 24))
        for made, out in ((predictor, errors), (last, simple)):
            guess = made.predict(user, size, 1e6, 3600 * hour)
            out.append(abs(math.log(guess / runtime)))
            made.observe(user, size, 1e6, 3600 * hour, runtime)
        assert i < 100 or guess < 1e6
    assert np.mean(errors[2000:]) < 0.1 < 0.3 < np.mean(simple[2000:])


def test_nothing_is_predicted_before_the_first_end_of_a_log_without_walltimes() -> None:
    log = history(("a", 0, 10, 5, INF), ("a", 5, 20, 5, INF), ("a", 30, 40, 5, INF))
    assert np.isinf(predict_history(log, Regression())).tolist() == [True, True, False]


def test_jobs_of_a_workload_run_from_their_submission_until_their_walltime() -> None:
    jobs = tuple(
        Job(id=f"w0!{wall}", submit_time=5, size=3, walltime=wall, profile="p", user="u") for wall in (100, 30)
    )
    log = history_of(Workload(name="w0", jobs=jobs, profiles={"p": Delay(60.0)}, nb_res=4))
    assert (log.user, log.size.tolist()) == (["u", "u"], [3, 3])
    assert log.end.tolist() == [65, 35]
    assert log.runtime.tolist() == [60, 30]


def test_errors_are_counted_by_hand() -> None:
    errors = measure_errors(np.array([10.0, 5.0, 20.0, INF]), np.array([10.0, 10.0, 10.0, 10.0]))
    assert (errors.jobs, errors.share) == (3, 0.75)
    assert errors.mean_absolute_error == pytest.approx(5)
    assert errors.median_absolute_error == 5
    assert (errors.under, errors.over) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert errors.accuracy == pytest.approx((1 + 0.5 + 0.5) / 3)


def test_without_a_prediction_there_are_no_errors() -> None:
    errors = measure_errors(np.array([INF]), np.array([10.0]))
    assert errors.jobs == 0
    assert math.isnan(errors.accuracy)
