"""The environment of DeepScheduling: known answers on paper, and the same schedule everywhere."""

import math

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import env_toys
from helpers.day_toys import ENERGY, busy_days_of
from helpers.env_toys import play, scrambled
from helpers.policy_toys import platform

from decision.batsim import agent as agents
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.metric_list import measure_run
from decision.experiments.run import simulate_by_messages
from decision.model.dates import DAY, DAY_LEAD, BusyDay, busy_days, of_day, sequential_groups
from decision.model.errors import ConfigError
from decision.model.record import HostState
from decision.rl.envs import DeepSchedulingEnv, DeepSchedulingVectorEnv, equal_hosts, evaluate, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads
from decision.state.cluster import new_state, platform_facts

MINUTE = 60.0
SERVERS = platform(4, sleeps=True, wake=60.0, doze=180.0, cores=2)  # two servers of two cores


def jobs(*rows, users=()):
    """From (submission, cores, walltime, run time) per job, in minutes."""
    made = env_toys.workload(4, *((at * MINUTE, n, wall * MINUTE, run * MINUTE) for at, n, wall, run in rows))
    owned = [msgspec.structs.replace(job, user=user) for job, user in zip(made.jobs, users, strict=False)]
    return msgspec.structs.replace(made, jobs=owned or made.jobs)


TWO = jobs((10, 2, 100, 30), (12, 1, 20, 10))


def make(trace=TWO, on=SERVERS, **options) -> DeepSchedulingEnv:
    return DeepSchedulingEnv(workload=trace, platform=on, **options)


def minute(env) -> float:
    """Since midnight."""
    return float(env.state.now - DAY_LEAD) / MINUTE


@pytest.fixture
def env():
    made = make()
    made.reset()
    return made


@pytest.mark.parametrize("options", [{}, {"masked": True, "reward": "counts", "timeout": 60.0}])
def test_gymnasium_finds_nothing_wrong(options):
    check_env(make(busy_days_of(2), **options), skip_render_check=True)


def test_a_day_begins_asleep_with_its_first_submission_and_ends_asleep(env):
    assert minute(env) == 10
    assert set(env.state.host_state) == {HostState.SLEEPING}
    over = False
    while not over:
        _, _, over, cut, info = env.step(1 if env.state.now < 2 * DAY_LEAD else 0)
    assert not cut
    assert set(env.state.host_state) == {HostState.SLEEPING}
    assert minute(env) == 10 + 1 + 30 + 5 + 3, "woken, run, idle for the timeout, and put to sleep"
    assert info["metrics"]["duration"] == DAY_LEAD + 49 * MINUTE


def test_a_job_is_bound_at_once_and_starts_when_its_servers_are_awake(env):
    _, reward, *_ = env.step(1)
    assert (minute(env), reward) == (10, 0)
    env.step(0)
    assert minute(env) == 11, "the queue is empty: on to the event that the server is awake"
    assert env.state.start_time[0] == env.state.now or env.state.host_job[0] == -1
    env.step(0)
    assert minute(env) == 12
    assert env.state.start_time[0] == DAY_LEAD + 11 * MINUTE
    assert env.state.host_job.tolist() == [0, 0, -1, -1]
    for action in (2, 20):  # no such job: a minute passes
        before = minute(env)
        env.step(action)
        assert minute(env) == before + 1


def test_cores_of_a_job_that_was_bound_are_gone_at_once():
    env = make(jobs((10, 3, 100, 30), (10, 3, 20, 10)))
    env.reset()
    env.step(1)
    assert minute(env) == 10
    env.step(1)  # the other one, for which one core is left
    assert minute(env) == 11
    env.step(0)
    assert env.state.host_job.tolist() == [0, 0, 0, -1]


def test_jobs_wait_a_minute_at_a_time(env):
    for expected in (11, 12, 13, 14):
        _, reward, *_ = env.step(0)
        assert minute(env) == expected
    assert reward == pytest.approx(-(1 / 100 + 1 / 20)), "all servers are off, and two jobs wait"


def test_the_reward_of_a_minute_is_as_written(env):
    env.step(1)
    assert env.step(0)[1] == 0, "a server wakes"
    assert env.step(0)[1] == pytest.approx(0.2 * 2 / 4), "two of four cores compute"
    env.step(1)  # job 1 wakes server 1
    assert env.step(0)[1] == pytest.approx(0.2 * 2 / 4), "no longer waits unbound"
    _, reward, *_ = env.step(0)  # job 1 runs from minute 13 to 23
    assert (minute(env), reward) == (23, pytest.approx(10 * 0.2 * 3 / 4)), "the minutes' rewards are summed"
    _, reward, *_ = env.step(0)
    assert (minute(env), reward) == (28, pytest.approx(5 * (0.2 * 2 / 4 - 1 / 2))), "one of two servers is idle"
    counted = make(reward="counts", idle_weight=2.0, queue_weight=3.0, computing_weight=0.5)
    counted.reset()
    assert counted.step(0)[1] == pytest.approx(-3 / 100)
    for action in (1, 0):
        counted.step(action)
    assert minute(counted) == 12
    assert counted.step(0)[1] == pytest.approx(0.5 * 2 - 3 / 20)


def test_two_sums_of_a_schedule_do_not_depend_on_steps():
    """What tau pays is the work of all jobs, however they are scheduled."""
    trace = busy_days_of(1)
    work = sum(min(float(j.profile[1:]), j.walltime) * j.size for j in trace.jobs) / MINUTE / 4
    for first in (0, 1):
        envs, over, total, step = make(trace, idle_weight=0.0, queue_weight=0.0), False, 0.0, first
        envs.reset()
        while not over:
            _, reward, over, _, _ = envs.step(step % 2)
            total, step = total + reward, step + 1
        assert total == pytest.approx(0.2 * work)


def log_share(minutes, longest):
    return math.log1p(minutes) / math.log1p(longest)


def test_the_observation_fits_on_paper():
    env = make(jobs((10, 2, 100, 30), (12, 1, 20, 5), (12, 3, 40, 5), (30, 1, 50, 5), users=("a", "b", "a", "b")))
    seen, _ = env.reset()
    assert seen.shape == (280,)
    assert seen[:6].tolist() == pytest.approx([2 / 4, 1, 1, 0, 0, 0])
    assert not seen[60:120].any()
    queue = [log_share(k, 4500) for k in range(4)]
    assert seen[120:136] == pytest.approx([0, queue[1], 10 / 1440, 1, 0, 0, 0, 0] + [0] * 8)
    seen, *_ = env.step(1)
    assert seen[128:136] == pytest.approx([2 / 4, 0, 10 / 1440, 1 / 2, 1 / 2, 0, 0, 0]), "bound, and its server wakes"
    env.step(0)
    seen, *_ = env.step(0)
    assert minute(env) == 12
    assert seen[:9] == pytest.approx([1 / 4, log_share(20, 100), 1, 3 / 4, log_share(40, 100), 1, 0, 0, 0])
    assert seen[60:66] == pytest.approx([2 / 4, log_share(99, 100), log_share(99, 100), 0, 0, 0])
    assert seen[144:152] == pytest.approx([2 / 4, queue[2], 12 / 1440, 1 / 2, 0, 0, 0, 1 / 2])
    env.step(1)
    for _ in range(10):
        seen, *_ = env.step(0)
    assert minute(env) == 22, "b's job ran for 5 minutes of 20, from 13 to 18"
    while minute(env) < 30:
        seen, *_ = env.step(0)
    assert seen[:6] == pytest.approx([3 / 4, log_share(40, 100), 1, 1 / 4, log_share(50, 100), 1 / 4])
    env.step(2)
    seen, *_ = env.step(0)
    assert minute(env) == 31
    assert seen[60:63] == pytest.approx([1 / 4, log_share(50, 100), log_share(12.5, 100)]), "b's second job"
    assert seen[63:66] == pytest.approx([2 / 4, log_share(80, 100), log_share(80, 100)]), "none of a's has ended"
    assert seen[-8:] == pytest.approx([3 / 4, queue[1], 31 / 1440, 0, 0, 0, 1 / 4, 3 / 4])
    newest, (seen, *_) = seen[-8:].tolist(), env.step(0)
    assert seen[60:63] == pytest.approx([1 / 4, log_share(49, 100), log_share(11.5, 100)]), "a minute later"
    assert seen[-16:-8].tolist() == newest, "of more than twenty the oldest goes"


def test_servers_that_a_decision_puts_to_sleep_are_idle_no_more(env):
    for action in (1, 0, 0, 1, 0, 0, 0):
        seen, *_ = env.step(action)
    assert minute(env) == 28, "server 1 was idle from minute 23 on"
    snapshots = seen[120:].reshape(20, 8)
    newest = snapshots[snapshots.any(1)][-1]
    assert newest == pytest.approx([2 / 4, 0, 28 / 1440, 0, 0, 1 / 2, 0, 1 / 2])


def test_a_users_confidence_is_of_the_last_twenty_jobs():
    rows = [(10 * k, 1, 10, 1) for k in range(1, 22)] + [(10 * 22, 1, 10, 10), (240, 1, 10, 10), (241, 1, 10, 1)]
    trace = jobs(*rows, users=["a"] * 23 + ["unknown"])
    env, seen = make(trace), None
    env.reset()
    while minute(env) < 240:
        seen, *_ = env.step(1 if env.state.nb_queued else 0)
    assert seen[2] == pytest.approx((19 * 0.1 + 1.0) / 20)
    nobody = make(jobs(*rows[:3]))
    nobody.reset()
    while minute(nobody) < 30:
        seen, *_ = nobody.step(1 if nobody.state.nb_queued else 0)
    assert seen[2] == 1, "whose user is unknown"


def test_masks_leave_jobs_that_fit_and_ask_only_where_one_does():
    env = make(jobs((10, 3, 100, 30), (12, 2, 20, 10), (13, 1, 20, 10)), masked=True)
    _, info = env.reset()
    assert np.flatnonzero(info["action_mask"]).tolist() == [0, 1]
    *_, info = env.step(1)
    assert minute(env) == 13, "the job that came at 12 does not fit"
    assert np.flatnonzero(info["action_mask"]).tolist() == [0, 2]
    assert np.flatnonzero(make().reset()[1]["action_mask"]).tolist() == list(range(21))


def test_a_random_episode_is_of_a_group_and_then_a_day_of_it():
    """Nine quiet days, and one whose submissions follow each other: a half of the episodes."""
    quiet = [(1440 * day + at, 1, 20, 5) for day in range(9) for at in (10, 60)]
    rows = [*quiet, *((1440 * 9 + at, 1, 20, 5) for at in range(10, 20))]
    trace = jobs(*rows)
    groups = sequential_groups(np.array([job.submit_time for job in trace.jobs]), busy_days(trace))
    assert groups.tolist() == [0] * 9 + [4]
    envs = DeepSchedulingVectorEnv(200, workload=trace, platform=SERVERS)
    envs.reset(seed=0)
    first = envs.get_state()["first"]
    assert 70 < (first == 18).sum() < 130
    assert set(first) == {*range(0, 18, 2), 18}


def test_environments_side_by_side_do_what_single_ones_do():
    trace = busy_days_of(4)
    together = play(DeepSchedulingVectorEnv(3, workload=trace, platform=SERVERS, threads=2), 400, seed=5)
    for i in range(3):
        alone = play(DeepSchedulingVectorEnv(1, workload=trace, platform=SERVERS), 400, seed=[5 + i])
        assert all(np.array_equal(a[:, i], b[:, 0]) for a, b in zip(together, alone, strict=True))


def test_gymnasium_makes_them_by_name():
    options = {"workload": busy_days_of(2), "platform": SERVERS}
    assert gymnasium.make("decision/DeepScheduling-v0", **options).reset(seed=0)[0].shape == (280,)
    envs = gymnasium.make_vec("decision/DeepScheduling-v0", 3, "vector_entry_point", **options)
    assert envs.reset(seed=0)[0].shape == (3, 280)


def test_a_saved_state_goes_on_exactly():
    trace = busy_days_of(3)
    envs = DeepSchedulingVectorEnv(2, workload=trace, platform=SERVERS)
    observation, info = envs.reset(seed=1)
    for _ in range(100):
        observation, *_, info = envs.step(scrambled(observation, info["action_mask"]))
    saved = envs.get_state()
    follows = [envs.step(scrambled(observation, info["action_mask"]))[0].copy()]
    other = DeepSchedulingVectorEnv(2, workload=trace, platform=SERVERS)
    seen, info = other.set_state(saved)
    assert np.array_equal(seen, observation)
    assert np.array_equal(other.step(scrambled(seen, info["action_mask"]))[0], follows[0])


@pytest.fixture(scope="module")
def odd():
    """A day at odd seconds, on hosts whose switches are no whole minutes."""
    return busy_days_of(2, seed=3), platform(4, sleeps=True, wake=151.5, doze=6.1, cores=2)


def policy_of(setup):
    return ChoosingPolicy(setup.encoder, lambda seen, mask: int(scrambled(seen, mask)[0]))


@pytest.mark.parametrize("options", [{}, {"masked": True}])
def test_days_are_the_same_in_the_environment_on_both_engines_and_through_messages(odd, options, monkeypatch):
    trace, on = odd
    made = make_setup(trace, on, encoder="deepscheduling", steps=100_000, **options)
    monkeypatch.setattr(agents, "find_policy", lambda name, options: policy_of(made))
    env = DeepSchedulingEnv(setup=made)
    for day in busy_days(trace):
        observation, info = env.reset(options={"first": day.first})
        over = False
        while not over:
            observation, _, over, cut, info = env.step(int(scrambled(observation, info["action_mask"])[0]))
        assert not cut
        alone = of_day(trace, day)
        record = simulate_workloads(on, [alone], policy_of(made), engine_options=ENERGY)
        starts = dict(zip(record.jobs.id, record.jobs.start_time.tolist(), strict=True))
        assert [starts[job.id] for job in alone.jobs] == env.state.start_time[: day.jobs].tolist()
        measured, metrics = measure_run(record, on, {}, {}, DAY_LEAD), info["metrics"]
        assert metrics["switches"] == measured["switches"]
        assert metrics["energy_waste"] == pytest.approx(measured["energy_waste"])
        assert metrics["placed_waiting_time"] == pytest.approx(measured["wait"])
        for engine in (EmbeddedEngine, ReferenceEngine):
            agent = agents.Agent("scrambled", {}, platform=on)
            told = simulate_by_messages(engine(on, [alone], (), ENERGY), agent)
            assert told.jobs.start_time.tolist() == record.jobs.start_time.tolist()
            assert list(told.jobs.allocation) == list(record.jobs.allocation)
            assert told.pstates.hosts == record.pstates.hosts
            assert told.pstates.time.tolist() == record.pstates.time.tolist()


def test_the_memory_of_a_deployed_policy_grows(odd):
    trace, on = odd
    made = make_setup(trace, on, encoder="deepscheduling")
    few, many = made.encoder.new_memory(new_state_of(on, 4)), new_state_of(on, 64)
    few.user[few.user.size - 1], few.confidence[few.user.size - 1] = 7, 0.25
    grown = made.encoder.with_room(few, many)
    assert grown.confidence[grown.user.tolist().index(7)] == 0.25
    assert len(grown.previous) == 64
    assert made.encoder.with_room(grown, many) is grown


def new_state_of(on, nb_jobs):
    return new_state(*platform_facts(on, True), nb_jobs)


def test_heuristics_play_the_same_days(odd):
    trace, on = odd
    rule = "first-fit,start=bound,power=idle-timeout"
    made = make_setup(trace, on, encoder="deepscheduling")
    found = evaluate(rule, made, first=[day.first for day in busy_days(trace)])
    for k, day in enumerate(busy_days(trace)):
        record = simulate_workloads(on, [of_day(trace, day)], rule, engine_options=ENERGY)
        measured = measure_run(record, on, {}, {}, DAY_LEAD)
        assert found["switches"][k] == measured["switches"]
        assert found["energy_waste"][k] == pytest.approx(measured["energy_waste"])
        assert found["placed_waiting_time"][k] == pytest.approx(measured["wait"])


def test_what_cannot_be_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"no host has sleep states.*decision platform grid5000 --energy taurus"):
        make(on=equal_hosts(4))
    with pytest.raises(ConfigError, match=r"env\.idle_weight: expected `float` >= 0"):
        make(idle_weight=-1.0)
    with pytest.raises(ConfigError, match="no day is left of 3:; it has 1 days with two submissions or more"):
        make(days=(3,))
    endless = msgspec.structs.replace(TWO, jobs=[msgspec.structs.replace(job, walltime=math.inf) for job in TWO.jobs])
    with pytest.raises(ConfigError, match="job w0!0000 has no 'walltime'"):
        make(endless)


def test_jobs_without_a_user_are_counted_in_a_line(caplog):
    make(jobs((10, 1, 10, 1), (11, 1, 10, 1), (12, 1, 10, 1), users=["a", "", ""]))
    assert [r.getMessage() for r in caplog.records] == [
        "2 of 3 jobs do not say their user: the confidence in these is 1"
    ]


def test_days_are_chosen_by_number():
    trace = busy_days_of(3)
    chosen = make_setup(trace, SERVERS, encoder="deepscheduling", days=(1, 2))
    assert chosen.beginnings.row.tolist() == [30]
    assert busy_days(trace)[1] == BusyDay(DAY, 30, 30)


def test_an_agent_that_never_starts_a_job_is_cut_off():
    env, over = make(steps=50), False
    env.reset()
    while not over:
        _, _, over, cut, _ = env.step(0)
        over = over or cut
    assert cut
