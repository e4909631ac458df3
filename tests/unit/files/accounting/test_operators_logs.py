"""Logs as operators have them: none of their jobs vanishes or is taken for another, and what is odd is named."""

import json
from pathlib import Path

import numpy as np
import pytest

from decision.experiments.audit import audit
from decision.experiments.inputs import Inputs, load_inputs
from decision.files.accounting.read import TraceOptions, recognise
from decision.files.accounting.records import Clock, span_of
from decision.files.workload import read_workload
from decision.model.computer import find_platform
from decision.model.demand import runtimes
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import dropped_text
from decision.model.workload import Workload


def _read(folder: Path, text: str, name: str = "log.txt", **options: str | int) -> Workload:
    path = folder / name
    path.write_text(text)
    return read_workload([path], options=TraceOptions(**options))  # type: ignore[arg-type]


def _jobs(workload: Workload) -> list[tuple[str, float, int, float, float]]:
    """Id, submission, size, run time and walltime of each job."""
    columns = zip(workload.jobs, runtimes(workload, None).tolist(), strict=True)
    return [(job.id.partition("!")[2], job.submit_time, job.size, run, job.walltime) for job, run in columns]


_SGE = (
    "q:n1:g:u:na:me:{job}:sge:0:1600000000:1600000100:1600003700:0:0:3600:1.0:1.0:1.0:0:0:0:0:1:0:0:0.0:0:0:0:0:1:1:NONE:"
    "d:NONE:2:0:1.0:0.5:0.0:{category}:0.000000:NONE:2000000.000000:0:0"
)


@pytest.mark.parametrize(
    ("category", "limit"),
    [
        ("-l h_rt=7200,h_vmem=4G", 7200),
        ("-l h_vmem=4G,h_rt=7200", 7200),
        ("-l h_rt=3600", 3600),
        ("-l h_rt=02:00:00", 7200),
        ("-l h_rt=24:0:0", 86_400),
        ("-l h_rt=01:00:00,s_rt=00:59:00", 3600),
        ("-q a@@b:c -l h_rt=60", 60),
        ("-U s -l s_rt=3500", np.inf),
        ("NONE", np.inf),
    ],
)
def test_a_limit_of_grid_engine_is_no_separator(tmp_path: Path, category: str, limit: float) -> None:
    text = "".join(_SGE.format(job=job, category=category) + "\n" for job in (7, 8))
    workload = _read(tmp_path, text, "accounting")
    assert _jobs(workload) == [("7", 0.0, 2, 3600.0, limit), ("8", 0.0, 2, 3600.0, limit)]
    assert workload.dropped == {}


_HEAD = "Cluster|JobID|User|Submit|Start|End|Elapsed|Timelimit|State|NNodes|NCPUS|NodeList\n"


def _sacct(
    job: int, begin: str = "10:00:05", *, submit: str = "10:00:00", state: str = "COMPLETED", end: str = "11:00:05",
    elapsed: str = "01:00:00", nodes: str = "n1", count: int = 1, cluster: str = "red",
) -> str:  # fmt: skip
    times = "|".join(f"2023-05-01T{time}" for time in (submit, begin, end))
    return f"{cluster}|{job}|u|{times}|{elapsed}|02:00:00|{state}|{count}|{4 * count}|{nodes}\n"


def test_clusters_are_told_apart_and_one_is_chosen(tmp_path: Path) -> None:
    text = _HEAD + _sacct(10) + _sacct(10, cluster="blue", nodes="b[1-3]", count=3)
    with pytest.raises(ConfigError, match=r"2 clusters.*blue, red; convert one of them"):
        _read(tmp_path, text)
    assert [job.size for job in _read(tmp_path, text, cluster="blue").jobs] == [3]
    with pytest.raises(ConfigError, match="no record is of the cluster 'green'"):
        _read(tmp_path, text, cluster="green")


_PBS = "04/05/2017 13:06:53;E;{id};user=u queue=q ctime=100 start=107 end=213 {more} Resource_List.walltime=01:00:00\n"


def test_servers_of_pbs_are_told_apart(tmp_path: Path) -> None:
    text = _PBS.format(id="45.srva", more="exec_host=a1/0-3")
    text += _PBS.format(id="45.srvb", more="exec_host=b1/0-7+b2/0-7")
    with pytest.raises(ConfigError, match="srva, srvb"):
        _read(tmp_path, text)
    assert _jobs(_read(tmp_path, text, cluster="srvb", unit="cores")) == [("45", 0.0, 16, 106.0, 3600.0)]


@pytest.mark.parametrize(
    ("more", "cores"),
    [
        ("Resource_List.nodes=1:ppn=28", 28),
        ("Resource_List.nodes=2:ppn=8:big+1:ppn=4", 20),
        ("Resource_List.nodes=node7:ppn=4#shared", 4),
        ("Resource_List.select=2:ncpus=16:mem=4gb", 32),
        ("exec_vnode=(n1:mem=4kb:ncpus=16)+(n2:ncpus=8) Resource_List.nodes=1:ppn=28", 24),
        ("Resource_List.nodect=1 Resource_List.ncpus=6", 6),
        ("exec_host=a/0-1 Resource_List.nodes=1:ppn=28", 2),
    ],
)
def test_a_job_of_pbs_without_hosts_has_the_size_that_it_asked_for(tmp_path: Path, more: str, cores: int) -> None:
    workload = _read(tmp_path, _PBS.format(id="1.s", more=more), unit="cores")
    assert [job.size for job in workload.jobs] == [cores]


def test_an_attempt_that_was_requeued_is_a_job_that_ended(tmp_path: Path) -> None:
    first = _sacct(1, state="REQUEUED")
    again = _sacct(1, "11:10:00", submit="11:00:05", end="11:20:00", elapsed="00:10:00")
    workload = _read(tmp_path, _HEAD + first + again)
    assert [(job[0], job[3]) for job in _jobs(workload)] == [("1", 3600.0), ("1-2", 600.0)]
    assert workload.dropped == {}


def test_a_job_that_changed_its_size_is_one_submission(tmp_path: Path) -> None:
    text = _HEAD + _sacct(20, state="RESIZING", end="10:30:05", elapsed="00:30:00", nodes="n[1-4]", count=4)
    text += _sacct(20, "10:30:05", elapsed="00:30:00", nodes="n[1-2]", count=2) + _sacct(21, nodes="m")
    workload = _read(tmp_path, text)
    assert [job[2:4] for job in _jobs(workload)] == [(4, 3600.0), (1, 3600.0)]
    found = audit(workload)
    assert (found.joined, found.recorded and found.recorded.max_wait) == (1, 5.0)
    assert found.lost["sizes that changed while a job ran"] == 1


def test_a_second_header_of_a_standard_log_is_refused_with_its_line(tmp_path: Path) -> None:
    job = "{} 0 0 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n"
    text = f"; MaxProcs: 16\n; UnixStartTime: 100\n{job.format(1)}; a note\n"
    assert len(_read(tmp_path, text + job.format(2), "a.swf").jobs) == 2
    with pytest.raises(InputError, match=r"line 5: UnixStartTime behind jobs .* second log"):
        _read(tmp_path, f"{text}; UnixStartTime: 900\n{job.format(3)}", "a.swf")


def test_jobs_larger_than_the_machine_are_called_that_with_their_lines(tmp_path: Path) -> None:
    job = "{} 0 0 100 {} -1 -1 {} 200 -1 1 1 1 -1 1 -1 -1 -1\n"
    found = audit(_read(tmp_path, "; MaxProcs: 4\n" + job.format(1, 2, 2) + job.format(2, 8, 8), "a.swf"))
    assert (found.jobs, found.walltimes) == (1, 1)
    assert {name: each.lines for name, each in found.left_out.items()} == {"too_large": [3]}
    found = audit(_read(tmp_path, _HEAD + _sacct(1) + _sacct(2, nodes="n[1-4]", count=4), machine=2, unit="nodes"))
    assert {name: each.lines for name, each in found.left_out.items()} == {"too_large": [3]}


def test_slurms_text_file_of_completed_jobs_is_read(tmp_path: Path) -> None:
    line = (
        "JobId={} UserId=ua(1000) GroupId=ga(1000) Name=my job JobState=COMPLETED Partition=normal TimeLimit={} "
        "StartTime=2024-03-04T08:00:05 EndTime=2024-03-04T08:30:05 NodeList=n[1-2] NodeCnt=2 ProcCnt=32 WorkDir=/h "
        "Tres=cpu=32,mem=32G,node=2 Account= QOS= Cluster=unknown SubmitTime=2024-03-04T08:00:00 ExitCode=0:0 \n"
    )
    workload = _read(tmp_path, line.format(57, 60) + line.format(58, "UNLIMITED") + "JobId=59 nothing\n", unit="nodes")
    assert _jobs(workload) == [("57", 0.0, 2, 1800.0, 3600.0), ("58", 0.0, 2, 1800.0, np.inf)]
    assert workload.dropped_lines == {"whose fields do not fit": (3,)}


def test_grid_engines_lines_of_json_are_read(tmp_path: Path) -> None:
    job = {
        "job_number": 101,
        "task_number": 3,
        "slots": 8,
        "submission_time": 1600000000000000,
        "category": "-l h_rt=60",
    }
    job |= {"start_time": 1600000100000000, "end_time": 1600003700000000, "owner": "u", "failed": 0, "exit_status": 0}
    workload = _read(tmp_path, json.dumps(job) + "\n{}\n", "accounting.jsonl")
    assert _jobs(workload) == [("101[3]", 0.0, 8, 3600.0, 60.0)]
    assert workload.trace is not None and workload.trace.wait.tolist() == [100.0]


@pytest.mark.parametrize("where", ["AllocTRES,NodeList", "NodeList,AllocTRES"])
def test_commas_between_columns_and_in_lists_are_told_apart(tmp_path: Path, where: str) -> None:
    lists = {"AllocTRES": "billing=32,cpu=32,mem=64G,node=2", "NodeList": "n[03,05],m1"}
    times = "2023-05-01T10:00:00,2023-05-01T10:00:05,2023-05-01T11:00:05,01:00:00,02:00:00"
    head = f"JobID,User,Submit,Start,End,Elapsed,Timelimit,State,NNodes,NCPUS,{where}\n"
    row = f"1,u,{times},COMPLETED,3,32,{','.join(lists[name] for name in where.split(','))}\n"
    workload = _read(tmp_path, head + row)
    assert [job.size for job in workload.jobs] == [3]
    assert workload.nb_res == 3


def test_names_beside_texts_with_commas_are_those_of_other_records(tmp_path: Path) -> None:
    head = "JobID,JobName,User,Submit,Start,End,Elapsed,State,NNodes,NCPUS,AllocTRES,NodeList\n"
    times = "2023-05-01T10:00:00,2023-05-01T10:00:05,2023-05-01T11:00:05,01:00:00,COMPLETED"
    rows = [f"{job},{name},{times},1,16,cpu=16,mem=1G,n{job}\n" for job, name in enumerate(("x,y,u", "z,u", "x,y,v"))]
    workload = _read(tmp_path, head + "".join(rows))
    assert [job.id for job in workload.jobs] == ["w0!0", "w0!1"]
    assert dropped_text(workload).startswith("1 whose fields do not fit (line 4; line 4: a name beside")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "   JobID      State \n-------- ---------- \n1 COMPLETED \n", r"sacct cut .* sacct -P"),
        ("a.json", '[{"name":"a","start":168293,"cpus":4}]', r"JSON of no known format .* which columns"),
        ("a.json", '[{"status":"Pass","attempts":[{"start_time":"2017"}]}]', "JSON of no known format"),
        ("a.jsonl", '{"id":1,"t_submit":1.5}\n{"id":2,"t_submit":2.5}\n', "JSON of no known format"),
        ("a.json", '{"trace": [1, 2]}', "JSON of no known format"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_it_is_and_what_to_do(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _read(tmp_path, text, name)


def test_tables_may_have_blanks_between_columns(tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text('submit="QDate"\nstart="Start"\nend="Done"\nsize="Cpus"\nunit="cores"\nid="Id"\n')
    text = "Id Owner  QDate Start Done Cpus\n10 ann  100 160 3760 4\n11 bob 200   260 860 1\n12 x y 200 260 860 1\n"
    assert recognise(tmp_path / "t.txt") == "csv" if (tmp_path / "t.txt").write_text(text) else False
    workload = _read(tmp_path, text, "t.txt", columns=str(mapping))
    assert [job[:4] for job in _jobs(workload)] == [("10", 0.0, 4, 3600.0), ("11", 100.0, 1, 600.0)]
    assert dropped_text(workload) == "1 whose fields do not fit (line 4; line 4: 7 fields for 6 columns)"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h 2m 3s", 3723), ("45.2s", 45.2), ("1h", 3600), ("2d 3h", 183_600), ("350ms", 0.35), ("1:02:03", 3723)],
)
def test_spans_may_have_units(text: str, seconds: float) -> None:
    assert span_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["1x", "", "h", "1h and 2m", "12"])
def test_what_is_no_span_with_units_is_none(text: str) -> None:
    assert np.isnan(span_of(text))


def test_dates_may_have_slashes_and_what_is_none_is_named_with_its_column(tmp_path: Path) -> None:
    seconds, bad = Clock().read(["05/01/23-10:00:00", "2023/05/01 10:00:00", "05/01/2023 10:00", "31/31/23-10:00:00"])
    assert len(set(seconds[:3].tolist())) == 1 and bad.tolist() == [False, False, False, True]
    text = _HEAD + _sacct(1) + _sacct(2).replace("2023-05-01T10:00:05", "then")
    workload = _read(tmp_path, text)
    assert dropped_text(workload) == "1 whose fields do not fit (line 3; line 3: start is 'then')"


def test_several_files_of_records_are_no_workloads_of_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("a.txt", "b.txt"), 1):
        (tmp_path / name).write_text(_HEAD + _sacct(number))
    paths = (tmp_path / "a.txt", tmp_path / "b.txt")
    with pytest.raises(ConfigError, match=r"decision workload convert .*a.txt .*b.txt -o log.json"):
        load_inputs(Inputs(platform=find_platform("toy"), workloads=paths))
    assert len(read_workload(paths).jobs) == 2
