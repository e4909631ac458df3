"""The environment of neural annealing's repair: known answers, and the same schedule everywhere."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.env_toys import scrambled, workload

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.files.generate.platforms import full_tree, networked
from decision.model.errors import ConfigError
from decision.model.platform import Link, PowerState
from decision.rl.envs import RepairEnv, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads


def tree(*down: int):
    return networked(full_tree(down, [Link(1e9, 0.0)] * len(down)), (PowerState(1e9),))


PLATFORM = tree(4, 2, 3)


def jobs(*rows: tuple[float, int, float]):
    """From (submission, hosts, runtime), times in seconds."""
    return workload(24, *((submit, hosts, runtime, runtime) for submit, hosts, runtime in rows))


def random_jobs(count: int = 80, seed: int = 3):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 6 * count, count)).tolist()
    return jobs(*zip(submit, rng.integers(1, 9, count).tolist(), rng.integers(5, 60, count).tolist(), strict=True))


def make_env(trace, **options) -> RepairEnv:
    return RepairEnv(workload=trace, platform=PLATFORM, **({"period": 10.0, "q": 14} | options))


def test_gymnasium_finds_nothing_wrong():
    check_env(make_env(random_jobs()), skip_render_check=True)


def test_a_window_is_placed_job_by_job_the_largest_first_and_paid_for_at_its_end():
    env = make_env(jobs((1, 2, 100), (2, 5, 100), (3, 1, 100), (35, 2, 100)), jobs=4, online=False)
    seen, info = env.reset(options={"first": 0})
    assert env.state.now == 10
    features = seen.reshape(5, 14)
    assert features[0] == pytest.approx(np.repeat([0, 1, 2, 3], [4, 4, 4, 2]) / 5)
    assert features[1] == pytest.approx(np.repeat([0, 1], [8, 6]) / 2)
    assert features[2].tolist() == [1] * 14
    assert features[3:, 0] == pytest.approx([5 / 40, 2 / 40])
    assert info["action_mask"].all()
    seen, reward, *_ = env.step(3)  # hosts 3 to 7
    assert reward == 0
    assert seen.reshape(5, 14)[3:, 0] == pytest.approx([2 / 40, 0])
    seen, reward, terminated, *_ = env.step(2)  # hosts 2 and 8; the job on one host gets host 0
    # 5 hosts: 12 pairs on a switch, 8 in the pod, over 5 hosts; 2 hosts: one pair in two pods, both ways, over 2
    assert reward == pytest.approx(-((12 * 2 + 8 * 4) / 5 + 2 * 6 / 2))
    assert env.state.now == 40
    assert not terminated
    assert np.flatnonzero(env.state.host_job >= 0).tolist() == [0, 2, 3, 4, 5, 6, 7, 8]
    _, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated) == (-6, True, False), "hosts 1 and 9 are in two pods"
    assert info["metrics"]["window_cost"] == pytest.approx((56 / 5 + 6 + 6) / 2)


def test_each_job_may_be_paid_for_when_it_is_placed():
    env = make_env(jobs((1, 2, 100), (2, 5, 100), (35, 2, 100)), jobs=3, online=False, pay="job")
    env.reset(options={"first": 0})
    rewards = [env.step(action)[1] for action in (3, 2)]
    assert rewards == pytest.approx([-(12 * 2 + 8 * 4) / 5, -6])


def test_of_a_destroyed_window_only_what_was_taken_out_is_chosen_and_paid_for():
    in_turn = {5: [0, 1, 2, 3, 4], 4: [5, 6, 7, 8], 3: [9, 10, 11], 2: [12, 13]}  # hosts by size
    seen = set()
    for window in range(8):  # each takes out others
        rows = [(10 * window + 1 + k, size, 500) for k, size in enumerate((2, 5, 4, 3))]
        env = make_env(jobs(*rows, (10 * window + 35, 6, 500)), jobs=5, online=False, window=4, destroyed=2)
        observation, _ = env.reset(options={"first": 0})
        chosen, rewards = [], [0.0]
        while rewards[-1] == 0:
            chosen.append(round(40 * float(observation.reshape(5, 14)[3, 0])))
            observation, reward, *_ = env.step(0)
            rewards.append(reward)
        assert chosen == sorted(chosen, reverse=True)
        placed = {int(env.state.size[job]): np.flatnonzero(env.state.host_job == job).tolist() for job in range(4)}
        assert sum(map(len, placed.values())) == 14
        kept = {size: hosts for size, hosts in in_turn.items() if size not in chosen}
        assert {size: placed[size] for size in kept} == kept
        assert rewards[-1] == pytest.approx(-sum(text_hops(placed[size]) / size for size in chosen))
        seen.add(tuple(chosen))
    assert {len(chosen) for chosen in seen} == {1, 2}
    assert len(seen) >= 5


def text_hops(hosts: list[int]) -> int:
    """Hops between all pairs, both ways: 2 on a switch of four hosts, 4 in a pod of two switches, else 6."""
    pairs = [(one, other) for one in hosts for other in hosts if one != other]
    return sum(2 if one // 4 == other // 4 else 4 if one // 8 == other // 8 else 6 for one, other in pairs)


def test_fewer_free_hosts_than_are_seen_mask_the_rest():
    env = make_env(jobs((1, 20, 100), (12, 3, 5), (13, 2, 5)), jobs=3, online=False)
    env.reset(options={"first": 0})
    _, _, _, _, info = env.step(0)
    assert info["action_mask"].sum() == 4, "the job on two hosts fits, the other one behind it does not"


def choose(observation, mask):
    return int(scrambled(observation, mask)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_schedule_is_the_same_everywhere(seed, monkeypatch):
    trace = random_jobs(seed=seed)
    encoder = make_setup(trace, PLATFORM, encoder="repair", period=10.0, q=14).encoder
    simulated = simulate_workloads(PLATFORM, [trace], ChoosingPolicy(encoder, choose))
    assert len({*simulated.jobs.start_time % 10}) == 1, "jobs start at windows"
    monkeypatch.setattr("decision.batsim.agent.find_policy", lambda name, options: ChoosingPolicy(encoder, choose))
    for engine in (EmbeddedEngine, ReferenceEngine):
        messages = simulate_by_messages(engine(PLATFORM, [trace], ()), Agent("any", {}, platform=PLATFORM))
        assert _schedule(messages) == _schedule(simulated)
    env = make_env(trace, online=False, jobs=80)
    observation, info = env.reset(options={"first": 0})
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(choose(observation, info["action_mask"]))
        over = terminated or truncated
    assert terminated
    starts = env.state.start_time[:80]
    placed = np.isfinite(starts)
    assert placed.sum() > 70, "but those of the last window, which was not carried out"
    schedule = _schedule(simulated)
    assert all(starts[i] == schedule[f"w0!{i:04}"][0] for i in np.flatnonzero(placed))


@pytest.mark.parametrize("latency", [0.0, 1e-3])
def test_jobs_start_when_they_do_under_the_policy_window(latency):
    """Whether a job arrives as a window is due, and whether calls come late over links, does not matter."""
    platform = networked(full_tree((4, 2, 3), [Link(1e9, latency)] * 3), (PowerState(1e9),))
    encoder = make_setup(random_jobs(), platform, encoder="repair", period=10.0, q=14).encoder
    for seed in range(3):
        trace = random_jobs(seed=seed)
        assert any(job.submit_time % 10 == 0 for job in trace.jobs)
        chosen = simulate_workloads(platform, [trace], ChoosingPolicy(encoder, choose))
        window = simulate_workloads(platform, [trace], "window,period=10,jobs=2,solver=sequential")
        assert {name: start for name, (start, _) in _schedule(chosen).items()} == {
            name: start for name, (start, _) in _schedule(window).items()
        }


def _schedule(record):
    rows = record.jobs
    return dict(zip(rows.id, zip(rows.start_time.tolist(), rows.allocation, strict=True), strict=True))


@pytest.mark.parametrize(
    ("platform", "why"),
    [(tree(4, 6), "is for trees of 3 levels"), (tree(2, 2, 2, 3), "is for trees of 3 levels, and the platform has 4")],
)
def test_a_tree_of_another_depth_is_refused(platform, why):
    with pytest.raises(ConfigError, match=why):
        make_setup(random_jobs(), platform, encoder="repair", q=14)
