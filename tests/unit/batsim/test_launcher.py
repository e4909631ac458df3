"""A Batsim that we start: how it is started, watched and ended."""

import os
import stat
import sys
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
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_run_ends_when_batsim_does(batsim, log):
    agent = Agent()
    conversation = run_batsim(agent, batsim("ask(BEGINS, CALL, ENDS)"), log=log, timeout=10)
    assert agent.questions == [BEGINS, CALL, ENDS]
    assert conversation.messages == 3
    assert gone(log)


def test_batsim_gets_its_own_options_and_a_free_port(batsim, log):
    run_batsim(Agent(), [*batsim("print(sys.argv[1:]); ask(BEGINS, ENDS)"), "-E"], log=log, timeout=10)
    assert "'-E', '-s', 'tcp://127.0.0.1:" in log.read_text()


def test_a_batsim_that_dies_is_reported_in_its_own_words(batsim, log):
    plot = "ask(BEGINS)\nsys.stderr.write('Invalid JSON message: no such job\\n')\nsys.exit(6)"
    with pytest.raises(PeerError, match=r"(?s)during the run \(exit code 6\).*Invalid JSON message: no such job"):
        run_batsim(Agent(), batsim(plot), log=log, timeout=10)


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
