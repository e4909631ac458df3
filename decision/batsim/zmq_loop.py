"""The conversation over ZeroMQ, from either end: answering Batsim's questions, asking them, and recording both."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import zmq

from decision.model.errors import ConfigError, PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Role
from decision.protocol.recording import record_line

from .roles import Responder, Simulator
from .signals import stop_on_signals
from .wire import Wire

_START_BATSIM = (
    "start batsim with -s and this endpoint, or listen at the one that it was started with; a Batsim that died while "
    "loading says why in its own messages"
)
_START_DECISION = "start the decision process, or connect to the endpoint where it listens"


_COLLECT_AFTER = 200_000  # objects made and not freed, between two garbage collections of a conversation


class Conversation(msgspec.Struct):
    """How many messages a conversation had, and how long it took."""

    messages: int = 0  # questions that were answered
    deciding: float = 0.0  # wall-clock seconds from receiving a question to having its reply
    total: float = 0.0  # wall-clock seconds in all, waiting included


class Recorder:
    """A file of JSON lines that is complete and valid after each exchange; without a path it does nothing.

    Raises:
        ConfigError: if the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self._file = path.open("wb", buffering=0) if path else None
        except OSError as error:
            raise self._failure(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def exchange(self, question: bytes, reply: bytes) -> None:
        """Record a question of Batsim and its reply."""
        if self._file is not None:
            self._write(self._file, f"{record_line(Role.BATSIM, question)}\n{record_line(Role.DECISION, reply)}\n")

    def unanswered(self, question: bytes) -> None:
        """Record a question that got no reply, unless it is not JSON."""
        if self._file is not None and _is_json(question):
            self._write(self._file, record_line(Role.BATSIM, question) + "\n")

    def _write(self, file: FileIO, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> ConfigError:
        return ConfigError(f"recording {self._path}: cannot be written ({error.strerror}); choose another file")


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def serve(agent: Responder, endpoint: str, *, timeout: float = 0.0, record: Path | None = None) -> Conversation:
    """Listen at `endpoint` and answer until the simulation ends.

    Args:
        agent: what decides.
        endpoint: a ZeroMQ endpoint to bind, such as ``tcp://127.0.0.1:28000``.
        timeout: seconds to wait for a message; 0 waits without limit.
        record: the file for the recorded conversation.

    Raises:
        PeerError: if Batsim never connects, sends nothing more or disconnects.
        RemoteProtocolError: if it sends what the protocol forbids.
        PolicyError: if the policy fails; Batsim gets no reply then.
        ConfigError: if the endpoint or the recording cannot be used.
        Interrupted: at SIGINT or SIGTERM, after the message under way.
    """
    with (
        stop_on_signals() as stop,
        Recorder(record) as recorder,
        Wire(zmq.REP, endpoint, peer="Batsim", timeout=timeout, advice=_START_BATSIM, stop=stop) as wire,
    ):
        return answer_all(agent, wire, recorder)


def answer_all(
    agent: Responder, wire: Wire, recorder: Recorder, watch: Callable[[], None] | None = None
) -> Conversation:
    """Answer what comes over `wire` until the simulation ends."""
    conversation = Conversation()
    began = time.perf_counter()
    agent.get_ready()
    with _rare_garbage_collection():
        while not agent.finished:
            question = wire.receive(watch)
            received = time.perf_counter()
            try:
                reply = agent.handle(question)
            except BaseException:
                recorder.unanswered(question)
                raise
            conversation.deciding += time.perf_counter() - received
            conversation.messages += 1
            wire.send(reply)
            recorder.exchange(question, reply)
    conversation.total = time.perf_counter() - began
    return conversation


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Messages make no cycles, so that looking for some is wasted; policies in Python may make a few."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def ask_all(engine: Simulator, endpoint: str, *, timeout: float = 0.0) -> RunRecord:
    """Connect to `endpoint` and simulate with the decisions of the process that listens there.

    Args:
        engine: what simulates.
        endpoint: a ZeroMQ endpoint to connect to, such as ``tcp://localhost:28000``.
        timeout: seconds to wait for a reply; 0 waits without limit.

    Raises:
        PeerError: if nobody listens or replies, or the peer disconnects.
        RemoteProtocolError: if a reply breaks the protocol or is impossible.
        ConfigError: if the endpoint cannot be used.
        Interrupted: at SIGINT or SIGTERM.
    """
    connection = Connection(Role.BATSIM)
    peer = "the decision process"
    with (
        stop_on_signals() as stop,
        Wire(zmq.REQ, endpoint, peer=peer, timeout=timeout, advice=_START_DECISION, stop=stop) as wire,
    ):
        try:
            while (question := engine.ask()) is not None:
                wire.send(connection.send(question))
                engine.answer(connection.receive(wire.receive()))
        except PolicyError as error:  # the policy belongs to the peer
            raise RemoteProtocolError(f"the decision process decided something impossible: {error}") from None
    return engine.record()
