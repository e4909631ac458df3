"""Every line of a log becomes a job or is counted as left out, whatever it says."""

import math
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.files import load_swf, load_workload, write_workload
from decision.model.errors import InputError

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)

numbers = st.integers(-2, 12) | st.floats(width=32) | st.sampled_from(["1e3", "-1", "x", "007", "1,5"])
rows = st.lists(numbers, min_size=18, max_size=18) | st.lists(numbers, max_size=20)
good_rows = st.tuples(
    st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 64), st.integers(-1, 10**5)
)


def text_of(row: list[object]) -> str:
    return " ".join(map(str, row))


@same_folder
@given(table=st.lists(rows.filter(bool), max_size=12), nodes=st.none() | st.integers(1, 12))
def test_lines_are_jobs_or_counted(table: list[list[object]], nodes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; Version: 2.2\n" + "\n".join(map(text_of, table)) + "\n")
    try:
        workload = load_swf(path, nodes=nodes)
    except InputError as error:
        assert "no usable job" in str(error)
        return
    assert len(workload.jobs) + sum(workload.dropped.values()) == len(table)
    assert all(1 <= job.size <= workload.nb_res and job.walltime > 0 <= job.submit_time for job in workload.jobs)
    assert len({job.id for job in workload.jobs}) == len(workload.jobs)
    assert [job.submit_time for job in workload.jobs] == sorted(job.submit_time for job in workload.jobs)


@same_folder
@given(table=st.lists(good_rows, min_size=1, max_size=12, unique_by=lambda row: row[0]))
def test_good_lines_become_jobs_that_a_workload_file_keeps(table: list[tuple[int, ...]], tmp_path: Path) -> None:
    lines = [text_of([i, at, -1, run, size, *[-1] * 3, limit, *[-1] * 9]) for i, at, run, size, limit in table]
    (tmp_path / "log.swf").write_text("\n".join(lines))
    workload = load_swf(tmp_path / "log.swf")
    found = {
        job.name: (job.submit_time, job.size, job.walltime, workload.profiles[job.profile].duration)
        for job in workload.jobs
    }
    assert found == {str(i): (at, size, limit if limit > 0 else math.inf, run) for i, at, run, size, limit in table}
    write_workload(tmp_path / "w.json", workload)
    again = load_workload(tmp_path / "w.json")
    assert (again.jobs, again.profiles, again.nb_res) == (workload.jobs, workload.profiles, workload.nb_res)


@same_folder
@given(content=st.binary(max_size=80))
def test_no_bytes_make_the_reader_fail_but_with_its_own_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_bytes(content)
    try:
        load_swf(tmp_path / "log.swf")
    except InputError as error:
        assert len(str(error).splitlines()) == 1
