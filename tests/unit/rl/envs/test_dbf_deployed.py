"""The same choices make the same schedule in the environment, on the embedded engine, and through Batsim's messages."""

import numpy as np
import pytest
from helpers.env_toys import busy, scrambled, setup

from decision.batsim import agent as agents
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.errors import ConfigError
from decision.model.record import RunRecord
from decision.rl.envs import DbfVectorEnv, Setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads, try_policy

NB_JOBS = 150


def choose(observation: np.ndarray, mask: np.ndarray) -> int:
    return int(scrambled(observation, mask)[0])


def in_environment(made: Setup) -> dict[str, tuple[float, str]]:
    """Start and hosts of each job: all that the environment's own state says."""
    envs = DbfVectorEnv(1, setup=made)
    observation, info = envs.reset(options={"first": 0})
    state, ids = envs.state_of(0), made.trace.ids
    starts: dict[str, tuple[float, str]] = {}
    while len(starts) < made.rules.jobs:
        observation, _, terminated, truncated, info = envs.step(scrambled(observation, info["action_mask"]))
        if terminated | truncated:
            break
        for job in np.flatnonzero(state.alloc_first[: state.nb_jobs] >= 0):
            begin = state.alloc_first[job]
            spans = slice(begin, begin + state.alloc_count[job])
            hosts = zip(state.interval_first[spans].tolist(), state.interval_last[spans].tolist(), strict=True)
            text = " ".join(str(first) if first == last else f"{first}-{last}" for first, last in hosts)
            starts[ids[job]] = (float(state.start_time[job]), text)
    return starts


def in_record(record: RunRecord) -> dict[str, tuple[float, str]]:
    jobs = record.jobs
    rows = zip(jobs.id, jobs.start_time.tolist(), jobs.allocation, strict=True)
    return {job: (start, hosts) for job, start, hosts in rows}


@pytest.mark.parametrize("encoder", ["dbf", "dbf-pools", "rlscheduler", "inspector"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_schedule_is_the_same_everywhere(encoder, seed, monkeypatch):
    jobs = busy(NB_JOBS, 16, seed)
    made = setup(jobs, encoder=encoder, jobs=None, online=False)
    policy = ChoosingPolicy(made.encoder, choose)
    simulated = in_record(simulate_workloads(made.platform, [jobs], policy))
    assert len(simulated) == NB_JOBS
    monkeypatch.setattr(agents, "find_policy", lambda name, options: ChoosingPolicy(made.encoder, choose))
    for engine in (EmbeddedEngine, ReferenceEngine):
        told = simulate_by_messages(engine(made.platform, [jobs]), agents.Agent("dbf", {}))
        assert in_record(told) == simulated
    played = in_environment(made)
    assert len(played) > NB_JOBS - 5, "the last ones start after the environment's last step"
    assert played == {job: simulated[job] for job in played}


def test_what_was_learned_without_the_mask_starts_a_job_where_nothing_else_would_happen():
    made = setup(busy(30, 16, 1), encoder="dbf", jobs=None, online=False, paper=True, mask=False)
    only_valid = ChoosingPolicy(made.encoder, lambda observation, mask: int(np.flatnonzero(mask)[-1]))  # mostly Fwd
    starts = in_record(simulate_workloads(made.platform, [busy(30, 16, 1)], only_valid))
    assert len(starts) == 30
    assert all(np.isfinite(start) for start, _ in starts.values())


def test_the_policy_keeps_the_rules_of_all_policies():
    encoder = setup(busy(50, 16), encoder="dbf-pools", max_runtime=1000.0).encoder
    assert try_policy(lambda: ChoosingPolicy(encoder, choose)) == []


def test_a_platform_of_another_size_is_refused_unless_the_encoder_takes_any():
    larger = setup(busy(50, 32)).platform
    with pytest.raises(ConfigError, match="has 32 hosts, but the policy's observations are of 16"):
        ChoosingPolicy(setup(busy(50, 16)).encoder, choose).reset(larger, 0)
    ChoosingPolicy(setup(busy(50, 16), encoder="dbf-pools").encoder, choose).reset(larger, 0)
