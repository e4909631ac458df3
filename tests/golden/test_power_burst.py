"""150 short jobs at once on 4 hosts that take 151 s to wake: more reservations than any other rule keeps at once.

The jobs need 246 s, so with an idle timeout of 600 s no host sleeps before the last one has started.
"""

from pathlib import Path

import numpy as np
import pytest

from decision.engine.rules import EngineOptions
from decision.files import load_platform, load_workload
from decision.model.record import RunRecord
from decision.simulation import simulate_workloads

CASE = Path(__file__).parent / "power_burst"
NB_JOBS = 150
POLICIES = ["fcfs", "first-fit", "easy", "conservative", "sjf+easy"]
POWERS = ["idle-timeout,idle_timeout=60", "keep-awake,keep_awake=1", "keep-awake,keep_awake=2"]


def run(policy: str) -> RunRecord:
    made = load_platform(CASE / "platform.xml"), [load_workload(CASE / "workload.json")]
    return simulate_workloads(*made, policy, engine_options=EngineOptions(energy=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_power_slot_that_lets_nothing_sleep_changes_no_start(policy):
    alone, powered = run(policy), run(f"{policy},power=idle-timeout,idle_timeout=600")
    assert powered.jobs.id == alone.jobs.id
    assert np.array_equal(powered.jobs.start_time, alone.jobs.start_time)


@pytest.mark.parametrize(
    "power", ["idle-timeout,idle_timeout=60", "keep-awake,keep_awake=1", "keep-awake,keep_awake=2"]
)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_runs_when_hosts_sleep(policy, power):
    record = run(f"{policy},power={power}")
    assert len(record.jobs.id) == NB_JOBS
    assert np.isfinite(record.jobs.start_time).all()
