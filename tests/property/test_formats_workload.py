"""Any workload survives writing and reading; no text makes the readers of JSON fail but with their own error."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.files import load_events, load_workload, write_workload
from decision.model.errors import InputError
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Workload,
    unloadable_part,
    used_profiles,
)

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)

amounts = st.floats(0, 1e15).map(lambda x: float(f"{round(x, 6):.15g}"))  # as they are written: at most 15 digits
codes = st.integers(-(2**31), 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(lambda name: name and "!" not in name and not unloadable_part(name)) | st.sampled_from(
    ["w0", "0w00", "7"]
)
foreign_types = st.sampled_from(["smpi", "usage_trace", "send", "recv", "data_staging"])
foreign_fields = st.dictionaries(texts.filter(lambda key: key not in ("type", "ret")), st.integers() | texts)
profiles = (
    st.builds(Delay, amounts.filter(bool), codes)
    | st.builds(ParallelHomogeneous, amounts, amounts, codes)
    | st.builds(ParallelHomogeneousTotal, amounts, amounts, codes)
    | st.builds(lambda flops, com: Parallel((flops,) * 2, (com,) * 4), amounts, amounts)
    | st.builds(lambda kind, rest: Foreign(kind, {"type": kind, **rest}), foreign_types, foreign_fields)
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    known: dict[str, Any] = draw(st.dictionaries(texts, profiles, min_size=1, max_size=5))
    if draw(st.booleans()):
        parts = st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=4)
        known["composed\n"] = Composed(tuple(draw(parts)), draw(st.integers(1, 99)))
    jobs = []
    for name in draw(st.lists(names, unique=True, max_size=6)):
        profile = draw(st.sampled_from(sorted(known)))
        job = Job(
            id=f"w0!{name}",
            submit_time=draw(amounts),
            size=2 if isinstance(known[profile], Parallel) else draw(st.integers(1, 9)),
            walltime=draw(st.just(math.inf) | amounts.filter(bool)),
            profile=profile,
            user=draw(texts),
        )
        jobs.append(job)
    return Workload(
        name="w0", jobs=tuple(jobs), profiles=known, nb_res=draw(st.integers(1, 9)), description=draw(texts)
    )


@same_folder
@given(workload=workloads())
def test_a_written_workload_is_read_again(workload: Workload, tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    write_workload(path, workload)
    again = load_workload(path)
    assert again.jobs == workload.jobs
    used = used_profiles(workload.profiles, {job.profile for job in workload.jobs})
    assert again.profiles == {name: profile for name, profile in workload.profiles.items() if name in used}
    assert (again.name, again.nb_res, again.description) == (workload.name, workload.nb_res, workload.description)


@same_folder
@given(workload=workloads())
def test_sources_say_the_same_as_the_jobs(workload: Workload, tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    write_workload(path, workload)
    for job in load_workload(path, keep_source=True).jobs:
        fields = json.loads(job.source or b"")
        assert (fields["id"], fields["subtime"], fields["res"]) == (job.id, job.submit_time, job.size)
        assert fields.get("walltime", math.inf) == job.walltime


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | st.sampled_from(["delay", "composed", "p", "w0!j"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def nearly(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these keys and any values."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, values)) | values


jobs_like = st.lists(nearly("id", "subtime", "res", "profile", "walltime", "user"), max_size=3) | values
profiles_like = st.dictionaries(texts, nearly("type", "delay", "cpu", "com", "seq", "repeat", "ret"), max_size=3)
files_like = st.fixed_dictionaries(
    {}, optional={"nb_res": st.just(4) | values, "jobs": jobs_like, "profiles": profiles_like | values}
)


@same_folder
@given(content=files_like.map(json.dumps).map(str.encode) | st.binary(max_size=60))
@pytest.mark.parametrize("reader", [load_workload, load_events])
def test_no_text_makes_a_reader_fail_but_with_its_own_error(reader: Any, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    try:
        reader(path)
    except InputError as error:
        assert str(error).startswith(str(path))
        assert len(str(error).splitlines()) == 1


@same_folder
@given(event=nearly("type", "timestamp", "resources"), forward=st.booleans())
def test_no_event_makes_the_reader_fail_but_with_its_own_error(event: Any, forward: bool, tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text(json.dumps(event) + "\n")
    try:
        (found,) = load_events(path, forward)
    except InputError:
        return
    assert found.timestamp == event["timestamp"]
    assert json.loads(found.source) == event
