"""Jobs as columns are what the same jobs are in a list; logs and JSON read in parts are what they are as a whole."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from decision.engine.truth import build_truth, submission_order
from decision.files import batsim_json, load_swf, load_workload, text, write_swf
from decision.files.profiles import delay_profiles
from decision.model import demand
from decision.model.columns import JobColumns, Labelled, labelled, numbered
from decision.model.errors import InputError
from decision.model.reshape import Filters, reshape
from decision.model.workload import Job, Workload
from decision.rl.envs import equal_hosts
from decision.simulation import simulate_workloads

many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
extras: Any = [None, {"queue": "3"}]
rows = st.tuples(
    st.integers(0, 4).map(float),  # submission: many at one time
    st.integers(1, 4),
    st.sampled_from([5.0, 60.0, np.inf]),
    st.sampled_from([1.0, 2.5, 40.0]),
    st.sampled_from(["", "ann", "bob"]),
    st.sampled_from([0, 1]),
)
tables = st.lists(rows, min_size=1, max_size=25)


def both(table: list[tuple[Any, ...]], first: int = 5) -> tuple[Workload, Workload]:
    """A workload with a list of jobs, and the same with columns; jobs are numbered, as text in another order."""
    submit, size, walltime, runtime, user, extra = (list(column) for column in zip(*table, strict=True))
    profile, profiles = delay_profiles(np.array(runtime))
    columns = JobColumns(
        id=numbered("w0", np.arange(first, first + len(table))),
        submit_time=np.array(submit),
        size=np.array(size, np.int32),
        walltime=np.array(walltime),
        profile=profile,
        user=labelled(user),
        extra=Labelled(extras, np.array(extra)),
    )
    jobs = [
        Job(id=f"w0!{i}", submit_time=s, size=n, walltime=w, profile=f"delay{r:.17g}", user=u, extra=extras[e])
        for i, (s, n, w, r, u, e) in enumerate(table, first)
    ]
    in_columns = Workload(name="w0", jobs=columns, profiles=profiles, nb_res=4)
    return replace(in_columns, jobs=jobs, profiles=dict(profiles)), in_columns


@many
@given(tables, st.slices(25))
def test_columns_are_the_sequence_of_jobs(table: list[tuple[Any, ...]], some: slice) -> None:
    jobs, columns = (workload.jobs for workload in both(table))
    assert columns == jobs and jobs == columns and columns != jobs[1:]
    assert [columns[i] for i in range(-len(jobs), len(jobs))] == [*jobs, *jobs]
    assert columns[some] == jobs[some] and list(columns[some]) == jobs[some]
    with pytest.raises(IndexError):
        columns[len(jobs)]


@many
@given(tables, st.sampled_from(["requested", "runtime", "none"]), st.integers(1, 4), st.booleans())
def test_columns_are_reshaped_like_lists(table: list[tuple[Any, ...]], walltime: Any, nodes: int, shift: bool) -> None:
    in_list, in_columns = both(table)
    for measure in (demand.sizes, demand.submit_times, demand.walltimes, demand.runtimes):
        assert measure(in_list).tolist() == measure(in_columns).tolist()
    filters = Filters(nodes=nodes, walltime=walltime, shift=shift)
    try:
        wanted = reshape(in_list, filters)
    except InputError as error:
        with pytest.raises(InputError, match=str(error).split("(")[0]):
            reshape(in_columns, filters)
    else:
        assert reshape(in_columns, filters) == wanted
        assert demand.runtimes(reshape(in_columns, filters)).tolist() == demand.runtimes(wanted).tolist()


@many
@given(st.lists(tables, min_size=1, max_size=2))
def test_columns_are_simulated_like_lists(some: list[list[tuple[Any, ...]]]) -> None:
    pairs = [[replace(w, name=f"w{i}") for w in both(table)] for i, table in enumerate(some)]
    in_lists = [replace(w, jobs=[replace(j, id=f"{w.name}!{j.name}") for j in w.jobs]) for w, _ in pairs]
    in_columns = [
        replace(w, jobs=w.jobs.replaced(id=numbered(w.name, np.arange(5, 5 + len(w.jobs))))) for _, w in pairs
    ]
    for one, other in zip(in_lists, in_columns, strict=True):
        assert submission_order(other.jobs) == submission_order(one.jobs)
    wanted, names = build_truth(in_lists, [])
    truth, same_names = build_truth(in_columns, [])
    for field in ("submit_time", "size", "walltime", "user"):
        assert np.array_equal(getattr(truth, field), getattr(wanted, field)), field
    for field in ("moldable", "leaf_count"):
        assert np.array_equal(getattr(truth, field)[truth.profile], getattr(wanted, field)[wanted.profile]), field
    amounts = (one.leaf_amount[one.leaf_first[one.profile]].tolist() for one in (truth, wanted))
    assert next(amounts) == next(amounts)
    for job in range(len(names)):
        assert (same_names.job(job), same_names.leaves(job)) == (names.job(job), names.leaves(job))
    assert same_names.users == names.users


def test_columns_give_the_same_record() -> None:
    rng = np.random.default_rng(3)
    table = [
        (float(rng.integers(0, 90)), int(rng.integers(1, 5)), 60.0, float(rng.integers(1, 70)), "", 0)
        for _ in range(200)
    ]
    wanted, found = (simulate_workloads(equal_hosts(4), [workload], "easy").jobs for workload in both(table))
    for name in wanted.__struct_fields__:
        assert np.array_equal(list(getattr(found, name)), list(getattr(wanted, name))), name


# --- Reading in parts -----------------------------------------------------------------------------------------------


@many
@given(table=tables, block=st.integers(1, 300))
def test_a_log_is_the_same_whatever_its_parts(
    table: list[tuple[Any, ...]], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.swf"
    in_list, _ = both(table)
    write_swf(path, in_list, demand.runtimes(in_list))
    path.write_bytes(path.read_bytes() + b"1 2 3\nnothing\n5 0 -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1")
    whole = load_swf(path)
    with monkeypatch.context() as patch:
        patch.setattr(text, "_BLOCK", block)
        assert load_swf(path) == whole


odd_texts = st.text('}{][,:"\\ jobs\n\u00e9', max_size=9)
anything = st.recursive(
    st.none() | st.integers() | odd_texts, lambda v: st.lists(v, max_size=3) | st.dictionaries(odd_texts, v, max_size=3)
)
jobs_of_file = st.fixed_dictionaries(
    {"id": st.integers(0, 40) | st.sampled_from(["7", "w0!7", "a"]), "subtime": st.integers(0, 9) | st.just(1.25)},
    optional={
        "res": st.sampled_from([1, 2, 3, 0, 1.5]),
        "walltime": st.sampled_from([-1, 5, 7.5, 0]),
        "user": st.sampled_from(["ann", 3, None]),
        "note": anything,
        "profile": st.sampled_from(["short", "none"]),
    },
).map(lambda job: {"res": 1, "profile": "short", **job})


def written(file: dict[str, Any], indent: int | None, key_first: bool) -> str:
    ordered = file if key_first else dict(reversed(file.items()))
    return json.dumps(ordered, indent=indent)


@many
@given(
    jobs=st.lists(jobs_of_file, max_size=12),
    note=anything,
    indent=st.none() | st.integers(0, 3),
    first=st.booleans(),
    part=st.integers(1, 200),
    cut=st.none() | st.integers(0, 400),
)
def test_json_is_the_same_in_parts_with_the_same_errors(
    jobs: Any, note: Any, indent: int, first: bool, part: int, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = {"nb_res": 4, "note": note, "jobs": jobs, "profiles": {"short": {"type": "delay", "delay": 2}}}
    path = tmp_path / "w.json"
    path.write_text(written(file, indent, first)[:cut])
    load = partial(load_workload, path, keep_source=True)
    with monkeypatch.context() as patch:
        whole = _loaded(load)
        patch.setattr(text, "PART", part)
        patch.setattr(batsim_json, "LARGE", 0)
        assert _loaded(load) == whole


def _loaded(load: Any) -> Workload | str:
    try:
        return load()
    except InputError as error:
        return str(error)


def test_json_is_read_in_parts_and_its_sources_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.json"
    jobs = [
        {"id": i, "subtime": i / 4, "res": 1, "profile": "p", "note": ['}, {"', {"a": {}, "b": [1]}]} for i in range(99)
    ]
    path.write_text(json.dumps({"profiles": {"p": {"type": "delay", "delay": 3}}, "jobs": jobs, "nb_res": 2}))
    whole = load_workload(path, keep_source=True)
    monkeypatch.setattr(text, "PART", 500)
    monkeypatch.setattr(batsim_json, "LARGE", 0)
    large = load_workload(path, keep_source=True)
    assert isinstance(large.jobs, JobColumns) and large == whole
    assert large.jobs[7].source == whole.jobs[7].source
    path.write_text(path.read_text() + " ")
    with pytest.raises(InputError, match="was changed while it was in use"):
        large.jobs[7]
