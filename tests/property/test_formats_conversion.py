"""Conversions lose nothing that both formats have, and every job is kept or counted."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.experiments.conversion import Conversion, convert
from decision.files import load_json, load_oar, load_swf, load_workload, write_swf, write_workload
from decision.files.generate.jobs import Tasks
from decision.model.dates import read_moment
from decision.model.demand import offered_load, runtimes
from decision.model.errors import InputError
from decision.model.reshape import Filters, by_day, reshape
from decision.model.workload import Delay, Job, Workload

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

seconds = st.integers(0, 10**7).map(float) | st.floats(0, 1e7, width=32).map(lambda x: round(x, 6))
positive = st.integers(1, 10**6).map(float) | st.floats(2**-10, 1e6, width=32).map(lambda x: round(x, 6))
numbers = st.integers(0, 99).map(str) | st.just("")
ids_of_logs = st.integers(0, 10**9).map(str)
names = numbers | st.text("abc é'", max_size=4)


@st.composite
def workloads(draw: st.DrawFn, labels: st.SearchStrategy[str] = numbers, ids: st.SearchStrategy[str] = ids_of_logs):
    jobs, profiles = [], {}
    for name in draw(st.lists(ids, unique=True, min_size=1, max_size=8)):
        runtime = draw(positive)
        profiles[f"delay{runtime:.17g}"] = Delay(runtime)
        extra = {key: value for key in ("group", "executable", "queue") if (value := draw(labels))}
        job = Job(
            id=f"w0!{name}",
            submit_time=draw(seconds),
            size=draw(st.integers(1, 9)),
            walltime=draw(positive),
            profile=f"delay{runtime:.17g}",
            user=draw(labels),
            extra=extra or None,
        )
        jobs.append(job)
    jobs.sort(key=lambda job: job.submit_time)
    start = draw(st.none() | st.integers(0, 2**31).map(float))
    zone = draw(st.integers(-12, 12)) * 3600.0 if start is not None else 0.0
    return Workload(name="w0", jobs=tuple(jobs), profiles=profiles, nb_res=9, unix_start=start, time_zone=zone)


def facts(found: Workload) -> tuple[object, ...]:
    return found.jobs, dict(found.profiles), found.nb_res, found.unix_start, found.time_zone


@same_folder
@given(workload=workloads())
def test_swf_to_json_to_swf_keeps_what_both_have(workload: Workload, tmp_path: Path) -> None:
    write_swf(tmp_path / "a.swf", workload, runtimes(workload))
    log = load_swf(tmp_path / "a.swf")
    assert facts(log) == facts(workload)
    write_workload(tmp_path / "b.json", log)
    again = load_json(tmp_path / "b.json", keep_extra=True)
    assert facts(again) == facts(workload)
    write_swf(tmp_path / "c.swf", again, runtimes(again))
    assert (tmp_path / "c.swf").read_bytes() == (tmp_path / "a.swf").read_bytes()


@same_folder
@given(workload=workloads(names, st.text("ab01", min_size=1, max_size=3)), unlimited=st.booleans())
def test_names_that_are_no_numbers_get_some(workload: Workload, unlimited: bool, tmp_path: Path) -> None:
    if unlimited:
        workload = reshape(workload, Filters(walltime="none"))
    write_swf(tmp_path / "a.swf", workload, runtimes(workload))
    log = load_swf(tmp_path / "a.swf")
    assert [(job.submit_time, job.size) for job in log.jobs] == [(job.submit_time, job.size) for job in workload.jobs]
    assert runtimes(log).tolist() == runtimes(workload).tolist()
    for label in (lambda job: job.user, lambda job: (job.extra or {}).get("queue", "")):
        pairs = set(zip(map(label, workload.jobs), map(label, log.jobs), strict=True))
        assert len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})


moments = st.none() | st.integers(0, 10**7).map(lambda at: read_moment(str(at)))
bounds = st.none() | st.integers(0, 9)
filters = st.builds(
    Filters,
    nodes=st.none() | st.integers(1, 9),
    begin=moments,
    end=moments,
    jobs=st.none() | st.builds(slice, bounds, bounds),
    walltime=st.sampled_from(["requested", "runtime", "none"]),
    shift=st.booleans(),
)


@same_folder
@given(workload=workloads(), asked=filters)
def test_kept_and_dropped_are_all(workload: Workload, asked: Filters) -> None:
    try:
        found = reshape(workload, asked)
    except InputError as error:
        assert "no usable job" in str(error)
        return
    assert len(found.jobs) + sum(found.dropped.values()) == len(workload.jobs)
    assert set(found.profiles) == {job.profile for job in found.jobs}
    assert {job.id for job in found.jobs} <= {job.id for job in workload.jobs}
    for day, part in by_day(found):
        assert len(part.jobs) + sum(part.dropped.values()) == len(workload.jobs), day
        assert all(-1e-6 <= job.submit_time <= 86_400 for job in part.jobs)


@same_folder
@given(workload=workloads(), load=st.floats(0.01, 10))
def test_a_load_that_is_asked_for_is_had(workload: Workload, load: float) -> None:
    if math.isnan(offered_load(workload, runtimes(workload))):
        return
    found = reshape(workload, Filters(load=load))
    assert offered_load(found, runtimes(found)) == pytest.approx(load)
    assert [job.id for job in found.jobs] == [job.id for job in workload.jobs]
    assert [job.submit_time for job in found.jobs] == sorted(job.submit_time for job in found.jobs)


@same_folder
@given(workload=workloads(), kind=st.sampled_from(["computation", "parallel"]))
def test_profiles_of_any_kind_take_as_long_as_recorded(workload: Workload, kind: str, tmp_path: Path) -> None:
    write_workload(tmp_path / "a.json", workload)
    tasks = Tasks(kind=kind, speed=1e9, comm_ratio=0.5 if kind == "parallel" else None)
    asked = Conversion(sources=(tmp_path / "a.json",), target=tmp_path / "b.json", tasks=tasks)
    convert(asked)
    assert runtimes(load_workload(tmp_path / "b.json"), 1e9).tolist() == pytest.approx(runtimes(workload).tolist())


@same_folder
@given(content=st.binary(max_size=80) | st.text("job_id,\n0123456789 \"'{}[]:", max_size=80).map(str.encode))
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_no_bytes_make_the_reader_of_oar_fail_but_with_its_own_error(
    suffix: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"jobs{suffix}"
    path.write_bytes(content)
    try:
        load_oar(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).startswith(str(path))
