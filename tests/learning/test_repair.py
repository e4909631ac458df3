"""Neural annealing: its network is learned by either algorithm, and windows use it everywhere alike."""

from pathlib import Path

import numpy as np
import pytest
from helpers.env_toys import workload
from helpers.learning_runs import FILES

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.files.generate.platforms import full_tree, networked
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Link, Platform, PowerState
from decision.policies import find_policy
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import TrainingInputs, train_scheduler
from decision.simulation import simulate_workloads

PPO = ("learn.steps=256", "learn.envs=4", "learn.rollout=32", "learn.minibatch=64", "learn.threads=1")
EVOLUTION = ("learn.method=evolution", "learn.steps=240", "learn.population=4", "learn.sequences=3")
WAYS = {
    "ppo, cnn": PPO,
    "ppo, fcn": (*PPO, "network.kind=fcn", "network.hidden=[64,64]"),
    "evolution": (*EVOLUTION, "network.hidden=[4,4]"),
}


def tree(*down: int) -> Platform:
    return networked(full_tree(down, [Link(1e9, 0.0)] * len(down)), (PowerState(1e9),))


PLATFORM = tree(4, 4, 4)


def jobs(seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = zip(np.sort(rng.integers(0, 900, 80)), rng.integers(1, 17, 80), rng.integers(30, 200, 80), strict=True)
    return workload(64, *((float(submit), int(size), float(run), float(run)) for submit, size, run in rows))


def learn(folder: Path, *changes: str) -> Path:
    config = load_config("repair", ["env.jobs=20", *changes])
    return train_scheduler(TrainingInputs(PLATFORM, jobs(), FILES), config, folder)


@pytest.fixture(scope="module", params=WAYS)
def checkpoint(request, tmp_path_factory) -> Path:
    return learn(tmp_path_factory.mktemp("repair"), *WAYS[request.param])


@pytest.mark.parametrize("policy", ["{}", "window,period=30,solver=nsa,steps=20,repair={}"])
def test_a_checkpoint_makes_the_same_schedule_in_the_engine_and_behind_messages(checkpoint, policy):
    name, *options = policy.format(checkpoint).split(",")
    simulated = simulate_workloads(PLATFORM, [jobs(1)], find_policy(policy.format(checkpoint))).jobs
    agent = Agent(name, dict(option.split("=") for option in options), platform=PLATFORM)
    told = simulate_by_messages(EmbeddedEngine(PLATFORM, [jobs(1)], ()), agent).jobs
    assert len(simulated.id) == 80
    for column in ("id", "allocation"):
        assert list(getattr(told, column)) == list(getattr(simulated, column))
    assert told.start_time.tolist() == simulated.start_time.tolist()


def test_the_same_seed_learns_the_same(tmp_path):
    for kind in (PPO, (*EVOLUTION, "network.hidden=[4,4]")):
        weights = [learn(tmp_path / f"{kind[0]}-{i}", *kind).read_bytes() for i in range(2)]
        assert weights[0] == weights[1]


def test_a_network_for_other_windows_is_refused_in_one_line(tmp_path):
    few = learn(tmp_path / "few", *PPO, "env.q=50")
    with pytest.raises(ConfigError, match=r"sees the first 50 hosts \(q\), and solver=nsa shows 100"):
        find_policy(f"window,solver=nsa,repair={few}")
    with pytest.raises(ConfigError, match="it is a checkpoint of dbf; repair needs one of decision train repair"):
        find_policy("window,solver=nsa,repair=dbf")
    with pytest.raises(InputError, match=r"there\.ckpt"):
        find_policy("window,solver=nsa,repair=not/there.ckpt")


def test_a_tree_of_another_depth_is_refused(checkpoint):
    policy = find_policy(f"window,solver=nsa,repair={checkpoint}")
    with pytest.raises(ConfigError, match="is for trees of 3 levels, and the platform has 2"):
        policy.reset(tree(4, 4), 0)
