"""Environments, policies and trainings of classes in plain Python."""

import gymnasium.utils.env_checker
import msgspec
import numpy as np
import pytest

import decision as d
from decision.rl.envs import SchedulerEnv
from decision.rl.envs.sb3 import SchedulerVecEnv
from tests.helpers.own_dbf import HEAD, LONGEST, Dbf

CASE = ("cluster256", "lublin_256")
ONE = {"jobs": 60, "online": False}
KERNELS = {"head": HEAD, "tail": 0, "max_runtime": LONGEST}
OBSERVED = {"observe": lambda view: [view.nb_free / view.nb_hosts, len(view.queue[:16]) / 16]}


def choices(env, first, seed=0):
    """Random valid choices of an episode: observations, masks and rewards, and its metrics."""
    rng, seen = np.random.default_rng(seed), []
    observation, info = env.reset(seed=1, options={"first": first})
    over = False
    while not over:
        mask = info["action_mask"].copy()
        seen.append([*observation, *mask])
        observation, reward, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(mask)))
        seen[-1].append(reward)
        over = terminated or truncated
    return np.array(seen), info["metrics"]


@pytest.mark.parametrize("first", [0, 300])
def test_dbf_in_python_sees_does_and_earns_what_its_kernels_do(first):
    """Choice by choice; sums are added up in another order, so the last bits of rewards may differ."""
    kernels, metrics = choices(d.make_env("dbf", *CASE, **KERNELS, **ONE), first)
    python, of_python = choices(d.make_env(Dbf, *CASE, **ONE), first)
    assert len(kernels) > 100
    np.testing.assert_allclose(python, kernels, rtol=1e-5, atol=1e-6)
    window = {"unseen_jobs": 0, "partial_time": 0}  # a class without a base has no window that is known
    assert {**of_python, **window} == pytest.approx({**metrics, **window}, rel=1e-6)


def test_a_policy_in_python_makes_the_schedule_of_its_kernels():
    """The largest job of the window that fits starts: deployed, both make the same schedule."""

    def largest(observation, mask):
        sizes = observation[256::4][:HEAD] * mask[:HEAD]
        return sizes.argmax() if sizes.max() > (0.02 if mask[HEAD] else 0) else mask.nonzero()[0][-1]

    envs = d.make_env("dbf", *CASE, **KERNELS, **ONE), d.make_env(Dbf, *CASE, **ONE)
    kernels, python = (d.simulate(*CASE, d.policy_from(env, largest), jobs=slice(0, 400)).jobs for env in envs)
    assert python.start_time.tolist() == kernels.start_time.tolist()
    assert python.allocation.tolist() == kernels.allocation.tolist()


@pytest.mark.parametrize(
    "own", [OBSERVED, {"reward": lambda view: -len(view.queue)}, {**OBSERVED, "reward": lambda view: -view.elapsed}]
)
def test_functions_replace_parts_of_a_shipped_scheduler(own):
    """What is not replaced is what it was: the actions, their mask, and the episode."""
    plain, metrics = choices(d.make_env("dbf", *CASE, **KERNELS, **ONE), 5)
    mine, of_mine = choices(d.make_env("dbf", *CASE, **KERNELS, **ONE, **own), 5)
    assert (mine[:, -HEAD - 2 : -1] == plain[:, -HEAD - 2 : -1]).all()
    assert of_mine["return"] == pytest.approx(mine[:, -1].sum(), rel=1e-5)
    assert {**of_mine, "return": 0} == {**metrics, "return": 0}


def test_many_environments_do_what_each_does_alone():
    """Episodes that end begin again, and states are restored."""
    envs = d.make_env(Dbf, *CASE, num_envs=3, jobs=8, online=False)
    alone = [d.make_env(Dbf, *CASE, jobs=8, online=False) for _ in range(3)]
    observation, info = envs.reset(seed=7)
    ones = [env.reset(seed=7 + i) for i, env in enumerate(alone)]
    rng, ended, saved = np.random.default_rng(0), 0, None
    for step in range(150):
        assert (observation == np.array([one[0] for one in ones])).all()
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        if step == 60:
            saved = envs.get_state(), observation.copy()
        observation, reward, terminated, truncated, info = envs.step(actions)
        for i, env in enumerate(alone):
            ones[i] = env.step(actions[i])
            assert reward[i] == np.float32(ones[i][1])
            if terminated[i] or truncated[i]:
                ended += 1
                assert (info["final_obs"][i] == ones[i][0]).all()
                assert info["metrics"]["return"][i] == pytest.approx(ones[i][4]["metrics"]["return"])
                ones[i] = env.reset()
    assert ended > 10
    assert saved is not None
    assert (envs.set_state(saved[0])[0] == saved[1]).all()


@pytest.mark.parametrize("scheduler", [Dbf, "dbf"])
def test_own_environments_pass_the_checks_of_gymnasium_and_sb3(scheduler):
    """`check_env` of both, of a class and of functions."""
    from stable_baselines3.common.env_checker import check_env

    own = {} if scheduler is Dbf else {**OBSERVED, "reward": lambda view: -len(view.queue) / 100, "head": 4}
    env = d.make_env(scheduler, *CASE, jobs=20, **own)
    gymnasium.utils.env_checker.check_env(env, skip_render_check=True)
    check_env(env)


def test_views_show_what_this_instant_has_started():
    """A job that a choice started has left the queue, and runs; its hosts are not free."""
    seen = []

    class Looks(Dbf):
        def observe(self, view):
            seen.append((len(view.queue), [job.id for job in view.running], view.free_hosts, view.elapsed))
            return super().observe(view)

    env = d.make_env(Looks, "toy", "toy", jobs=4)
    env.reset(options={"first": 0})
    env.step(0)
    assert seen[1:] == [(1, [], [0, 1, 2, 3], 0.0), (0, ["w0!1"], [3], 0.0)]
    assert env.unwrapped.encoder.bounds == (-np.inf, np.inf)


def test_a_view_of_ten_thousand_jobs_costs_what_is_read():
    """The queue is the cluster's own array, and cannot be written."""
    from decision.state.view import JobsView

    env = d.make_env("dbf", *CASE, head=4, jobs=20, observe=lambda view: [len(view.queue)])
    env.reset(seed=1)
    own = env.unwrapped._batch._own[0]
    assert isinstance(own.view.queue, JobsView)
    assert np.shares_memory(own.view.queue[:5]._numbers, own.view._cycles.queue)
    with pytest.raises(ValueError, match="read-only"):
        own.view.busy_until[0] = 1.0


class Sleepy(d.Environment):
    """Passes time."""

    base, actions = None, 2

    def observe(self, view):
        return [0.0]

    def act(self, view, action, plan):
        if action:
            plan.start(view.queue[0])


def broken(**methods):
    return type("Broken", (Sleepy,), methods)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (broken(actions=0), "Broken: actions must say how many actions act knows; found 0"),
        (broken(asks="never"), "Broken: asks must be waits, fits, always; found 'never'"),
        (broken(base="easy"), "there is no scheduler 'easy'"),
        (broken(base="ranking"), "Broken: its base ranking has no environment; take dbf, or None"),
        (type("Broken", (d.Environment,), {"base": None}), "Broken: without a base it must have the methods observe"),
        (broken(observe=lambda self, view: [np.nan]), "Broken.observe: number 0 is nan at t=0 s; bound it"),
        (broken(observe=lambda self, view: "what"), "Broken.observe: must give a list of numbers; found 'what'"),
        (broken(observe=lambda self, view: [1 / 0]), "Broken: observe failed: ZeroDivisionError"),
        (broken(observe=lambda self, view: np.zeros(1 + len(view.queue))), "Broken.observe: gave 2 at t="),
        (broken(mask=lambda self, view: [0, 0]), "Broken.mask: must allow one of 2 actions at least"),
        (broken(reward=lambda self, view: None), "Broken.reward: must give a finite number; found nan"),
        (broken(act=lambda self, view, action, plan: plan.start(view.queue[0], [7])), "host 7 does not exist"),
        (broken(act=lambda self, view, action, plan: plan.start(0)), "job number 0 needs 3 hosts, 1 free"),
        (
            broken(act=lambda self, view, action, plan: plan.start(view.queue[0], [])),
            "w0!1 needs 3 hosts, and was given 0",
        ),
        (broken(act=lambda self, view, action, plan: plan.reject(0)), "Broken: act at t=0 s: w0!1 does not wait"),
        (5, "scheduler: give a scheduler's name, or a class that inherits from decision.Environment; found 5"),
    ],
)
def test_what_is_wrong_in_a_class_is_said_in_one_line(kind, message):
    """What, where and when."""
    with pytest.raises(d.DecisionError) as error:
        env = d.make_env(kind, "toy", "toy", jobs=3)
        env.reset(options={"first": 0})
        for _ in range(3):
            env.step(1)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_is_made_of_what_a_library_learned():
    """Stable-Baselines3's models and functions; others are refused."""
    from sb3_contrib import MaskablePPO

    envs = SchedulerVecEnv(2, setup=d.make_env("dbf", *CASE, **OBSERVED, head=4, num_envs=2).setup)
    model = MaskablePPO("MlpPolicy", envs, n_steps=8, batch_size=8, device="cpu", seed=1).learn(16)
    policy = d.policy_from(envs, model)
    assert policy.name == "MaskablePPO"
    result = d.compare(*CASE, {"easy": "easy", "mine": policy}, metrics=["wait"], jobs=slice(0, 150), shake=2)
    assert result.table.policy.tolist() == ["easy", "mine"]
    with pytest.raises(d.ConfigError, match="env: must be an environment of make_env; found int"):
        d.policy_from(5, model)
    with pytest.raises(d.ConfigError, match="model: must be a model with the method predict"):
        d.policy_from(envs, 5)


def test_a_class_is_trained_and_deployed_by_its_name(tmp_path, monkeypatch):
    """The checkpoint runs by itself, and says what is missing where its file is gone."""
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(Path(d.__file__).parents[1].joinpath("tests/helpers/own_dbf.py").read_text())
    small = {"learn.steps": 64}
    checkpoint = d.train("./mine.py:Dbf", *CASE, "out", changes=small)
    assert checkpoint == Path("out/Dbf.ckpt")
    assert len(d.simulate(*CASE, str(checkpoint), jobs=slice(0, 40)).jobs) == 40
    manifest = d.rl.learning.checkpoint.read_manifest(checkpoint)
    assert manifest.config.scheduler == "./mine.py:Dbf"
    assert msgspec.to_builtins(manifest.config.env) == {"jobs": 30, "online": False}
    env = d.make_env("./mine.py:Dbf", *CASE)
    assert isinstance(env, SchedulerEnv)
    with pytest.raises(d.ConfigError, match=r"scheduler ./mine.py:Dfb: ./mine.py has no 'Dfb'; did you mean Dbf"):
        d.make_env("./mine.py:Dfb", *CASE)
