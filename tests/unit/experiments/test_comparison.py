"""From runs to verdicts, and to files."""

import csv

import numpy as np
import pytest

from decision.experiments.comparison import ALL, LEAST_RUNS, MeasuredRun, compare_runs
from decision.experiments.metric_list import METRICS
from decision.experiments.statistics import Estimate
from decision.model.errors import ConfigError, InputError
from decision.report.comparison import markdown, notes, read_comparison, write_comparison

SLOWDOWN, USE = METRICS["bounded_slowdown"], METRICS["utilization"]


def outcomes(metric, workload="log", **scores):
    return [
        MeasuredRun(workload=workload, contender=name, first_job=i, seed=0, metrics={metric.name: score})
        for name, values in scores.items()
        for i, score in enumerate(values)
    ]


def verdicts(runs, metric, baseline="easy"):
    return {(row.workload, row.contender): row.verdict for row in compare_runs(runs, [metric], baseline).rows}


def test_lower_slowdowns_and_higher_utilizations_are_better():
    scores = {"easy": [5, 6, 7, 8], "good": [1, 2, 3, 4], "bad": [9, 9, 9, 10], "same": [5, 6, 7, 8]}
    found = {"easy": "baseline", "good": "better", "bad": "worse", "same": "open"}
    assert verdicts(outcomes(SLOWDOWN, **scores), SLOWDOWN) == {("log", name): v for name, v in found.items()}
    found |= {"good": "worse", "bad": "better"}
    assert verdicts(outcomes(USE, **scores), USE) == {("log", name): v for name, v in found.items()}


def test_too_few_runs_prove_nothing():
    few = outcomes(SLOWDOWN, easy=[5, 6, 7][: LEAST_RUNS - 1], good=[1, 2, 3][: LEAST_RUNS - 1])
    assert verdicts(few, SLOWDOWN)["log", "good"] == "open"
    assert "with fewer than 4 runs nothing is marked" in notes(compare_runs(few, [SLOWDOWN], "easy"))


def test_over_workloads_scores_are_multiples_of_the_baselines():
    runs = outcomes(SLOWDOWN, "small", easy=[10] * 4, sjf=[5] * 4)
    runs += outcomes(SLOWDOWN, "large", easy=[1000] * 4, sjf=[250] * 4)
    rows = {(row.workload, row.contender): row for row in compare_runs(runs, [SLOWDOWN], "easy").rows}
    assert rows[ALL, "easy"].score == (1.0, 1.0, 1.0)
    assert rows[ALL, "sjf"].score.value == (0.5 + 0.25) / 2
    assert rows["large", "sjf"].score.value == 250
    assert rows[ALL, "sjf"].runs == 8


def test_there_is_no_multiple_of_nothing():
    runs = outcomes(SLOWDOWN, "a", easy=[0] * 4) + outcomes(SLOWDOWN, "b", easy=[1] * 4)
    assert [row.workload for row in compare_runs(runs, [SLOWDOWN], "easy").rows] == ["a", "b"]


def test_a_baseline_that_did_not_run_and_a_metric_without_value_are_refused():
    with pytest.raises(ConfigError, match=r"the baseline 'eas' is not compared \(compared are easy\)"):
        compare_runs(outcomes(SLOWDOWN, easy=[1.0]), [SLOWDOWN], "eas")
    reason = "metric energy has no value in some run of easy; simulate energy, or choose other metrics"
    with pytest.raises(ConfigError, match=reason) as caught:
        compare_runs(outcomes(SLOWDOWN, easy=[1.0]), [METRICS["energy"]], "easy")
    assert caught.value.field == "energy"


def test_the_files_hold_rows_runs_and_how_to_read_them(tmp_path):
    comparison = compare_runs(outcomes(SLOWDOWN, easy=[5, 6, 7, 8], sjf=[1, 2, 3, 2000]), [SLOWDOWN], "easy")
    write_comparison(tmp_path, comparison)
    with (tmp_path / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["estimate"], row["verdict"]) for row in rows] == [
        ("easy", "6.5", "baseline"),
        ("sjf", "2.5", "open"),
    ]
    with (tmp_path / "runs.csv").open() as file:
        assert [row["bounded_slowdown"] for row in csv.DictReader(file)][-1] == "2000"
    assert "| easy | 6.500 |" in (tmp_path / "comparison.md").read_text()
    assert "- bounded slowdown: mean over jobs; runtimes under 10 s count as 10 s" in markdown(comparison)
    assert read_comparison(tmp_path) == comparison


@pytest.mark.parametrize(
    ("metric", "scores", "least", "most"),
    [
        ("utilization", [0.99, 0.7, 0.98, 1.0, 0.6, 0.97], 0.0, 1.0),
        ("late_starts", [0, 0, 9, 1, 0, 3], 0.0, np.inf),
        ("bounded_slowdown", [1, 1, 1.01, 1, 9, 1.02], 1.0, np.inf),
    ],
)
def test_intervals_stay_within_what_a_metric_can_be(metric, scores, least, most):
    windows = (10, {"w": 60})
    runs = [
        MeasuredRun(workload="w", contender="easy", first_job=10 * i, seed=0, metrics={metric: float(score)})
        for i, score in enumerate(scores)
    ]
    (row,) = compare_runs(runs, [METRICS[metric]], "easy", windows=windows).rows
    assert least <= row.score.low < row.score.value < row.score.high <= most
    clipped = Estimate(0.5, -2.0, 3.0).within(least, most)
    assert (clipped.low, clipped.high) == (min(least, 0.5), min(most, 3.0))


def test_one_run_has_no_interval():
    comparison = compare_runs(outcomes(SLOWDOWN, easy=[5], sjf=[1]), [SLOWDOWN], "easy")
    text = markdown(comparison)
    assert "| sjf | 1.000 |" in text and "95 %" not in text and "no intervals, and nothing is marked" in text


def test_what_is_no_comparison_is_refused(tmp_path):
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(InputError, match=r"comparison\.json: not a comparison"):
        read_comparison(tmp_path)
