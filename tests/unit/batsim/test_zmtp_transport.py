"""A Batsim that we start, over ZeroMQ's wire protocol: what a ZeroMQ socket says, whole, in pieces, or not at all."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import zmq
from helpers.driver_fakes import BEGINS, CALL, ENDS, Agent, ask, peer

from decision.batsim.conversation import Recorder, answer_all
from decision.batsim.signals import Interrupted, StopRequest
from decision.batsim.transport import DisconnectedError, ZmtpTransport
from decision.model.errors import PeerError, RemoteProtocolError

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ\x08Identity\x00\x00\x00\x00"


@pytest.fixture(params=["socket", "port"])
def line(request, tmp_path):
    with ZmtpTransport(f"{tmp_path}/s" if request.param == "socket" else "", timeout=0.5, advice="look there") as line:
        yield line


def connected(line: ZmtpTransport) -> socket.socket:
    kind, _, address = line.endpoint.partition("://")
    if kind == "ipc":
        end = socket.socket(socket.AF_UNIX)
        end.connect(address)
        return end
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_536, 3_000_000])
def test_messages_of_any_size_go_both_ways(line, size):
    questions, replies = [BEGINS, b"q" * size, ENDS], []

    def play(other):
        for question in questions:
            other.send(question)
            replies.append(other.recv())

    agent = Agent(lambda question: question[::-1])
    with peer(line.endpoint, play):
        answer_all(agent, line, Recorder(None))
        line.close(0)
    assert agent.questions == questions
    assert replies == [question[::-1] for question in questions]


def test_a_message_in_pieces_is_waited_for(line):
    with connected(line) as batsim:
        for byte in GREETING + READY + b"\x01\0\0\4ask1":
            batsim.sendall(bytes([byte]))
            time.sleep(0.0005)
        assert line.receive() == b"ask1"
        line.send(b"reply")
        said = b""
        while not said.endswith(b"reply"):
            said += batsim.recv(1000)
    assert said.endswith(b"\x03REP\x01\0\0\5reply")


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "does not speak ZeroMQ"),
        (GREETING + b"\0\3abc", "does not speak ZeroMQ"),
        (GREETING + READY + b"\0\4ask1", "does not speak ZeroMQ"),
        (GREETING + READY + b"\x01\0\x01\4ask1\0\0", "in several parts"),
        (GREETING + READY + b"\x01\0\x03\0\0\0\0\0\0\0\4ask1\0\0", "in several parts"),
    ],
)
def test_what_no_batsim_says_is_its_fault(line, said, complaint):
    with connected(line) as batsim:
        batsim.sendall(said)
        with pytest.raises(RemoteProtocolError, match=complaint):
            line.receive()


@pytest.mark.parametrize("said", [b"", GREETING[:20]])
def test_who_goes_before_the_greeting_may_come_again(line, said):
    for _ in range(3):
        with connected(line) as batsim:
            batsim.sendall(said)
    with connected(line) as batsim:
        batsim.sendall(GREETING + READY + b"\x01\0\0\4ask1")
        assert line.receive() == b"ask1"


def test_a_zeromq_that_was_kept_waiting_for_its_greeting_is_answered(line):
    with zmq.Context() as context, context.socket(zmq.REQ) as batsim:
        batsim.linger, batsim.handshake_ivl = 0, 100  # milliseconds; 30 s by default
        batsim.connect(line.endpoint)
        batsim.send(CALL)
        time.sleep(0.35)
        assert line.receive() == CALL


@pytest.mark.parametrize("said", [GREETING + READY, GREETING + READY + b"\x01\0\2\0\0"])
def test_who_goes_before_a_message_is_whole_is_gone(line, said):
    with connected(line) as batsim:
        batsim.sendall(said)
        batsim.close()
        with pytest.raises(DisconnectedError):
            line.receive()


def test_silence_is_told_from_nobody(line):
    with pytest.raises(PeerError, match=r"Batsim never connected to .*waited 0\.5 s.*look there"):
        line.receive()
    with connected(line) as batsim:
        batsim.sendall(GREETING + READY)
        with pytest.raises(PeerError, match=r"connected and sent nothing \(waited 0\.5 s\)"):
            line.receive()
        batsim.sendall(b"\x01\0\0\4ask1")
        assert line.receive() == b"ask1"
        with pytest.raises(PeerError, match=r"sent nothing more \(waited 0\.5 s\)"):
            line.receive()


def test_a_reply_to_one_who_has_gone_is_no_error_and_the_next_wait_says_it(line):
    with zmq.Context() as context, context.socket(zmq.REQ) as batsim:
        batsim.linger = 0
        batsim.connect(line.endpoint)
        batsim.send(CALL)
        line.receive()
    line.send(b"too late")
    with pytest.raises(DisconnectedError):
        line.receive()


def test_what_is_watched_is_looked_at_while_nobody_speaks(line):
    class StopError(Exception):
        pass

    def stop():
        raise StopError

    with peer(line.endpoint, ask()), pytest.raises(StopError):
        line.receive(watch=stop)


@contextmanager
def one_byte_after_the_other(line: ZmtpTransport) -> Iterator[None]:
    """Somebody begins a message of 4 GB."""
    over = threading.Event()

    def send() -> None:
        with connected(line) as batsim, suppress(OSError):
            batsim.sendall(GREETING + READY + b"\x01\0\2\0\0\0\1\0\0\0\0")
            while not over.is_set():
                batsim.sendall(b"x")
                time.sleep(0.005)

    sending = threading.Thread(target=send)
    sending.start()
    yield
    over.set()
    sending.join()


def test_a_message_that_never_ends_does_not_outwait_the_timeout(line):
    with one_byte_after_the_other(line), pytest.raises(PeerError, match=r"waited 0\.5 s"):
        line.receive()


def test_a_message_that_never_ends_can_be_interrupted(tmp_path):
    stop = StopRequest()
    asked = threading.Timer(0.2, stop.receive, args=(2, None))
    with ZmtpTransport(f"{tmp_path}/s", timeout=0.0, advice="", stop=stop) as line, one_byte_after_the_other(line):
        asked.start()
        with pytest.raises(Interrupted):
            line.receive()
