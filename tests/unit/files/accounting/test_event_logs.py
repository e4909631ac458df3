"""Accounting files of PBS, LSF and Grid Engine, made by their documented fields."""

from pathlib import Path

import pytest

from decision.files import load_workload
from decision.files.accounting.read import TraceOptions, recognise
from decision.files.accounting.records import node_names, seconds_of
from decision.model.workload import Workload

PBS = (
    "20150327:03/27/2015 10:00:00;Q;7.srv;queue=batch",
    "03/27/2015 10:00:10;S;7.srv;user=ann group=users",
    "03/27/2015 11:00:10;E;7.srv;user=ann group=users account=phys jobname=j queue=batch ctime=1427450400 "
    "qtime=1427450400 start=1427450410 owner=ann@x exec_host=n1/0+n1/1+n2/0-3+n3/0*13+n4/0*0 Resource_List.mem=2gb "
    "Resource_List.walltime=02:00:00 session=1 end=1427454010 Exit_status=0 resources_used.mem=1048576kb",
    "03/27/2015 11:00:11;E;8[3].srv;user=bob ctime=1427450500 start=1427450600 exec_host=n1/0 "
    "Resource_List.walltime=7200 end=1427450700 Exit_status=271",
    "03/27/2015 11:00:12;E;8[3].srv;user=bob ctime=1427450500 start=1427450600 exec_host=n1/0 "
    "Resource_List.walltime=7200 end=1427450800 Exit_status=0",
    "03/27/2015 11:00:13;E;9.srv;user=bob ctime=1427450500 start=0 exec_host=n1/0 end=0",
    "03/27/2015 11:00:14;E;10.srv;user=bob ctime=1427450500 start=1427450600 exec_host=n1/x end=1427450700",
)


def sge(job: int, submit: int, start: int, end: int, slots: int = 8, task: str = "NONE", name: str = "job") -> str:
    times = f"{submit}:{start}:{end}:0:0"
    usage = ":".join(["0"] * 18)
    return (
        f"all.q:n1:users:ann:{name}:{job}:sge:0:{times}:{usage}:phys:dept:mpi:{slots}:0:1.0:0.1:0.0:"
        f"-u ann -l h_rt=3600,h_vmem=2G -pe mpi 8:0.0:{task}:1048576.0:0:0"
    )


def load(tmp_path: Path, *lines: str, **options: str) -> Workload:
    path = tmp_path / "accounting"
    path.write_text("\n".join(lines) + "\n")
    return load_workload(path, options=TraceOptions(**options))


def keys(workload: Workload) -> dict[str, tuple[int, ...]]:
    return dict(workload.dropped_lines)


def test_ends_of_pbs_jobs_count_and_of_one_start_the_last(tmp_path: Path) -> None:
    workload = load(tmp_path, *PBS, unit="cores")
    first, array = workload.jobs
    assert (first.name, first.size, first.walltime, first.user) == ("7", 2 + 4 + 13 + 1, 7200.0, "ann")
    assert (array.name, array.walltime, workload.profiles[array.profile].duration) == ("8[3]", 7200.0, 200.0)
    assert keys(workload) == {
        "of another kind than a job's end": (1, 2),
        "of a job seen before": (4,),
        "that never started": (6,),
        "whose fields do not fit": (7,),
    }
    assert workload.reading is not None
    assert (workload.reading.format, workload.reading.records) == ("pbs", 7)


def test_nodes_of_pbs_jobs_are_counted_once(tmp_path: Path) -> None:
    assert [job.size for job in load(tmp_path, *PBS, unit="nodes").jobs] == [4, 1]


def test_lsf_has_quoted_texts_and_lists_of_hosts(shared: Path, tmp_path: Path) -> None:
    path = shared / "data/traces/lsf_utf8-multibyte-chars.log"
    (job,) = load_workload(path, options=TraceOptions(unit="cores")).jobs
    assert (job.name, job.size, job.walltime, job.user) == ("404717", 128, 43_200.0, "anonuser")
    text = path.read_text().strip()
    odd = text.replace('"abcde0040" "a', '"a ""quoted"" 4*name" "a').replace(" 404717 ", " 404718 ")
    event = '"EVENT_ADRSV_FINISH" "9.11" 1389683139 1 2 3'
    workload = load(tmp_path, text, odd, event, text[:400])
    assert [job.name for job in workload.jobs] == ["404717", "404718"]
    assert keys(workload) == {"of another kind than a job's end": (3,), "whose fields do not fit": (4,)}


def test_grid_engine_has_seconds_and_univa_milliseconds(tmp_path: Path) -> None:
    lines = [sge(1, 1000000000, 1000000060, 1000000160), sge(2, 1000000100000, 1000000160000, 1000000260000)]
    workload = load(
        tmp_path, "# comment", *lines, sge(3, 1000000000, 0, 0), sge(1, 1000000000, 1000000060, 1000000160, task="1.n1")
    )
    assert [(job.name, job.submit_time, job.size, job.walltime) for job in workload.jobs] == [
        ("1", 0.0, 8, 3600.0),
        ("2", 100.0, 8, 3600.0),
    ]
    assert keys(workload) == {"that never started": (4,), "steps of jobs": (5,)}
    (job,) = load(tmp_path, sge(4, 1000000000, 1000000060, 1000000160, name="a:b:c")).jobs
    assert (job.name, job.size) == ("4", 8)


def test_a_grid_workload_has_29_fields_and_names(tmp_path: Path) -> None:
    fields = "3\t10\t5\t60\t4\t-1\t-1\t4\t90\t-1\t1\tU1\tG1\tX1\tQ1\tP1\tS1\tS2\t" + "\t".join(["-1"] * 11)
    workload = load(tmp_path, "# GWF", fields)
    (job,) = workload.jobs
    assert (job.name, job.size, job.walltime, job.user) == ("3", 4, 90.0, "U1")
    assert recognise(tmp_path / "accounting") == "gwf"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("01:02", 62.0), ("1:00:00", 3600.0), ("2-01:00:00", 176_400.0), ("3-00", 259_200.0), ("90", 90.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_node_lists_are_those_of_clustershell() -> None:
    nodes = pytest.importorskip("ClusterShell.NodeSet").NodeSet
    for text in ("n1", "n[1-3,07-10]", "a[1-2]b[01-03],gpu7", "r[1-2]n[1-2]-ib,x"):
        assert set(node_names(text)) == set(nodes(text))
