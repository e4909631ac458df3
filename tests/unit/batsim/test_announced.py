"""The platform that SIMULATION_BEGINS announces, and times with more digits than they deserve."""

import json

import pytest
from helpers.golden import SESSIONS_5

from decision.batsim.agent import make_agent
from decision.batsim.follower import announced_platform
from decision.protocol import read_recording
from decision.protocol.messages import Resource
from decision.state.cluster import platform_facts


def test_how_long_switches_take_is_known_although_batsim_5_prints_12_decimals():
    properties = {"wattage_per_state": "95:100:200, 9:9:9, 100:100:100, 125:125:125", "sleep_pstates": "1:2:3"}
    printed = (1.4124e11, 0.001, 0.16393442623, 0.006599788807)  # 6.1 s and 151.52 s, the latter 5 ns off
    host = Resource(id=0, name="a", state="idle", properties=properties, speeds=printed, pstate=0)
    facts, _ = platform_facts(announced_platform([host]), energy=True)
    assert facts.off_time[0] == pytest.approx(6.1, abs=1e-12)
    assert facts.on_time[0] == pytest.approx(151.52, abs=1e-12)
    assert facts.speed[0, 0] == 1.4124e11


def test_a_time_with_the_rounding_errors_of_simgrids_clock_is_that_of_batsim_4():
    agent = make_agent("easy", {})
    entries = list(read_recording((SESSIONS_5 / "fcfs_delay" / "session.jsonl").read_text().splitlines()))
    for entry in entries[:3:2]:
        agent.handle(entry.data)
    reply = json.loads(agent.handle(b'{"now": 37772.039999999994, "events": []}').rstrip(b"\0"))
    assert (reply["now"], agent.state.now) == (37772.039999999994, 37772.04)
