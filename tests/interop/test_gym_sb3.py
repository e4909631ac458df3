"""Algorithms of Stable-Baselines3 and sb3-contrib train on our environments as they are."""

import gymnasium
import numpy as np
import pytest
from helpers.green_worlds import supply, workload

import decision.rl.envs
from decision.rl.envs import equal_hosts

BUDGET = 256  # steps


@pytest.fixture(scope="module")
def options(root):
    return {"workload": root / "workloads" / "lublin_256.json", "head": 6, "tail": 2, "jobs": 30}


def test_ppo_trains_on_the_single_environment(options):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    env = gymnasium.make("decision/DBF-v0", **options)
    model = sb3.PPO("MlpPolicy", env, n_steps=BUDGET, batch_size=64, n_epochs=1, seed=1, device="cpu")
    assert model.learn(BUDGET).num_timesteps == BUDGET


@pytest.mark.parametrize("algorithm", ["PPO", "MaskablePPO"])
def test_they_train_on_the_native_vector_environment(algorithm, options):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    from decision.rl.envs.sb3 import DbfVecEnv

    envs = DbfVecEnv(4, **options)
    make = sb3.PPO if algorithm == "PPO" else contrib.MaskablePPO
    model = make("MlpPolicy", envs, n_steps=BUDGET // 4, batch_size=64, n_epochs=1, seed=1, device="cpu")
    model.learn(2 * BUDGET)
    assert model.num_timesteps == 2 * BUDGET
    assert len(model.ep_info_buffer) > 0, "the algorithm's own log has episodes"


@pytest.mark.parametrize("vectorised", [False, True])
def test_ppo_trains_on_packing(vectorised, options):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    from decision.rl.envs.sb3 import SchedulerVecEnv

    jobs = {"workload": options["workload"], "jobs": 30, "steps": 100}
    if vectorised:
        env = SchedulerVecEnv(4, encoder="packing", **jobs)
    else:
        env = gymnasium.make("decision/Packing-v0", **jobs)
    model = sb3.PPO("MlpPolicy", env, n_steps=BUDGET // 4, batch_size=64, n_epochs=1, seed=1, device="cpu")
    assert model.learn(2 * BUDGET).num_timesteps == 2 * BUDGET
    assert len(model.ep_info_buffer) > 0, "the algorithm's own log has episodes"


@pytest.mark.parametrize("encoder", ["green", "green-image"])
def test_maskable_ppo_trains_under_a_supply_of_power(encoder):
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    from decision.rl.envs.sb3 import SchedulerVecEnv

    made = {"workload": workload(0, 60), "platform": equal_hosts(8), "events": list(supply(0, 60)), "jobs": 20}
    envs = SchedulerVecEnv(4, encoder=encoder, **made)
    model = contrib.MaskablePPO("MlpPolicy", envs, n_steps=BUDGET // 4, batch_size=64, n_epochs=1, seed=1, device="cpu")
    assert model.learn(2 * BUDGET).num_timesteps == 2 * BUDGET
    assert len(model.ep_info_buffer) > 0, "the algorithm's own log has episodes"


def test_maskable_ppo_never_makes_an_invalid_choice(options):
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    from decision.rl.envs.sb3 import DbfVecEnv

    envs = DbfVecEnv(4, **options)
    envs.seed(3)
    model = contrib.MaskablePPO("MlpPolicy", envs, n_steps=16, device="cpu", seed=1)
    observation = envs.reset()
    for _ in range(60):
        masks = envs.action_masks()
        actions, _ = model.predict(observation, action_masks=masks)
        assert masks[np.arange(4), actions].all()
        observation, *_ = envs.step(actions)


def test_the_adapter_tells_what_the_vector_environment_tells(options):
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    from decision.rl.envs.sb3 import DbfVecEnv

    envs, native = DbfVecEnv(3, **options), decision.rl.envs.DbfVectorEnv(3, **options)
    envs.seed(5)
    observation, ends = envs.reset(), 0
    expected, info = native.reset(seed=5)
    for _ in range(200):
        assert np.array_equal(observation, expected)
        actions = info["action_mask"].argmax(axis=1)
        observation, reward, over, infos = envs.step(actions)
        expected, rewards, terminated, truncated, info = native.step(actions)
        assert np.array_equal(reward, rewards)
        assert np.array_equal(over, terminated | truncated)
        for i in np.flatnonzero(over):
            assert np.array_equal(infos[i]["terminal_observation"], info["final_obs"][i])
            assert infos[i]["TimeLimit.truncated"] == truncated[i]
            assert infos[i]["episode"]["r"] == info["metrics"]["return"][i]
            ends += 1
    assert ends > 0
