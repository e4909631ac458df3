"""The same thing once more: the command is found, goes into a new folder, and what differs is said."""

import json
import shutil

import msgspec
import pytest
from click.testing import CliRunner
from helpers.run_samples import run_facts

from decision.cli.app import app
from decision.experiments.folder import commands_of, compare_folders, folder_of, into, run_folder
from decision.experiments.store import ResultStore
from decision.files.outputs_read import read_facts
from decision.model.errors import InputError


def cli(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def test_a_run_again_is_the_same_until_its_input_changes(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = tmp_path / "jobs.json"
    shutil.copy(root / "workloads/toy.json", jobs)
    assert cli("run", "-p", "toy", "-w", "jobs.json", "--policy", "easy", "-o", "one").exit_code == 0
    same = json.loads(cli("again", "one/run.json", "-o", "two", "--json").stdout)
    assert same == {"same": True, "found": {"compared": 3, "setup": [], "results": []}}
    assert read_facts(tmp_path / "two").command == "decision run -p toy -w jobs.json --policy easy -o two"

    workload = json.loads(jobs.read_text())
    workload["jobs"] = workload["jobs"][:-1]
    jobs.write_text(json.dumps(workload))
    said = cli("again", "one", "-o", "three").stdout
    old, new = (read_facts(tmp_path / name).workloads[0].sha256[:12] for name in ("one", "three"))
    assert old != new
    assert f"jobs.json {old}" in said and f"jobs.json {new}" in said
    assert "out_jobs.csv" in said and "results differ in" in said and "version" not in said
    found = compare_folders(tmp_path / "one", tmp_path / "three")
    counts = {each.what: (each.before, each.again) for each in found.results}
    assert counts["out_jobs.csv"] == ("5 rows of 17 columns", "4 rows of 17 columns")
    assert counts["out_schedule.csv: nb_jobs"] == ("5", "4")
    assert not any("simulation_time" in what for what in counts)

    refused = cli("again", "one", "-o", "two")
    assert refused.exit_code == 2 and "is there already; choose a new folder" in refused.stderr


def write_run(folder, content, **changes):
    with run_folder(folder, msgspec.structs.replace(run_facts(), **changes)) as written:
        (folder / "out_jobs.csv").write_text(content)
        written.append(folder / "out_jobs.csv")


def test_what_differs_between_two_runs(tmp_path):
    write_run(tmp_path / "a", "job_id,wait\n1,0\n2,5\n3,5\n", decision="0.1.0")
    write_run(tmp_path / "b", "job_id,wait\n1,0\n2,6\n3,7\n", decision="0.2.0", seed=4)
    found = msgspec.to_builtins(compare_folders(tmp_path / "a", tmp_path / "b"))
    assert [tuple(each.values()) for each in found["setup"]] == [
        ("version", "0.1.0", "0.2.0"),
        ("seed", str(run_facts().seed), "4"),
    ]
    (wait,) = found["results"]
    assert wait == {"what": "out_jobs.csv: wait, first of 2 rows", "before": "5", "again": "6"}
    with (tmp_path / "a/out_jobs.csv").open("a") as file:
        file.write("4,4\n")
    (changed,) = compare_folders(tmp_path / "a", tmp_path / "b").results
    assert (changed.before, changed.again) == ("changed after the run", "there")


def store(folder, **waits):
    results = ResultStore(folder / "runs")
    for n, (name, wait) in enumerate(waits.items()):
        results.add(f"{name}{n}".ljust(24, "0"), b'{"policy":"easy","digests":["ab"]}', name, {"wait": wait}, "here")
    results.close()


def test_what_differs_between_two_campaigns(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["mine.py"])
    store(tmp_path / "a", easy=1.0, sjf=2.0)
    store(tmp_path / "b", easy=1.0, sjf=2.5, saf=3.0)
    assert folder_of(tmp_path / "a/runs/run.json") == tmp_path / "a"
    found = compare_folders(tmp_path / "a", tmp_path / "b")
    assert (found.compared, [*found.setup]) == (2, [])
    assert {(each.what, each.before, each.again) for each in found.results} == {
        ("sjf: wait", "2.0", "2.5"),
        ("saf", "-", "there"),
    }
    with pytest.raises(InputError, match=r"made by mine\.py, not by a command of decision; run that again"):
        commands_of(tmp_path / "a")


def test_the_command_gets_another_folder():
    for given in (["-o", "x"], ["--output", "x"], ["--output=x"], ["-ox"], [], ["--resume"]):
        assert into(["run", *given, "-p", "toy"], "y") == ["run", "-p", "toy", "-o", "y"]


def test_what_nothing_says(tmp_path):
    write_run(tmp_path / "a", "", command="")
    with pytest.raises(InputError, match="it was made from Python, or as a part of many"):
        commands_of(tmp_path / "a")
    with pytest.raises(InputError, match="give the output folder of a run or a comparison"):
        commands_of(tmp_path)
