"""`decision batsim` in Batsim's place, driven by somebody else's decision process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import record_sessions
from helpers.golden import SESSIONS

STANDIN = Path(sys.executable).parent / "decision-batsim"
SCENARIOS = (
    "fcfs_delay",
    "kill",
    "energy_sleep",
    "dynamic_jobs",
    "external_events",
    "forwarded_profiles",
    "two_workloads",
)


def events(session: Path) -> list[tuple[str, float, dict]]:
    """What Batsim told, apart from what the simulation begins with and measured energies."""
    lines = [json.loads(line) for line in session.read_text().splitlines()]
    told = [event for line in lines if line["from"] == "batsim" for event in line["message"]["events"]]
    known = [event for event in told if event["type"] not in ("SIMULATION_BEGINS", "ANSWER")]
    return [(event["type"], pytest.approx(event["timestamp"], abs=1e-6), event["data"]) for event in known]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scripted_scheduler_hears_from_the_stand_in_what_it_heard_from_batsim(tmp_path, scenario):
    code, _ = record_sessions.run(
        str(STANDIN), tmp_path, scenario, record_sessions.scenarios("1")[scenario], port_for(scenario)
    )
    assert code == 0
    golden = SESSIONS / scenario
    assert events(tmp_path / scenario / "session.jsonl") == events(golden / "session.jsonl")
    assert {f.name for f in (tmp_path / scenario).glob("out_*.csv")} == {f.name for f in golden.glob("out_*.csv")}


def port_for(scenario: str) -> int:
    """A port that tests of another process running at the same time hardly choose too."""
    return 20_000 + (os.getpid() * 31 + SCENARIOS.index(scenario)) % 10_000


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--version"], 0, "4.2.1"),
        (["-p", "absent.xml"], 2, "absent.xml: cannot be read"),
        (["-p", "{root}/platforms/toy.xml", "--enable-redis"], 2, "use Batsim itself"),
        (["-p", "{root}/platforms/toy.xml", "-r", "x"], 2, "host1,host2:role"),
        (["-p", "{root}/platforms/toy.xml", "--enable-profile-reuse"], 2, "--enable-dynamic-jobs"),
        (["-p", "{root}/platforms/toy.xml", "-e", "/dev/full/out"], 2, "/dev/full: cannot be written"),
        (["-p", "{root}/platforms/toy.xml", "-s", "ipc://{tmp}/nobody", "--timeout", "0.3"], 3, "never connected"),
    ],
)
def test_what_the_stand_in_cannot_do_is_one_line_and_an_exit_code(root, tmp_path, arguments, code, complaint):
    filled = [argument.format(root=root, tmp=tmp_path) for argument in arguments]
    result = subprocess.run([STANDIN, *filled], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == code
    assert complaint in result.stdout + result.stderr
    assert len((result.stdout + result.stderr).splitlines()) == 1
