"""Environments whose episodes run in a Batsim: what they show, and how they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.env_toys import busy, scrambled, setup
from helpers.external_worlds import DECISION_BATSIM, WORLDS, difference
from helpers.real_batsim import find_batsim

import decision as d
from decision.model.errors import ConfigError, PeerError
from decision.rl.envs import DbfEnv, DbfVectorEnv
from decision.rl.envs.sb3 import DbfVecEnv

OURS = {"engine": "batsim", "batsim": DECISION_BATSIM}


# our replacement takes half a second to start, so that most are played at night
@pytest.mark.parametrize(
    "world",
    [name if name in ("dbf", "green-suspends") else pytest.param(name, marks=pytest.mark.nightly) for name in WORLDS],
)
def test_episodes_in_a_batsim_are_those_of_the_embedded_engine(world):
    found, choices = difference(WORLDS[world], 2, 3, **OURS)
    assert not found
    assert choices > 20


@pytest.mark.skipif(not find_batsim(), reason="batsim: no Batsim 4.2 on the path")
@pytest.mark.parametrize("world", WORLDS)
def test_episodes_in_a_real_batsim_are_those_of_the_embedded_engine(world):
    assert not difference(WORLDS[world], 5, 3, engine="batsim", batsim=find_batsim())[0]


@pytest.mark.nightly
def test_gymnasium_finds_nothing_wrong():
    env = gymnasium.make("decision/DBF-v0", workload=busy(40), head=4, tail=2, jobs=10, online=False, **OURS)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.nightly
def test_stable_baselines3_finds_nothing_wrong_and_steps_them():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = gymnasium.make("decision/DBF-v0", workload=busy(40), head=4, tail=2, jobs=10, online=False, **OURS)
    checker.check_env(env.unwrapped, skip_render_check=True)
    env.close()
    envs = DbfVecEnv(2, setup=setup(busy(40), jobs=10, online=False, **OURS))
    observation, ended = envs.reset(), 0
    while ended < 2:
        observation, _, over, _ = envs.step(scrambled(observation, envs.action_masks()))
        ended += over.sum()
    envs.close()


def test_make_env_makes_several_whose_state_is_kept():
    made = {"head": 4, "tail": 2, "jobs": 10, "online": False, "num_envs": 2}
    envs = d.make_env("dbf", None, busy(40), **made, **OURS)
    inside = d.make_env("dbf", None, busy(40), **made)
    _, info = envs.reset(seed=5)
    for _ in range(12):
        observation, *_, info = envs.step(info["action_mask"].argmax(axis=1))
    again, _ = inside.set_state(envs.get_state())
    assert np.array_equal(observation, again)
    envs.close()


class TwoFirst(d.Environment):
    """One of the first two jobs, in Python alone."""

    base, actions = None, 3

    def observe(self, view):
        return [view.nb_free / 16, len(view.queue) / 50, view.now / 1e4]

    def mask(self, view):
        fits = [job.size <= view.nb_free for job in list(view.queue)[:2]]
        return [1, *fits, *[0] * (2 - len(fits))]

    def act(self, view, action, plan):
        if action:
            plan.start(list(view.queue)[action - 1])
        return bool(action)

    def reward(self, view):
        return -len(view.queue) * view.elapsed / 100


@pytest.mark.nightly
def test_a_class_of_ones_own_is_played_in_a_batsim_as_inside():
    inside, outside = (d.make_env(TwoFirst, None, busy(60), jobs=20, **engine) for engine in ({}, OURS))
    for seed in range(2):
        (seen, info), (again, other), over = inside.reset(seed=seed), outside.reset(seed=seed), False
        while not over:
            assert np.array_equal(seen, again)
            assert np.array_equal(info["action_mask"], other["action_mask"])
            action = int(scrambled(seen[None], info["action_mask"][None])[0])
            seen, *here, info = inside.step(action)
            again, *there, other = outside.step(action)
            assert here[:3] == there[:3]
            over = here[1] or here[2]
    inside.close()
    outside.close()


def left_of(pid: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_batsim_that_is_killed_ends_the_step_and_the_next_episode_has_another():
    envs = DbfVectorEnv(1, setup=setup(busy(60), **OURS))
    _, info = envs.reset(seed=1)
    envs._batch._external.engines[0]._session._process.kill()
    with pytest.raises(PeerError, match=r"^Batsim ended in an episode \(signal 9\): "):
        for _ in range(1000):
            *_, info = envs.step(info["action_mask"].argmax(axis=1))
    envs.reset(seed=1)
    envs.close()


def failing(tmp_path: Path, *lines: str) -> str:
    """A program in a Batsim's place."""
    program = tmp_path / "program"
    program.write_text("\n".join(("#!/bin/sh", *lines)))
    program.chmod(0o755)
    return str(program)


def test_what_is_no_batsim_is_told_by_its_last_words(tmp_path):
    envs = DbfVectorEnv(
        1, setup=setup(engine="batsim", batsim=failing(tmp_path, "echo I know no platform >&2", "exit 3"))
    )
    with pytest.raises(PeerError, match=r"^Batsim ended in an episode \(exit code 3\): I know no platform$"):
        envs.reset()
    envs.close()


def test_one_that_hangs_is_given_up(tmp_path):
    program = failing(tmp_path, 'case "$*" in *--help*) exit;; esac', "exec sleep 60")
    envs = DbfVectorEnv(1, setup=setup(engine="batsim", batsim=program, timeout=0.3))
    with pytest.raises(PeerError, match="never connected"):
        envs.reset()
    envs.close()


def test_nothing_is_left_behind():
    envs = DbfVectorEnv(2, setup=setup(busy(60), **OURS))
    envs.reset(seed=1)
    sessions = envs._batch._external._batsims
    running, folder = [each._process.pid for each in sessions._running], sessions.folder
    assert len(running) == 4, "two that play, and two that wait for the next episodes"
    envs.close()
    assert not any(map(left_of, running))
    assert not folder.exists()


_TRAINER = """
from helpers.env_toys import busy, setup
from helpers.external_worlds import DECISION_BATSIM
from decision.rl.envs import DbfVectorEnv
envs = DbfVectorEnv(2, setup=setup(busy(60), engine="batsim", batsim=DECISION_BATSIM))
envs.reset(seed=1)
sessions = envs._batch._external._batsims
print(sessions.folder, *(each._process.pid for each in sessions._running), flush=True)
input()
"""


def test_kill_9_leaves_no_batsim_and_no_file_behind(root):
    environment = {**os.environ, "PYTHONPATH": str(root / "tests")}
    with subprocess.Popen(
        [sys.executable, "-c", _TRAINER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as trainer:
        folder, *pids = trainer.stdout.readline().split()
        assert all(left_of(int(pid)) for pid in pids)
        trainer.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while time.monotonic() < until and (Path(folder).exists() or any(left_of(int(pid)) for pid in pids)):
        time.sleep(0.1)
    assert not any(left_of(int(pid)) for pid in pids)
    assert not Path(folder).exists()


def test_options_that_make_no_sense_are_refused():
    for options, message in (
        ({"engine": "simgrid"}, "engine: must be embedded, batsim or docker"),
        ({"engine": "batsim", "batsim": "/no/batsim"}, "/no/batsim: command not found"),
        ({"batsim": "/no/batsim"}, "batsim: it is for engine 'batsim'"),
        ({"batsim_args": "-q"}, "batsim_args: '-q' is for a Batsim"),
        ({**OURS, "batsim_args": "--export=x"}, "--export=x: environments say this themselves"),
        ({**OURS, "batsim_args": "'x"}, "No closing quotation"),
    ):
        with pytest.raises(ConfigError, match=message):
            DbfEnv(workload=busy(40), head=4, tail=2, **options)


def test_a_platform_that_is_another_is_refused(tmp_path):
    """As where the file has changed since it was read."""
    other = d.make_env("dbf", "cluster256", "lublin_256", head=4, tail=2, jobs=10).unwrapped.setup.platform
    env = DbfEnv(workload=busy(40), platform=None, head=4, tail=2, jobs=10, **OURS)
    env._batch._external._batsims._platform = Path(other.path)
    with pytest.raises(ConfigError, match="16 hosts, from host000000; Batsim has 256 hosts"):
        env.reset()
    env.close()
