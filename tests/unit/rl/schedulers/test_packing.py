"""The packing environment: known answers on paper, and the same schedule everywhere."""

import msgspec
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.env_toys import busy, play, scrambled, workload

from decision.batsim import agent as agents
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.errors import ConfigError
from decision.policies.wrappers.prediction import EstimatedPolicy
from decision.rl.envs import PackingEnv, PackingVectorEnv, equal_hosts, evaluate, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads, try_policy

X = 3  # of three slots
# submission, nodes, walltime, run time: two that cannot run together, and a small one
ROWS = (0, 3, 200, 100), (10, 2, 100, 50), (20, 1, 400, 400)
THREE = workload(4, *ROWS)


def make(trace=THREE, **options) -> PackingEnv:
    return PackingEnv(workload=trace, **({"window": 3} | options))


def step(env, action):
    return env.step(action)[1:4]


@pytest.mark.parametrize("encoder", ["packing", "packing-pools"])
@pytest.mark.parametrize("options", [{}, {"masked": True, "tick": 0.0, "reward": "dense"}, {"estimate": "walltime"}])
def test_gymnasium_finds_nothing_wrong(encoder, options):
    check_env(PackingEnv(workload=busy(40, 16), encoder=encoder, **options), skip_render_check=True)


def test_the_observation_has_the_length_of_the_papers():
    trace = busy(20, 16)
    platform = equal_hosts(256)
    assert make_setup(trace, platform, encoder="packing").encoder.shape == (456,)
    assert make_setup(trace, platform, encoder="packing", estimate="walltime").encoder.shape == (812,)


def test_vectors_stand_one_after_the_other():
    env = make(estimate="walltime")
    seen, _ = env.reset()
    assert env.state.now == 0
    expected = [0] * 8 + [3 / 4, 0, 0] + [200 / 400, 0, 0] + [200 / 400, 0, 0]
    assert seen.tolist() == expected
    seen, *_ = env.step(0)  # the queue is empty: on to the first tick after the arrivals
    assert env.state.now == 60
    left = [140 / 400] * 3 + [0]
    expected = [*left, *left, 2 / 4, 1 / 4, 0, 100 / 400, 400 / 400, 0, 100 / 400, 400 / 400, 0]
    assert seen == pytest.approx(expected)


def predicted(trace, seconds):
    """The same jobs, which say how long they run."""
    jobs = [msgspec.structs.replace(job, estimate=float(s)) for job, s in zip(trace.jobs, seconds, strict=True)]
    return msgspec.structs.replace(trace, jobs=jobs)


def test_jobs_say_how_long_they_run_at_most_their_walltime_which_holds_once_that_is_over():
    env = make(predicted(THREE, [120, 70, 1e6]), estimate="given")
    seen, _ = env.reset()
    assert seen[[8, 11, 14]].tolist() == pytest.approx([3 / 4, 200 / 400, 120 / 400])
    seen, *_ = env.step(0)
    assert seen[:8] == pytest.approx([140 / 400] * 3 + [0] + [60 / 400] * 3 + [0])
    assert seen[-3:] == pytest.approx([70 / 400, 1, 0])
    late = make(predicted(workload(2, (0, 1, 300, 300), (1, 2, 10, 10)), [30, 10]), estimate="given")
    late.reset()
    seen, *_ = late.step(0)
    assert late.state.now == 60
    assert seen[:4] == pytest.approx([240 / 300, 0, 240 / 300, 0]), "it has run for 60 s and not for 30"


def test_pools_are_by_what_jobs_say():
    env = make(predicted(THREE, [110, 70, 400]), estimate="given", encoder="packing-pools", pools=4)
    env.reset()
    seen, *_ = env.step(0)  # 50 s of 400 are left
    assert seen[:8] == pytest.approx([1 / 4, 3 / 4, 0, 0, 2 / 4, 100 / 400, 70 / 400, 1])


def test_a_job_that_does_not_say_how_long_it_runs_is_named():
    with pytest.raises(ConfigError, match=r"job w0!0001 has no 'estimate', .*; decision workload predict FILE"):
        make(predicted(THREE, [110, np.nan, 400]), estimate="given")


def test_pools_and_slots_of_a_size_free_observation():
    env = make(encoder="packing-pools", pools=4)
    env.reset()
    seen, *_ = env.step(0)
    free, running, two = 1 / 4, 3 / 4, [2 / 4, 100 / 400, 100 / 400, 1]
    assert seen == pytest.approx([free, 0, running, 0, *two, 1 / 4, 1, 1, 1, 0, 0, 0, 0])


def test_the_clock_stands_still_at_a_start_and_at_a_failure_and_passes_after_four():
    env = make()
    env.reset()
    env.step(0)
    for _ in range(3):
        env.step(0)  # 2 nodes, and one is free
        assert env.state.now == 60
    env.step(0)
    assert env.state.now == 120, "the job of 3 nodes ended at 100"
    for _ in range(3):
        env.step(2)  # an empty slot
        assert env.state.now > 120
    env.reset()
    env.step(0)
    for action in (0, 0, 0, 1, 0, 0, 0):  # a start begins the count again
        env.step(action)
        assert env.state.now == 60
    env.step(0)
    assert env.state.now == 120


@pytest.mark.parametrize(("doubling", "times"), [(False, [120, 180, 240, 300]), (True, [120, 240, 480, 540, 600, 720])])
def test_jobs_that_wait_beside_free_nodes_are_looked_at_again(doubling, times):
    env = make(workload(4, (0, 1, 900, 900), (1, 1, 10, 10), (500, 1, 10, 10)), doubling=doubling)
    env.reset()
    env.step(0)
    assert env.state.now == 60, "a job came"
    for time in times:  # gaps that double begin again where another job comes
        env.step(X)
        assert env.state.now == time


def test_without_ticks_decisions_are_made_when_something_happens():
    env = make(tick=0.0)
    env.reset()
    times = []
    for _ in range(4):
        env.step(X)
        times.append(env.state.now)
    assert times == [10, 20, 80, 140], "arrivals, and then 60 s each on an idle cluster"
    env.step(0)
    env.step(X)
    assert env.state.now == 240, "the end of the job that started at 140"


def test_jobs_that_come_together_are_seen_together():
    env = make(workload(4, (0, 1, 10, 10), (0, 2, 10, 10), (0, 4, 10, 10)), tick=0.0)
    seen, _ = env.reset()
    assert seen[4:7].tolist() == [1 / 4, 2 / 4, 1]


@pytest.mark.parametrize("begin", [0, 900])
def test_the_reward_is_three_shares_at_the_end(begin):
    env = make(workload(4, *((begin + at, *job) for at, *job in ROWS)), steps=10)
    env.reset()
    assert step(env, 0) == (0, False, False)
    assert step(env, 1) == (0, False, False)  # 1 node from 60 to 460
    assert step(env, X) == (0, False, False)
    assert env.state.now == begin + 120
    _, reward, terminated, truncated, info = env.step(0)  # 2 nodes from 120 to 170
    used = 3 * 100 + 2 * 50 + 1 * 400
    assert (terminated, truncated) == (True, False)
    assert info["metrics"]["started"] == 1
    assert info["metrics"]["packed_utilization"] == pytest.approx(used / (4 * 460))
    assert info["metrics"]["steps_left"] == pytest.approx(1 - 4 / 10)
    assert reward == pytest.approx(1 + used / (4 * 460) + 0.6)


def test_an_episode_that_runs_out_of_steps_terminates_with_what_was_started():
    env = make(steps=2)
    env.reset()
    env.step(0)
    reward, terminated, truncated = step(env, X)
    assert (terminated, truncated) == (True, False)
    assert reward == pytest.approx(1 / 3 + 3 * 100 / (4 * 100) + 0)


def test_the_dense_reward_adds_up_to_idle_node_time():
    env = make(reward="dense")
    env.reset()
    rewards = [step(env, action)[0] for action in (0, 1, X, 0)]
    used = 3 * 100 + 2 * 50 + 1 * 400
    assert sum(rewards) == pytest.approx(-(4 * 460 - used) / (4 * 400))
    assert rewards[0] == pytest.approx(-1 * 60 / (4 * 400)), "one node is free for 60 s"


def test_masks_allow_jobs_that_fit_and_x_where_something_runs():
    env = make(masked=True, tick=0.0)
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 0, 0, 0], "nothing would end a wait"
    *_, info = env.step(0)
    assert env.state.now == 20, "at 10 nothing fits"
    assert info["action_mask"].tolist() == [0, 1, 0, 1]


def test_without_masks_anything_can_be_chosen():
    env = make()
    _, info = env.reset()
    for action in (0, 0, 2, X):  # a start, one that does not fit, an empty slot, and X
        assert info["action_mask"].tolist() == [1, 1, 1, 1]
        *_, info = env.step(action)


def choose(observation, mask):
    return int(scrambled(observation, mask)[0])


class Dice:
    """Any valid action, by all numbers seen and by how often it was asked: else it could do nothing for ever."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, observation, mask):
        self.asked += 1
        valid = np.flatnonzero(mask)
        return int(valid[(int(observation.astype(float).sum() * 1e6) + 7 * self.asked) % len(valid)])


@pytest.mark.parametrize("encoder", ["packing", "packing-pools"])
@pytest.mark.parametrize("tick", [0.0, 60.0])
@pytest.mark.parametrize(("masked", "estimate"), [(False, "given"), (True, "none"), (True, "quantiles")])
def test_the_schedule_is_the_same_everywhere(encoder, tick, masked, estimate, monkeypatch):
    trace = busy(120, 16, seed=5)
    trace = predicted(trace, np.random.default_rng(2).uniform(1, 50, 120))
    options = {"tick": tick, "masked": masked, "estimate": estimate}
    made = make_setup(trace, encoder=encoder, window=10, steps=100_000, **options)
    simulated = _starts(simulate_workloads(made.platform, [trace], rolling(made)))
    assert len(simulated) == 120
    if tick:
        first = trace.jobs[0].submit_time
        assert {(start - first) % tick for start, _ in simulated.values()} == {0.0}
    for engine in (EmbeddedEngine, ReferenceEngine):
        policy = rolling(made)
        monkeypatch.setattr(agents, "find_policy", lambda name, options, policy=policy: policy)
        told = simulate_by_messages(engine(made.platform, [trace]), agents.Agent("any", {}))
        assert _starts(told) == simulated
    env, dice, over = PackingEnv(setup=made), Dice(), False
    observation, info = env.reset()
    while not over:
        mask = info["action_mask"]
        only = np.flatnonzero(mask)  # a policy is not asked where a single action is valid
        action = int(only[0]) if len(only) == 1 else dice(observation, mask)
        observation, _, over, truncated, info = env.step(action)
        assert not truncated
    starts = env.state.start_time[:120]
    played = np.flatnonzero(np.isfinite(starts))
    assert len(played) > 110, "but those of the last decision, which was not carried out"
    assert all(starts[job] == simulated[f"w0!{job:04}"][0] for job in played)


def rolling(made):
    """Dice as a policy that expects what the environment expects."""
    policy = ChoosingPolicy(made.encoder, Dice())
    return policy if made.outlook is None else EstimatedPolicy(policy, made.outlook)


def _starts(record):
    rows = zip(record.jobs.id, record.jobs.start_time.tolist(), record.jobs.allocation, strict=True)
    return {job: (start, hosts) for job, start, hosts in rows}


@pytest.mark.parametrize("options", [{}, {"masked": True, "tick": 0.0, "reward": "dense"}])
def test_side_by_side_is_as_one_by_one(options):
    made = make_setup(busy(60, 16), encoder="packing", window=8, steps=400, **options)
    told = play(PackingVectorEnv(3, setup=made, threads=2), 900, seed=4)
    alone = [play(PackingVectorEnv(1, setup=made), 900, seed=4 + i) for i in range(3)]
    for column, parts in zip(told, zip(*alone, strict=True), strict=True):
        assert np.array_equal(column, np.concatenate(parts, axis=1))
    assert told[3].any(), "episodes ended"


def test_a_saved_state_goes_on_exactly():
    made = make_setup(busy(60, 16), encoder="packing", window=8, steps=400)
    envs, rng = PackingVectorEnv(2, setup=made), np.random.default_rng(0)
    envs.reset(seed=1)
    actions = rng.integers(0, 9, (600, 2))
    for row in actions[:300]:
        envs.step(row)
    saved = envs.get_state()
    then = [envs.step(row)[0] for row in actions[300:]]
    other = PackingVectorEnv(2, setup=made)
    other.set_state(saved)
    assert np.array_equal(then, [other.step(row)[0] for row in actions[300:]])


def test_heuristics_are_measured_alike():
    made = make_setup(THREE, encoder="packing")
    found = evaluate("fcfs", made, first=[0])
    assert found["packed_utilization"] == pytest.approx((300 + 100 + 400) / (4 * 500))  # 0, 100, 100 to 500


def test_the_policy_keeps_the_rules_of_all_policies():
    encoder = make_setup(busy(50, 16), encoder="packing-pools", max_runtime=1000.0, masked=True).encoder
    assert try_policy(lambda: ChoosingPolicy(encoder, choose)) == []


def test_a_platform_of_another_size_is_refused_unless_the_encoder_takes_any():
    smaller = equal_hosts(128)
    trace = busy(20, 16)
    encoder = make_setup(trace, equal_hosts(256), encoder="packing").encoder
    with pytest.raises(ConfigError, match="has 128 hosts, but the policy's observations are of 256; run it on 256"):
        ChoosingPolicy(encoder, choose).reset(smaller, 0)
    ChoosingPolicy(make_setup(trace, encoder="packing-pools").encoder, choose).reset(smaller, 0)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tick": -1.0}, "tick"),
        ({"tick": np.inf}, "tick"),
        ({"window": 0}, "window"),
        ({"reward": "often"}, "reward"),
        ({"encoder": "packing-pools", "pools": 1}, "pools"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, why):
    with pytest.raises(ConfigError, match=why):
        make_setup(THREE, **({"encoder": "packing"} | options))
