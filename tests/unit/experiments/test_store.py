"""The results of many runs: appended, torn, found twice, and of before."""

import csv
import json

import msgspec
import pytest

from decision.experiments.store import ResultStore, export_runs
from decision.model.errors import InputError

KEYS = [f"{number:024x}" for number in range(4)]


def fill(folder, *results, host="a", policy="easy"):
    store = ResultStore(folder)
    for key, result in zip(KEYS, results, strict=False):
        store.add(key, msgspec.json.encode({"policy": policy}), f"run {key[-1]}", result, host)
    store.close()


def test_what_was_added_is_found_again_and_a_torn_line_is_not(tmp_path):
    fill(tmp_path, {"wait": 1.5}, {"wait": 2.5})
    (segment,) = tmp_path.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-20])
    store = ResultStore(tmp_path)
    assert (store.get(KEYS[0]), store.get(KEYS[1]), len(store)) == ({"wait": 1.5}, None, 1)


def test_equal_results_count_once_and_others_are_refused_with_both_hosts(tmp_path):
    fill(tmp_path, {"wait": 1.5}, host="a")
    fill(tmp_path, {}, {"wait": 2.5}, host="b")
    (first, second) = sorted(tmp_path.glob("*.jsonl"))
    second.write_bytes(second.read_bytes() + first.read_bytes().splitlines(keepends=True)[1].replace(b'"a"', b'"c"'))
    with pytest.raises(InputError, match=r"run 0: two results that differ, of [abc] and of [abc]"):
        ResultStore(tmp_path)
    second.write_bytes(second.read_bytes().replace(b'"result":{}', b'"result":{"wait":1.5}'))
    assert len(ResultStore(tmp_path)) == 2


def test_results_of_before_are_read(tmp_path):
    content = {"version": "0.1.0", "definition": {"policy": "easy"}, "result": {"wait": 7.0}}
    (tmp_path / f"{KEYS[3]}.json").write_text(json.dumps(content))
    assert ResultStore(tmp_path).get(KEYS[3]) == {"wait": 7.0}
    assert KEYS[3] in ResultStore(tmp_path / "runs")  # reproductions kept them beside their tables


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_all_runs_are_one_table(tmp_path, suffix):
    fill(tmp_path / "runs", {"wait": 1.5, "policy": [1]}, {"wait": 2, "late": True})
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        assert export_runs(tmp_path, path) == 2
        rows = parquet.read_table(path).to_pylist()
    else:
        assert export_runs(tmp_path, path) == 2
        rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["key"], row["host"], row["policy"], float(row["wait"])) for row in rows] == [
        (KEYS[0], "a", "easy", 1.5),
        (KEYS[1], "a", "easy", 2.0),
    ]
    assert rows[0]["result_policy"] == "[1]"
    with pytest.raises(InputError, match="there are no results"):
        export_runs(tmp_path / "other", path)
