"""A Batsim that we start: how it is started, watched and ended."""

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers.driver_fakes import BEGINS, CALL, ENDS, NOTHING, Agent

from decision.batsim.launcher import run_batsim
from decision.model.errors import ConfigError, PeerError, PolicyError

HEAD = f"""#!{sys.executable}
import os, sys, time, zmq
print("pid", os.getpid(), flush=True)
socket = zmq.Context().socket(zmq.REQ)
socket.linger = 0
socket.connect(sys.argv[sys.argv.index("-s") + 1])
def ask(*questions):
    for question in questions:
        socket.send(question)
        socket.recv()
BEGINS, CALL, ENDS = {BEGINS!r}, {CALL!r}, {ENDS!r}
"""


@pytest.fixture
def batsim(tmp_path):
    """Makes an executable that plays Batsim, from the lines of its plot."""

    def make(plot: str) -> list[str]:
        path = tmp_path / "batsim"
        path.write_text(HEAD + plot)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return [str(path)]

    return make


@pytest.fixture
def log(tmp_path):
    return tmp_path / "batsim.log"


def gone(log: Path) -> bool:
    """Whether the process that wrote its id into its log is no more."""
    pid = int(log.read_text().split()[1])
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state or state.startswith("Z")  # of an orphan nothing but its exit code may be left


def test_a_run_ends_when_batsim_does(batsim, log):
    agent = Agent()
    conversation = run_batsim(agent, batsim("ask(BEGINS, CALL, ENDS)"), log=log, timeout=10)
    assert agent.questions == [BEGINS, CALL, ENDS]
    assert conversation.messages == 3
    assert gone(log)


@pytest.mark.parametrize(("contained", "socket"), [(False, "ipc:///"), (True, "tcp://127.0.0.1:")])
def test_batsim_gets_its_own_options_and_a_socket_that_it_can_reach(batsim, log, contained, socket):
    command = [*batsim("print(sys.argv[1:]); ask(BEGINS, ENDS)"), "-E"]
    run_batsim(Agent(), command, log=log, timeout=10, contained=contained)
    assert f"'-E', '-s', '{socket}" in log.read_text()


def test_a_socket_whose_path_would_be_too_long_is_a_port(batsim, log, tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    run_batsim(Agent(), batsim("print(sys.argv[1:]); ask(BEGINS, ENDS)"), log=log, timeout=10)
    assert "'-s', 'tcp://127.0.0.1:" in log.read_text()


def test_a_batsim_that_dies_is_reported_in_its_own_words(batsim, log):
    plot = "ask(BEGINS)\nsys.stderr.write('Invalid JSON message: no such job\\n')\nsys.exit(6)"
    with pytest.raises(PeerError, match=r"(?s)during the run \(exit code 6\).*Invalid JSON message: no such job"):
        run_batsim(Agent(), batsim(plot), log=log, timeout=10)


def test_the_critical_message_of_a_batsim_is_reported_in_one_line_without_its_stack(batsim, log):
    words = "[0.000000] ../src/jobs.cpp:482: [root/CRITICAL] Invalid JSON file 'w.json': no 'jobs'"
    plot = f"print({words!r}, flush=True)\nprint('Backtrace (displayed in actor maestro):\\n  ->  0# main', flush=True)"
    with pytest.raises(PeerError) as caught:
        run_batsim(Agent(), batsim(f"{plot}\nos.abort()"), log=log, timeout=10)
    reason = "Batsim ended during the run (signal 6): Invalid JSON file 'w.json': no 'jobs'"
    assert str(caught.value) == f"{reason}; its messages are in {log}"


OURSELVES = """
import sys
from pathlib import Path
from helpers.driver_fakes import Agent
from decision.batsim.launcher import run_batsim
run_batsim(Agent(), [sys.argv[1]], log=Path(sys.argv[2]))
"""


def test_batsim_ends_when_we_are_killed(batsim, log):
    """Whatever kills us, by SIGKILL as well."""
    command = batsim("ask(BEGINS)\nprint('asked', flush=True)\ntime.sleep(60)")
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    ours = subprocess.Popen(
        [sys.executable, "-c", OURSELVES, *command, str(log)], env={**os.environ, "PYTHONPATH": path}
    )
    wait_until(lambda: log.exists() and "asked" in log.read_text())
    ours.kill()
    ours.wait()
    wait_until(lambda: gone(log))


def wait_until(true) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within 30 s")


def test_a_batsim_that_is_killed_is_reported_with_the_signal(batsim, log):
    with pytest.raises(PeerError, match=r"during the run \(signal 6\)"):
        run_batsim(Agent(), batsim("ask(BEGINS)\nos.abort()"), log=log, timeout=10)


def test_a_batsim_that_fails_after_the_simulation_is_reported(batsim, log):
    plot = "ask(BEGINS, ENDS)\nsys.exit('cannot write out_jobs.csv')"
    with pytest.raises(PeerError, match=r"(?s)after the simulation \(exit code 1\).*cannot write out_jobs\.csv"):
        run_batsim(Agent(), batsim(plot), log=log, timeout=10)


def test_a_batsim_that_stops_talking_is_ended(batsim, log):
    with pytest.raises(PeerError, match="Batsim sent nothing more"):
        run_batsim(Agent(), batsim("ask(BEGINS)\ntime.sleep(60)"), log=log, timeout=1.5)
    assert gone(log)


def test_batsim_is_ended_when_the_policy_fails(batsim, log):
    def fail_at_call(question):
        if question == CALL:
            raise PolicyError("t=5 s: no")
        return NOTHING

    began = time.monotonic()
    with pytest.raises(PolicyError, match="t=5 s: no"):
        run_batsim(Agent(fail_at_call), batsim("ask(BEGINS, CALL)"), log=log, timeout=30)
    assert gone(log)
    assert time.monotonic() - began < 10


def test_a_command_that_is_none_is_the_users_mistake(tmp_path, log):
    with pytest.raises(ConfigError, match=r"nothing: cannot be started \(No such file.*give the path") as caught:
        run_batsim(Agent(), [str(tmp_path / "nothing")], log=log)
    assert caught.value.field == "batsim"


def test_a_log_that_cannot_be_written_is_the_users_mistake(batsim, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        run_batsim(Agent(), batsim("pass"), log=tmp_path / "absent" / "batsim.log")


def test_the_last_words_of_a_batsim_that_hangs_up_before_it_dies_are_waited_for(batsim, log):
    plot = "ask(BEGINS)\nsocket.close()\ntime.sleep(0.5)\nsys.exit('Deadlock detected')"
    with pytest.raises(PeerError, match=r"(?s)exit code 1.*Deadlock detected"):
        run_batsim(Agent(), batsim(plot), log=log, timeout=10)


def test_a_container_that_docker_cannot_start_is_not_called_a_batsim_that_died(tmp_path):
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'docker: Cannot connect to the Docker daemon.' >&2\nexit 125\n")
    docker.chmod(0o755)
    with pytest.raises(PeerError, match=r"^Docker could not start Batsim: Cannot connect to the Docker daemon\.$"):
        run_batsim(Agent(), [str(docker)], log=tmp_path / "log", timeout=30, contained=True)
