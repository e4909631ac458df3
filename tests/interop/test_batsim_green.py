"""The shipped policy for power that comes and goes under a real Batsim 4.2, and on the embedded engine: one schedule.

Skipped where there is no ``batsim`` on the path.
"""

from pathlib import Path

import pytest
from helpers.engine_worlds import Manners, World
from helpers.green_worlds import BY_MESSAGES, platform, supply, workload
from helpers.real_batsim import find_batsim, run_policy_beside_batsim


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_schedule_is_that_of_a_real_batsim(batsim: str, tmp_path: Path, seed: int) -> None:
    world = World(platform(1e-6), (workload(seed),), supply(seed), BY_MESSAGES, b"", Manners())
    assert run_policy_beside_batsim(world, "timetable", 0, batsim, tmp_path) == []
