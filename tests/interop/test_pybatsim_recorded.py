"""A pybatsim scheduler that decides by a recorded rule gives the recorded decisions, message by message."""

import json
from pathlib import Path

import pytest
from helpers.golden import SESSIONS

from decision.batsim.pybatsim import PybatsimAgent

pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")

HERE = Path(__file__).parent
RULES = {
    "fcfs_delay": ("FirstFit", {"fcfs": True}),
    "first_fit_delay": ("FirstFit", {}),
    "walltime_reached": ("FirstFit", {}),
    "compute_heterogeneous": ("FirstFit", {}),
    "kill": ("Killer", {}),
    "energy_sleep": ("Sleeper", {"fcfs": True}),
    "dynamic_jobs": ("Resubmitter", {"fcfs": True}),
    "rejected": ("FirstFit", {"fcfs": True}),
    "external_events": ("Evader", {"fcfs": True}),
    "forwarded_profiles": ("Slow", {"fcfs": True}),
    "two_workloads": ("FirstFit", {}),
    "ties_and_exact_walltimes": ("FirstFit", {}),
    "networked_master": ("FirstFit", {"fcfs": True}),
}


def conversation(scenario: str) -> list[tuple[dict, dict]]:
    """Questions and replies of a recorded session."""
    lines = (SESSIONS / scenario / "session.jsonl").read_text().splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    return list(zip(messages[::2], messages[1::2], strict=True))


def agent_for(scenario: str) -> PybatsimAgent:
    name, options = RULES[scenario]
    return PybatsimAgent(f"pybatsim:{HERE.parent / 'helpers' / 'pybatsim_schedulers.py'}:{name}", options)


@pytest.mark.parametrize("scenario", RULES)
def test_a_pybatsim_scheduler_decides_what_was_recorded(scenario: str) -> None:
    agent = agent_for(scenario)
    for question, recorded in conversation(scenario):
        reply = json.loads(agent.handle(json.dumps(question).encode()))
        assert (reply["now"], reply["events"]) == (recorded["now"], recorded["events"])
    assert agent.finished
