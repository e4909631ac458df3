"""Runs with a supply from files to tables, and what is refused."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.cli.app import app

JOBS = [
    {"id": "a", "subtime": 0, "res": 4, "profile": "d100", "walltime": 150, "value": 1, "deadline": 500},
    {"id": "b", "subtime": 30, "res": 2, "profile": "d50", "walltime": 90, "value": 9, "deadline": 70},
]
PROFILES = {name: {"type": "delay", "delay": delay} for name, delay in (("d100", 100), ("d50", 50))}


@pytest.fixture
def case(tmp_path: Path) -> Path:
    make(tmp_path, JOBS, [(0, 4), (60, 1), (80, 4)])
    assert invoke("platform", "flat", "--hosts", "4", "-o", str(tmp_path / "p.xml")).exit_code == 0
    return tmp_path


def make(folder: Path, jobs, supply) -> None:
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": PROFILES}))
    lines = [json.dumps({"type": "power_supply", "timestamp": at, "hosts": hosts}) for at, hosts in supply]
    (folder / "s.txt").write_text("\n".join(lines) + "\n")


def invoke(*words: str):
    return CliRunner().invoke(app, [*words])


def run(folder: Path, *words: str):
    files = ("-p", f"{folder}/p.xml", "-w", f"{folder}/w.json", "--events", f"{folder}/s.txt")
    return invoke("run", *files, "-o", f"{folder}/out", "--json", *words)


def test_a_suspended_job_is_one_in_the_summary_and_several_in_batsims_file(case: Path) -> None:
    result = run(case, "--policy", "hvf+first-fit")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)["runs"][0]
    with (case / "out/out_jobs.csv").open() as file:
        assert sorted(row["job_id"] for row in csv.DictReader(file)) == ["a", "a#1", "b"]
    assert (summary["jobs"], summary["value"], summary["value_share"]) == (1, 1, 0.1)
    assert (summary["violations"], summary["rejected"]) == (1, 1)
    assert summary["grid"] == pytest.approx(0, abs=1e-6)  # clocks round
    assert (case / "out/worth.csv").read_text().startswith("job_id,value,deadline\nw0!a,1.0,500.0\n")


def test_power_of_the_grid_is_counted(case: Path) -> None:
    summary = json.loads(run(case, "--policy", "fcfs,beyond=grid").stdout)["runs"][0]
    assert summary["grid"] == pytest.approx(3 * 20)


def test_comparisons_and_evaluations_take_events_and_measure_worth(case: Path) -> None:
    files = ("-p", f"{case}/p.xml", "-w", f"{case}/w.json", "--events", f"{case}/s.txt")
    policies = ("--policy", "fcfs", "--policy", "fcfs,beyond=grid")
    result = invoke(
        "compare", *files, *policies, "-o", f"{case}/cmp", "--metric", "value", "--metric", "grid", "--json"
    )
    assert result.exit_code == 0, result.stderr
    assert '"grid"' in result.stdout
    result = invoke("compare", *files, *policies, "--windows", "2", "--length", "1", "-o", f"{case}/cmp")
    assert (result.exit_code, "external events have their times in whole workloads" in result.stderr) == (2, True)


def test_jobs_that_wait_for_power_that_never_comes_are_named(case: Path) -> None:
    endless = {name: value for name, value in JOBS[0].items() if name != "deadline"}
    make(case, [endless], [(0, 1), (90, 1)])
    result = run(case, "--policy", "fcfs")
    message = "w0!a wait while 3 hosts without power stay so; give them power in the end"
    assert (result.exit_code != 0, message in result.stderr) == (True, True), result.stderr


@pytest.mark.parametrize(
    ("jobs", "supply", "policy", "message"),
    [
        (JOBS, [(0, 5), (90, 4)], "fcfs", "power_supply at t=0 s: it has 5 hosts, and the platform has 4"),
        (JOBS, [(0, 4)], "fcfs", "the supply of power ends at t=0 s, and the last job is submitted at t=30 s"),
        ([JOBS[0] | {"qos": 0}], [(0, 4)], "fcfs", "job 'w0!a', field 'qos': must be above 0 and at most 100 percent"),
        ([JOBS[1] | {"deadline": 29}], [(90, 4)], "fcfs", "field 'deadline': must not be before the submission"),
        (JOBS, [(0, 4), (90, 4)], "qos", "job w0!a has no 'qos', and policy qos needs one"),
        (JOBS, [(0, 4), (90, 4)], "easy,start=bound,power=idle-timeout", "start=bound does not go with a supply"),
    ],
)
def test_what_makes_no_sense_is_one_line(case: Path, jobs, supply, policy: str, message: str) -> None:
    make(case, jobs, supply)
    result = run(case, "--policy", policy)
    assert (result.exit_code, message in result.stderr, len(result.stderr.splitlines())) == (2, True, 1), result.stderr
