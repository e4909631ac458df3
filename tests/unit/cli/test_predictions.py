"""Predicted run times as a user meets them: written into workloads, read by runs, and what they are worth."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.outlook_reference import HOSTS, made
from helpers.policy_toys import platform

from decision.cli import app as application
from decision.files import write_platform, write_workload


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_platform(tmp_path / "p.xml", platform(HOSTS))
    write_workload(tmp_path / "w.json", made(1, 60))
    return tmp_path


def decision(*arguments: str):
    return CliRunner().invoke(application.app, [*arguments], env={"COLUMNS": "200"})


def estimates(path: Path) -> list[float]:
    return [job["estimate"] for job in json.loads(path.read_text())["jobs"]]


def test_predictions_are_written_as_the_jobs_estimates(here: Path) -> None:
    runtimes = [min(job.walltime, made(1, 60).profiles[job.profile].duration) for job in made(1, 60).jobs]
    assert decision("workload", "predict", "w.json", "--predictor", "actual", "-o", "a.json").exit_code == 0
    assert estimates(here / "a.json") == pytest.approx(runtimes)
    for name in ("n1.json", "n2.json"):
        assert decision("workload", "predict", "w.json", "--predictor", "noise:0.5", "-o", name).exit_code == 0
    assert estimates(here / "n1.json") == estimates(here / "n2.json") != estimates(here / "a.json")


def test_estimates_of_a_log_are_those_of_its_jobs(here: Path) -> None:
    """The third line was submitted first."""
    rows = ((1, 50, 20), (2, 70, 30), (3, 10, 40))
    lines = [f"{i} {submit} 0 {run} 1 -1 -1 1 900 -1 1 7 {'-1 ' * 6}" for i, submit, run in rows]
    (here / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    assert decision("workload", "predict", "log.swf", "--predictor", "actual", "-o", "a.json").exit_code == 0
    assert estimates(here / "a.json") == [40, 20, 30]
    assert decision("workload", "predict", "log.swf", "--predictor", "last2", "-o", "l.json").exit_code == 0
    assert estimates(here / "l.json") == [900, 900, 30]  # of 40 s and of 20 s, which ended at 70


def test_a_run_by_predictions_leaves_them_in_a_file(here: Path) -> None:
    result = decision("run", "-p", "p.xml", "-w", "w.json", "--policy", "easy++", "-o", "out")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((here / "out/predictions.csv").open()))
    assert len(rows) == 60
    assert all(float(row["predicted_runtime"]) <= float(row["walltime"]) for row in rows)
    assert any(int(row["corrections"]) > 0 for row in rows)
    assert any(row["promised_start"] for row in rows)
    assert decision("run", "-p", "p.xml", "-w", "w.json", "--policy", "easy", "-o", "out").exit_code == 0
    assert not (here / "out/predictions.csv").exists()  # it was of the older run


def test_worth_is_the_share_of_the_way_to_perfect_predictions(here: Path) -> None:
    options = ("--policy", "easy++", "--worth", "--metric", "wait", "-j", "1", "-o", "out")
    result = decision("compare", "-p", "p.xml", "-w", "w.json", *options)
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((here / "out/worth.csv").open())
    plain, own, perfect = (float(row[name]) for name in ("walltimes", "predictions", "perfect"))
    assert (row["policy"], row["metric"]) == ("easy++", "wait")
    assert float(row["recovered"]) == pytest.approx((plain - own) / (plain - perfect))
    assert "easy,backfill_order=sjf (perfect)" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--policy", "easy,estimate=last3"), "there is no estimate 'last3'; did you mean last2?"),
        (("run", "--policy", "easy,correction=doubling"), "correction does nothing without estimate"),
        (("run", "--policy", "fcfs,backfill_order=sjf"), "backfill_order does nothing without EASY"),
    ],
)
def test_a_mistake_is_one_line(here: Path, arguments: tuple[str, ...], message: str) -> None:
    result = decision(*arguments, "-p", "p.xml", "-w", "w.json", "-o", "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_jobs_without_estimates_are_named_with_the_command_that_adds_them(here: Path) -> None:
    workload = json.loads((here / "w.json").read_text())
    for value, problem in ((None, "has no 'estimate'"), (-5, "has the 'estimate' -5, not above 0")):
        workload["jobs"][3]["estimate"] = value
        (here / "bad.json").write_text(json.dumps(workload))
        result = decision("run", "-p", "p.xml", "-w", "bad.json", "--policy", "easy,estimate=given", "-o", "out")
        assert result.exit_code == 2
        assert f"job w0!3 {problem}" in result.stderr
        assert "decision workload predict FILE --predictor P -o OUT" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--predictor", "last3"), "there is no predictor 'last3'; did you mean last2?"),
        (("--predictor", "noise:x"), "the predictor 'noise:x': S must be a number"),
        (("--predictor", "actual", "-o", "w.json"), "is the source itself"),
        (("-o", "x.json"), "name it with --predictor"),
    ],
)
def test_predictions_that_make_no_sense_leave_no_file(here: Path, arguments: tuple[str, ...], message: str) -> None:
    before = (here / "w.json").read_bytes()
    result = decision("workload", "predict", "w.json", *arguments)
    assert (result.exit_code, message in result.stderr) == (2, True)
    assert not (here / "x.json").exists()
    assert (here / "w.json").read_bytes() == before
