"""One end of a conversation as a ZeroMQ socket."""

import math
import re
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

from decision.model.errors import ConfigError

from .end import SLICE, DisconnectedError, End
from .signals import StopRequest

_GRACE = 3.0  # seconds in which a peer that has gone before its first message may come back
_COME, _GREETED, _GONE = (
    zmq.Event.ACCEPTED | zmq.Event.CONNECTED,
    zmq.Event.HANDSHAKE_SUCCEEDED,
    zmq.Event.DISCONNECTED,
)


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
        found = f"there is no port {port!r}" if port and "/" not in port else "the port is missing"
        advice = f"{_AS}, with a port from 1 to {_LAST_PORT:,}"
        raise ConfigError(f"endpoint {endpoint}: {found}; {advice}", field="endpoint")


class Wire(End):
    """One end of a conversation over ZeroMQ: a socket, and the peer's connections.

    Args:
        kind: zmq.REP (binds) or zmq.REQ (connects).
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
        self._left = math.inf  # when the last peer that had greeted went, on the monotonic clock
        try:
            (self._socket.bind if kind == zmq.REP else self._socket.connect)(endpoint)
        except zmq.ZMQError as error:
            self.close(linger=0)
            raise ConfigError(
                f"endpoint {endpoint}: {zmq.strerror(error.errno or 0).lower()}; {_endpoint_advice(error)}",
                field="endpoint",
            ) from None
        self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT)

    def close(self, linger: int) -> None:
        """Deliver what has been sent, for at most `linger` milliseconds, and free the port."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(linger)
        self._context.term()

    def send(self, data: bytes) -> None:
        """Send one message."""
        self._socket.send(data)

    def _arrived(self) -> bytes | None:
        """The socket itself waits: polling it first costs more than all else that a message needs."""
        try:
            data = self._socket.recv()
        except zmq.Again:
            return None
        if self._socket.getsockopt(zmq.RCVMORE):
            raise self._parts()
        self._engaged = True
        return data

    def _check_connection(self) -> None:
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)["event"]
            self._connections += bool(event & _COME) - bool(event & _GONE)
            # a question that was under way is lost with its connection
            self._engaged |= self._asks and bool(event & _GREETED)
            self._greeted |= bool(event & _GREETED)
            self._left = time.monotonic() if self._greeted and self._connections <= 0 else math.inf
        # what the peer sent before it went comes first
        if self._engaged and self._connections <= 0 and not self._socket.poll(0):
            raise self._disconnected()
        if not self._spoken and time.monotonic() - self._left > _GRACE:
            raise DisconnectedError(f"{self._peer} connected and left without a message; see its own messages")


def _endpoint_advice(error: zmq.ZMQError) -> str:
    if error.errno == zmq.EADDRINUSE:
        return "another process listens there; choose another port"
    return _AS
