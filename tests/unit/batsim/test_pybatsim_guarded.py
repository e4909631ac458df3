"""Schedulers of pybatsim with our guard around them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.golden import ROOT
from helpers.policy_cases import random_workload
from helpers.policy_toys import platform

import decision as d
from decision.batsim.agent import make_agent
from decision.batsim.pybatsim import PybatsimAgent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.model.errors import PolicyError
from decision.simulation import simulate_workloads

pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")
FIRST_FIT = f"pybatsim:{ROOT / 'tests' / 'helpers' / 'pybatsim_schedulers.py'}:FirstFit"
EASY = "pybatsim:schedulers.easyBackfill:EasyBackfill"
NEVER = 1e8  # seconds: a guard that guards nothing


def figures(policy: str) -> tuple[list[float], list[str]]:
    jobs = d.simulate("taurus", "taurus_week", policy, jobs=slice(0, 400)).jobs.sort_values("id")
    return jobs.start_time.tolist(), jobs.allocation.tolist()


@pytest.mark.parametrize("scheduler", [FIRST_FIT, EASY])
def test_a_guard_that_guards_nothing_changes_nothing(scheduler: str) -> None:
    assert figures(f"{scheduler},guard={NEVER:.0f}") == figures(scheduler)


@pytest.mark.parametrize("scheduler", [FIRST_FIT, EASY])
def test_the_guard_bounds_the_longest_wait(scheduler: str) -> None:
    bound = 1.2 * d.simulate("taurus", "taurus_week", "easy").summary().max_wait
    guarded = d.simulate("taurus", "taurus_week", f"{scheduler},guard=1.2x").summary()
    assert guarded.max_wait <= bound < d.simulate("taurus", "taurus_week", "first-fit").summary().max_wait
    assert guarded.jobs == 1500


@pytest.mark.parametrize("guard", ["0", "3", "60", "1x", "1.5x"])
@pytest.mark.parametrize("scheduler", [FIRST_FIT, EASY, f"{FIRST_FIT},fcfs=true"])
def test_all_jobs_run_whatever_the_guard_refuses(scheduler: str, guard: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        work = random_workload(rng, "w0", 6, 10.0, endless=False)
        record = simulate_workloads(platform(6), [work], f"{scheduler},guard={guard}")
        assert len(record.jobs.id) == len(work.jobs)


def test_a_served_one_decides_as_an_embedded_one_and_as_one_in_pybatsims_hands() -> None:
    policy = f"{EASY},guard=60"
    work = random_workload(np.random.default_rng(7), "w0", 6, 10.0, endless=False)
    theirs = PybatsimAgent("pybatsim:decision.pybatsim:Policy", {"policy": policy})
    starts = [simulate_workloads(platform(6), [work], policy).jobs.start_time.tolist()]
    for agent in (make_agent(policy, {}), theirs):
        engine = EmbeddedEngine(platform(6), [work], [], EngineOptions())
        starts.append(simulate_by_messages(engine, agent).jobs.start_time.tolist())
    assert starts[0] == starts[1] == starts[2]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise KeyError('nodes')", "failed: KeyError: 'nodes' (in onJobSubmission, mine.py:6)"),
        ("self.bs.request_consumed_energy()", "commands Query, and under a guard it may start and reject jobs"),
        ("job.allocation = ProcSet(0); self.bs.execute_job(job)", "w0!2 is to start on host 0, where w0!1 runs"),
    ],
)
def test_a_scheduler_that_fails_is_named_with_time_and_cause(line: str, told: str, tmp_path: Path) -> None:
    file: Any = tmp_path / "mine.py"
    file.write_text(
        "import sys\nfrom batsim.batsim import BatsimScheduler\nfrom procset import ProcSet\n"
        f"class Mine(BatsimScheduler):\n    def onJobSubmission(self, job):\n        {line}\n"
    )
    with pytest.raises(PolicyError) as caught:
        d.simulate("toy", "toy", f"pybatsim:{file}:Mine,guard=60")
    assert told in str(caught.value) and str(caught.value).startswith("t=0 s: pybatsim:")
