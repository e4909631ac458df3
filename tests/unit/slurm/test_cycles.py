"""The model against each single cycle of a recording, from the state that was recorded: no phase is guessed."""

import os
import subprocess
import sys

import msgspec

from tests.helpers.slurm_cases import DATA
from tests.helpers.slurm_cycles import Counts
from tests.helpers.slurm_cycles import __file__ as program


def _count(name: str, cycles: int) -> Counts:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # nothing is compiled for 250 cycles
    command = [sys.executable, program, str(DATA / name), str(cycles)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)
    return msgspec.json.decode(done.stdout, type=Counts)


def test_cycles_test_and_plan_what_slurm_planned() -> None:
    found = _count("v26_defaults", 250)
    assert found.cycles == 250 and found.plans > 3_500
    assert found.orders <= 0.01 * found.cycles
    assert found.priorities <= 0.01 * found.tests
    # measured: 98 % of the starts; the others hang on when nodes complete, which the log does not say
    assert found.starts <= 0.025 * found.plans
    assert found.nodes <= 0.005 * found.plans


def test_cycles_with_licences_several_qos_preemption_and_arrays_plan_what_slurm_planned() -> None:
    found = _count("v26_modern", 200)
    assert found.cycles == 200 and found.plans > 4_000
    assert found.orders <= 0.02 * found.cycles
    # measured: 97.6 % of the starts; usages are nearly equal at times, and then a second decides who has the larger one
    assert found.starts <= 0.03 * found.plans
    assert found.nodes <= 0.01 * found.plans
