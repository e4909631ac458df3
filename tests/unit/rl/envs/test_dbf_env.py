"""The environments keep Gymnasium's rules."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from helpers.env_toys import busy, first_valid, play, scrambled, setup

from decision.model.errors import ConfigError
from decision.rl.envs import EPISODE_METRICS, DbfEnv, DbfVectorEnv
from decision.rl.envs.batch import _play_part

NAME = "decision/DBF-v0"


@pytest.mark.parametrize("options", [{}, {"dict_observation": True}, {"encoder": "dbf-pools"}])
def test_gymnasium_finds_nothing_wrong(options):
    env = gymnasium.make("decision/DBF-v0", workload=busy(), head=3, tail=1, jobs=20, **options)
    check_env(env.unwrapped, skip_render_check=True)


def test_the_native_vector_environment_is_what_gymnasium_makes():
    envs = gymnasium.make_vec("decision/DBF-v0", 3, "vector_entry_point", workload=busy(), jobs=20)
    assert isinstance(envs, DbfVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observation, _ = envs.reset(seed=1)
    assert observation in envs.observation_space
    assert observation.dtype == np.float32


def test_what_is_compiled_ahead_is_what_is_called():
    play(DbfVectorEnv(2, setup=setup()), 10)
    called = set(_play_part.signatures)
    _play_part.prepare()
    assert set(_play_part.signatures) == called


def test_same_seed_same_trajectory():
    one, other = (play(DbfVectorEnv(3, setup=setup()), 400) for _ in range(2))
    assert all(map(np.array_equal, one, other))
    assert not np.array_equal(one[0], play(DbfVectorEnv(3, setup=setup()), 400, seed=7)[0])


def test_an_environment_does_not_depend_on_its_neighbours_nor_on_the_threads():
    alone = play(DbfVectorEnv(1, setup=setup(), threads=1), 400, seed=5)
    among = play(DbfVectorEnv(7, setup=setup(), threads=3), 400, seed=2)
    for few, many in zip(alone, among, strict=True):
        assert np.array_equal(few[:, 0], many[:, 3])


def test_single_and_vectorised_environments_give_the_same_trace():
    env, envs = DbfEnv(setup=setup()), DbfVectorEnv(2, setup=setup())
    single, _ = env.reset(seed=9)
    many, info = envs.reset(seed=8)
    ends = 0
    for _ in range(400):
        assert np.array_equal(single, many[1])
        assert np.array_equal(env.action_masks(), info["action_mask"][1])
        actions = scrambled(many, info["action_mask"])
        single, reward, terminated, truncated, one = env.step(actions[1])
        many, rewards, over, cut, info = envs.step(actions)
        assert (reward, terminated, truncated) == (rewards[1], over[1], cut[1])
        if terminated or truncated:
            assert np.array_equal(single, info["final_obs"][1])
            assert one["metrics"] == {name: info["metrics"][name][1] for name in EPISODE_METRICS}
            single, _ = env.reset()
            ends += 1
    assert ends >= 2


def test_an_end_is_told_with_the_last_observation_and_the_next_episode_has_begun():
    envs = DbfVectorEnv(2, setup=setup(jobs=5))
    observation, info = envs.reset(seed=0)
    while not (over := info.get("_final_obs", np.zeros(2, bool))).any():
        observation, _, terminated, truncated, info = envs.step(first_valid(observation, info["action_mask"]))
    assert np.array_equal(over, terminated | truncated)
    assert np.array_equal(info["_metrics"], over)
    which = int(over.argmax())
    cores = observation[:, :16]
    assert (cores[which] == 0).all(), "the new episode begins on an idle cluster"
    assert (info["final_obs"][which, :16] > 0).any()
    assert (info["final_obs"][~over] == 0).all()
    assert info["metrics"]["arrived"][which] >= 5


def test_a_step_writes_into_the_arrays_of_the_caller():
    envs = DbfVectorEnv(3, setup=setup())
    out = envs.new_outputs()
    observation, info = envs.reset(seed=0, out=out)
    assert observation is out.observation
    assert info["action_mask"] is out.mask
    fresh, *_ = DbfVectorEnv(3, setup=setup()).reset(seed=0)
    assert np.array_equal(observation, fresh)
    returned = envs.step(np.array([6, 6, 6]), out=out)
    assert all(a is b for a, b in zip(returned[:4], (out.observation, *out[2:]), strict=True))


def test_without_arrays_of_the_caller_nothing_returned_is_written_again():
    envs = DbfVectorEnv(2, setup=setup())
    before, info = envs.reset(seed=0)
    kept = before.copy()
    envs.step(first_valid(before, info["action_mask"]))
    assert np.array_equal(before, kept)


def test_masks_are_the_same_in_all_three_conventions():
    env = DbfEnv(setup=setup(), dict_observation=True)
    observation, info = env.reset(seed=3)
    for _ in range(30):
        assert np.array_equal(observation["action_mask"], info["action_mask"])
        assert np.array_equal(env.action_masks(), info["action_mask"].astype(bool))
        assert info["action_mask"].dtype == np.int8
        observation, *_, info = env.step(int(scrambled(observation["observation"], info["action_mask"])[0]))


def test_a_saved_state_goes_on_exactly():
    envs = DbfVectorEnv(4, setup=setup())
    play(envs, 150)
    saved = envs.get_state()
    rest = _go_on(envs, *envs.set_state(saved))
    others = DbfVectorEnv(4, setup=setup())
    again = _go_on(others, *others.set_state(saved))
    assert all(map(np.array_equal, rest, again))
    envs = DbfVectorEnv(4, setup=setup())
    through = play(envs, 350)
    assert all(np.array_equal(a[151:], b) for a, b in zip(through, again, strict=True))


def _go_on(envs, observation, info):
    told = []
    for _ in range(200):
        observation, *rest, info = envs.step(scrambled(observation, info["action_mask"]))
        told.append((observation, info["action_mask"], *rest))
    return [np.stack(column) for column in zip(*told, strict=True)]


def test_only_the_chosen_environments_are_reset():
    envs = DbfVectorEnv(3, setup=setup())
    observation, info = envs.reset(seed=0)
    for _ in range(60):
        observation, *_, info = envs.step(scrambled(observation, info["action_mask"]))
    chosen = np.array([False, True, False])
    again, _ = envs.reset(options={"reset_mask": chosen, "first": 17})
    assert np.array_equal(again[~chosen], observation[~chosen])
    assert (again[1, :16] == 0).all()
    assert envs.get_state()["first"][1] == 17


def test_arrays_that_do_not_fit_are_refused():
    envs = DbfVectorEnv(3, setup=setup())
    out = envs.new_outputs()
    envs.reset(seed=0, out=out)
    for name, wrong in (("mask", out.mask[:2]), ("reward", out.reward.astype(float)), ("observation", out.mask)):
        with pytest.raises(ConfigError, match=f"out.{name}: must be C-contiguous"):
            envs.step(np.zeros(3, int), out=out._replace(**{name: wrong}))
    with pytest.raises(ConfigError, match="one for each environment"):
        envs.step(np.zeros(2, int))
    with pytest.raises(ConfigError, match="must be a job from 0 to 299, or -1; found"):
        envs.reset(options={"first": 300})
    with pytest.raises(ConfigError, match="of other environments"):
        DbfVectorEnv(2, setup=setup()).set_state(envs.get_state())
    saved = envs.get_state()
    for name, wrong in (
        ("steps", saved["steps"] + 1),
        ("steps", saved["steps"] - 1),
        ("actions", saved["actions"][:2]),
    ):
        with pytest.raises(ConfigError, match="of other environments"):
            envs.set_state(saved | {name: wrong})


def test_torch_sees_the_same_memory():
    torch = pytest.importorskip("torch", reason="needs torch")
    envs = DbfVectorEnv(2, setup=setup())
    out = envs.new_outputs()
    seen = torch.from_numpy(out.observation)
    envs.reset(seed=0, out=out)
    envs.step(np.array([6, 6]), out=out)
    assert np.array_equal(seen.numpy(), out.observation)


def test_a_misspelt_option_is_named_with_the_nearest():
    hint = r"dbf has no option 'heads'; did you mean head\? \(it has estimate, correction, head, tail, "
    with pytest.raises(ConfigError, match=hint):
        gymnasium.make(NAME, workload=busy(), heads=3)


def test_an_environment_is_drawn_as_text():
    env = gymnasium.make(NAME, workload=busy(), jobs=20, render_mode="ansi")
    env.reset(seed=0)
    clock, hosts, *jobs = env.render().splitlines()
    assert clock.startswith("t=") and set(hosts) <= {"#", "."} and len(hosts) == len(env.unwrapped.state.host_state)
    assert all(job.startswith("job ") or job == "..." for job in jobs)
    assert DbfEnv(workload=busy(), jobs=20).render() is None
