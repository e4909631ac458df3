"""A cap on power is kept by every policy, whatever hosts draw."""

import numpy as np
import pytest
from helpers.cap_worlds import POLICIES, hosts, jobs, passes, write_cap
from helpers.cases import by_day

from decision.batsim.agent import Agent
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.energy import peak_power
from decision.experiments.run import simulate_by_messages
from decision.model.platform import draw_of
from decision.model.record import FinalState, RunRecord
from decision.policies import find_policy
from decision.policies.wrappers.supply import with_cap
from decision.simulation import simulate_workloads

ENERGY = EngineOptions(energy=True)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_constant_cap_is_never_passed_and_no_job_is_lost(policy: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        platform, largest = hosts(rng, 8), int(rng.integers(1, 8))
        cap = float(rng.uniform(*draw_of(platform).watts[[largest, -1]]))
        work = jobs(rng, largest, delays=bool(seed % 2))
        record = simulate_workloads(platform, [work], policy, {"cap": repr(cap)}, engine_options=ENERGY)
        assert peak_power(record) <= cap * (1 + 1e-9), (seed, cap)
        assert (record.jobs.final_state == FinalState.COMPLETED_SUCCESSFULLY).sum() == len(work.jobs)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cap_that_changes_is_never_passed(policy: str, tmp_path) -> None:
    for seed in range(8):
        rng = np.random.default_rng(100 + seed)
        platform = hosts(rng, 8)
        path, times, watts = write_cap(rng, platform, tmp_path)
        work = jobs(rng, 8, delays=True)
        record = simulate_workloads(platform, [work], policy, {"cap": str(path)}, engine_options=ENERGY)
        assert passes(record, times, watts) == [], seed


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if "power=" in policy])
@pytest.mark.parametrize("constant", [True, False])
def test_hosts_that_sleep_do_the_same_through_messages(policy: str, constant: bool, tmp_path) -> None:
    for seed in range(by_day(8, of=60)):
        rng = np.random.default_rng(200 + seed)
        platform = hosts(rng, 8)
        path, _, watts = write_cap(rng, platform, tmp_path)
        settings = {"cap": repr(float(watts.max())) if constant else str(path)}
        work = jobs(rng, 4, delays=True)
        wanted = simulate_workloads(platform, [work], policy, settings, engine_options=ENERGY)
        events = with_cap(find_policy(policy, settings), platform, [work], [])
        told = EngineOptions(energy=True, forward_unknown_events=True, dynamic_jobs=True, profile_reuse=True)
        engine = ReferenceEngine(platform, [work], events, told)
        found = simulate_by_messages(engine, Agent(policy, settings, platform=platform))
        assert what_happened(found) == what_happened(wanted), seed


def what_happened(record: RunRecord) -> tuple[list[tuple], list[tuple]]:
    """What jobs did, and what hosts did."""
    jobs, pstates = record.jobs, record.pstates
    assert pstates is not None
    runs = zip(jobs.id, np.round(jobs.start_time, 6), np.round(jobs.runtime, 6), jobs.allocation, strict=True)
    return sorted(runs), list(zip(np.round(pstates.time, 6), pstates.hosts, pstates.pstate, strict=True))


def test_without_a_cap_it_would_be() -> None:
    rng = np.random.default_rng(0)
    platform = hosts(rng, 8)
    record = simulate_workloads(platform, [jobs(rng, 8, delays=False)], "fcfs", engine_options=ENERGY)
    assert peak_power(record) > draw_of(platform, sleeps=False).watts[6]
