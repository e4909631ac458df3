"""Exports of OAR: which records become jobs, in whatever form they come."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from decision.files import load_oar
from decision.model.demand import offered_load, runtimes
from decision.model.workload import Delay, Job, Workload

GANTT = {"submission_time": 1000, "start_time": 1010, "stop_time": 1070, "walltime": 100, "resources": [3, 4]}
COMMAND = {
    "Job_Id": 8,
    "submissionTime": "1000",
    "startTime": "1010",
    "stopTime": "1070",
    "walltime": "100",
    "assigned_resources": [3, 4],
    "owner": "ada",
    "queue": "default",
}
API = {
    "id": 8,
    "submission_time": 1000,
    "start_time": 1010,
    "stop_time": 1070,
    "walltime": 100,
    "resources": [{"id": 3, "status": "assigned"}, {"id": 4, "status": "assigned"}],
    "job_user": "ada",
    "queue_name": "default",
}


def load_json(folder: Path, content: Any) -> Workload:
    (folder / "jobs.json").write_text(json.dumps(content))
    return load_oar(folder / "jobs.json")


def load_csv(folder: Path, *lines: str) -> Workload:
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    return load_oar(folder / "jobs.csv")


@pytest.mark.parametrize(
    ("content", "known"),
    [
        ({"jobs": {"8": GANTT}, "resources": {}}, {}),
        ({"8": COMMAND}, {"user": "ada", "extra": {"queue": "default"}}),
        ({"items": [API], "total": 1}, {"user": "ada", "extra": {"queue": "default"}}),
        ([API], {"user": "ada", "extra": {"queue": "default"}}),
    ],
    ids=["gantt", "oarstat", "api", "list"],
)
def test_all_of_oars_json_says_the_same(content: Any, known: dict[str, Any], tmp_path: Path) -> None:
    found = load_json(tmp_path, content)
    assert found.jobs == (Job(id="w0!8", submit_time=0.0, size=2, walltime=100.0, profile="delay60", **known),)
    assert (found.profiles, found.nb_res, found.unix_start) == ({"delay60": Delay(60.0)}, 2, 1000.0)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_may_have_any_usual_delimiter_and_order(delimiter: str, tmp_path: Path) -> None:
    lines = ["stop_time,resources,job_id,submission_time,start_time", "1070,3 4,8,1000,1010", "", "1090,5,9,990,1020"]
    found = load_csv(tmp_path, *(line.replace(",", delimiter) for line in lines))
    assert [(job.name, job.submit_time, job.size, job.walltime) for job in found.jobs] == [
        ("9", 0.0, 1, math.inf),
        ("8", 10.0, 2, math.inf),
    ]
    assert found.nb_res == 3


def test_without_names_of_resources_their_number_will_do(tmp_path: Path) -> None:
    found = load_csv(tmp_path, "job_id,submission_time,start_time,stop_time,resource_count", "1,10,20,30,7")
    assert (found.jobs[0].size, found.nb_res) == (7, 7)


def test_jobs_that_did_not_run_are_counted(tmp_path: Path) -> None:
    times = {"never": (0, 0), "running": (20, 0), "at once": (20, 20), "ran": (20, 30)}
    jobs = {
        name: {"submission_time": 10, "start_time": start, "stop_time": stop, "resources": [1]}
        for name, (start, stop) in times.items()
    }
    found = load_json(tmp_path, jobs | {"nothing": {**jobs["ran"], "resources": []}})
    assert [job.name for job in found.jobs] == ["ran"]
    assert found.dropped == {
        "that never started": 1,
        "that did not end": 1,
        "that ended when they started, or before": 1,
        "without resources": 1,
    }


@pytest.mark.parametrize("seed", range(5))
def test_what_oar_did_is_read_whole(seed: int, shared: Path) -> None:
    found = load_oar(shared / f"data/grid5000-2016/oar_gantt_seed{seed}.csv")
    assert (len(found.jobs), found.nb_res, found.dropped) == (800, 32, {})
    assert 0.7 < offered_load(found, runtimes(found)) < 1
    assert all(job.walltime < math.inf for job in found.jobs)
