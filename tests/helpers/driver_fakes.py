"""Ends of a conversation that do as they are told."""

import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress

import zmq

BEGINS = b'{"now":0.0,"events":[{"timestamp":0.0,"type":"SIMULATION_BEGINS","data":{}}]}'
CALL = b'{"now":5.0,"events":[{"timestamp":5.0,"type":"REQUESTED_CALL","data":{}}]}'
ENDS = b'{"now":9.0,"events":[{"timestamp":9.0,"type":"SIMULATION_ENDS","data":{}}]}'
NOTHING = b'{"now":9.0,"events":[]}'


class Agent:
    """Answers every question with nothing, or with what `reply` makes of it."""

    def __init__(self, reply: Callable[[bytes], bytes] = lambda question: NOTHING) -> None:
        self.questions: list[bytes] = []
        self.finished = False
        self._reply = reply

    def get_ready(self) -> None:
        pass

    def handle(self, question: bytes) -> bytes:
        self.questions.append(question)
        reply = self._reply(question)
        self.finished = b"SIMULATION_ENDS" in question
        return reply


class Peer:
    """Another process's end of a conversation, in a thread that ends when the test does."""

    def __init__(self, end: zmq.Socket) -> None:
        self.end = end
        self.leaving = threading.Event()

    def send(self, data: bytes) -> None:
        self.end.send(data)

    def recv(self) -> bytes:
        while not self.end.poll(20):
            if self.leaving.is_set():
                raise _LeftError
        return self.end.recv()

    def wait(self) -> None:
        """Stay connected and silent until the test is over."""
        self.leaving.wait(10)

    def leave(self) -> None:
        """Disconnect."""
        self.end.close(0)


class _LeftError(Exception):
    pass


@contextmanager
def peer(endpoint: str, play: Callable[[Peer], None], kind: int = zmq.REQ):
    """An end that connects (or binds, for zmq.REP) and plays."""
    context = zmq.Context()
    end = context.socket(kind)
    (end.bind if kind == zmq.REP else end.connect)(endpoint)
    other = Peer(end)
    thread = threading.Thread(target=_play, args=(play, other), daemon=True)
    thread.start()
    try:
        yield
    finally:
        other.leaving.set()
        thread.join(5)
        end.close(0)
        context.term()


def _play(play: Callable[[Peer], None], other: Peer) -> None:
    with suppress(_LeftError):  # the other end fell silent, which is what many tests want
        play(other)


def ask(*questions: bytes, then: Callable[[Peer], None] = lambda other: None) -> Callable[[Peer], None]:
    """Ask these, one after the other, each after the reply to the one before."""

    def play(other: Peer) -> None:
        for question in questions:
            other.send(question)
            other.recv()
        then(other)

    return play


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
