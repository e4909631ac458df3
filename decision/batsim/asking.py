"""The conversation with a decision component of Batsim 5: a process that listens, or a library."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import zmq

from decision.engine.embedded5 import Batsim5Engine
from decision.model.errors import PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m

from .end import End
from .library import LibraryEnd
from .signals import stop_on_signals
from .wire import Wire
from .zmq_loop import START_DECISION


def ask_peer(
    engine: Batsim5Engine,
    place: str,
    text: str,
    keep: Callable[[RunRecord, float], None],
    *,
    library: bool,
    schema: str | None,
    timeout: float,
) -> None:
    """Simulate with the decisions of the component at `place`.

    Args:
        engine: what simulates.
        place: an endpoint to connect to, or the path of a library.
        text: for the component.
        keep: takes the record, and the seconds that it took to decide, before the component ends, which may fail.
        library: whether it is a library.
        schema: of binary messages, where it is known; that of a library is read from it.
        timeout: seconds to wait for a reply; 0 waits without limit.

    Raises:
        PeerError: if nobody listens or replies, or the peer disconnects, crashes or hangs.
        RemoteProtocolError: if a reply breaks the protocol or is impossible.
        ConfigError: if the endpoint or the library cannot be used.
        Interrupted: at SIGINT or SIGTERM.
    """
    with stop_on_signals() as stop, ExitStack() as stack:
        if library:
            component = stack.enter_context(LibraryEnd(place, timeout=timeout, stop=stop))
            end: End = component
            schema = schema or component.schema
        else:
            peer = "the decision process"
            wire = Wire(zmq.REQ, place, peer=peer, timeout=timeout, advice=START_DECISION, stop=stop)
            end = stack.enter_context(wire)
        keep(*_converse(engine, end, Connection(Role.BATSIM, "5", lambda: schema), text))


def _converse(engine: Batsim5Engine, end: End, connection: Connection, text: str) -> tuple[RunRecord, float]:
    deciding = 0.0

    def told(question: Message) -> Message:
        nonlocal deciding
        data = connection.send(question)
        began = time.perf_counter()
        end.send(data)
        reply = end.receive()
        deciding += time.perf_counter() - began
        return connection.receive(reply)

    _greet(engine, told, text)
    try:
        while (question := engine.ask()) is not None:
            engine.answer(told(question))
    except PolicyError as error:  # the policy belongs to the peer
        raise RemoteProtocolError(f"the decision process decided something impossible: {error}") from None
    return engine.record(), deciding


def _greet(engine: Batsim5Engine, tell: Callable[[Message], Message], text: str) -> None:
    hello = tell(Message(0.0, (m.Init(0.0, m.InitData(text)),))).events[0]
    assert isinstance(hello, m.Hello)  # which the connection has checked
    engine.greet(hello.data.features)
