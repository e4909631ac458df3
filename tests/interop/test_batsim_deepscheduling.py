"""Policies for servers that sleep beside Batsim 4.2.1: the same starts, hosts and switches. Skipped without Batsim."""

from pathlib import Path

import pytest
from helpers.day_toys import ENERGY, busy_days_of
from helpers.engine_worlds import Manners, World
from helpers.learning_runs import FILES
from helpers.policy_toys import platform
from helpers.real_batsim import find_batsim, run_policy_beside_batsim

from decision.model.dates import busy_days, of_day
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import TrainingInputs, train_scheduler


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


ON, TRACE = platform(8, sleeps=True, wake=151.5, doze=6.1, cores=4), busy_days_of(3, seed=1, hosts=8)


def day(number: int) -> World:
    """A day of the trace."""
    return World(
        platform=ON,
        workloads=(of_day(TRACE, busy_days(TRACE)[number]),),
        events=(),
        options=ENERGY,
        whims=b"",
        manners=Manners(),
    )


@pytest.mark.parametrize("preset", ["deepscheduling-compact", "deepscheduling-paper"])
def test_a_day_runs_as_on_batsim(batsim: str, tmp_path: Path, preset: str) -> None:
    short = ("learn.steps=128", "learn.envs=4", "learn.rollout=32", "learn.minibatch=64", "learn.threads=1")
    checkpoint = train_scheduler(TrainingInputs(ON, TRACE, FILES), load_config(preset, short), tmp_path)
    assert run_policy_beside_batsim(day(2), str(checkpoint), 0, batsim, tmp_path) == []


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("policy", ["joint", "joint,energy=3,wait=0.2"])
def test_the_joint_policy_runs_as_on_batsim(batsim: str, tmp_path: Path, policy: str, number: int) -> None:
    assert run_policy_beside_batsim(day(number), policy, 0, batsim, tmp_path) == []
