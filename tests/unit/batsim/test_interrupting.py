"""SIGINT and SIGTERM end the decision process between two messages, with a whole recording."""

import ctypes
import json
import signal
import subprocess
import sys

import pytest
import zmq
from helpers.driver_fakes import BEGINS, CALL

from decision.batsim.signals import Interrupted, interrupted_by_sigterm, none_swallowed, stop_on_signals

SERVER = """
import sys, time
from pathlib import Path
from decision.batsim.signals import Interrupted
from decision.batsim.zeromq import serve

class Agent:
    finished = False
    def get_ready(self):
        pass
    def handle(self, question):
        if b"REQUESTED_CALL" in question:
            print("deciding", flush=True)
            time.sleep(0.5)
        return b'{"now": 5.0, "events": []}'

try:
    serve(Agent(), sys.argv[1], timeout=20, record=Path(sys.argv[2]))
except Interrupted as stop:
    sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_message_under_way_be_answered_and_recorded(tmp_path, number):
    endpoint, record = f"ipc://{tmp_path}/wire", tmp_path / "session.jsonl"
    context = zmq.Context()
    batsim = context.socket(zmq.REQ)
    batsim.rcvtimeo, batsim.linger = 20_000, 0
    batsim.connect(endpoint)
    command = [sys.executable, "-c", SERVER, endpoint, str(record)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        batsim.send(BEGINS)
        batsim.recv()
        batsim.send(CALL)
        server.stdout.readline()
        server.send_signal(number)
        assert json.loads(batsim.recv())["now"] == 5.0
        assert server.wait(20) == 128 + number
    batsim.close()
    context.term()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["from"] for line in lines] == ["batsim", "decision"] * 2


def test_the_second_signal_has_no_patience():
    with pytest.raises(Interrupted), stop_on_signals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            stop.check()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.fixture
def as_in_a_terminal():
    """A job in the background begins with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Interrupted)])
def test_a_signal_that_a_callback_of_c_gets_ends_the_block(number, error, capsys, as_in_a_terminal):
    """The compiler of kernels calls Python; what it raises there is lost, and it fails of something else later."""
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))
    with pytest.raises(error), interrupted_by_sigterm(), none_swallowed():
        callback()
        raise RuntimeError("no compiled object yet")
    assert capsys.readouterr().err == ""


def test_errors_without_a_signal_stay_what_they_are(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))
    before = sys.unraisablehook
    callback = ctypes.CFUNCTYPE(None)(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="no compiled object yet"), none_swallowed():
        callback()
        raise RuntimeError("no compiled object yet")
    assert seen == [ZeroDivisionError]
    assert sys.unraisablehook == before
