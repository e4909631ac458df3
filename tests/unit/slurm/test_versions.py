"""Slurm's versions: whose rules and defaults are taken, and what each rule changes."""

from pathlib import Path

import pytest

from decision.model.errors import ConfigError, InputError
from decision.slurm.build import build_world
from decision.slurm.case import Sources, read_case
from decision.slurm.conf import Settings, read_conf, read_taken
from decision.slurm.kernels.select_nodes import begin_trial, choose_nodes, measure_nodes
from decision.slurm.kernels.world import SlurmWorld
from decision.slurm.nodes import read_reservations
from decision.slurm.switches import read_forest, read_switches
from decision.slurm.versions import VERSION_RULES, read_version, version_text
from tests.helpers.slurm_cases import CONF, line, toy

LEFT_OUT = CONF.replace("SelectType=select/linear\n", "").replace("PriorityType=priority/basic\n", "")
_NEW = "SLURM_VERSION = 26.05.5\n"
YAML = """---
- topology: other
  flat: true
- topology: tree1
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: leaf[1-2]
      - switch: leaf1   # near
        nodes: n[1-2]
      - switch: leaf2
        nodes: n[3-4]
"""


@pytest.mark.parametrize(("text", "version"), [("25.05", (25, 5)), ("slurm 26.05.5", (26, 5)), ("24.11.0-1", (24, 11))])
def test_a_version_is_read_as_slurm_writes_it(text: str, version: tuple[int, int]) -> None:
    assert read_version(text)[:2] == version
    assert version_text(read_version("25.05.3")) == "25.05.3"


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="'new' is not a version of Slurm"):
        read_version("new")


def test_each_rule_is_one_of_the_model() -> None:
    assert set(VERSION_RULES) <= set(SlurmWorld.__annotations__)


def test_defaults_are_those_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(LEFT_OUT)
    settings = Settings(read_conf(tmp_path / "slurm.conf"))
    assert settings.linear and not settings.multifactor
    newer = settings.changing({"slurm_version": "23.11"})
    assert not newer.linear and newer.multifactor


def test_what_slurmctld_took_counts_where_slurm_conf_says_nothing(tmp_path: Path) -> None:
    shown = "Configuration data as of now\nSelectType = select/linear\nCompleteWait = 7 sec\nSLURM_VERSION = 25.11.2\n"
    case = toy(tmp_path, [line(1, 0, 1, 5, 60)], LEFT_OUT, config=shown)
    assert case.slurm == "25.11.2" and case.settings.linear and case.settings.multifactor
    assert case.settings.number("CompleteWait") == 7
    assert not any("version" in note for note in case.notes)


def test_a_cluster_without_version_is_told_what_was_taken(tmp_path: Path) -> None:
    case = toy(tmp_path, [line(1, 0, 1, 5, 60)], LEFT_OUT)
    assert "SelectType=select/linear and PriorityType=priority/basic" in " ".join(case.notes)


def test_jobs_that_share_nodes_refute_whole_nodes(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 5, 300), line(2, 10, 1, 5, 300)]
    case = toy(tmp_path / "left-out", jobs, LEFT_OUT)
    assert not case.linear and case.slurm == "23.11"
    written = toy(tmp_path / "written", jobs)
    assert written.linear and "1 jobs of the log ran on nodes that other jobs had" in " ".join(written.notes)


def test_the_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.txt").write_text("Configuration data as of 2026-03-02T08:00:00\nSelectType = select/linear\n")
    with pytest.raises(InputError, match=r"give it beside slurm\.conf"):
        read_case(Sources(conf=tmp_path / "config.txt", jobs=tmp_path / "none"))
    with pytest.raises(InputError, match="no line SLURM_VERSION"):
        read_taken(tmp_path / "config.txt")


def test_no_reservation_is_none(tmp_path: Path) -> None:
    (tmp_path / "res.txt").write_text("No reservations in the system\n")
    assert list(read_reservations(tmp_path / "res.txt", [])) == []


def test_the_tree_of_a_topology_yaml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(YAML)
    switches, notes, others = read_forest(path, {f"n{i}" for i in range(1, 5)})
    assert [(switch.name, switch.above, switch.nodes, switch.named) for switch in switches] == [
        ("root", -1, (), False),
        ("leaf1", 0, ("n1", "n2"), False),
        ("leaf2", 0, ("n3", "n4"), False),
    ]
    assert not notes and not others


def test_a_topology_that_is_no_tree_is_named_with_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(
        "- topology: a\n  block:\n    block_sizes:\n      - 2\n    blocks:\n      - block: b\n        nodes: n1\n"
    )
    assert read_forest(path, {"n1"}).others == {"a": "block", "": "block"}
    (tmp_path / "case").mkdir()
    case = toy(tmp_path, [line(1, 0, 1, 5, 60)], topology=path.read_text(), suffix=".yaml")
    assert "topology (block) of partition p (1 job)" in case.keys.may_matter
    with pytest.raises(InputError, match="no topology of the kind tree"):
        read_switches(path)


def test_each_partition_has_the_tree_that_it_names(tmp_path: Path) -> None:
    # below tree1 n1 and n2 are neighbours, below tree2 n1 and n4
    second = "- topology: tree2\n  tree:\n    switches:\n" + "".join(
        f"      - switch: {name}\n        {nodes}\n"
        for name, nodes in (("top", "children: s[1-2]"), ("s1", "nodes: n1,n4"), ("s2", "nodes: n[2-3]"))
    )
    conf = LEFT_OUT + "PartitionName=q Nodes=ALL Topology=tree2\nPartitionName=r Nodes=ALL Topology=other\n"
    busy = line(1, 0, 1, 60, 600, options="-w n3")
    for partition, node in (("p", 1), ("q", 2), ("r", 1)):
        # two of the three nodes that are left, then one: where the first two are neighbours, the third is the other one
        jobs = [busy, line(2, 10, 2, 60, 600, Partition=partition, options="--exclusive")]
        case = toy(tmp_path / partition, jobs, conf, topology=YAML + second, suffix=".yaml", config=_NEW)
        world = build_world(case, case.settings)
        world.usable[:] = world.part_mask[0]
        world.free_cores[2] = 0
        begin_trial(world)
        measure_nodes(world, 1, world.usable)
        assert choose_nodes(world, 1, int(world.entry_part[1])) == 2
        assert {0, node if partition != "q" else 3} == set(world.chosen[:2].tolist())


def test_newer_words_are_named_or_known(tmp_path: Path) -> None:
    conf = CONF + "MetricsType=metrics/openmetrics\nMaxBatchRequeue=5\nPreemptParameters=youngest_first\n"
    conf += "SchedulerParameters=bf_yield_rpc_cnt=20,extra_constraints\n"
    jobs = [line(3, 99, 1, 5, 60, options="--exclusive=topo")]
    case = toy(tmp_path, jobs, conf)
    named = " ".join(case.keys.may_matter)
    assert not any(word in named for word in ("MetricsType", "MaxBatch", "bf_yield", "extra_", "PreemptParameters"))
    assert "--exclusive=topo" in named
    assert case.settings.flag("preempt_youngest_first")
