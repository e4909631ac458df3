#!/usr/bin/env python3
"""Make the shipped platforms and workloads: the same seed gives the same files.

usage: make_inputs.py [FOLDER]    (default: the repository; writes FOLDER/platforms and FOLDER/workloads)
"""

import sys
from pathlib import Path

import msgspec
import numpy as np

from decision.cli.network_options import LevelOptions, NetworkOptions
from decision.cli.platform import dragonfly_command, fat_tree_command, torus_command
from decision.cli.workload_make import (
    Half,
    TraceName,
    green_command,
    grid5000_like_command,
    lublin_command,
    predicted_runtimes_command,
    topology_jobs_command,
)
from decision.files import write_platform, write_workload
from decision.files.generate.grid5000 import CLUSTERS
from decision.files.generate.jobs import in_flops, week_workload
from decision.files.generate.platforms import TAURUS_SPEED, Wanted, describe_cluster, grid5000_cluster, simple_cluster
from decision.model.workload import Delay, Job, Workload

SEED = 2

TAURUS = """A cluster like Grid'5000's taurus (Lyon): 16 hosts of 12 cores at 11.77 Gflop/s, each host one resource.
Power at 13 frequencies, asleep, and while switching, as measured and published with Batsim's energy platforms;
a pstate's power is idle : epsilon : computing. Pstate 13 sleeps; 14 (off, 6.1 s) and 15 (on, 151.52 s) only model
the switches. No network. Made by scripts/make_inputs.py."""

SIMPLE = """{hosts} equal hosts that never sleep: one pstate of 141.24 Gflop/s, 95 W idle and 190.738 W computing.
No network. Made by scripts/make_inputs.py."""

WEEK = (
    "Made, not recorded: a week of 1500 jobs for 16 hosts at an offered load of 0.9, from "
    f"decision.files.generate.jobs with seed {SEED} by scripts/make_inputs.py. {{what}}"
)
DELAYS = "Jobs are delays: they take their time on any host, and to SimGrid their hosts draw idle power."
FLOPS = "Jobs compute: they take their time on hosts of 141.24 Gflop/s, longer at lower frequencies, and draw power."

TOY = (
    "Five jobs for 4 hosts that fit on paper: first come first served ends at 10 s, EASY backfilling at 8 s "
    "(job 3 fills the hole before job 2). Made by scripts/make_inputs.py."
)
TOY_JOBS = ((0, 3, 4), (0, 4, 2), (0, 1, 4), (1, 2, 2), (1, 2, 2))  # submission, hosts, run time


def toy() -> Workload:
    jobs = tuple(
        Job(id=f"w0!{number}", submit_time=at, size=size, walltime=run + 1, profile=f"delay{run}")
        for number, (at, size, run) in enumerate(TOY_JOBS, 1)
    )
    profiles = {f"delay{run}": Delay(float(run)) for run in sorted({job[2] for job in TOY_JOBS})}
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=4, description=TOY)


def make(folder: Path) -> None:
    taurus = grid5000_cluster(Wanted(cluster=CLUSTERS["taurus"], power=True))
    write_platform(folder / "platforms/taurus.xml", taurus, TAURUS)
    cores = Wanted(cluster=CLUSTERS["orion"], by_core=True, power=True)
    described = f"{describe_cluster(cores)}\nMade by scripts/make_inputs.py."
    write_platform(folder / "platforms/orion_cores.xml", grid5000_cluster(cores), described)
    write_platform(folder / "platforms/cluster256.xml", simple_cluster(256), SIMPLE.format(hosts=256))
    write_platform(folder / "platforms/toy.xml", simple_cluster(4), SIMPLE.format(hosts=4))
    week = week_workload(np.random.default_rng(SEED))
    for name, workload, what in (
        ("taurus_week", week, DELAYS),
        ("taurus_week_flops", in_flops(week, TAURUS_SPEED), FLOPS),
    ):
        described = msgspec.structs.replace(workload, description=WEEK.format(what=what))
        write_workload(folder / f"workloads/{name}.json", described)
    write_workload(folder / "workloads/toy.json", toy())
    make_papers_workloads(folder / "workloads")
    make_networks(folder / "platforms")


def make_networks(folder: Path) -> None:
    """One of each of those that `decision platform` makes with switches; a comment says with which command."""
    fat_tree_command(radix=4, links=LevelOptions(), output=folder / "fat_tree16.xml")
    fat_tree_command(radix=20, pods=10, links=LevelOptions(), output=folder / "fat_tree1000.xml")
    torus_command(dims="4x4x4", links=NetworkOptions(), output=folder / "torus64.xml")
    dragonfly_command(
        groups=4, chassis=2, routers=4, nodes=2, links=NetworkOptions(), output=folder / "dragonfly64.xml"
    )


def make_papers_workloads(folder: Path) -> None:
    """Small ones of those that `decision workload` makes; their descriptions say with which command."""
    lublin_command(folder / "lublin_256.json", jobs=500)
    lublin_command(folder / "lublin_10000.json", jobs=10_000)
    predicted_runtimes_command(folder / "wl1_rnda.json", half=Half.A)
    grid5000_like_command(TraceName.ORION, folder / "orion_days.json", days="0:14")
    green_command(folder / "green.json", jobs=300)
    topology_jobs_command(folder / "topology.json", jobs=500)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
