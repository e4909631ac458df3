"""Metrics of one's own: functions of the frame of jobs and of the number of hosts."""

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import decision as d

CASE = ("cluster256", "lublin_256")
SOURCE = '''
def long_waits(jobs, hosts):
    """Share of the jobs that waited for an hour.

    And more."""
    return (jobs.waiting_time > 3600).mean()


long_waits.most = 1.0
'''


def my_wait(jobs, hosts):
    """Mean waiting time again."""
    return jobs.waiting_time.mean()


def used_per_host(jobs, hosts):
    """Seconds in use."""
    return (jobs.runtime * jobs["size"]).sum() / hosts


my_wait.unit = used_per_host.unit = "s"
used_per_host.better = "higher"


@pytest.mark.parametrize("how", [{"shake": 3}, {"windows": 6, "length": 60}, {"whole": True}])
def test_an_own_metric_is_what_the_packages_own_of_the_same_definition_is(how):
    """Estimates, intervals, changes and verdicts."""
    given = ["wait", my_wait, used_per_host]
    result = d.compare(*CASE, ["easy", "fcfs"], metrics=given, jobs=slice(0, 400), **how)
    table = result.table.set_index(["metric", "policy"]).drop(columns="verdict")
    np.testing.assert_allclose(
        table.loc["my_wait"].drop(columns="workload").to_numpy(float),
        table.loc["wait"].drop(columns="workload").to_numpy(float),
        rtol=1e-9,
    )
    verdicts = result.table.set_index(["metric", "policy"]).verdict
    assert (verdicts.loc["my_wait"] == verdicts.loc["wait"]).all()
    assert table.loc["used_per_host", "easy"].estimate > 0
    assert {"my_wait", "used_per_host"} <= set(result.runs.columns)


def test_an_own_metric_is_in_tables_figures_and_pages(tmp_path):
    """As any other, by its function's name, with its unit."""
    result = d.compare(*CASE, ["easy", "fcfs"], metrics=[my_wait], jobs=slice(0, 150), shake=2)
    assert result.plot("my_wait", path=tmp_path / "own.png")
    result.write(tmp_path)
    assert "my_wait" in (tmp_path / "comparison.csv").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "Mean waiting time again" in page
    assert "\\begin{tabular}" in result.to_latex()
    assert "my wait (s)" in result.to_latex("my_wait")


def test_the_command_takes_a_function_from_a_file(tmp_path, monkeypatch):
    """Finished runs are known again, until the file changes."""
    from decision.cli.app import app

    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SOURCE)
    line = "compare -p cluster256 -w lublin_256 --select :120 --shake 2 --policy easy --policy fcfs -o out -j 1"
    for text in (SOURCE, SOURCE.replace("3600", "0")):
        Path("mine.py").write_text(text)
        done = CliRunner().invoke(app, [*line.split(), "--metric", "./mine.py:long_waits"])
        assert done.exit_code == 0, done.output
        assert "long_waits" in Path("out/comparison.csv").read_text()


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("./absent.py:f", "metric ./absent.py:f: there is no file absent.py"),
        (lambda jobs, hosts: 1.0, "metrics: a lambda has no name"),
        (type("wait", (), {"__call__": lambda self, jobs, hosts: 1.0})(), "metric wait: there is one of this name"),
        (type("mine", (), {"better": "more", "__call__": None})(), "metric mine: better must be 'lower' or 'higher'"),
        (5, "metrics"),
    ],
)
def test_what_is_no_metric_is_refused_in_one_line(metric, message):
    """Before anything runs."""
    with pytest.raises(d.ConfigError) as error:
        d.compare("toy", "toy", ["easy", "fcfs"], metrics=[metric], whole=True)
    assert message in str(error.value)


def test_a_metric_that_fails_says_where():
    """In one line, with the user's own."""

    def failing(jobs, hosts):
        return jobs.nothing

    with pytest.raises(d.DecisionError, match=r"metric failing: it failed: AttributeError: .*test_own_metrics.py:\d+"):
        d.compare("toy", "toy", ["easy", "fcfs"], metrics=[failing], whole=True)
    with pytest.raises(d.ConfigError, match=r"processes: failing is an object of this process; take 1, or name the"):
        d.compare("toy", "toy", ["easy", "fcfs"], metrics=[failing], whole=True, processes=2)


def test_intervals_hold_a_series_mean_as_often_as_they_say():
    """Of an autoregressive series the interval of independent draws is too narrow, that of blocks is not."""
    rng, held = np.random.default_rng(1), {True: 0, False: 0}
    for _ in range(60):
        series = np.zeros(300)
        for at, noise in enumerate(rng.normal(size=300)):
            series[at] = 0.7 * series[at - 1] + noise
        for independent in held:
            found = d.intervals(series, independent=independent)
            assert found.value == pytest.approx(series.mean())
            held[independent] += found.low <= 0 <= found.high
    assert held[False] >= 51
    assert held[True] <= 45


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": [1, 2, 3]}, "values: must be a list of four finite numbers"),
        ({"values": [1, 2, 3, math.nan]}, "values: must be a list of four finite numbers"),
        ({"values": [1, 2, 3, 4], "statistic": "mode"}, "statistic: must be mean or interquartile mean"),
        ({"values": [1, 2, 3, 4], "first": [1]}, "first: must be as many as values, 4"),
    ],
)
def test_intervals_refuse_what_has_none(given, message):
    """In one line."""
    with pytest.raises(d.ConfigError) as error:
        d.intervals(**given)
    assert message in str(error.value)
