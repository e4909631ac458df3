"""Launchpad's environment: what is seen, done, rewarded, and how an episode begins and ends."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.green_worlds import supply, workload

from decision.model.errors import ConfigError
from decision.model.workload import POWER_SUPPLY, Delay, Job, MachineEvent, Workload, Worth
from decision.rl.envs import GreenEnv, GreenVectorEnv, equal_hosts, evaluate, make_setup
from decision.rl.envs.demonstrations import record_schedules, replay_schedules

NO_OP, SUSPEND = 11, 10


def power(*changes: tuple[float, int]) -> list[MachineEvent]:
    events = []
    for time, hosts in changes:
        said = {"type": POWER_SUPPLY, "timestamp": time, "hosts": hosts, "forecast": []}
        source = json.dumps(said).encode()
        events.append(MachineEvent(timestamp=time, type=POWER_SUPPLY, hosts=(hosts,), source=source))
    return events


def jobs(*rows: tuple[float, int, float, float, float]) -> Workload:
    """Jobs of submission, size, seconds, value and QoS."""
    made = [
        Job(
            id=f"w0!{number}",
            submit_time=submit,
            size=size,
            walltime=run + 60.0,
            profile=f"d{run:g}",
            worth=Worth(value, qos, submit + run / qos * 100, run),
        )
        for number, (submit, size, run, value, qos) in enumerate(rows)
    ]
    profiles = {job.profile: Delay(row[2]) for job, row in zip(made, rows, strict=True)}
    return Workload(name="w0", jobs=made, profiles=profiles, nb_res=4)


def env_of(*rows, events=(), **options) -> GreenEnv:
    return GreenEnv(workload=jobs(*rows), platform=equal_hosts(4), events=list(events), **options)


def test_a_job_takes_the_hosts_of_one_that_is_worth_less_at_the_same_instant():
    env = env_of((0, 4, 120, 10, 25), (60, 2, 60, 30, 100))
    _, info = env.reset()
    assert info["action_mask"].nonzero()[0].tolist() == [0, NO_OP]
    _, _, _, _, info = env.step(0)
    assert env.state.now == 60
    assert info["action_mask"].nonzero()[0].tolist() == [SUSPEND, NO_OP]
    _, reward, over, _, info = env.step(SUSPEND)
    assert reward == 30 and not over and env.state.now == 120
    _, reward, over, _, info = env.step(0)
    assert reward == 10 and over and env.state.now == 180, "the other has lost no time but what it waited"
    assert env.state.start_time[:3].tolist() == [0, 60, 120]
    assert env.state.nth_rest[2] == 1 and env.state.origin[2] == 0
    assert info["metrics"]["value_share"] == 1 and info["metrics"]["suspensions"] == 1


def test_the_schedule_of_a_heuristic_that_suspends_is_followed():
    made = make_setup(
        jobs((0, 4, 120, 10, 25), (60, 2, 60, 30, 100)), equal_hosts(4), encoder="green", suspend="density"
    )
    (schedule, *_) = record_schedules("fcfs+first-fit,suspend=density", made, 1, seed=0)
    assert schedule.start.tolist() == [0, 60]
    assert schedule.rests.tolist() == [[0, 1, 120]]
    found = replay_schedules(made, [schedule])
    assert found.action[found.choices].tolist() == [0, SUSPEND, 0]
    assert found.reward.sum() == 40
    assert (found.late, found.placed) == (0, 2)


def test_what_is_worth_more_keeps_its_hosts_by_density_where_it_is_worth_less_by_value():
    rows = (0, 4, 60, 60, 50), (30, 2, 600, 90, 100)
    for suspend, valid in (("value", [SUSPEND, NO_OP]), ("density", [])):
        env = env_of(*rows, suspend=suspend)
        env.reset()
        _, _, over, _, info = env.step(0)
        assert (info["action_mask"].nonzero()[0].tolist() == valid) is not over


def test_jobs_beyond_the_supply_make_way_and_late_ones_leave():
    rows = (0, 2, 120, 10, 50), (0, 2, 120, 20, 100)
    env = env_of(*rows, events=power((0, 4), (60, 2)))
    env.reset()
    env.step(0)
    _, reward, over, _, _ = env.step(0)
    assert reward == 20 and not over and env.state.nth_rest[2] == 1, "the one that is worth less made way"
    _, reward, over, _, info = env.step(0)
    assert reward == 10 and over and info["metrics"]["suspensions"] == 1
    env = env_of(*rows, events=power((0, 4), (60, 1), (300, 4)), violation_cost=1.0)
    env.reset()
    env.step(0)
    _, reward, over, _, info = env.step(0)
    assert over and reward == -30, "both wait for power until they are too late"
    assert info["metrics"]["violated_share"] == 1


def test_on_power_of_the_grid_jobs_run_on():
    env = env_of((0, 2, 120, 10, 100), events=power((0, 4), (60, 0)), beyond="grid")
    env.reset()
    _, reward, over, _, info = env.step(0)
    assert over and reward == 10 and info["metrics"]["suspensions"] == 0


def test_jobs_are_looked_at_at_each_step_while_they_are_ready():
    env = env_of((30, 1, 60, 5, 20))
    env.reset()
    times = [env.state.now]
    for _ in range(3):
        env.step(NO_OP)
        times.append(env.state.now)
    assert times == [30, 60, 120, 180]


def test_the_observation_is_what_the_docstring_says():
    events = power((0, 3))
    env = env_of((0, 2, 120, 10, 50), (0, 4, 60, 40, 100), events=events)
    seen, _ = env.reset()
    assert seen[:3] == pytest.approx([0.75, 0.75, 0])
    assert seen[3:8] == pytest.approx([0.75] * 5) and seen[8:13].sum() == 0
    first, second = seen[17:28], seen[28:39]
    assert first == pytest.approx([0.25, 0.5, 0.5, 1, 0.5 + 0.5 * 4 / 20, 0, 0, 1, 0.25, 1, 0])
    assert second == pytest.approx([1, 1, 1, 0.5, 0.5 + 0.5 / 20, 0, 0, 1, 1, 0, 0])
    assert seen[39:].sum() == 0


def test_the_image_is_what_the_docstring_says():
    env = env_of((0, 2, 120, 10, 50), (0, 1, 60, 40, 80), events=power((0, 3)), encoder="green-image")
    env.reset()
    seen, _, _, _, info = env.step(0)
    occupied, powered = seen[:80].reshape(20, 4), seen[80:160].reshape(20, 4)
    assert occupied[:3].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]] and occupied[3:].sum() == 0
    assert powered.tolist() == [[1, 1, 1, 0]] * 20
    assert seen[160:168] == pytest.approx([1, 0.8, 0.25, 0.5, 0.5 + 0.5 * 1.25 / 20, 0, 0, 1])
    assert seen[168:].sum() == 0
    assert info["action_mask"].nonzero()[0].tolist() == [0, NO_OP]


@pytest.mark.parametrize("encoder", ["green-image", "green"])
def test_the_image_shows_the_power_that_is_forecast(encoder):
    """So do the numbers about any cluster: of 1, 2, 5, 10 and 20 steps ahead. The last that is said holds on."""
    said = {"type": POWER_SUPPLY, "timestamp": 0, "hosts": 3, "forecast": [2, 4, 1]}
    event = MachineEvent(timestamp=0, type=POWER_SUPPLY, hosts=(3, 2, 4, 1), source=json.dumps(said).encode())
    seen, _ = env_of((0, 2, 120, 10, 50), events=[event], encoder=encoder).reset()
    if encoder == "green-image":
        powered = seen[80:160].reshape(20, 4)
        assert powered.sum(1).tolist() == [3, 2, 4, *[1] * 17]
        assert powered[:2].tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]
    else:
        assert seen[3:8].tolist() == [2 / 4, 4 / 4, 1 / 4, 1 / 4, 1 / 4]


def test_environments_are_as_gymnasium_wants_them():
    made = {"workload": workload(0, 60), "platform": equal_hosts(8), "events": list(supply(0, 60))}
    check_env(gymnasium.make("decision/Green-v0", **made).unwrapped)
    check_env(gymnasium.make("decision/Green-v0", **made, encoder="green-image").unwrapped)


@pytest.mark.parametrize("encoder", ["green", "green-image"])
def test_episodes_are_the_same_again_and_side_by_side(encoder):
    made = make_setup(workload(1, 60), equal_hosts(8), events=list(supply(1, 60)), encoder=encoder, jobs=30)
    envs, rng = GreenVectorEnv(3, setup=made, threads=1), np.random.default_rng(0)
    runs = []
    for _ in range(2):
        observation, info = envs.reset(seed=[4, 4, 5])
        rows, words = [observation], np.random.default_rng(1)
        for _ in range(400):
            actions = np.array([words.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
            actions[1] = actions[0]
            observation, *_, info = envs.step(actions)
            assert observation.min() >= 0 and observation.max() <= 1
            rows.append(observation)
        runs.append(np.stack(rows))
        for _ in range(rng.integers(50, 60)):
            envs.step(info["action_mask"].argmax(axis=1))
    assert np.array_equal(*runs)
    assert np.array_equal(runs[0][:, 0], runs[0][:, 1])


def test_a_state_is_saved_and_restored():
    made = make_setup(workload(2, 60), equal_hosts(8), events=list(supply(2, 60)), encoder="green", jobs=30)
    envs, words = GreenVectorEnv(2, setup=made, threads=1), np.random.default_rng(0)
    _, info = envs.reset(seed=3)
    for _ in range(70):
        _, _, _, _, info = envs.step(np.array([words.choice(np.flatnonzero(mask)) for mask in info["action_mask"]]))
    other = GreenVectorEnv(2, setup=made, threads=1)
    _, again = other.set_state(envs.get_state())
    assert np.array_equal(info["action_mask"], again["action_mask"])
    actions = info["action_mask"].argmax(axis=1)
    for one, two in zip(envs.step(actions)[:4], other.step(actions)[:4], strict=True):
        assert np.array_equal(one, two)


def test_schedules_of_heuristics_are_followed_with_what_is_left_of_suspended_jobs():
    made = make_setup(workload(3, 60), equal_hosts(8), events=list(supply(3, 60)), encoder="green", jobs=60)
    (schedule, *_) = schedules = record_schedules("qos+first-fit", made, 100, seed=0)
    assert len(schedule.rests) > 0
    found = replay_schedules(made, schedules)
    share = evaluate("qos+first-fit", made, first=[each.first for each in schedules])["value"].sum()
    assert found.late <= 0.1 * found.placed
    assert found.reward.sum() == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": power((0, 9))}, "has 9 hosts, and the platform has 4"),
        ({"events": power((0, 2))}, "the supply of power ends at t=0 s, and the last job is submitted at t=60 s"),
    ],
)
def test_supplies_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        env_of((0, 1, 60, 1, 50), (60, 1, 60, 1, 50), **options)


def test_jobs_must_say_what_they_are_worth():
    with pytest.raises(ConfigError, match="has no 'value', and policy green needs one"):
        GreenEnv(workload=workload(0).__class__(name="w0", jobs=[_silent()], profiles={"d": Delay(1.0)}, nb_res=1))


def _silent() -> Job:
    return Job(id="w0!0", submit_time=0.0, size=1, walltime=9.0, profile="d")


def test_others_know_no_supply():
    with pytest.raises(ConfigError, match="environments of dbf know no supply of power"):
        make_setup(workload(0), equal_hosts(8), events=list(supply(0)))
