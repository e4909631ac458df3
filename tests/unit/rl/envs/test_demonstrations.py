"""Recorded schedules become choices: the same schedule, seen as any encoder sees it, and counts of what is lost."""

import numpy as np
import pytest
from helpers.env_toys import busy, setup, workload

from decision.model.errors import ConfigError
from decision.rl.envs import SchedulerVectorEnv, evaluate, make_setup
from decision.rl.envs.demonstrations import NOTHING, Observations, record_schedules, replay_schedules


def wide(**options):
    """A window in which all jobs are seen."""
    return setup(busy(120), head=120, tail=0, **options)


WIDE = {  # windows in which all jobs are seen
    "dbf": {"head": 120, "tail": 0, "jobs": None, "online": False},
    "dbf-pools": {"head": 120, "tail": 0, "jobs": None, "online": False},
    "packing-pools": {"window": 120, "jobs": 120, "tick": 0},
}


@pytest.mark.parametrize("encoder", WIDE)
@pytest.mark.parametrize("policy", ["fcfs", "sjf+first-fit"])
def test_choices_make_the_recorded_schedule_again(policy, encoder):
    made = make_setup(busy(120), encoder=encoder, **WIDE[encoder])
    schedules = record_schedules(policy, made, 1, seed=0)
    found = replay_schedules(made, schedules)
    assert found.placed == sum(np.isfinite(each.start).sum() for each in schedules)
    assert found.late == 0
    starts = (found.action >= 0) & (found.action < made.encoder.window)
    assert starts.sum() == found.placed
    assert (found.action == NOTHING).sum() == len(schedules)


def test_a_transition_is_a_decision_or_a_start():
    made = setup(workload(2, (0, 1, 10, 10), (0, 2, 10, 10), (5, 1, 10, 5)), jobs=None, online=False)
    schedules = record_schedules("fcfs", made, 60, seed=3)
    whole = next(each for each in schedules if each.first == 0)
    assert whole.start.tolist() == [0, 10, 20]
    (decisions,) = evaluate("fcfs", made, first=[0])["length"]
    assert whole.transitions == decisions + 3


def test_rewards_and_ends_are_those_of_the_environment():
    made = wide(jobs=30)
    found = replay_schedules(made, record_schedules("easy", made, 300, seed=1))
    first = [each.first for each in record_schedules("easy", made, 300, seed=1)]
    over = np.flatnonzero(found.action == NOTHING)
    assert len(over) == len(first)
    envs, at = SchedulerVectorEnv(1, setup=made), 0
    for row, end in zip(first, over, strict=True):
        observation, info = envs.reset(seed=0, options={"first": row})
        for k in range(at, end):
            assert np.array_equal(observation[0], found.observation[k])
            assert np.array_equal(info["action_mask"][0] != 0, found.mask[k])
            observation, reward, terminated, truncated, info = envs.step(found.action[k : k + 1])
            assert reward[0] == found.reward[k]
            assert terminated[0] == found.terminated[k]
        if (terminated | truncated)[0]:
            assert np.array_equal(info["final_obs"][0], found.observation[end])
            assert np.array_equal(info["final_info"]["action_mask"][0] != 0, found.mask[end])
        at = end + 1


def test_an_episode_without_others_terminates_with_its_last_choice():
    made = wide(jobs=20, online=False)
    found = replay_schedules(made, record_schedules("fcfs", made, 1, seed=0))
    over = np.flatnonzero(found.action == NOTHING)
    assert found.terminated[over - 1].all()
    assert found.terminated.sum() == len(over)


def test_what_a_narrow_window_cannot_choose_is_counted():
    made, narrow = wide(jobs=60), setup(busy(120), head=1, tail=0, jobs=60)
    schedules = record_schedules("sjf+first-fit", made, 500, seed=0)
    found = replay_schedules(narrow, schedules)
    assert found.late > 0
    assert f"{found.late:,} of {found.placed:,} jobs begin later" in found.summary
    assert replay_schedules(made, schedules).late == 0


def test_choices_that_the_mask_forbids_are_left_out():
    made = setup(workload(4, (0, 1, 10, 10), (1, 1, 10, 10)), jobs=None, online=False, head=4, tail=0)
    (schedule,) = record_schedules("fcfs", made, 1, seed=0)[:1]
    late = schedule._replace(first=0, start=np.array([0.0, 9.0]))  # nothing but its own start would end the wait
    found = replay_schedules(made, [late])
    assert len(found.choices) < (found.action >= 0).sum()
    assert found.mask[found.choices, found.action[found.choices]].all()


def test_shares_of_random_episodes_repeat_with_their_seed():
    made = wide(jobs=30)
    one, same, other = (record_schedules("fcfs", made, 200, seed=s) for s in (5, 5, 6))
    assert [each.first for each in one] == [each.first for each in same] != [each.first for each in other]
    assert sum(each.transitions for each in one[:-1]) < 200 <= sum(each.transitions for each in one)


def test_starts_are_those_that_the_policy_made():
    made, began = wide(jobs=40), []
    (row,) = evaluate("easy", made, first=[7], began=began)["arrived"]
    assert len(began[0].start) == row
    assert np.isfinite(began[0].start).sum() == 40


def test_a_scheduler_that_schedules_do_not_say_the_choices_of_is_refused():
    made = setup(busy(40), encoder="inspector")
    with pytest.raises(ConfigError, match="inspector cannot learn from schedules"):
        replay_schedules(made, record_schedules("sjf", made, 10, seed=0))


@pytest.mark.parametrize("flags", [0, 3, 8, 13])
def test_packed_observations_are_read_as_they_were(flags):
    rng = np.random.default_rng(0)
    seen = rng.random((20, 13), np.float32)
    seen[:, :flags] = seen[:, :flags] < 0.5
    parts = [Observations(flags, part) for part in (seen[:7], seen[7:])]
    packed = Observations.joined(parts)
    assert (len(packed), packed.packed) == (20, flags > 0)
    for rows in (3, slice(5, 11), np.array([19, 0, 7, 7])):
        np.testing.assert_array_equal(packed[rows], seen[rows])
        assert packed[rows].dtype == np.float32
