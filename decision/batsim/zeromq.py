"""The conversation over ZeroMQ, from either end: answering Batsim's questions, and asking them.

Who listens has a socket ROUTER, not REP, because more than one Batsim may connect to it. The first that speaks is
answered; what others say is not, so that they wait, and the first one's run goes on as if it were alone.
"""

import json
import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import zmq
from zmq.utils.monitor import recv_monitor_message

from decision.model.errors import ConfigError, PolicyError, RemoteProtocolError, warn_once
from decision.model.record import RunRecord
from decision.protocol import Connection, Role

from .conversation import Conversation, Recorder, Responder, Simulator, answer_all
from .signals import StopRequest, stop_on_signals
from .transport import SLICE, DisconnectedError, Transport

_GRACE = 3.0  # seconds in which a peer that has gone before its first message may come back
_COME, _GREETED, _GONE = (
    zmq.Event.ACCEPTED | zmq.Event.CONNECTED,
    zmq.Event.HANDSHAKE_SUCCEEDED,
    zmq.Event.DISCONNECTED,
)


_ONE_EACH = "for one decision process serves one Batsim; start it with a decision process of its own"

_WILD = "*"  # a free port
_LAST_PORT = 65_535
_AS = "write it like tcp://127.0.0.1:28000"


def check_endpoint(endpoint: str) -> None:
    """Refuse a port that there is not: ZeroMQ would take another one, or wait for ever.

    Raises:
        ConfigError: if the endpoint is ``tcp://`` and ends in no port.
    """
    if not endpoint.startswith("tcp://"):
        return
    port = endpoint.rpartition(":")[2]
    if port != _WILD and not (re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) <= _LAST_PORT):
        mistake = f"there is no port {port!r}" if port and "/" not in port else "the port is missing"
        advice = f"{_AS}, with a port from 1 to {_LAST_PORT:,}"
        raise ConfigError(f"endpoint {endpoint}: {mistake}; {advice}", field="endpoint")


class ZmqTransport(Transport):
    """A ZeroMQ socket, and the peer's connections.

    Args:
        kind: zmq.ROUTER (binds) or zmq.REQ (connects).
        endpoint: where; ``tcp://127.0.0.1:*`` binds a free port.
        peer: what the other end is, for messages: "Batsim".
        timeout: seconds to wait for one message; 0 waits without limit.
        advice: what to check when nobody connects.
        stop: checked while waiting.

    Raises:
        ConfigError: if the endpoint cannot be used.
    """

    def __init__(
        self, kind: int, endpoint: str, *, peer: str, timeout: float, advice: str, stop: StopRequest | None = None
    ) -> None:
        check_endpoint(endpoint)
        super().__init__(peer, timeout, advice, stop)
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.RCVTIMEO, int(SLICE * 1000))
        self._monitor = self._socket.get_monitor_socket(_COME | _GREETED | _GONE)
        self._asks = kind == zmq.REQ
        self._engaged = False  # whether a wait would be useless once the peer has gone
        self._greeted = False  # whether a peer has spoken ZeroMQ
        self._open: set[int] = set()  # file descriptors of the connections
        self._answered = -1  # that of the peer that is answered
        self._route = b""  # its address on this socket
        self._left = math.inf  # when the last peer that had greeted went, on the monotonic clock
        try:
            (self._socket.connect if self._asks else self._socket.bind)(endpoint)
        except zmq.ZMQError as error:
            self.close(linger=0)
            in_use = error.errno == zmq.EADDRINUSE
            advice = "another process listens there; choose another port" if in_use else _AS
            reason = zmq.strerror(error.errno or 0).lower()
            raise ConfigError(f"endpoint {endpoint}: {reason}; {advice}", field="endpoint") from None
        self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT)

    def close(self, linger: int) -> None:
        """Deliver what has been sent, for at most `linger` milliseconds, and free the port."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(linger)
        self._context.term()

    def send(self, data: bytes) -> None:
        """Send one message to the peer that is answered, or that was asked."""
        if self._asks:
            self._socket.send(data)
        else:
            self._socket.send_multipart([self._route, b"", data])

    def _arrived(self) -> bytes | None:
        """The socket itself waits: polling it first costs more than all else that a message needs."""
        try:
            frames: list[zmq.Frame] = self._socket.recv_multipart(copy=False)
        except zmq.Again:
            return None
        parts = frames
        if not self._asks:  # the peer's address, an empty frame, and its message
            route, *envelope = frames
            parts = envelope[1:]
            if not parts or envelope[0].bytes:
                return None
            if not self._route:
                self._route, self._answered = route.bytes, parts[0].get(zmq.SRCFD)
            if route.bytes != self._route:
                simulates = ""  # which workloads its first message names, if it is one
                with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    files = json.loads(parts[0].bytes)["events"][0]["data"]["workloads"].values()
                    simulates = f" ({', '.join(map(str, files))})" if files else ""
                warn_once(f"another {self._peer}{simulates} has connected: it gets no reply, {_ONE_EACH}")
                return None
        if len(parts) > 1:
            raise self._several_parts()
        self._engaged = True
        return parts[0].bytes

    def _check_connection(self) -> None:
        while self._monitor.poll(0):
            message = recv_monitor_message(self._monitor)
            event, connection = message["event"], message["value"]
            if event & _COME:
                self._open.add(connection)
            elif event & _GONE:
                self._open.discard(connection)
            # a question that was under way is lost with its connection
            self._engaged |= self._asks and bool(event & _GREETED)
            self._greeted |= bool(event & _GREETED)
            self._left = time.monotonic() if self._greeted and not self._open else math.inf
        self._connections = len(self._open)
        # what the peer sent before it went comes first
        if (
            self._engaged
            and (self._answered not in self._open if self._route else not self._open)
            and not self._socket.poll(0)
        ):
            raise self._disconnected()
        if not self._spoken and time.monotonic() - self._left > _GRACE:
            raise DisconnectedError(f"{self._peer} connected and left without a message; see its own messages")


_START_BATSIM = (
    "start batsim with -s and this endpoint, or listen at the one that it was started with; a Batsim that died while "
    "loading says why in its own messages"
)
START_DECISION = "start the decision process, or connect to the endpoint where it listens"


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
        ZmqTransport(
            zmq.ROUTER, endpoint, peer="Batsim", timeout=timeout, advice=_START_BATSIM, stop=stop
        ) as transport,
    ):
        ready(transport.endpoint)
        return answer_all(agent, transport, recorder)


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
        ZmqTransport(zmq.REQ, endpoint, peer=peer, timeout=timeout, advice=START_DECISION, stop=stop) as transport,
    ):
        try:
            while (question := engine.ask()) is not None:
                transport.send(connection.send(question))
                engine.answer(connection.receive(transport.receive()))
        except PolicyError as error:  # the policy belongs to the peer
            raise RemoteProtocolError(f"the decision process decided something impossible: {error}") from None
    return engine.record()
