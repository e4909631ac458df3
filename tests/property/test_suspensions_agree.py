"""Suspensions, supplies and deadlines are the same in the loop, in messages with either engine, and as messages take
time."""

import numpy as np
import pytest
from helpers.green_worlds import BY_MESSAGES, FAILING, POLICIES, failing, slow_platform, supply, workload

from decision.batsim.agent import make_agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.record import FinalState, RunRecord
from decision.simulation import simulate_workloads

WORLDS = 4


def rows(record: RunRecord) -> list[str]:
    """What each job did, in the order in which jobs ended; times to the microsecond, as Batsim writes them."""
    names = ("id", "submit_time", "size", "walltime", "final_state", "start_time", "runtime", "allocation")
    columns = (np.array(getattr(record.jobs, name)) for name in names)
    columns = ((np.round(column, 6) if column.dtype == float else column).tolist() for column in columns)
    return [str(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("latency", [0.0, 1e-3])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_loop_and_messages_give_the_same_schedule(policy: str, latency: float) -> None:
    suspended = 0
    for seed in range(WORLDS):
        hosts, jobs, events = slow_platform(latency), workload(seed), supply(seed)
        looped = simulate_workloads(hosts, [jobs], policy, events=events)
        for engine in (EmbeddedEngine, ReferenceEngine):
            agent = make_agent(policy, {}, platform=hosts)
            record = simulate_by_messages(engine(hosts, [jobs], events, BY_MESSAGES), agent)
            assert rows(record) == rows(looped), (seed, engine.__name__)
        suspended += int((looped.jobs.final_state == FinalState.COMPLETED_KILLED).sum())
    assert (suspended > 0) is (policy != "conservative,beyond=grid")


@pytest.mark.parametrize("latency", [0.0, 1e-3])
@pytest.mark.parametrize("policy", FAILING)
def test_hosts_that_fail_under_a_supply_give_the_same_schedule(policy: str, latency: float) -> None:
    for seed in range(WORLDS):
        hosts, jobs = slow_platform(latency), workload(seed)
        events = sorted((*supply(seed), *failing(seed)), key=lambda event: event.timestamp)
        looped = simulate_workloads(hosts, [jobs], policy, events=events)
        for engine in (EmbeddedEngine, ReferenceEngine):
            agent = make_agent(policy, {}, platform=hosts)
            record = simulate_by_messages(engine(hosts, [jobs], events, BY_MESSAGES), agent)
            assert rows(record) == rows(looped), (seed, engine.__name__)
        assert looped.lost_work > 0
