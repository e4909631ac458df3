"""The conversation over ZeroMQ, from either end: answering Batsim's questions, and asking them."""

from collections.abc import Callable
from pathlib import Path

import zmq

from decision.model.errors import PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Role

from .conversation import Conversation, Recorder, answer_all
from .roles import Responder, Simulator
from .signals import stop_on_signals
from .wire import Wire

_START_BATSIM = (
    "start batsim with -s and this endpoint, or listen at the one that it was started with; a Batsim that died while "
    "loading says why in its own messages"
)
_START_DECISION = "start the decision process, or connect to the endpoint where it listens"


def serve(
    agent: Responder,
    endpoint: str,
    *,
    timeout: float = 0.0,
    record: Path | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> Conversation:
    """Listen at `endpoint` and answer until the simulation ends.

    Args:
        agent: what decides.
        endpoint: a ZeroMQ endpoint to bind, such as ``tcp://127.0.0.1:28000``.
        timeout: seconds to wait for a message; 0 waits without limit.
        record: the file for the recorded conversation.
        ready: called with the endpoint when a Batsim can connect to it.

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
        Wire(zmq.ROUTER, endpoint, peer="Batsim", timeout=timeout, advice=_START_BATSIM, stop=stop) as wire,
    ):
        ready(wire.endpoint)
        return answer_all(agent, wire, recorder)


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
