"""The same choices make the same schedule in Launchpad's environment, in the loop, and through Batsim's messages."""

import numpy as np
import pytest
from helpers.green_worlds import BY_MESSAGES, HOSTS, slow_platform, supply, workload

from decision.batsim import agent as agents
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.record import FinalState, RunRecord
from decision.policies.wrappers.supply import SuppliedPolicy
from decision.rl.envs import GreenVectorEnv, Setup, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads, try_policy

WORLDS = 3


def choose(observation: np.ndarray, mask: np.ndarray) -> int:
    """Any valid action by what is seen; where jobs can start one that does something, else some would wait for ever."""
    valid = np.flatnonzero(mask)
    if mask[:-2].any():
        valid = valid[:-1]
    return int(valid[int(np.abs(observation).sum(dtype=np.float64) * 1e4) % len(valid)])


def in_environment(made: Setup) -> tuple[set[tuple[str, int, float]], dict[str, float]]:
    """Each start: job, nth and time; and the metrics of the end."""
    envs = GreenVectorEnv(2, setup=made, threads=1)
    observation, info = envs.reset(options={"first": 0})
    state, starts, over = envs.state_of(0), set(), False
    while not over:
        actions = np.array([choose(*each) for each in zip(observation, info["action_mask"], strict=True)])
        observation, _, terminated, truncated, info = envs.step(actions)
        over = bool(terminated[0] | truncated[0])
        count = 0 if over else int(state.nb_jobs)
        for job in np.flatnonzero(state.alloc_first[:count] >= 0).tolist():
            nth = int(state.nth_rest[job])
            first = int(state.origin[job]) if nth else job
            row = int(envs._batch.envs[0].sim.truth_of[first])
            starts.add((made.trace.ids[row], nth, round(float(state.start_time[job]), 6)))
    assert terminated[0]
    assert {name: values[0] for name, values in info["metrics"].items()} == {
        name: values[1] for name, values in info["metrics"].items()
    }, "both environments do the same"
    return starts, {name: float(values[0]) for name, values in info["metrics"].items()}


def in_record(record: RunRecord) -> set[tuple[str, int, float]]:
    found = set()
    for job, start in zip(record.jobs.id, record.jobs.start_time.tolist(), strict=True):
        name, _, nth = job.partition("#")
        if start == start:
            found.add((name, int(nth or 0), round(start, 6)))
    return found


OPTIONS = (
    {},
    {"suspend": "density", "restart": 7.0, "pool": 4},
    {"encoder": "green-image", "late": "keep"},
    {"beyond": "grid", "suspend": "density", "step": 25.0},
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_schedule_is_the_same_everywhere(options, monkeypatch):
    suspended = 0
    for seed in range(WORLDS):
        hosts, jobs, events = slow_platform(0.0), workload(seed, 40), supply(seed, 40)
        made = make_setup(jobs, hosts, events=events, jobs=None, **{"encoder": "green", **options})
        assert made.supply is not None

        def policy(made=made):
            return SuppliedPolicy(ChoosingPolicy(made.encoder, choose), made.supply)

        looped = simulate_workloads(hosts, [jobs], policy(), events=events)
        monkeypatch.setattr(agents, "find_policy", lambda name, options, policy=policy: policy())
        for engine in (EmbeddedEngine, ReferenceEngine):
            agent = agents.Agent("green", {}, platform=hosts)
            told = simulate_by_messages(engine(hosts, [jobs], events, BY_MESSAGES), agent)
            assert in_record(told) == in_record(looped), engine.__name__
        played, metrics = in_environment(made)
        assert len(played) > len(in_record(looped)) - 5, "the last ones start after the environment's last step"
        assert played <= in_record(looped)
        suspended += int((looped.jobs.final_state == FinalState.COMPLETED_KILLED).sum())
        assert metrics["suspensions"] == (looped.jobs.final_state == FinalState.COMPLETED_KILLED).sum()
    assert suspended > 0


def test_the_policy_keeps_the_rules_of_all_policies():
    encoder = make_setup(workload(0), slow_platform(0.0), encoder="green", events=supply(0)).encoder
    assert try_policy(lambda: ChoosingPolicy(encoder, lambda _, mask: int(mask.argmax()))) == []
    assert encoder.shape == (17 + 11 * 10,) and HOSTS == 8
