"""Checkpoints of packing make on a real Batsim 4.2 the schedule of the embedded engine, with ticks and without."""

from pathlib import Path

import pytest
from helpers.engine_worlds import Manners, World
from helpers.outlook_reference import HOSTS, made
from helpers.policy_toys import platform
from helpers.real_batsim import find_batsim, run_policy_beside_batsim

from decision.engine.rules import EngineOptions
from decision.files.text import InputFacts
from decision.model.workload import Workload
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import TrainingInputs, train_scheduler

TINY = ("learn.steps=2", "learn.envs=1", "learn.rollout=2", "learn.threads=1", "env.jobs=50", "env.window=12")
KINDS = {
    "nodes, ticks, given": ("packing-nn1", "network.hidden=[8]"),
    "nodes, events, quantiles": ("packing-nn1", "network.hidden=[8]", "env.tick=0", "env.estimate=quantiles"),
    "pools, ticks, last2": ("packing-compact", "env.tick=60", "env.estimate=last2"),
    "pools, events": ("packing-compact",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_makes_the_same_schedule_on_batsim(kind: str, tmp_path: Path) -> None:
    batsim = find_batsim()
    if not batsim:
        pytest.skip("needs Batsim 4.2 as `batsim` on the path")
    preset, *changes = KINDS[kind]
    work, facts = made(11, 150), [InputFacts(name="", sha256="")] * 2
    config = load_config(preset, [*changes, *TINY], seed=3)
    policy = str(train_scheduler(TrainingInputs(platform(HOSTS), work, facts), config, tmp_path / "learned"))
    assert run_policy_beside_batsim(world_of(work), policy, 0, batsim, tmp_path) == []


@pytest.mark.parametrize("policy", ["packer", "packer,estimate=last2,correction=increments"])
def test_what_is_shipped_makes_the_same_schedule_on_batsim(policy: str, tmp_path: Path) -> None:
    batsim = find_batsim()
    if not batsim:
        pytest.skip("needs Batsim 4.2 as `batsim` on the path")
    assert run_policy_beside_batsim(world_of(made(11, 150)), policy, 0, batsim, tmp_path) == []


def world_of(work: Workload) -> World:
    """On equal hosts."""
    return World(
        platform=platform(HOSTS), workloads=(work,), events=(), options=EngineOptions(), whims=b"", manners=Manners()
    )
