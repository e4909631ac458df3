"""Nodes by the switches of a topology.conf: as a real Slurm chose them, and what that changes in starts."""

import ast
from pathlib import Path

import numpy as np
import pytest

from decision.model.errors import InputError
from decision.slurm.build import build_world
from decision.slurm.kernels.choice import begin_trial, choose, measure
from decision.slurm.kernels.holding import begin_job, end_job, release_completed
from decision.slurm.kernels.world import BY_MAIN, NB_STARTED, PENDING, World
from decision.slurm.submit_line import read_options
from decision.slurm.text import read_hosts
from tests.helpers.slurm_cases import CONF, DATA, line, starts, toy

TREE = CONF.replace("n[1-4]", "n[1-8]") + "TopologyPlugin=topology/tree\n"
SWITCHES = "SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Nodes=n[4-6]\nSwitchName=s2 Nodes=n[7-8]\nSwitchName=t Switches=s[0-2]\n"
BUSY = [line(1, 0, 2, 60, 3000, options="-w n[1-2]"), line(2, 0, 2, 60, 3000, options="-w n[4-5]")]


@pytest.mark.parametrize("name", ["linear-flat", "linear-deep", "shared-flat", "shared-deep", "shared-weights"])
def test_nodes_are_those_that_a_real_slurm_chose(tmp_path: Path, name: str) -> None:
    folder = DATA / "switches"
    conf, *rows = (folder / f"{name}.txt").read_text().splitlines()
    rows = [row.split("|") for row in rows]
    jobs = {row[1]: row[2] for row in rows if row[0] != "end"}
    lines = [_line(number, options) for number, options in enumerate(jobs.values(), 1)]
    tree = (folder / f"{name.partition('-')[2]}.conf").read_text()
    case = toy(tmp_path, lines, CONF.replace("NodeName=n[1-4] CPUs=1", conf.replace(";", "\n")), topology=tree)
    world = build_world(case, case.settings)
    for kind, job, *found in rows:
        number = list(jobs).index(job)
        if kind == "end":
            end_job(world, number, 0)
            world.free_at[number] = 0
            release_completed(world, 1)
            continue
        begin_trial(world)
        measure(world, number, world.masks[world.entry_mask[number]])
        count = choose(world, number, 0)
        assert dict(zip(world.chosen[:count] + 1, world.chosen_cores[:count], strict=True)) == _cores(found)
        if kind == "start":
            _begin(world, number, count)


def _line(number: int, options: str) -> str:
    asked = read_options(f"sbatch {options} job.sh")
    nodes = int(asked.get("nodes", "1"))
    cpus = int(asked.get("ntasks", nodes)) * int(asked.get("cpus-per-task", "1"))
    more = {"ReqCPUS": str(cpus), "ReqTRES": f"cpu={cpus},node={nodes}", "SubmitLine": f"sbatch {options} job.sh"}
    return line(number, 0, nodes, 10, 60, Start="Unknown", State="CANCELLED", NodeList="None assigned", **more)
