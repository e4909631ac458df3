"""Batsim 5's files: workloads and events are read as Batsim 4's are, and converted there and back."""

import json

import pytest

from decision.files import load_events, load_workload
from decision.files.events import converted_events, load_texts
from decision.files.outputs_read import read_schedule
from decision.files.profiles import converted_lines
from decision.model.errors import InputError

OLD = {
    "nb_res": 4,
    "note": [1],
    "jobs": [
        {"id": "a", "subtime": 0, "res": 2, "profile": "d", "walltime": -1, "user": "ada", "x": {"y": 1}},
        {"id": 2, "subtime": 1.5, "res": 1, "profile": "h", "walltime": 100},
        {"id": 3, "subtime": 2, "res": 1, "profile": "c"},
    ],
    "profiles": {
        "d": {"type": "delay", "delay": 10, "np": 3},
        "h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
        "t": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 5},
        "c": {"type": "composed", "seq": ["d", "d"], "repeat": 2, "ret": 1},
        "s": {"type": "smpi", "trace": "t.txt"},
        "p": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "bytes_to_write": 2, "storage": "disk"},
    },
}


def converted(data, to):
    return json.loads(b"".join(converted_lines(json.dumps(data).encode(), to, "file")))


def test_a_workload_is_the_same_after_a_conversion_there_and_back():
    new = converted(OLD, "5")
    assert converted(new, "4") == OLD
    assert converted(converted(new, "4"), "5") == new
    assert new["jobs"][0]["extra_data"] == {"user": "ada", "x": {"y": 1}, "walltime": -1}
    assert "walltime" not in new["jobs"][0]
    assert new["profiles"]["t"]["generation_strategy"] == "DefinedAmountsSpreadUniformly"


@pytest.mark.parametrize("extra", ["text", '{"user": "ada"}', {"user": "ada"}, [1], {}, {"id": 7}])
def test_a_new_workload_is_the_same_after_a_conversion_there_and_back(extra):
    new = converted(OLD, "5")
    new["jobs"][0]["extra_data"] = extra
    assert converted(converted(new, "4"), "5") == new


def test_a_new_workload_is_read_without_being_asked(tmp_path):
    path = tmp_path / "w.json"
    new = converted(OLD, "5")
    new["jobs"][0]["extra_data"] = '{"user": "ada", "estimate": 60}'
    path.write_text(json.dumps(new))
    job = load_workload(path).jobs[0]
    assert (job.user, job.estimate, job.walltime) == ("ada", 60.0, float("inf"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "d", "walltime": -1}]}, "walltime"),
        ({"profiles": {"d": {"type": "ForkJoinCompositionProfile"}}}, "ForkJoinCompositionProfile"),
        ({"profiles": {"d": {"type": "DelayedProfile"}}}, "unknown to Batsim 5"),
    ],
)
def test_what_stops_batsim_5_is_refused_by_name(tmp_path, change, said):
    path = tmp_path / "w.json"
    path.write_text(json.dumps({**converted(OLD, "5"), **change}))
    with pytest.raises(InputError, match=said):
        load_workload(path)


def test_what_batsim_5_cannot_say_is_named():
    with pytest.raises(InputError, match=r"profile 'x', field 'type'.*'send'"):
        converted({"jobs": [], "profiles": {"x": {"type": "send"}}}, "5")


def test_generic_events_are_what_their_text_says(tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text('{"type": "machine_unavailable", "resources": "1-2", "timestamp": 5}\n')
    new.write_bytes(converted_events(old, "5") + b'{"type": "generic", "timestamp": 7, "data": "hello"}\n')
    away, text = load_events(new)
    assert (away.type, away.hosts, away.timestamp) == ("machine_unavailable", (1, 2), 5.0)
    assert text.type == "generic"
    assert [json.loads(event.source)["id"] for event in load_texts(new, "ee0")] == ["ee0!0", "ee0!1"]
    assert b'"resources":"1-2"' in converted_events(new, "4")
    with pytest.raises(InputError, match="must be 'generic'"):
        load_texts(old, "ee0")


def test_a_summary_with_means_of_nothing_is_read(tmp_path):
    path = tmp_path / "schedule.json"
    path.write_text('{\n  "mean_slowdown": -nan,\n  "nb_jobs": 0\n}\n')
    assert read_schedule(path) == {"mean_slowdown": "nan", "nb_jobs": "0"}
