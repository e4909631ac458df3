"""Nodes and jobs as operators have them: threads, memory, types of GPUs, parts of nodes, and states of one moment."""

from pathlib import Path

import msgspec
import pytest

from decision.model.errors import InputError
from decision.slurm.agree import agree, agreement_notes
from decision.slurm.case import read_topology
from decision.slurm.conf import read_conf
from decision.slurm.jobs import of_cluster
from decision.slurm.records import RecordRow
from tests.helpers.slurm_cases import line, starts, toy

_HEAD = "ClusterName=c\nSelectType=select/cons_tres\nSelectTypeParameters={}\nSchedulerType=sched/backfill\n"
_HEAD += "PriorityType=priority/basic\n"
_OLD = "NodeName=n1 CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=64000\n"
_PART = "PartitionName=p Nodes={} Default=YES MaxTime=1-0\n"
_RUN = 600  # seconds


def _conf(select: str = "CR_Core", nodes: str = _OLD, part: str = _PART.format("n1"), more: str = "") -> str:
    return _HEAD.format(select) + nodes + part + more


def _jobs(cpus: int, count: int = 4, options: str = "", node: str = "n1", **more: str) -> list[str]:
    """Jobs of a log on one node, each a second after the one before."""
    asked = {"NCPUS": str(cpus), "ReqCPUS": str(cpus), "ReqTRES": f"cpu={cpus},node=1", "NodeList": node}
    return [
        line(n, n, 1, 30, _RUN, **{**asked, "SubmitLine": f"sbatch -n {cpus} {options} job.sh", **more})
        for n in range(1, count + 1)
    ]


def _together(found: dict[str, float]) -> int:
    """How many of the jobs run at a time, from when the second one starts behind the first."""
    first, *others = sorted(found.values())
    return 1 + sum(start < first + _RUN for start in others)


_NEW = "NodeName=n2 CPUs=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=256000\n"


@pytest.mark.parametrize("more", ["", _NEW + "PartitionName=new Nodes=n2 MaxTime=1-0\n"])
def test_threads_are_those_of_the_nodes_that_a_job_has(tmp_path: Path, more: str) -> None:
    assert _together(starts(toy(tmp_path, _jobs(16), _conf(more=more)))) == 1


def test_on_a_node_of_two_threads_a_core_is_not_divided_where_nodes_differ(tmp_path: Path) -> None:
    # 3 cpus are 2 cores, so that 16 of the 32 jobs' 3 cpus fit on 32 cores
    conf = _conf(nodes=_OLD + _NEW, part=_PART.format("n2"))
    assert _together(starts(toy(tmp_path, _jobs(3, count=20, node="n2"), conf))) == 16


@pytest.mark.parametrize(
    ("options", "req", "more", "together"),
    [
        ("--mem=0", "", "", 1),
        ("", "", "", 1),  # no default: all memory of the node
        ("", "", "DefMemPerNode=UNLIMITED\n", 1),
        ("", "", "DefMemPerCPU=4000\n", 4),
        ("", "", "DefMemPerNode=32000\n", 2),
        ("", "0n", "DefMemPerCPU=4000\n", 1),
        ("--mem=16G", "", "", 3),
        ("--mem-per-cpu=8000", "", "", 2),
    ],
)
def test_a_job_without_memory_takes_all_of_its_node_where_slurm_does(
    tmp_path: Path, options: str, req: str, more: str, together: int
) -> None:
    case = toy(tmp_path, _jobs(4, options=options), _conf("CR_Core_Memory", more=more))
    jobs = [msgspec.structs.replace(job, memory=-1.0) if req == "0n" else job for job in case.jobs]
    assert _together(starts(msgspec.structs.replace(case, jobs=tuple(jobs)))) == together


@pytest.mark.parametrize(
    ("more", "tres", "together"),
    [("", "mem=16G", 3), ("DefMemPerNode=32000\n", "mem=16G", 3), ("DefMemPerCPU=8000\n", "mem=32000M", 2)],
)
def test_memory_that_a_script_asks_for_is_that_of_the_log(tmp_path: Path, more: str, tres: str, together: int) -> None:
    lines = _jobs(4, options="-p p", ReqTRES=f"cpu=4,{tres},node=1")
    assert _together(starts(toy(tmp_path, lines, _conf("CR_Core_Memory", more=more)))) == together


def test_the_jobs_of_a_log_are_those_of_the_cluster_of_slurm_conf(tmp_path: Path) -> None:
    rows = [RecordRow({"cluster": name, "jobid": "1"}, f"line {n}") for n, name in enumerate(("c", "d", "c"))]
    mine, notes = of_cluster(rows, "c")
    assert (len(mine), notes) == (2, ["1 records of the cluster d were skipped"])
    with pytest.raises(InputError, match=r"records of the clusters c, d, and slurm\.conf is called e"):
        of_cluster(rows, "e")


_GPUS = "NodeName=n1 CPUs=16 Gres=gpu:a100:1(S:0)\nNodeName=n2 CPUs=16 Gres=gpu:v100:2(IDX:0-1)\n"


@pytest.mark.parametrize(
    ("options", "tres", "together"),
    [
        ("--gres=gpu:a100:1", "gres/gpu:a100=1,gres/gpu=1", 1),
        ("--gres=gpu:a100:1", "gres/gpu=1", 1),
        ("-G v100:1", "gres/gpu=1", 2),
        ("--gpus-per-node=v100:2", "gres/gpu=2", 1),
        ("", "gres/gpu:v100=1,gres/gpu=1", 2),
        ("--gres=gpu:1", "gres/gpu=1", 3),
    ],
)
def test_gpus_are_of_types_and_each_node_has_its_own(tmp_path: Path, options: str, tres: str, together: int) -> None:
    lines = _jobs(1, options=options, ReqTRES=f"cpu=1,node=1,{tres}")
    conf = _conf(nodes=_GPUS, part=_PART.format("n[1-2]"))
    assert _together(starts(toy(tmp_path, lines, conf))) == together


@pytest.mark.parametrize("cores", ["     NodeName=n1 CoreIDs=0-3\n", "", "     NodeName=n1 CoreIDs=1,3-5\n"])
def test_a_reservation_of_some_cores_leaves_the_others(tmp_path: Path, cores: str) -> None:
    shown = "ReservationName=r StartTime=2026-03-02T07:00:00 EndTime=2026-03-02T12:00:00 Duration=05:00:00\n"
    shown += f"   Nodes=n1 NodeCnt=1 CoreCnt=4 Features=(null)\n{cores}   TRES=cpu=4\n"
    assert _together(starts(toy(tmp_path, _jobs(6, count=3), _conf(), reservations=shown))) == 2
    assert toy(tmp_path / "none", _jobs(6), _conf(), reservations="No reservations in the system\n").windows == ()


_TWO = "NodeName=n[1-2] CPUs=16 Feature=fast\n"


def test_down_nodes_are_down(tmp_path: Path) -> None:
    conf = _conf(nodes=_TWO, part=_PART.format("n[1-2]"), more='DownNodes=n2 State=DOWN Reason="power supply"\n')
    assert _together(starts(toy(tmp_path, _jobs(16), conf))) == 1


@pytest.mark.parametrize(
    ("state", "reason", "host", "together"),
    [
        ("IDLE+DRAIN", "disk [root@2026-03-20T10:00:00]", "n2", 2),  # after the log
        ("IDLE+DRAIN", "disk [root@2026-03-01T10:00:00]", "n1", 1),  # before it, and no job was there
        ("IDLE+DRAIN", "disk [root@2026-03-01T10:00:00]", "n2", 2),  # its jobs know better
        ("DOWN*", "", "n1", 1),
        ("DOWN*", "", "n2", 2),
        ("IDLE+CLOUD+POWERED_DOWN", "", "n1", 2),  # it sleeps
    ],
)
def test_a_state_of_one_moment_is_no_history(tmp_path: Path, state: str, reason: str, host: str, together: int) -> None:
    shown = "NodeName=n1 CPUTot=16 CoresPerSocket=8 Sockets=2 State=IDLE ThreadsPerCore=1\n"
    shown += f"NodeName=n2 CPUTot=16 CoresPerSocket=8 Sockets=2 State={state} ThreadsPerCore=1 Reason={reason}\n"
    lines = [*_jobs(16, count=3), *_jobs(16, count=4, node=host)[3:]]
    case = toy(tmp_path, lines, _conf(nodes=_TWO, part=_PART.format("n[1-2]")), nodes=shown)
    assert _together(starts(case)) == together
    assert any("n2 is " in note for note in case.notes) == (host == "n2")


def test_node_sets_are_nodes_and_features_mixed_with_names(tmp_path: Path) -> None:
    nodes = _OLD + "NodeName=n[2-3] CPUs=32 Feature=new,big\nNodeName=n4 CPUs=8\n"
    more = "NodeSet=first Nodes=n1\nNodeSet=large Feature=big\nNodeSet=both Nodes=n1 Feature=big\n"
    more += "PartitionName=a Nodes=first,n4\nPartitionName=b Nodes=large\nPartitionName=d Nodes=both\n"
    case = toy(tmp_path, _jobs(16), _conf(nodes=nodes, more=more))
    listed = {each.name: each.nodes for each in case.partitions}
    assert listed == {"p": ("n1",), "a": ("n1", "n4"), "b": ("n2", "n3"), "d": ("n1", "n2", "n3")}


@pytest.mark.parametrize("blank", [" ", "\t", "  \t "])
def test_include_takes_any_blank(tmp_path: Path, blank: str) -> None:
    (tmp_path / "nodes.conf").write_text(_OLD)
    (tmp_path / "slurm.conf").write_text(f"ClusterName=c\nInclude{blank}nodes.conf\n")
    assert [entry.name for entry in read_conf(tmp_path / "slurm.conf").nodes] == ["n1"]


def test_lines_and_keys_that_are_not_used_are_named(tmp_path: Path) -> None:
    more = "FrontendName=f1\nPartitionName=q Nodes=n1 PowerDownOnIdle=YES\n"
    named = toy(tmp_path, _jobs(16), _conf(more=more)).keys.may_matter
    assert set(named) >= {"1 line FrontendName=", "powerdownonidle=YES of partition q (0 jobs)"}


def test_where_nothing_starts_nothing_is_compared(tmp_path: Path) -> None:
    case = toy(tmp_path, _jobs(16), _conf(nodes=_OLD.replace("\n", " State=DOWN\n")))
    with pytest.raises(InputError, match=r"4 of 4 jobs never start: the nodes of partition p are down"):
        agree(case, case.settings, 2)
    waiting = tuple(msgspec.structs.replace(job, start=-1, state="PENDING") for job in case.jobs)
    with pytest.raises(InputError, match=r"no job of the log has a start .* and nodes"):
        agree(msgspec.structs.replace(case, jobs=waiting), case.settings, 2)


def test_jobs_without_a_limit_are_compared(tmp_path: Path) -> None:
    lines = _jobs(16, TimelimitRaw="UNLIMITED")
    case = toy(tmp_path, lines, _conf(part=_PART.format("n1").replace("1-0", "INFINITE")))
    found = agree(case, case.settings, 2)
    assert 800 < found.means["easy"] < 1000
    notes = " ".join(agreement_notes(case, found))
    assert "4 jobs have no limit" in notes and "all recorded starts are the submissions" in notes


def test_leaves_may_have_several_spines(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    spines = "".join(f"SwitchName=spine{n} Switches=leaf[0-1]\n" for n in range(2))
    path.write_text("SwitchName=leaf0 Nodes=n[1-4]\nSwitchName=leaf1 Nodes=n[5-8]\n" + spines)
    case = toy(tmp_path / "case", _jobs(1), _conf(nodes="NodeName=n[1-8] CPUs=2\n", part=_PART.format("n[1-8]")))
    switches, notes, _ = read_topology(case.conf, path, case.nodes)
    assert [(each.name, each.level, each.above) for each in switches] == [
        *(("leaf0", 0, 2), ("leaf1", 0, 2), ("spine0", 1, -1), ("spine1", 1, -1))
    ]
    assert notes == []
