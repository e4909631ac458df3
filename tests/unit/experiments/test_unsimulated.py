"""What a log says that is not simulated: which jobs each thing touches, and their share of the host-seconds."""

from pathlib import Path

import pytest

from decision.cli.tables import print_unsimulated
from decision.experiments import advise
from decision.experiments.advise import Wish, find_advice
from decision.experiments.audit import unsimulated
from decision.experiments.whole import Log
from decision.files.workload import Selection, load_workload, read_workload

COLUMNS = (
    "JobID|Submit|Start|End|ElapsedRaw|State|NNodes|NCPUS|User|Partition|QOS|ReqMem|AllocTRES|NodeList|Dependency|"
)
COLUMNS += "Reason"
ROWS = [  # (partition, QOS, memory, GPUs, nodes, seconds, dependency)
    ("short", "normal", "", 0, "n1", 600, ""),
    ("short", "normal", "4G", 0, "n1", 600, ""),  # beside job 1, on its node
    ("long", "normal", "", 2, "n2", 1200, "afterok:1"),
    ("long", "normal", "", 0, "n3", 1600, ""),
]


def sacct(path: Path) -> Path:
    lines = [COLUMNS]
    for number, (partition, qos, memory, gpus, node, seconds, after) in enumerate(ROWS, 1):
        end = f"2026-03-02T08:{seconds // 60:02}:{seconds % 60:02}"
        times = f"2026-03-02T08:00:00|2026-03-02T08:00:00|{end}|{seconds}|COMPLETED|1|1"
        reason = "None" if number < len(ROWS) else "QOSMaxJobsPerUserLimit"
        tres = "cpu=1,node=1" + (f",gres/gpu={gpus}" if gpus else "")
        lines.append(f"{number}|{times}|ann|{partition}|{qos}|{memory}|{tres}|{node}|{after}|{reason}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_each_thing_says_how_many_jobs_and_how_much_of_the_host_hours_it_touches(tmp_path):
    found = {each.what: each for each in unsimulated(read_workload([sacct(tmp_path / "s.txt")]))}
    assert {what: (each.jobs, each.share) for what, each in found.items()} == {
        "partitions": (4, 1.0),
        "shared nodes": (2, pytest.approx(0.3)),
        "memory": (1, pytest.approx(0.15)),
        "gpus": (1, pytest.approx(0.3)),
        "dependencies": (1, pytest.approx(0.3)),
        "limits": (1, pytest.approx(0.4)),  # the last job, as its reason says
    }, "the one QOS of all jobs is no difference between them"
    assert found["partitions"].values == {"short": 2, "long": 2}
    assert found["limits"].values == {"QOSMaxJobsPerUserLimit": 1}
    assert (
        found["gpus"].text()
        == "GPUs (1 job, 25 % of all, 30 % of the host-hours): a host is a host, with a GPU or without"
    )


def test_jobs_that_were_left_out_do_not_count(tmp_path):
    found = unsimulated(load_workload(sacct(tmp_path / "s.txt"), jobs=slice(0, 2)))
    assert [(each.what, each.jobs, each.share) for each in found] == [("shared nodes", 2, 1.0), ("memory", 1, 0.5)]


def test_a_log_in_the_standard_format_says_queues_memory_and_what_jobs_follow(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(
        "; MaxProcs: 4\n1 0 0 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1\n2 9 0 300 1 -1 -1 1 200 64 1 1 1 -1 2 -1 1 10\n"
    )
    found = {each.what: (each.jobs, each.share) for each in unsimulated(read_workload([path]))}
    assert found == {"queues": (2, 1.0), "memory": (1, 0.75), "dependencies": (1, 0.75)}


def test_a_workload_that_was_made_says_nothing_else():
    assert unsimulated(load_workload("toy")) == []


def test_an_advice_has_them(tmp_path, monkeypatch):
    monkeypatch.setattr(advise, "ORDERS", ("fcfs",))
    monkeypatch.setattr(advise, "SHIPPED", ())
    log = Log(workload=sacct(tmp_path / "s.txt"), platform=None, hosts=0, selection=Selection(missing="runtime"))
    found = find_advice(log, Wish(copies=1), tmp_path / "out")
    assert f"decision slurm read --conf slurm.conf --jobs {log.workload} -o CASE" in found.better
    assert found.not_simulated[0].what == "partitions" and len(found.not_simulated) == 6


def test_a_run_says_them_in_one_line_unless_the_policy_has_a_case_of_its_own(tmp_path, capsys):
    workload = read_workload([sacct(tmp_path / "s.txt")])
    print_unsimulated([workload, load_workload("toy")], ["slurm,conf=slurm.conf"])
    assert capsys.readouterr().err == ""
    print_unsimulated([workload, load_workload("toy")], ["easy"])
    (line,) = " ".join(capsys.readouterr().err.split()).split("\n")
    assert "not simulated: partitions (4 jobs, 100 % of all, 100 % of the host-hours: short, long); " in line
