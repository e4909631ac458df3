"""Small cases that once differed from what Batsim 4.2.1 did."""

import csv
import json
import sys
from pathlib import Path

import pytest
from helpers.policy_toys import platform

from decision.batsim.agent import Agent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.model.errors import warn_once
from decision.model.workload import Delay, Job, MachineEvent, Workload
from decision.simulation import simulate_workloads

HERE = Path(__file__).parent


def test_a_cap_holds_before_the_first_question():
    """Hosts beyond the cap are not free at 0 s, so that others are kept awake, and j002 starts at 11 s, not at 20 s."""
    folder = HERE / "constant_cap_power"
    hosts, work = load_platform(folder / "platform.xml"), load_workload(folder / "workload.json")
    options = {"power": "keep-awake", "keep_awake": "3", "cap": "1984.5"}
    record = simulate_workloads(hosts, [work], "f2+easy", options, engine_options=EngineOptions(energy=True))
    recorded = list(csv.DictReader((folder / "jobs_batsim.csv").open()))
    assert record.jobs.start_time.tolist() == [float(row["starting_time"]) for row in recorded]


LEAVES_AND_SLEEPS = (
    {"type": "machine_unavailable", "resources": "0", "timestamp": 4},
    {"type": "machine_available", "resources": "0", "timestamp": 20},
)


@pytest.mark.parametrize("engine", [EmbeddedEngine, ReferenceEngine])
def test_a_host_that_fell_asleep_while_it_was_away_is_told_of(engine, caplog):
    """Batsim 4.2.1 ends itself when it comes back: its state says that it sleeps, not that it is away."""
    warn_once.cache_clear()
    events = [
        MachineEvent(timestamp=event["timestamp"], type=event["type"], hosts=(0,), source=json.dumps(event).encode())
        for event in LEAVES_AND_SLEEPS
    ]
    jobs = [Job(id="w0!0", submit_time=0.0, size=1, walltime=9.0, profile="p")]
    jobs += [Job(id="w0!1", submit_time=30.0, size=2, walltime=9.0, profile="p")]
    work = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=2.0)}, nb_res=2)
    hosts, policy = platform(2, sleeps=True), "easy,power=idle-timeout,idle_timeout=1"
    agent = Agent(policy, {}, platform=hosts)
    record = simulate_by_messages(engine(hosts, [work], events, EngineOptions(energy=True)), agent)
    assert len(record.jobs.id) == 2
    said = [each.message for each in caplog.records if "ours alone" in each.message]
    assert said == [
        't=20 s: host 0 comes back, which fell asleep or woke while it was away; Batsim 4.2.1 ends itself there ("was '
        'not in UNAVAILABLE state"), so this result is ours alone'
    ]


@pytest.mark.parametrize("engine", ["embedded", "reference", "batsim"])
@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ('"resources": "0", "timestamp": 10', "is not unavailable: at one instant hosts return before others leave"),
        ('"resources": "9", "timestamp": 12', "there is no host 9"),
        ('"resources": "1", "timestamp": 12', "host 1 is not unavailable; correct the events"),
    ],
)
def test_events_that_cannot_happen_are_refused_with_their_line_before_anything_starts(
    tmp_path, capfd, engine, second, reason
):
    path = tmp_path / "events.txt"
    first = '{"type": "machine_unavailable", "resources": "0", "timestamp": 10}'
    path.write_text(f'{first}\n\n{{"type": "machine_available", {second}}}\n')
    words = ["run", "-p", "toy", "-w", "toy", "--policy", "fcfs", "--events", str(path), "-o", str(tmp_path / "out")]
    words += ["--engine", engine] + (
        ["--batsim", f"{Path(sys.executable).parent}/decision-batsim"] * (engine == "batsim")
    )
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert ended.value.code == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert f"{path}, line 3: external event machine_available" in said.replace("\n", "")
    assert reason in said
    assert not (tmp_path / "out").exists()
