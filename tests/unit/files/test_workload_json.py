"""Batsim workloads: what is accepted, and what becomes of it."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from decision.files import load_workload, write_workload
from decision.files.profiles import profile_json
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Workload,
)

DELAY = {"type": "delay", "delay": 5}


def job(**fields: Any) -> dict[str, Any]:
    return {"id": "j", "subtime": 0, "res": 1, "profile": "p"} | fields


def load(
    tmp_path: Path, jobs: list[dict[str, Any]], profiles: dict[str, Any] | None = None, **options: Any
) -> Workload:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles or {"p": DELAY}}))
    return load_workload(path, **options)


def test_a_job_is_read_field_by_field(tmp_path: Path) -> None:
    workload = load(tmp_path, [job(subtime=1.5, res=3, walltime=20, user="ada")])
    assert workload.jobs == (Job(id="w0!j", submit_time=1.5, size=3, walltime=20.0, profile="p", user="ada"),)
    assert (workload.name, workload.nb_res, workload.profiles) == ("w0", 4, {"p": Delay(5.0)})


@pytest.mark.parametrize(("written", "full"), [(7, "w0!7"), ("7", "w0!7"), ("w0!7", "w0!7"), ("a b", "w0!a b")])
def test_ids_get_the_name_of_the_workload_unless_they_have_it(tmp_path: Path, written: Any, full: str) -> None:
    (found,) = load(tmp_path, [job(id=written)]).jobs
    assert (found.id, found.workload, found.name) == (full, "w0", full[3:])


@pytest.mark.parametrize("fields", [{}, {"walltime": -1}, {"walltime": -1.0}])
def test_a_job_without_walltime_has_an_infinite_one(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert load(tmp_path, [job(**fields)]).jobs[0].walltime == math.inf


def test_jobs_keep_the_order_of_the_file(tmp_path: Path) -> None:
    workload = load(tmp_path, [job(id="late", subtime=9), job(id="early"), job(id="b", subtime=9)])
    assert [found.name for found in workload.jobs] == ["late", "early", "b"]


@pytest.mark.parametrize(("value", "user"), [("ada", "ada"), (17, "17"), (None, ""), (True, ""), ({"name": "ada"}, "")])
def test_a_user_is_text_or_a_number(tmp_path: Path, value: Any, user: str) -> None:
    assert load(tmp_path, [job(user=value)]).jobs[0].user == user


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        ({"type": "delay", "delay": 0.5}, Delay(0.5)),
        ({"type": "delay", "delay": 1, "ret": 3}, Delay(1.0, 3)),
        ({"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}, ParallelHomogeneous(1e9, 0.0)),
        (
            {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 2, "ret": -1},
            ParallelHomogeneousTotal(1e9, 2.0, -1),
        ),
        ({"type": "parallel", "cpu": [5], "com": [0]}, Parallel((5.0,), (0.0,))),
        (
            {"type": "smpi", "trace": "a.txt", "ret": 2},
            Foreign("smpi", {"type": "smpi", "trace": "a.txt", "ret": 2}, 2),
        ),
        ({"type": "recv"}, Foreign("recv", {"type": "recv"})),
        ({"type": "delay", "delay": 5, "command": ["ls"]}, Delay(5.0)),
    ],
)
def test_profiles_become_those_of_the_model(tmp_path: Path, fields: dict[str, Any], profile: Any) -> None:
    assert load(tmp_path, [job()], {"p": fields}).profiles == {"p": profile}


def test_composed_profiles_keep_their_parts_and_unused_profiles_are_left_out(tmp_path: Path) -> None:
    profiles = {
        "p": {"type": "composed", "seq": ["inner", "d"], "repeat": 3},
        "inner": {"type": "composed", "seq": ["d"]},
        "d": DELAY,
        "unused": DELAY,
    }
    assert load(tmp_path, [job()], profiles).profiles == {
        "p": Composed(("inner", "d"), 3),
        "inner": Composed(("d",), 1),
        "d": Delay(5.0),
    }


def test_sources_keep_unknown_fields_and_the_types_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "workload.json"
    path.write_text(
        '{"nb_res": 4, "jobs": [{"id": 7, "subtime": 1.0, "res": 2, "walltime": 30, "profile": "p", '
        '"after": ["w0!3", {"id": 1e3}]}], "profiles": {"p": {"type": "delay", "delay": 5, "note": "é"}}}'
    )
    workload = load_workload(path, "w0", keep_source=True)
    assert workload.jobs[0].source == (
        b'{"id":"w0!7","subtime":1.0,"res":2,"walltime":30,"profile":"p","after":["w0!3",{"id":1e3}]}'
    )
    assert workload.profile_sources == {"p": '{"type":"delay","delay":5,"note":"é"}'.encode()}
    assert profile_json(workload, "p") == workload.profile_sources["p"]


def test_profiles_without_source_have_json_too(tmp_path: Path) -> None:
    workload = load(tmp_path, [job(walltime=3), job(id="k")])
    assert workload.jobs[0].source is None
    assert json.loads(profile_json(workload, "p")) == DELAY


def test_further_fields_are_written_and_forwarded(tmp_path: Path) -> None:
    valued = Job(id="w0!j", submit_time=0.0, size=1, profile="p", extra={"value": 3.5, "qos": 80})
    write_workload(tmp_path / "w.json", Workload(name="w0", jobs=(valued,), profiles={"p": Delay(1.0)}, nb_res=1))
    source = load_workload(tmp_path / "w.json", keep_source=True).jobs[0].source
    assert json.loads(source or b"") == job(id="w0!j", value=3.5, qos=80)


def test_a_workload_takes_the_name_that_it_is_given(tmp_path: Path) -> None:
    workload = load(tmp_path, [job(id="w0"), job(id="w1!j")], name="w1")
    assert [found.id for found in workload.jobs] == ["w1!w0", "w1!j"]


def test_a_written_job_whose_name_contains_that_of_the_workload_is_read_again(tmp_path: Path) -> None:
    workload = Workload(
        name="w0",
        jobs=(Job(id="w0!show0", submit_time=0.0, size=1, profile="p"),),
        profiles={"p": Delay(1.0)},
        nb_res=1,
    )
    write_workload(tmp_path / "w.json", workload)
    assert load_workload(tmp_path / "w.json").jobs == workload.jobs


def test_a_workload_without_jobs_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, []).jobs == ()


def test_numbers_are_written_with_at_most_15_digits_which_batsim_reads_as_we_do(tmp_path: Path) -> None:
    jobs = [Job(id="w0!a", submit_time=1 / 3, size=1, walltime=0.1 * 3 * 36, profile="p")]
    profiles = {"p": Delay(10.799999999999999), "q": ParallelHomogeneous(263250999999.99997, 0.0)}
    write_workload(tmp_path / "w0.json", Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=1))
    numbers = re.findall(r"\d+\.?\d*", (tmp_path / "w0.json").read_text())
    assert {"0.333333333333333", "10.8"} <= set(numbers)
    assert max(len(number.replace(".", "").lstrip("0")) for number in numbers) == 15
