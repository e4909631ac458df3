"""Packing: its presets learn, and a checkpoint makes the same schedule everywhere."""

import re

import numpy as np
import pytest
from helpers.env_toys import busy
from helpers.learning_runs import FILES

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.model.errors import ConfigError
from decision.papers.packing.claims import GRID
from decision.policies import find_policy
from decision.rl.envs import PackingEnv, equal_hosts, make_setup
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import learned_policy
from decision.rl.learning.schedulers import TrainingInputs, train_scheduler
from decision.rl.schedulers import find_scheduler
from decision.rl.schedulers.packing import PackingSettings
from decision.simulation import simulate_workloads

SHORT = ("env.jobs=40", "env.steps=400", "learn.steps=256", "learn.envs=4", "learn.rollout=32", "learn.minibatch=64")
WAYS = {
    "compact": ("packing-compact",),
    "compact, ticks": ("packing-compact", "env.tick=60", "env.estimate=quantiles"),
    "perceptron": ("packing-nn1", "env.estimate=walltime", "network.hidden=[16,16]"),
    "perceptron, events": ("packing-nn2", "env.estimate=none", "network.hidden=[16,16]", "env.tick=0"),
}
JOBS = 60


def learn(folder, preset, *changes):
    config = load_config(preset, [*SHORT, "learn.threads=1", *changes])
    return train_scheduler(TrainingInputs(equal_hosts(16), busy(80, 16, seed=2), FILES), config, folder)


@pytest.fixture(scope="module", params=WAYS)
def checkpoint(request, tmp_path_factory):
    return learn(tmp_path_factory.mktemp("packing"), *WAYS[request.param])


def test_a_checkpoint_makes_the_same_schedule_everywhere(checkpoint):
    trace, platform = busy(JOBS, 16, seed=5), equal_hosts(16)
    simulated = simulate_workloads(platform, [trace], find_policy(str(checkpoint))).jobs
    told = simulate_by_messages(EmbeddedEngine(platform, [trace]), Agent(str(checkpoint), {}, platform=platform)).jobs
    assert np.array_equal(told.start_time, simulated.start_time)
    assert list(told.allocation) == list(simulated.allocation)
    policy = learned_policy(checkpoint)
    policy.reset(platform, 0)
    made = make_setup(trace, platform, encoder=policy.encoder, jobs=JOBS, steps=100_000)
    env, over = PackingEnv(setup=made), False
    observation, info = env.reset()
    while not over:
        observation, _, over, _, info = env.step(policy.actor(observation, info["action_mask"]))
    starts = env.state.start_time[:JOBS]
    placed = np.isfinite(starts)
    assert placed.sum() > JOBS - 10, "but those of the last decision"
    by_id = dict(zip(simulated.id, simulated.start_time.tolist(), strict=True))
    assert [by_id[trace.jobs[i].id] for i in np.flatnonzero(placed)] == starts[placed].tolist()


def test_the_presets_are_the_papers_and_differ_in_the_width_of_the_first_layer():
    one, two = (load_config(f"packing-nn{n}") for n in (1, 2))
    assert (one.network.hidden, two.network.hidden) == ((1024, 512, 256), (2048, 512, 256))
    assert one.learn == two.learn
    assert {one.network.kind, two.network.kind} == {"fcn"}, "with tanh"
    assert (one.learn.steps, one.learn.envs) == (4_000_000, 8)
    assert one.env == two.env == PackingSettings(window=100, tick=60, doubling=True, estimate="given", reward="final")
    learn = one.learn
    assert (learn.rollout, learn.minibatch, learn.epochs) in GRID
    # what Stable-Baselines3 1.0 has by default
    assert (learn.lr, learn.lr_schedule, learn.discount, learn.gae_lambda) == (3e-4, "constant", 0.99, 0.95)
    assert (learn.clip, learn.entropy, learn.value_weight, learn.max_gradient) == (0.2, 0, 0.5, 0.5)
    assert find_scheduler("packing").default_preset == "packing-compact"


def test_a_policy_for_other_nodes_is_refused_in_one_line(tmp_path):
    checkpoint = learn(tmp_path, "packing-nn1", "env.estimate=none", "network.hidden=[8]")
    with pytest.raises(ConfigError, match=re.escape("has 8 hosts, but the policy's observations are of 16; run it on")):
        simulate_workloads(equal_hosts(8), [busy(20, 8)], find_policy(str(checkpoint)))


def test_a_network_that_shares_its_weights_needs_pools(tmp_path):
    with pytest.raises(ConfigError, match=r"choose env\.cluster=pools"):
        learn(tmp_path, "packing-compact", "env.cluster=nodes")
