"""The environments of the learned schedulers that DBF is compared with, held to slow twins."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.env_toys import busy, scrambled, setup, workload
from helpers.pick_reference import Picks, f1, shortest

from decision.rl.envs import DbfEnv, evaluate

ACCEPT, REFUSE = 0, 1


@pytest.mark.parametrize("name", ["RLScheduler", "Inspector"])
def test_gymnasium_finds_nothing_wrong(name):
    check_env(gymnasium.make(f"decision/{name}-v0", workload=busy(400, 8)).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("options", "rank"),
    [
        ({"encoder": "rlscheduler", "head": 5}, None),
        ({"encoder": "inspector", "base": "sjf"}, shortest),
        ({"encoder": "inspector", "base": "f1"}, f1),
    ],
)
def test_every_step_is_that_of_the_slow_twin(options, rank, seed):
    jobs = busy(100, 8, seed)
    env = DbfEnv(setup=setup(jobs, jobs=None, online=False, **options))
    twin = Picks(jobs, 8, 5, 0, 100, rank=rank)
    seen, (observation, info) = twin.play(), env.reset(options={"first": 0})
    expected, mask, _ = next(seen)
    while True:
        assert observation == pytest.approx(expected, abs=1e-6)
        assert info["action_mask"].tolist() == mask
        action = int(scrambled(observation, info["action_mask"])[0])
        observation, reward, terminated, _, info = env.step(action)
        try:
            expected, mask, _ = seen.send(action)
        except StopIteration:
            break
        assert reward == 0
    own = np.mean(twin.slowdowns)
    assert terminated
    assert info["metrics"]["bounded_slowdown"] == pytest.approx(own)
    base = slowdown_of_base(jobs, rank) if rank else None
    assert reward == pytest.approx((base - own) / max(base, own, 1) if rank else -own, abs=1e-6)


def slowdown_of_base(jobs, rank) -> float:
    """If nothing is refused."""
    twin = Picks(jobs, 8, 5, 0, 100, rank=rank)
    seen = twin.play()
    next(seen)
    with pytest.raises(StopIteration):
        while True:
            seen.send(ACCEPT)
    return float(np.mean(twin.slowdowns))


def test_accepting_everything_gains_nothing():
    made = setup(busy(300, 8), encoder="inspector", jobs=64, online=False)
    told = evaluate(lambda observations, masks: np.zeros(len(observations), int), made, 10)
    assert told["return"].tolist() == [0.0] * 10


def test_a_refused_job_is_seen_again_after_ten_minutes_and_72_times_at_most():
    jobs = workload(4, (0, 1, 100, 100), (100_000, 1, 100, 100))
    env = DbfEnv(setup=setup(jobs, encoder="inspector", jobs=None, online=False))
    observation, _ = env.reset(options={"first": 0})
    waits = [float(observation[0]) * 43200]
    for _ in range(72):
        assert env.action_masks().tolist() == [True, True]
        observation, *_ = env.step(REFUSE)
        waits.append(float(observation[0]) * 43200)
    assert waits == pytest.approx([600 * k for k in range(73)], rel=1e-5)
    assert env.action_masks().tolist() == [True, False]
    observation, *_ = env.step(REFUSE)
    assert observation[0] == 0, "an invalid refusal accepts: the other job has come"


@pytest.mark.parametrize(("jobs", "gap"), [(200, 0.0), (1500, 0.2)])  # seconds from an arrival to the next
def test_no_number_of_refusals_ends_an_episode_before_its_time(jobs, gap):
    """Each asks to be called: all of one instant, or more than a thousand within ten minutes."""
    trace = workload(4, *((gap * i, 4, 10, 5) for i in range(jobs)))
    env = DbfEnv(setup=setup(trace, encoder="inspector", jobs=None, online=False))
    env.reset(options={"first": 0})
    over, steps, truncated = False, 0, False
    while not over:
        _, _, over, truncated, info = env.step(REFUSE if steps < jobs else ACCEPT)
        steps, over = steps + 1, over or truncated
    assert not truncated
    assert info["metrics"]["arrived"] == jobs


def test_nothing_that_would_delay_the_chosen_job_is_backfilled():
    jobs = workload(4, (0, 3, 50, 50), (1, 4, 10, 10), (2, 1, 48, 48), (2, 1, 49, 40), (2, 1, 20, 20))
    env = DbfEnv(setup=setup(jobs, encoder="rlscheduler", head=4, jobs=None, online=False))
    env.reset(options={"first": 0})
    env.step(0)
    observation, *_ = env.step(0)
    state = env.state
    assert state.now == 50, "nothing is to be chosen until the chosen job begins"
    assert env._batch.envs[0].plan.job[0] == 1
    assert state.start_time[:5].tolist() == pytest.approx([0, np.nan, np.nan, np.nan, 2], nan_ok=True)
    assert observation[0::4].tolist() == [0.25, 0.25, 0, 0], "the two that would have ended too late wait"
