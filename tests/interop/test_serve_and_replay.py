"""`decision serve` and `decision batsim` as two processes, and what can be done with the recording."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.golden import SESSIONS

HELPERS = Path(__file__).parents[1] / "helpers"
DECISION = [sys.executable, "-m", "decision"]
PATIENCE = 120  # seconds for a process to end; a first run compiles


@pytest.fixture(scope="module")
def inputs(root):
    return ["-p", str(root / "platforms" / "toy.xml"), "-w", str(root / "workloads" / "toy.json")]


@pytest.fixture(scope="module")
def session(inputs, tmp_path_factory):
    """A session of easy with the stand-in: the recording, what was printed, and Batsim's files beside it."""
    folder = tmp_path_factory.mktemp("session")
    endpoint = f"ipc://{folder}/wire"
    serve = [*DECISION, "serve", "--policy", "easy", "-s", endpoint, "--record", str(folder / "session.jsonl")]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        batsim = [*DECISION, "batsim", *inputs, "-s", endpoint, "-e", str(folder / "out"), "-q"]
        subprocess.run(batsim, check=True, timeout=PATIENCE)
        printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    return folder / "session.jsonl", printed


def replay(session, *arguments):
    command = [*DECISION, "replay", str(session), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_serving_gives_what_the_embedded_engine_gives(session, inputs, tmp_path):
    recording, printed = session
    assert "messages" in printed
    command = [*DECISION, "run", *inputs, "--policy", "easy", "-o", str(tmp_path)]
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    assert (tmp_path / "out_jobs.csv").read_text() == (recording.parent / "out_jobs.csv").read_text()


def test_a_recording_replays(session):
    recording, _ = session
    result = replay(recording, "--policy", "easy")
    assert result.returncode == 0, result.stderr
    assert "the same decisions in all" in result.stdout


def test_another_policy_differs_and_the_replay_says_where(session):
    recording, _ = session
    result = replay(recording, "--policy", "lcfs")
    assert result.returncode == 0, result.stderr
    assert "then, at t=" in result.stdout
    assert "EXECUTE_JOB" in result.stdout


def test_a_recorded_session_of_batsims_replays_where_the_rules_are_the_same():
    golden = SESSIONS / "fcfs_delay" / "session.jsonl"
    result = replay(golden, "--policy", "fcfs")
    assert result.returncode == 0, result.stderr
    assert "the same decisions in all 110 messages" in result.stdout


def test_ctrl_c_leaves_a_whole_recording(inputs, tmp_path):
    endpoint, record = f"ipc://{tmp_path}/wire", tmp_path / "session.jsonl"
    serve = [*DECISION, "serve", "--policy", f"{HELPERS / 'faulty_policies.py'}:Sleeps", "-s", endpoint]
    with subprocess.Popen(
        [*serve, "--record", str(record)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        batsim = subprocess.Popen([*DECISION, "batsim", *inputs, "-s", endpoint, "-e", str(tmp_path / "out"), "-q"])
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + signal.SIGINT
        assert "interrupted (SIGINT)" in errors
        assert batsim.wait(PATIENCE) == 3  # its peer has gone
    senders = [json.loads(line)["from"] for line in record.read_text().splitlines()]
    assert senders
    assert senders == ["batsim", "decision"] * (len(senders) // 2)


def test_a_peer_that_never_comes_ends_it_with_exit_code_3(tmp_path):
    serve = [*DECISION, "serve", "--policy", "easy", "-s", f"ipc://{tmp_path}/wire", "--timeout", "0.5"]
    result = subprocess.run(serve, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 3
    assert "never connected" in result.stderr
    assert "waited 0.5 s" in result.stderr


def test_a_failing_policy_is_told_and_batsim_gets_no_answer(inputs, tmp_path):
    endpoint = f"ipc://{tmp_path}/wire"
    serve = [*DECISION, "serve", "--policy", f"{HELPERS / 'faulty_policies.py'}:OverAllocates", "-s", endpoint]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        batsim = [*DECISION, "batsim", *inputs, "-s", endpoint, "-e", str(tmp_path / "out"), "-q"]
        simulated = subprocess.run(batsim, capture_output=True, text=True, timeout=PATIENCE)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "error: t=" in errors
    assert simulated.returncode == 3
    assert "disconnected" in simulated.stderr
    assert not list(tmp_path.glob("*.csv"))
