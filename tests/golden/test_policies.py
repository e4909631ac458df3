"""Policies do what they did under a real Batsim 4.2.1: in the compiled loop, and through messages on either engine."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.engine_harness import compare_outputs

from decision.batsim.agent import make_agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_events, load_platform, load_workload
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.simulation import simulate_workloads

POLICIES = Path(__file__).parent / "policies"
CASES = sorted(folder.parent.name for folder in POLICIES.glob("*/case.json"))
Made = tuple[Platform, Sequence[Workload], Sequence[MachineEvent], EngineOptions]
Simulate = Callable[[Made, str, int], RunRecord]


def in_the_loop(made: Made, policy: str, seed: int) -> RunRecord:
    platform, workloads, events, options = made
    return simulate_workloads(platform, workloads, policy, events=events, engine_options=options, seed=seed)


def by_messages(made: Made, policy: str, seed: int) -> RunRecord:
    return simulate_by_messages(EmbeddedEngine(*made), make_agent(policy, {}, platform=made[0], seed=seed))


def by_messages_in_python(made: Made, policy: str, seed: int) -> RunRecord:
    return simulate_by_messages(ReferenceEngine(*made), make_agent(policy, {}, platform=made[0], seed=seed))


@pytest.mark.parametrize("simulate", [in_the_loop, by_messages, by_messages_in_python])
@pytest.mark.parametrize("name", CASES)
def test_a_policy_does_what_it_did_under_batsim(simulate: Simulate, name: str, tmp_path: Path) -> None:
    folder = POLICIES / name
    case = json.loads((folder / "case.json").read_text())
    files = sorted(folder.glob("w*.json"))
    made = (
        load_platform(folder / "platform.xml", energy=case["energy"]),
        [load_workload(file, file.stem, keep_source=True) for file in files],
        load_events(folder / "events.txt") if (folder / "events.txt").exists() else [],
        EngineOptions(energy=case["energy"]),
    )
    assert compare_outputs(simulate(made, case["policy"], case["seed"]), folder, tmp_path) == []
