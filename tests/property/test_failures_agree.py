"""Hosts that sleep and fail: a policy does the same in the loop and in messages with the reference engine.

`DECISION_CAMPAIGN` sets how many cases are tried.
"""

import os

import numpy as np
import pytest
from helpers.engine_compare import compare_records
from helpers.policy_cases import failing_world

from decision.batsim.agent import make_agent
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.record import lost_work
from decision.simulation import simulate_workloads

CASES = int(os.environ.get("DECISION_CAMPAIGN", "60"))


LATE = 432  # a host is awake two microseconds after a call, within which no other call reaches Batsim


@pytest.mark.parametrize("case", sorted({*range(CASES), LATE}))
def test_the_loop_and_messages_give_the_same_run(case: int) -> None:
    world, policy = failing_world(np.random.default_rng(case))
    on, jobs, events, options = world.platform, world.workloads, world.events, world.options
    looped = simulate_workloads(on, jobs, policy, events=events, engine_options=options, seed=case)
    agent = make_agent(policy, {}, platform=on, seed=case)
    told = simulate_by_messages(ReferenceEngine(on, jobs, events, options), agent)
    looped.scheduling_time = looped.simulation_time = told.simulation_time
    told.lost_work = lost_work(told.jobs, jobs)  # which takes the workloads
    assert compare_records(told, looped) == []
