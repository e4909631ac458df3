"""Windows, trees and learned starts under a real Batsim 4.2, and on the embedded engine: the same schedule.

Skipped where there is no ``batsim`` on the path.
"""

from pathlib import Path

import numpy as np
import pytest
from helpers.engine_worlds import Manners, World
from helpers.real_batsim import find_batsim, run_policy_beside_batsim

from decision.engine.rules import EngineOptions
from decision.files.generate.platforms import full_tree, networked
from decision.model.platform import Link, Platform, PowerState
from decision.model.workload import Delay, Job, Workload

POLICIES = [
    "easy,allocation=tree",
    "conservative,allocation=slurm-tree",
    "window,period=10,steps=30",
    "window,period=10,solver=exact",
    "window,period=10,solver=exact,strategy=free",
    "window,period=10,solver=nsa,steps=30",
    "helpers.window_choices:HashedStarts",
]


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


def tree(latency: float) -> Platform:
    return networked(full_tree((4, 2, 3), [Link(1.25e9, latency)] * 3), (PowerState(1e9),))


def jobs(seed: int) -> Workload:
    """Sixty jobs at whole seconds, so that many come when a window is due, or when another job ends."""
    rng = np.random.default_rng(seed)
    made = [
        Job(id=f"w0!{i:02}", submit_time=float(at), size=int(rng.integers(1, 9)), walltime=100.0, profile=f"d{run}")
        for i, (at, run) in enumerate(zip(np.sort(rng.integers(0, 300, 60)), rng.integers(1, 60, 60), strict=True))
    ]
    return Workload(name="w0", jobs=made, profiles={f"d{run}": Delay(float(run)) for run in range(60)}, nb_res=24)


@pytest.mark.parametrize("latency", [1e-6, 1e-3])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_schedule_is_that_of_a_real_batsim(batsim: str, tmp_path: Path, policy: str, latency: float) -> None:
    world = World(tree(latency), (jobs(1),), (), EngineOptions(), b"", Manners())
    assert run_policy_beside_batsim(world, policy, 0, batsim, tmp_path) == []
