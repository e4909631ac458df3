"""Policies with predicted run times make on a real Batsim 4.2 the schedule of the embedded engine."""

import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.engine_worlds import Manners, World
from helpers.outlook_reference import HOSTS, made
from helpers.policy_toys import platform
from helpers.real_batsim import run_policy_beside_batsim

from decision.engine.rules import EngineOptions

POLICIES = [
    "easy++",
    "easy,estimate=given,correction=doubling",
    "sjf+easy,estimate=regression",
    "conservative,estimate=last2,correction=increments",
    "kamelot,estimate=last2",
    "easy,estimate=last2,guard=600",
    "easy,backfill_order=sjf,estimate=quantiles,shadow=0.5,fill=0.8",
    "conservative,estimate=quantiles",
]


@pytest.fixture(scope="module")
def batsim() -> str:
    found = shutil.which("batsim")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    if not found or not version.strip().lstrip("v").startswith("4.2"):
        pytest.skip("needs Batsim 4.2 as `batsim` on the path")
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_predictions_make_the_same_schedule_on_batsim(batsim: str, tmp_path: Path, policy: str) -> None:
    world = World(
        platform=platform(HOSTS),
        workloads=(made(11, 150),),
        events=(),
        options=EngineOptions(),
        whims=b"",
        manners=Manners(),
    )
    assert run_policy_beside_batsim(world, policy, 0, batsim, tmp_path) == []
