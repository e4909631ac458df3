"""``--json``: one document on stdout in place of tables, with the numbers that the tables round."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.experiments.metric_list import RENAMED

TOY = ("-p", "platforms/toy.xml", "-w", "workloads/toy.json")
SUMMARY = {
    *("policy", "jobs", "rejected", "makespan", "wait", "max_wait"),
    *("p95_wait", "p99_wait", "late_starts", "arrival_utilization"),
    *("bounded_slowdown", "utilization", "energy", "energy_waste", "waste_bound", "carbon", "cost", "window_gap"),
    "lost_work",
    *("value", "value_share", "violations", "grid"),
    *RENAMED,  # for one more release
}


@pytest.fixture(autouse=True)
def _in_checkout(root, monkeypatch):
    monkeypatch.chdir(root)


def document(*arguments, code: int = 0):
    """What a command prints with ``--json``: all of stdout is one document."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], env={"COLUMNS": "60"})
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_run_and_what_is_shown_of_it_later(tmp_path):
    (run,) = document("run", *TOY, "--policy", "easy", "-o", tmp_path)["runs"]
    assert set(run) == SUMMARY
    assert (run["policy"], run["jobs"], run["makespan"], run["energy"]) == ("easy", 5, 8.0, None)
    assert math.isclose(run["utilization"], 1.0)  # 32 host-seconds on 4 hosts in 8 s
    (viewed,) = document("report", "view", tmp_path)["runs"]
    assert set(viewed) == SUMMARY
    assert viewed["makespan"] == 8.0


def test_reports_of_runs(tmp_path):
    pytest.importorskip("matplotlib")
    document("run", *TOY, "--policy", "easy", "-o", tmp_path / "easy")
    found = document("report", "analyse", tmp_path, "-o", tmp_path / "report")
    assert [run["jobs"] for run in found["runs"]] == [5]
    assert found["files"][-1] == str(tmp_path / "report/report.html")
    assert all(Path(file).is_file() for file in found["files"])


def test_the_showcase(tmp_path):
    pytest.importorskip("matplotlib")
    runs = document("showcase", *TOY, "-o", tmp_path)["runs"]
    assert [run["policy"] for run in runs] == ["fcfs", "easy", "conservative", "sjf+easy", "saf+easy"]
    assert [run["makespan"] for run in runs[:2]] == [10.0, 8.0]


def test_the_showcase_without_matplotlib_has_no_pictures_and_says_so_once(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["showcase", *TOY, "-o", str(tmp_path)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    assert result.stderr.count("no pictures: pictures need matplotlib") == 1
    assert "schedule.png" not in result.stdout
    assert (tmp_path / "easy/out_jobs.csv").is_file() and not (tmp_path / "easy/schedule.png").exists()


def test_a_comparison_is_what_its_file_says(tmp_path):
    options = ("--policy", "easy", "--policy", "fcfs", "--windows", "3", "--length", "4", "-j", "1", "-o", tmp_path)
    found = document("compare", *TOY, *options)
    written = json.loads((tmp_path / "comparison.json").read_text())
    assert found == written
    assert {row["contender"] for row in found["rows"]} == {"easy", "fcfs"}


def test_the_policies_and_one_of_ones_own(tmp_path):
    assert {"name", "summary", "paper"} == set(document("policies")["policies"][0])
    assert document("policies", "easy")["options"][1]["default"] == "easy"
    source = "class Idle:\n    def reset(self, p, s): pass\n    def decide(self, c, p): pass\n"
    (tmp_path / "mine.py").write_text(source)
    name = f"{tmp_path / 'mine.py'}:Idle"
    found = document("policies", "check", name, code=2)
    assert found["policy"] == name
    assert found["findings"]
    assert document("policies", "check", "easy") == {"policy": "easy", "findings": []}


def test_platforms(tmp_path):
    made = document("platform", "flat", "--hosts", 4, "-o", tmp_path / "flat.xml")
    assert (made["path"], made["hosts"], made["speed"]) == (str(tmp_path / "flat.xml"), 4, 141.24e9)
    shown = document("platform", "show", "platforms/taurus.xml")
    (group,) = shown["groups"]
    assert (len(group["hosts"]), len(group["pstates"])) == (16, 16)
    assert [round(p["switching_time"], 2) for p in group["pstates"] if p["switching_time"]] == [6.1, 151.52]
    assert document("platform", "check", "platforms/taurus.xml")["findings"] == []
    (tmp_path / "bad.xml").write_text(
        Path("platforms/toy.xml").read_text().replace("95.0:95.0:190.738", "95.0:oops", 1)
    )
    (finding,) = document("platform", "check", tmp_path / "bad.xml", code=2)["findings"]
    assert finding["line"] == 12
    assert {"name", "site", "theoretical", "measured"} <= set(document("platform", "grid5000")["clusters"][0])
    cluster = document("platform", "grid5000", "gros", "-o", tmp_path / "gros.xml")
    assert (cluster["hosts"], cluster["has_power"]) == (124, False)


def test_workloads(tmp_path):
    made = document("workload", "lublin", "--nb-jobs", 20, "--hosts", 8, "-o", tmp_path / "made.json")
    assert (made["jobs"], made["hosts"]) == (20, 8)
    assert "lublin --nb-jobs 20 --hosts 8" in made["command"]
    days = ("workload", "preset", "grid5000-like", "graphite", "--days", "0:2", "-o", tmp_path / "days.json")
    assert document(*days)["published"]["days"] > document(*days)["made"]["days"]
    (file,) = document("workload", "to-swf", tmp_path / "made.json", "-o", tmp_path / "made.swf")["files"]
    assert (file["path"], file["jobs"]) == (str(tmp_path / "made.swf"), 20)
    (file,) = document("workload", "from-swf", tmp_path / "made.swf", "-o", tmp_path / "again.json")["files"]
    assert (file["jobs"], file["hosts"]) == (20, 8)
    described = document("workload", "describe", tmp_path / "made.swf")
    assert (described["jobs"], described["nb_res"], len(described["by_hour"])) == (20, 8, 24)
    predicted = document("workload", "predict", tmp_path / "made.swf", "--predictor", "last2")
    assert list(predicted["predictors"]) == ["last2"]
    assert 0 <= predicted["predictors"]["last2"]["share"] <= 1


def test_trainings_checkpoints_and_evaluations(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gymnasium")
    short = ("--steps", "64", "--set", "learn.envs=4", "--set", "learn.rollout=8", "--set", "env.jobs=5")
    trained = document("train", "dbf", *TOY, *short, "-o", tmp_path)
    assert trained["checkpoint"] == str(tmp_path / "dbf.ckpt")
    assert [row["steps"] for row in trained["curve"]] == [0, 32, 64]
    shown = document("report", "show", tmp_path / "dbf.ckpt")
    assert (shown["config"]["scheduler"], shown["steps"]) == ("dbf", 64)
    compared = document("evaluate", tmp_path / "dbf.ckpt", "easy", *TOY, "--episodes", 3, "--placed", 5)
    assert {row["policy"] for row in compared["policies"]} == {str(tmp_path / "dbf.ckpt"), "easy"}
    assert set(compared["policies"][0]["waiting_time"]) == {"mean", "low", "high"}
    assert compared["policies"][0]["p95_wait"]["mean"] <= compared["policies"][0]["max_wait"]["mean"]
    whole = document("evaluate", "easy", *TOY, "--whole")["runs"]
    assert [run["makespan"] for run in whole] == [8.0]


def test_what_is_left_out_goes_to_stderr(tmp_path):
    lines = [f"{i} {10 * i} 0 {100 * (i % 2)} 1 -1 -1 1 900 -1 1 1 {'-1 ' * 6}" for i in range(1, 5)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines))
    command = ["workload", "describe", str(tmp_path / "log.swf"), "--json"]
    result = CliRunner().invoke(app, command)
    assert json.loads(result.stdout)["dropped"] == {"with an unknown or zero run time": 2}
    assert "left out: 2 with an unknown or zero run time" in result.stderr
