"""Jobs that communicate: the embedded engine beside Batsim's own simulation."""

import csv
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from decision.batsim.agent import make_agent
from decision.batsim.launcher import run_batsim
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.files import load_platform, load_workload, write_platform, write_workload
from decision.files.generate.jobs import Tasks, as_tasks
from decision.files.generate.paper_workloads import topology_workload
from decision.files.generate.platforms import fat_tree, networked
from decision.model.platform import Link, Platform, PowerState
from decision.model.workload import Workload
from decision.policies.registry import find_policy
from decision.policies.runtimes import apply_estimates
from decision.simulation import simulate_on

SPEED, BANDWIDTH, JOBS, REPEAT = 141.24e9, 12.5e9, 250, 3
POLICY = "easy,allocation=random"
QUIET = ("-q", "-v", "quiet", "--disable-schedule-tracing")


def network(swf: Path | None) -> list[float]:
    """Seconds of Batsim's own simulation over ours, for all-to-all jobs on a tapered tree of 1,000 hosts."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        _write_inputs(here)
        platform, workload = load_platform(here / "p.xml"), load_workload(here / "w.json")
        _ours(platform, workload)  # compiles
        return [_batsims(here, platform) / _ours(platform, workload) for _ in range(REPEAT)]


def _write_inputs(here: Path) -> None:
    links = [Link(BANDWIDTH / share, 1e-6) for share in (1, 4, 8)]
    write_platform(here / "p.xml", networked(fat_tree(20, 10, links), (PowerState(SPEED),)))
    rng = np.random.default_rng(1)
    jobs = apply_estimates(topology_workload(rng, JOBS), "factor:10", rng)
    tasks = Tasks(kind="parallel", speed=SPEED, comm_ratio=0.5, bandwidth=BANDWIDTH)
    write_workload(here / "w.json", as_tasks(jobs, tasks))


def _ours(platform: Platform, workload: Workload) -> float:
    engine, policy = EmbeddedEngine(platform, [workload], (), EngineOptions()), find_policy(POLICY, {})
    policy.reset(platform, 0)
    began = time.perf_counter()
    simulate_on(engine, policy)
    return time.perf_counter() - began


def _batsims(here: Path, platform: Platform) -> float:
    words = ["batsim", "-p", f"{here}/p.xml", "-w", f"{here}/w.json", "-e", f"{here}/out", *QUIET]
    run_batsim(make_agent(POLICY, {}, platform=platform, seed=0), words, log=here / "log", timeout=60.0)
    with (here / "out_schedule.csv").open() as file:
        return float(next(csv.DictReader(file))["simulation_time"])


def missing() -> list[str]:
    """The programs that `network` needs and that are not on the path."""
    return [] if shutil.which("batsim") else ["batsim"]
