"""What predictors learn from: jobs and the times at which their run times became known."""

import math
from pathlib import Path

import pytest

from decision.files import load_workload
from decision.policies.runtimes import PREDICTORS
from decision.policies.runtimes.predictors import (
    History,
    history_of,
    interval_coverage,
    measure_errors,
    predict_history,
)


def test_a_log_tells_run_times_after_waiting_and_running(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(
        "; MaxProcs: 8\n"
        "1 100 30 60 2 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1\n"
        "2 200 -1 60 2 500 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
    )
    history = load_history(path)
    assert history.user == ["7", ""]
    assert history.size.tolist() == [4, 2]
    assert history.walltime.tolist() == [90, math.inf]  # an unknown one is not made up from the run time
    assert history.end.tolist() == [190, 260]
    assert load_history(path, time_field=6).walltime.tolist() == [math.inf, 500]


def load_history(path: Path, time_field: int | None = None) -> History:
    return history_of(load_workload(path, time_field=time_field))


def test_predictors_do_as_well_on_recorded_logs_as_they_did(shared: Path) -> None:
    """Mean absolute errors in seconds: the regression beats the last two jobs, and both the users' walltimes."""
    found = {}
    for log, field in (("NASA-iPSC-1993-3.1-cln.swf", 9), ("theta_argonne.swf", 6)):
        history = load_history(shared / "data" / log, field)
        for name, make in PREDICTORS.items():
            errors = measure_errors(predict_history(history, make()), history.runtime)
            found[log[:5], name] = errors.mean_absolute_error
    assert math.isnan(found.pop(("NASA-", "walltime")))  # it has no walltimes
    assert found == {
        ("NASA-", "last2"): pytest.approx(898, rel=0.01),
        ("NASA-", "regression"): pytest.approx(619, rel=0.02),
        ("theta", "walltime"): pytest.approx(4040, rel=0.01),
        ("theta", "last2"): pytest.approx(3644, rel=0.01),
        ("theta", "regression"): pytest.approx(3094, rel=0.02),
        ("NASA-", "quantiles"): pytest.approx(596, rel=0.02),
        ("theta", "quantiles"): pytest.approx(2502, rel=0.02),
    }


@pytest.mark.parametrize(
    ("log", "field"),
    [
        pytest.param("theta_argonne.swf", 6, marks=pytest.mark.nightly),
        pytest.param("curie_25days.swf", 9, marks=pytest.mark.nightly),
        ("NASA-iPSC-1993-3.1-cln.swf", 9),
    ],
)
def test_intervals_of_80_percent_hold_so_many_jobs_of_recorded_logs(shared: Path, log: str, field: int) -> None:
    assert 0.78 <= interval_coverage(load_history(shared / "data" / log, field)) <= 0.82
