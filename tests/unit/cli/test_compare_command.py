"""``decision compare`` and ``decision reproduce`` as a user meets them."""

import json
import re
from contextlib import closing

import pytest
from click.testing import CliRunner

from decision.cli import app as application
from decision.experiments.metric_list import METRICS
from decision.experiments.store import ResultStore


@pytest.fixture
def compare(root):
    def run(*arguments):
        files = ["-p", str(root / "platforms/toy.xml"), "-w", str(root / "workloads/toy.json")]
        return CliRunner().invoke(application.app, ["compare", *files, *arguments], env={"COLUMNS": "100"})

    return run


def test_policies_are_compared_and_files_written(compare, tmp_path):
    pytest.importorskip("matplotlib")
    options = ("--policy", "easy", "--policy", "fcfs", "--windows", "4", "--length", "4", "-j", "1")
    result = compare(*options, "-o", str(tmp_path / "x"))
    assert result.exit_code == 0, result.output
    assert "bounded_slowdown on toy, lower is better" in result.stdout
    assert "utilization on toy, higher is better" in result.stdout
    assert re.search(r"^ easy +\d.* baseline", result.stdout, re.MULTILINE)
    assert re.search(r"^ fcfs +\d.* to \d", result.stdout, re.MULTILINE)
    assert "runtimes under 10 s count as 10 s" in result.stdout
    files = {file.name for file in (tmp_path / "x").iterdir()}
    assert files == {"comparison.csv", "comparison.md", "comparison.json", "runs.csv", "report.html", "runs"}
    page = (tmp_path / "x/report.html").read_text()
    assert re.search(r"<td>toy\.json \(5 jobs, sha256 [0-9a-f]{64}\)</td></tr>", page)
    assert "<td>command</td><td>decision compare -p" in page
    assert "4 random sequences of 4 jobs of each workload, drawn with seed 0, the same for all policies" in page


def test_the_pages_pictures_are_files_where_they_are_asked_for(compare, tmp_path):
    pytest.importorskip("matplotlib")
    size = ("--width", "5", "--type-size", "10")
    result = compare("--policy", "easy", "--metric", "wait", "-o", str(tmp_path), "--plot", "--format", "svg", *size)
    assert result.exit_code == 0, result.output
    assert 'width="360pt"' in (tmp_path / "wait-toy.svg").read_text()


def test_without_matplotlib_there_are_tables_and_a_note(compare, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = compare("--policy", "easy", "-j", "1", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "no report.html: pictures need matplotlib" in " ".join(result.stderr.split())
    assert (tmp_path / "comparison.md").is_file() and not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "easy", "--metric", "waiting"), "unknown metric 'waiting'"),
        (
            ("--policy", "easy", "--baseline", "fcfs"),
            "the baseline 'fcfs' is not compared (compared are easy) (--baseline)",
        ),
        (("--policy", "eesy"), "there is no policy 'eesy'; did you mean easy?"),
        (("--policy", "easy", "--metric", "energy"), "simulate energy, or choose other metrics (--energy)"),
        (("--policy", "easy", "--windows", "1"), "too few for windows of 1024"),
    ],
)
def test_a_mistake_is_one_line(compare, tmp_path, options, message):
    result = compare(*options, "-o", str(tmp_path))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_the_help_names_every_metric():
    text = CliRunner().invoke(application.app, ["-v", "compare", "--help"], env={"COLUMNS": "100"}).stdout
    listed = " ".join(re.search(r"Metrics: (.*?)\.\s", text, re.DOTALL)[1].split()).replace("with --energy also", ",")
    assert {name.strip() for name in re.split("[,;]", listed) if name.strip()} == set(METRICS)


def test_the_reproductions_are_listed():
    result = CliRunner().invoke(application.app, ["reproduce", "--help"], env={"COLUMNS": "100"})
    assert all(name in result.stdout for name in ("rlscheduler-table", "grid5000-2016", "dbf", "recorded"))
    assert not any(name in result.stdout for name in ("coverage", "left-out"))  # of maintainers
    assert "ranking" not in result.stdout  # how shipped models were made: for who makes them again
    assert CliRunner().invoke(application.app, ["reproduce", "ranking", "--help"]).exit_code == 0


@pytest.mark.parametrize("name", ["reproduce", "experiment"])  # the second is the old name
def test_a_reproduction_without_its_data_says_what_it_needs(name, tmp_path):
    arguments = [name, "rlscheduler-table", "--data", str(tmp_path), "-o", str(tmp_path)]
    result = CliRunner().invoke(application.app, arguments)
    assert result.exit_code == 2
    assert "lublin_256.swf: cannot be read" in " ".join(result.stderr.split())


def test_a_whole_workload_has_one_row_for_each_policy(compare, tmp_path):
    result = compare("--policy", "easy", "--policy", "fcfs", "--whole", "-j", "1", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "toy: one run" in result.stdout
    for name in ("p95_wait", "p99_wait", "max_wait", "late_starts", "arrival_utilization", "bounded_slowdown"):
        assert name in result.stdout
    assert len(re.findall(r"^ easy +\d", result.stdout, re.MULTILINE)) == 2, "four metrics in a table"
    page = (tmp_path / "report.html").read_text()
    assert "<svg" not in page and "no intervals" in page, "one run says nothing of chance"
    refused = compare("--policy", "easy", "--whole", "--windows", "3", "-o", str(tmp_path))
    assert refused.exit_code == 2
    assert "--whole runs each workload once" in " ".join(refused.stderr.split())


def test_whole_workloads_are_judged_on_shaken_copies_and_finished_runs_are_kept(compare, tmp_path):
    policies = ("--policy", "easy", "--policy", "fcfs", "--policy", "fcfs+none")
    result = compare(*policies, "--shake", "3", "-j", "1", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "whole logs, 3 shaken copies of each under each policy" in said
    assert "too little for a warm-up" in said and "from shaken copies alone" in said
    assert re.search(r"^ fcfs +[\d.]+ +[\d.]+ to [\d.]+ +\+\d+ % +[+-]\d+ to \+\d+ %", result.stdout, re.MULTILINE)
    with closing(ResultStore(tmp_path / "runs")) as store:
        kept = len(store)
    assert kept == 9
    compare(*policies, "--policy", "sjf", "--shake", "3", "-j", "1", "-o", str(tmp_path))
    with closing(ResultStore(tmp_path / "runs")) as store:
        assert len(store) == kept + 3
    refused = compare("--policy", "easy", "--whole", "--shake", "3", "-o", str(tmp_path))
    assert "it is for whole workloads, without --whole and --feedback" in " ".join(refused.stderr.split())


def test_windows_say_that_starvation_cannot_show_and_where_the_whole_disagrees(compare, tmp_path):
    policies = ("--policy", "easy", "--policy", "fcfs", "--metric", "wait", "-j", "1", "-o", str(tmp_path))
    windows = (*policies, "--windows", "4", "--length", "4")
    first = compare(*windows)
    assert "starvation cannot show in them; the same command without --windows" in " ".join(first.stderr.split())
    compare(*policies)
    again = " ".join(compare(*windows).stderr.split())
    assert "the whole workloads say the same" in again or "they and the whole workloads disagree on" in again


def test_windows_that_share_most_jobs_are_a_warning_of_one_line(compare, tmp_path):
    windows = ("--windows", "9", "--length", "4", "--metric", "wait")
    result = compare("--policy", "easy", *windows, "-j", "1", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "warning: the windows of toy are worth 0.5 independent ones, too few for intervals" in " ".join(
        result.stderr.split()
    )


def test_the_options_of_a_comparison_may_stand_in_a_file(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('platform = "toy"\nworkload = "toy"\npolicy = ["easy", "saf+easy"]\nmetric = "wait"\nseeds = 2\n')
    command = ["compare", "--config", str(study), "-o", str(tmp_path / "out"), "--processes", "1", "--json"]
    found = CliRunner().invoke(application.app, [*command, "--seeds", "1"])
    assert found.exit_code == 0, found.stderr
    assert [(row["contender"], row["metric"], row["runs"]) for row in json.loads(found.stdout)["rows"]] == [
        ("easy", "wait", 10),
        ("saf+easy", "wait", 10),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('polcy = ["easy"]', "study.toml: compare has no option --polcy; did you mean policy?"),
        ("draw = [1]", "study.toml, draw: one value is needed; found a list"),
        ('config = "x"', "study.toml: config is only for the command line; leave it out"),
        ('energy = "yes"', "study.toml, energy: true or false is needed; found 'yes'"),
        ("energy = 1", "study.toml, energy: true or false is needed; found 1"),
        ('windows = "3"', "study.toml, windows: a whole number is needed; found '3'"),
        ("windows = 2.5", "study.toml, windows: a whole number is needed; found 2.5"),
        ("seeds = true", "study.toml, seeds: a whole number is needed; found true"),
        ("width = 'x'", "study.toml, width: a number is needed; found 'x'"),
        ("policy = ['easy', 5]", "study.toml, policy: a text in quotes is needed; found 5"),
        ("platform = {a = 1}", "study.toml, platform: a text in quotes is needed; found {'a': 1}"),
        ("windows = ", "study.toml: not TOML (Invalid value (at end of document)); write lines like windows = 50"),
        ('platform = "toy"\nworkload = "toy"\npolicy = "easy"\nlength = 3', "it needs --windows; leave the option out"),
    ],
)
def test_a_file_of_options_that_cannot_be_used_is_refused(tmp_path, text, line):
    study = tmp_path / "study.toml"
    study.write_text(text)
    found = CliRunner().invoke(application.app, ["compare", "--config", str(study), "-o", str(tmp_path / "out")])
    assert found.exit_code == 2
    assert line in found.stderr and len(found.stderr.splitlines()) == 1


def test_more_windows_than_a_workload_has_are_refused_before_they_are_drawn(compare, tmp_path):
    found = compare("--policy", "easy", "--windows", "1000000", "--length", "2", "-o", str(tmp_path))
    assert found.exit_code == 2
    assert "there are 4 different sequences of 2 jobs; choose at most 1,000 windows (--windows)" in found.stderr
