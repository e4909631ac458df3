"""Nodes by the switches of a topology.conf, and what that changes: choices with known answers, and starts."""

from pathlib import Path

import pytest

from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Case
from decision.slurm.kernels import clock
from tests.helpers.slurm_cases import CONF, line, starts, toy

TREE = CONF.replace("n[1-4]", "n[1-8]") + "TopologyPlugin=topology/tree\n"
SHARED = TREE.replace("select/linear", "select/cons_tres").replace("CPUs=1", "CPUs=4")
SWITCHES = "SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Nodes=n[4-6]\nSwitchName=s2 Nodes=n[7-8]\nSwitchName=top Switches=s[0-2]\n"


def places(case: Case) -> dict[str, list[int]]:
    """The numbers of the nodes that each job had."""
    world = build_world(case, case.settings)
    clock.simulate(world, zero_of(case) + 10**6)
    begin, count = world.alloc_begin, world.alloc_count
    return {job.id: sorted(world.alloc_node[begin[n] : begin[n] + count[n]] + 1) for n, job in enumerate(case.jobs)}


def test_a_job_gets_the_lowest_switch_that_suffices_and_of_those_the_smallest(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 60, 600), line(2, 10, 2, 60, 600), line(3, 20, 3, 60, 600)]
    assert places(toy(tmp_path, jobs, TREE, topology=SWITCHES)) == {"1": [7], "2": [1, 2], "3": [4, 5, 6]}
