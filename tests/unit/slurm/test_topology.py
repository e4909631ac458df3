"""Nodes by the switches of a topology.conf: as a real Slurm chose them, and what that changes in starts."""

from pathlib import Path

import pytest

from decision.model.errors import InputError
from decision.slurm.build import build_world
from decision.slurm.jobs import read_options
from decision.slurm.kernels.allocate import begin_on_nodes, end_job, release_completed
from decision.slurm.kernels.select_nodes import begin_trial, choose_nodes, measure_nodes
from decision.slurm.kernels.world import BY_MAIN, PENDING_JOB, SlurmWorld
from tests.helpers.slurm_cases import CONF, DATA, line, starts, toy

TREE = CONF.replace("n[1-4]", "n[1-8]") + "TopologyPlugin=topology/tree\n"
SWITCHES = (
    "SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Nodes=n[4-6]\nSwitchName=s2 Nodes=n[7-8]\nSwitchName=t Switches=s[0-2]\n"
)
BUSY = [line(1, 0, 2, 60, 3000, options="-w n[1-2]"), line(2, 0, 2, 60, 3000, options="-w n[4-5]")]


@pytest.mark.parametrize(
    "name",
    [
        "linear-flat",
        "linear-deep",
        "shared-flat",
        "shared-deep",
        "shared-weights",
        "linear-weights",
        "linear-lines",
        "shared-lines",
        "shared-26.05",
    ],
)
def test_nodes_are_those_that_a_real_slurm_chose(tmp_path: Path, name: str) -> None:
    folder = DATA / "switches"
    conf, *rows = (folder / f"{name}.txt").read_text().splitlines()
    rows = [row.split("|") for row in rows]
    jobs = {row[1]: row[2] for row in rows if row[0] != "end"}
    lines = [_line(number, options) for number, options in enumerate(jobs.values(), 1)]
    if "topology/tree" in conf:
        (tmp_path / "topology.conf").write_text((folder / f"{name.partition('-')[2]}.conf").read_text())
    version = f"SLURM_VERSION = {name.partition('-')[2] if '.' in name else '22.05.8'}\n"
    case = toy(tmp_path, lines, CONF.replace("NodeName=n[1-4] CPUs=1", conf.replace(";", "\n")), config=version)
    world = build_world(case, case.settings)
    for kind, job, *found in rows:
        number = list(jobs).index(job)
        if kind == "end":
            end_job(world, number, 0)
            world.free_at[number] = 0
            release_completed(world, 1)
            continue
        begin_trial(world)
        measure_nodes(world, number, world.masks[world.entry_mask[number]])
        count = choose_nodes(world, number, 0)
        assert dict(zip(world.chosen[:count] + 1, world.chosen_cores[:count], strict=True)) == _cores(found)
        if kind == "start":
            _begin(world, number, count)


def _line(number: int, options: str) -> str:
    asked = read_options(f"sbatch {options} job.sh")
    nodes = int(asked.get("nodes", "1"))
    cpus = int(asked.get("ntasks", nodes)) * int(asked.get("cpus-per-task", "1"))
    more = {"ReqCPUS": str(cpus), "ReqTRES": f"cpu={cpus},node={nodes}", "SubmitLine": f"sbatch {options} job.sh"}
    return line(number, 0, nodes, 10, 60, Start="Unknown", State="CANCELLED", NodeList="None assigned", **more)


def _cores(found: list[str]) -> dict[int, int]:
    """The cores by node of ``OPTIONS|3:2,4:1``; none of a job that had to wait."""
    return (
        {int(node): int(cores) for node, cores in (part.split(":") for part in found[1].split(","))}
        if found[1:]
        else {}
    )


def _begin(world: SlurmWorld, number: int, count: int) -> None:
    world.status[number] = PENDING_JOB
    begin_on_nodes(world, number, 0, count, 0, BY_MAIN)
    world.nb_started = 0


def test_switches_change_which_node_is_free(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 60, 600), line(2, 10, 1, 60, 600, options="-w n7")]
    case = toy(tmp_path, jobs, TREE, topology=SWITCHES)
    assert starts(case)["2"] >= 600  # job 1 is on the smallest switch
    assert starts(case, {"TopologyPlugin": "topology/none"})["2"] <= 15
    assert starts(case, {"TopologyParam": "TopoOptional"})["2"] <= 15


@pytest.mark.parametrize(
    ("option", "changes", "first", "last"),
    [
        ("", {}, 10, 15),
        ("--switches=1@30", {}, 310, 375),  # 30 minutes are more than max_switch_wait
        ("--switches=1@2", {}, 130, 195),
        ("--switches=1@30", {"max_switch_wait": "3600"}, 1810, 1875),
        ("--switches=3@30", {"max_switch_wait": "3600"}, 10, 15),  # leaves with the fewest nodes are filled first
    ],
)
def test_a_job_waits_for_as_few_switches_as_it_asks_for(
    tmp_path: Path, option: str, changes: dict[str, str], first: int, last: int
) -> None:
    jobs = [*BUSY, line(3, 10, 3, 60, 60, options=option)]
    assert first <= starts(toy(tmp_path, jobs, TREE, topology=SWITCHES), changes)["3"] <= last


def test_a_node_named_by_a_job_that_needs_more_is_one_of_them(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 60, 600, options="-w n3"), line(2, 10, 2, 60, 60, options="-w n3")]
    assert starts(toy(tmp_path, jobs))["2"] >= 600


def test_switches_of_topology_tree_are_read_from_beside_slurm_conf(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(SWITCHES + "SwitchName=s9 Nodes=n9\n")
    case = toy(tmp_path, [line(1, 0, 1, 60, 600)], TREE)
    assert [switch.above for switch in case.switches] == [3, 3, 3, -1, -1]
    assert "topology.conf has 1 nodes that slurm.conf has not (n9, ...)" in case.notes
    assert not case.keys.may_matter


def test_without_its_file_topology_tree_is_named_as_not_simulated(tmp_path: Path) -> None:
    case = toy(tmp_path, [line(1, 0, 2, 60, 600)], TREE)
    assert case.keys.may_matter == ("TopologyPlugin=topology/tree (1 job)",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=s0 Nodes=n[1-3\n", "line 1: 'n[1-3' is not a list of names"),
        ("SwitchName=s0 Switches=s0\n", "its switches are in a circle"),
    ],
)
def test_a_faulty_topology_conf_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"topology\.txt") as error:
        toy(tmp_path, [line(1, 0, 1, 60, 600)], TREE, topology=text)
    assert said in str(error.value)


def test_backfill_starts_jobs_on_shared_nodes_below_switches(tmp_path: Path) -> None:
    # since 23.11 nodes on which a job completes weigh more in a trial, which is then not a weight of slurm.conf
    shared = TREE.replace("select/linear", "select/cons_tres")
    (tmp_path / "topology.conf").write_text(SWITCHES)
    jobs = [line(1, 0, 6, 60, 3000), line(2, 10, 8, 60, 60), line(3, 20, 1, 5, 60)]
    case = toy(tmp_path, jobs, shared, config="SLURM_VERSION = 25.05.3\n")
    assert starts(case)["3"] <= 100  # beside the first, before the second
