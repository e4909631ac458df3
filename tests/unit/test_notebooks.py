"""What a cell of a notebook shows that ends in an object of ours, own axes, and frames that go round."""

import json
import math
from collections.abc import Mapping

import numpy as np
import pytest
from click.testing import CliRunner

import decision as d
from decision.cli.app import app
from decision.experiments.metric_list import METRICS, RENAMED, find_metric
from decision.model.errors import ConfigError

_BOUND = 4000  # characters of a small table


class Named:
    """EASY's first-fit cousin, with a name of its own."""

    name = "first"

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)


@pytest.fixture(scope="module")
def result():
    return d.simulate("toy", "toy", "easy")


@pytest.fixture(scope="module")
def comparison():
    return d.compare("toy", "toy", {"mine": Named(), "EASY": "easy"}, metrics=["mean_waiting_time"], whole=True)


def test_representations_are_short_and_tables_are_small(result, comparison):
    for each in (d.load_workload("lublin_10000"), d.load_platform("taurus"), result, comparison, result.summary()):
        assert len(repr(each)) < 200 and "\n" not in repr(each)
        shown = each._repr_html_()
        assert shown.startswith("<table>") and len(shown) < _BOUND
    assert repr(d.load_workload("toy")) == "<Workload: w0 of toy.json, 5 jobs for 4 hosts>"


def test_a_summary_is_a_mapping_by_the_names_of_metrics(result):
    summary = result.summary()
    assert isinstance(summary, Mapping)
    assert dict(summary)["wait"] == summary.wait == summary["mean_waiting_time"] == summary.mean_waiting_time
    named = {"jobs", "window_gap"}  # a count and a gap that policies of windows know
    assert set(summary) - named <= METRICS.keys()
    assert summary.get("nothing") is None and "nothing" not in summary
    with pytest.raises(AttributeError, match="did you mean"):
        _ = summary.makspan


def test_metrics_have_one_name_and_are_known_by_the_one_of_batsims_files():
    assert {find_metric(old).name for old in RENAMED} == set(RENAMED.values())


def test_what_was_not_simulated_is_not_a_number(result):
    assert np.isnan(np.asarray(result.jobs.energy, float)).all() and math.isnan(result.summary().energy)


def test_a_workload_goes_round_as_a_frame(result):
    pytest.importorskip("pandas")
    frame = d.load_workload("toy").to_frame()
    assert len(frame) == 5 and {"id", "submit_time", "size", "runtime", "walltime", "user"} <= set(frame)
    again = d.simulate("toy", frame, "easy").jobs
    assert again.finish_time.tolist() == result.jobs.finish_time.tolist()


def test_pictures_are_drawn_into_axes_of_ones_own(result, comparison, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2)
    assert result.plot(ax=above) is figure is comparison.plot("wait", ax=below)
    assert above.collections and [text.get_text() for text in below.get_yticklabels()] == ["mine", "EASY"]
    plt.close(figure)
    comparison.plot(path=tmp_path / "wait.png")
    assert (tmp_path / "wait.png").stat().st_size > 1000
    with pytest.raises(ConfigError, match="makespan is not compared"):
        comparison.plot("makespan")
    with pytest.raises(ConfigError, match="ax: must be one of matplotlib's axes"):
        result.plot(ax=3)


class Unnamed(Named):
    """Without one."""

    name = ""


def test_policies_are_called_as_they_say_and_told_apart(tmp_path):
    own = d.compare("toy", "toy", [Named(), "easy", Named(), Unnamed()], metrics=["makespan"], whole=True)
    assert list(own.table.policy) == ["first", "easy", "first 2", "Unnamed"]
    file = tmp_path / "mine.py"
    file.write_text(f"from {__name__} import Named, Unnamed\n")
    specs = [f"{file}:Named", f"{file}:Unnamed", "easy"]
    named = d.compare("toy", "toy", specs, metrics=["makespan"], whole=True, baseline=specs[0])
    assert list(named.table.policy) == ["first", f"{file}:Unnamed", "easy"]
    assert d.evaluate("toy", "toy", {"one": Named(), "two": "easy"}, whole=True).policy.tolist() == ["one", "two"]
    assert d.simulate("toy", "toy", Named()).title == "first on toy"


def test_the_command_line_calls_a_class_as_it_says(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"from {__name__} import Named\n")
    spec, given = f"{file}:Named", ["-p", "toy", "-w", "toy"]
    words = ["compare", *given, "--policy", "easy", "--policy", spec, "--whole", "--baseline", spec]
    done = CliRunner().invoke(app, [*words, "-j", "1", "--json", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert {row["contender"] for row in json.loads(done.stdout)["rows"]} == {"easy", "first"}
    assert json.loads(done.stdout)["setup"]["policies"] == f"easy; first ({spec})"
    for words in (["run", *given, "--policy", spec, "-o", str(tmp_path)], ["evaluate", spec, *given, "--whole"]):
        (run,) = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["runs"]
        assert run["policy"] == "first"
