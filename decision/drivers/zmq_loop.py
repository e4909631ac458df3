"""The conversation over ZeroMQ, from either end: answering Batsim's questions, and asking them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import zmq

from decision.model.errors import PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Message, Role
from decision.state.cluster import ClusterState

from .recorder import Recorder
from .signals import stop_on_signals
from .wire import Wire

_START_BATSIM = "start batsim with -s and this endpoint, or give --endpoint what it was started with"
_START_DECISION = "start the decision process, or give --socket-endpoint where it listens"


class Decider(Protocol):
    """What decides: one of Batsim's messages in, the reply out."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""

    @property
    def state(self) -> ClusterState | None:
        """What it knows of the cluster, to be read only; None where it does not know or will not say."""

    def handle(self, question: bytes) -> bytes:
        """Decide.

        Raises:
            RemoteProtocolError: if the question is none.
            PolicyError: if the policy decides something impossible.
        """


class Engine(Protocol):
    """Batsim's side of the conversation, without I/O."""

    def ask(self) -> Message | None:
        """The next question; None once the end was answered."""

    def answer(self, message: Message) -> None:
        """Take the reply."""

    def record(self) -> RunRecord:
        """What the run left."""


class Conversation(msgspec.Struct):
    """What a conversation came to."""

    messages: int = 0  # questions that were answered
    deciding: float = 0.0  # wall-clock seconds from receiving a question to having its reply
    total: float = 0.0  # wall-clock seconds in all, waiting included


def serve(agent: Decider, endpoint: str, *, timeout: float = 0.0, record: Path | None = None) -> Conversation:
    """Listen at `endpoint` and answer until the simulation ends.

    Args:
        agent: what decides.
        endpoint: a ZeroMQ endpoint to bind, such as ``tcp://127.0.0.1:28000``.
        timeout: seconds to wait for a message; 0 waits for ever.
        record: where to write the conversation down.

    Raises:
        PeerError: if Batsim never comes, stops talking or disconnects.
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


def answer_all(agent: Decider, wire: Wire, recorder: Recorder, watch: Callable[[], None] | None = None) -> Conversation:
    """Answer what comes over `wire` until the simulation ends."""
    conversation = Conversation()
    began = time.perf_counter()
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


def ask_all(engine: Engine, endpoint: str, *, timeout: float = 0.0) -> RunRecord:
    """Connect to `endpoint` and simulate with the decisions of the process that listens there.

    Args:
        engine: what simulates.
        endpoint: a ZeroMQ endpoint to connect to, such as ``tcp://localhost:28000``.
        timeout: seconds to wait for a reply; 0 waits for ever.

    Raises:
        PeerError: if nobody listens, stops talking or disconnects.
        RemoteProtocolError: if a reply breaks the protocol or asks for the impossible.
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
        except PolicyError as error:  # the policy is the peer's, and so is the blame
            raise RemoteProtocolError(f"the decision process decided the impossible: {error}") from None
    return engine.record()
