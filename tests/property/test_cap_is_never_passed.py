"""A cap on power is kept by every policy, whatever hosts draw."""

import numpy as np
import pytest
from helpers.cap_worlds import POLICIES, hosts, jobs, passes, write_cap

from decision.analysis.rates import peak_power
from decision.engine.options import EngineOptions
from decision.model.draw import draw_of
from decision.model.record import FinalState
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


def test_without_a_cap_it_would_be() -> None:
    rng = np.random.default_rng(0)
    platform = hosts(rng, 8)
    record = simulate_workloads(platform, [jobs(rng, 8, delays=False)], "fcfs", engine_options=ENERGY)
    assert peak_power(record) > draw_of(platform, sleeps=False).watts[6]
