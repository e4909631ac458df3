"""The decision process: answers Batsim's messages until the simulation ends."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import zmq

from .recorder import Recorder
from .signals import stop_on_signals
from .wire import Wire

_ADVICE = "start batsim with -s and this endpoint, or give --endpoint what it was started with"


class Decider(Protocol):
    """What decides: one of Batsim's messages in, the reply out."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    def handle(self, question: bytes) -> bytes:
        """Decide.

        Raises:
            RemoteProtocolError: if the question is none.
            PolicyError: if the policy decides something impossible.
        """


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
        Wire(zmq.REP, endpoint, peer="Batsim", timeout=timeout, advice=_ADVICE, stop=stop) as wire,
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
