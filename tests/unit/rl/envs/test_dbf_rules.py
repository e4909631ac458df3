"""DBF as the paper has it: known answers, and the slow twin in plain Python at every step."""

import numpy as np
import pytest
from helpers.dbf_reference import Reference
from helpers.env_toys import busy, scrambled, setup, workload

from decision.model.errors import ConfigError
from decision.rl.envs import DbfEnv, DbfVectorEnv
from decision.rl.schedulers import find_scheduler
from decision.rl.schedulers.dbf import DbfSettings

FWD_OF_TWO = 2  # with two slots


def small(*jobs: tuple[float, int, float, float], head: int = 2, tail: int = 0, **options) -> DbfEnv:
    """An environment of 4 cores in which just these jobs come."""
    options = {"jobs": len(jobs), "online": False, "max_runtime": 100.0, "paper": True} | options
    return DbfEnv(setup=setup(workload(4, *jobs), head=head, tail=tail, **options))


def test_an_observation_is_cores_then_slots():
    env = small((0, 3, 50, 50), (10, 2, 20, 20), (20, 1, 100, 1))
    env.reset(options={"first": 0})
    observation, reward, *_ = env.step(0)
    assert reward == 0
    assert observation == pytest.approx([0.5, 0.5, 0.5, 0] + [0] * 8)
    observation, *_ = env.step(FWD_OF_TWO)
    assert observation == pytest.approx([0.4, 0.4, 0.4, 0, 0.5, 0.2, 0, 1, 0, 0, 0, 0])
    observation, *_ = env.step(FWD_OF_TWO)
    assert observation == pytest.approx([0.3, 0.3, 0.3, 0, 0.5, 0.2, 0.1, 1, 0.25, 1.0, 0, 1])
    assert env.action_masks().tolist() == [False, True, True]


def test_a_reward_is_the_papers_equation():
    env = small((0, 3, 50, 50), (0, 2, 20, 20), (30, 2, 20, 20), weights=(0.5, 0.3, 0.2))
    env.reset(options={"first": 0})
    env.step(0)
    assert env.step(FWD_OF_TWO)[1] == pytest.approx(-0.5 / 4), "one core idle, nobody waits"
    assert env.step(FWD_OF_TWO)[1] == pytest.approx(-0.5 / 4 - 0.3), "the longest queue so far, and no wait yet"
    assert env.step(FWD_OF_TWO)[1] == pytest.approx(-0.5 / 4 - 0.3 - 0.2), "30 s waited are the most so far"
    assert env.step(0)[1] == 0
    assert env.step(1)[1] == pytest.approx(-0.5 / 2 - 0.3 / 2 - 0.2 * 20 / 70), "an empty slot ends the cycle, too"


def test_jobs_that_arrive_together_are_seen_one_after_the_other():
    env = small((5, 1, 10, 10), (5, 2, 10, 10), (5, 4, 10, 10), head=2, tail=1)
    observation, _ = env.reset(options={"first": 0})
    cores = [(4 * observation[4::4]).tolist()]
    for _ in range(2):
        observation, *_ = env.step(3)
        cores.append((4 * observation[4::4]).tolist())
    assert cores == [[1, 0, 0], [1, 2, 0], [1, 2, 4]]


def test_jobs_that_end_together_begin_one_cycle():
    env = small((0, 1, 10, 10), (0, 1, 10, 10), (0, 4, 10, 10), (50, 1, 10, 10), head=4)
    env.reset(options={"first": 0})
    for action in (0, 4, 0, 4, 4):
        observation, *_ = env.step(action)
    assert observation[:4].tolist() == [0, 0, 0, 0]
    assert env.action_masks().tolist() == [True, False, False, False, False]
    observation, *_ = env.step(4)
    assert observation[4 + 4 + 3] == 1, "the next cycle is the next arrival's"


def test_the_window_is_the_first_and_the_last_jobs_and_no_job_twice():
    jobs = [(0, 4, 100, 100)] + [(i, 1 + i % 3, 10 * i, 5) for i in range(1, 7)]
    env = small(*jobs, head=2, tail=3)
    env.reset(options={"first": 0})
    env.step(0)
    seen = []
    for _ in range(6):
        observation, *_ = env.step(5)
        seen.append((observation[5::4] * 10).round().astype(int).tolist())
    assert seen == [
        [1, 0, 0, 0, 0],
        [1, 2, 0, 0, 0],
        [1, 2, 3, 0, 0],
        [1, 2, 4, 3, 0],
        [1, 2, 5, 4, 3],
        [1, 2, 6, 5, 4],
    ]
    env.step(5)  # the machine is free
    for slot, left in ((2, [1, 2, 5, 4, 3]), (1, [1, 3, 5, 4, 0])):  # the newest starts, then the second
        observation, *_ = env.step(slot)
        assert (observation[5::4] * 10).round().astype(int).tolist() == left


def test_an_invalid_choice_does_what_fwd_does():
    jobs = ((0, 3, 50, 50), (10, 2, 20, 20), (20, 1, 100, 1))
    told = []
    for choice in (1, FWD_OF_TWO):
        env = small(*jobs)
        env.reset(options={"first": 0})
        env.step(0)
        env.step(FWD_OF_TWO)
        told.append(env.step(choice))
    (one, *rest, _), (other, *others, _) = told
    assert np.array_equal(one, other)
    assert rest == others


def test_an_episode_ends_when_enough_jobs_are_placed():
    env = small(*[(10 * i, 1, 5, 5) for i in range(5)], jobs=3, online=True)
    env.reset(options={"first": 4})
    placed = 0
    while placed < 3:
        placed += bool(env.action_masks()[0])
        assert env.step(0)[2] == (placed == 3)


def test_the_trace_begins_again_after_a_mean_gap():
    env = small((0, 1, 5, 5), (10, 2, 5, 5), (40, 3, 5, 5), jobs=10, online=True)
    env.reset(options={"first": 1})
    sizes, times = [], []
    for _ in range(6):
        observation, *_ = env.step(2)
        sizes.append(round(float(observation[8]) * 4))
        times.append(float(observation[6]) * 100)
    assert sizes == [3, 3, 3, 3, 3, 3], "the second job that waits is the one of three cores"
    assert times == pytest.approx([30, 50, 60, 90, 100, 100]), "20 s after the last comes the first again"


def test_an_episode_is_given_up_when_nothing_is_placed():
    env = small((0, 1, 5, 5), (10, 2, 5, 5), jobs=3, online=True)
    env.reset()
    ends = [env.step(2)[2:4] for _ in range(12)]
    assert ends.index((False, True)) == 10, "with the twelfth arrival"
    assert ends[-1] == (False, True)


def test_an_episode_in_which_nothing_can_happen_any_more_is_truncated():
    env = small((0, 1, 5, 5), (10, 2, 5, 5))
    env.reset(options={"first": 0})
    assert [env.step(2)[2:4] for _ in range(2)] == [(False, False), (False, True)]


@pytest.mark.parametrize(
    ("online", "paper", "end"), [(True, False, "cut"), (True, True, "over"), (False, False, "over")]
)
def test_an_episode_is_cut_off_where_others_wait_unless_as_in_the_paper(online, paper, end):
    jobs = [(10 * i, 1, 5, 5) for i in range(5)]
    env = small(*jobs, jobs=3, online=online, paper=paper)
    envs = DbfVectorEnv(2, setup=env.setup)
    env.reset(options={"first": 0})
    envs.reset(options={"first": 0})
    for placed in (1, 2, 3):
        while not env.action_masks()[0]:
            env.step(FWD_OF_TWO)
            envs.step(np.full(2, FWD_OF_TWO))
        last, _, terminated, truncated, info = env.step(0)
        _, _, over, cut, infos = envs.step(np.zeros(2, int))
        expected = (placed == 3 and end == "over", placed == 3 and end == "cut")
        assert (terminated, truncated) == (over[0], cut[0]) == expected
    assert infos["metrics"]["placed_waiting_time"].tolist() == [info["metrics"]["placed_waiting_time"]] * 2
    assert infos["_final_obs"].all() and np.array_equal(infos["final_obs"][0], last)


def test_no_wait_is_too_long_to_be_seen():
    jobs = [(0, 4, 100, 100), (0, 3, 100, 100), *((10.0**k, 1, 1, 1) for k in (2, 4, 6))]
    env = small(*jobs, paper=False, head=1)
    env.reset(options={"first": 0})
    seen = [env.step(1)[0][6] for _ in range(4)]
    assert seen == pytest.approx([0, 0.5, 1e4 / 10_100, 1e6 / 1_000_100])
    assert seen[-1] < 1


def test_no_job_waits_where_all_could_start():
    env = small((0, 1, 100, 50), (10, 2, 50, 50), (20, 1, 50, 50), (30, 1, 50, 50), paper=False, head=3)
    env.reset(options={"first": 0})
    masks = [env.action_masks().tolist()]
    for _ in range(4):
        env.step(0 if env.action_masks()[0] else 3)
        masks.append(env.action_masks().tolist())
    assert masks[0][3] is False, "idle"
    fwd = [mask[3] for mask in masks if any(mask[:3])]
    assert not any(fwd), "all that wait fit"
    env.reset(options={"first": 0})


def test_without_the_mask_an_invalid_choice_can_be_made_and_ends_the_cycle_with_its_reward():
    jobs = ((0, 3, 50, 50), (10, 2, 20, 20), (20, 1, 100, 1))
    env, masked = small(*jobs, mask=False), small(*jobs)
    for each in (env, masked):
        each.reset(options={"first": 0})
    assert env.action_masks().tolist() == [True, True, True], "also where the cluster is idle"
    for mine, theirs in ((0, 0), (1, FWD_OF_TWO), (0, FWD_OF_TWO)):  # the job; an empty slot; one that does not fit
        seen, reward, *_ = env.step(mine)
        expected, paid, *_ = masked.step(theirs)
        assert env.action_masks().all()
        assert np.array_equal(seen, expected)
        assert reward == paid
    assert reward < 0


def test_the_mask_can_be_left_out_in_the_papers_environment_alone():
    with pytest.raises(ConfigError, match=r"env.mask is false: .* env.paper=true"):
        find_scheduler("dbf").check(DbfSettings(mask=False), "")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("head", "tail", "paper"), [(3, 0, True), (3, 2, True), (0, 3, True), (3, 2, False)])
def test_every_step_is_that_of_the_slow_twin(seed, head, tail, paper):
    jobs = busy(120, 8, seed)
    env = DbfEnv(setup=setup(jobs, head=head, tail=tail, jobs=None, online=False, paper=paper))
    twin = Reference(jobs, 8, head, tail, 120, paper=paper)
    seen, (observation, info) = twin.play(), env.reset(options={"first": 0})
    expected, mask, _ = next(seen)
    rng, steps = np.random.default_rng(seed), 0
    while True:
        assert observation == pytest.approx(expected, abs=1e-6)
        assert info["action_mask"].tolist() == mask
        action = int(scrambled(observation, info["action_mask"])[0]) if rng.random() < 0.8 else head + tail
        observation, reward, terminated, truncated, info = env.step(action)
        steps += 1
        try:
            expected, mask, paid = seen.send(action)
        except StopIteration:
            break
        assert reward == pytest.approx(paid, abs=1e-6)
    assert (terminated, truncated) == (twin.placed == 120, twin.placed < 120)
    metrics, seconds = info["metrics"], twin.now - jobs.jobs[0].submit_time
    assert metrics["length"] == steps
    assert metrics["duration"] == pytest.approx(seconds)
    assert metrics["utilization"] == pytest.approx(twin.integrals["used"] / seconds / 8)
    assert metrics["waiting_time"] == pytest.approx(twin.integrals["queued"] / twin.arrived)
    assert metrics["queue_length"] == pytest.approx(twin.integrals["queued"] / seconds)
    assert metrics["job_load"] == pytest.approx(twin.integrals["load"] / seconds)
