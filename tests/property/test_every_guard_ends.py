"""Every shipped policy ends under every kind of guard, on hosts that sleep; the loop that had no end was `joint`'s."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cases import by_day
from helpers.golden import ROOT

from decision.engine.rules import EngineOptions
from decision.files import load_platform, load_workload
from decision.policies import find_policy
from decision.simulation import simulate_workloads

TESTS = Path(__file__).parents[1]
LIMIT = 240  # seconds for all; compiling takes most of them, where nothing is compiled yet


def test_every_policy_ends_under_every_guard():
    """In a process of its own, since a loop of machine code can only be killed."""
    command = [sys.executable, "-m", "helpers.guarded_runs", str(by_day(1, of=2))]
    try:
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"no end within {LIMIT} s: {(error.stdout or b'').decode().splitlines()[-1:]}")
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-2000:])
    lines = done.stdout.splitlines()
    assert [line for line in lines if re.fullmatch(r"\d+ of \d+ jobs", line)] == []
    assert lines.count("done") > 200
    assert {"joint", "learned", "packer", "easy"} <= {line.split(",")[0] for line in lines if "seed" in line}


@pytest.mark.parametrize("guard", ["1.2x", "1.5x", "5"])
def test_what_a_guarded_job_needs_may_be_booked(guard):
    folder = ROOT / "tests/golden/joint_guard_hangs"
    platform, work = load_platform(folder / "platform.xml"), load_workload(folder / "workload.json")
    policy = find_policy("joint", {"guard": guard})
    record = simulate_workloads(platform, [work], policy, engine_options=EngineOptions(energy=True))
    assert len(record.jobs.id) == len(work.jobs)
