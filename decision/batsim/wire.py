"""A ZeroMQ socket with safe waits: timeouts, signals, and the peer's disconnection."""

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import zmq
from zmq.utils.monitor import recv_monitor_message

from decision.model.errors import ConfigError, PeerError, RemoteProtocolError

from .signals import StopRequest

_SLICE = 0.1  # seconds between two looks at signals and at what else is watched
_GRACE = 3.0  # seconds in which a peer that has gone before its first message may come back
_LINGER = 2000  # milliseconds to deliver the last message after the end
_COME, _GREETED, _GONE = (
    zmq.Event.ACCEPTED | zmq.Event.CONNECTED,
    zmq.Event.HANDSHAKE_SUCCEEDED,
    zmq.Event.DISCONNECTED,
)


class DisconnectedError(PeerError):
    """The peer has gone."""


class Wire:
    """One end of a conversation: a socket, the peer's connections, and how long to wait for it.

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
        self._peer, self._timeout, self._advice = peer, timeout, advice
        self._stop = stop or StopRequest()
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.RCVTIMEO, int(_SLICE * 1000))
        self._monitor = self._socket.get_monitor_socket(_COME | _GREETED | _GONE)
        self._asks = kind == zmq.REQ
        self._connections = 0
        self._spoken = False  # whether a message has come
        self._engaged = False  # whether a wait would be useless once the peer has gone
        self._greeted = False  # whether a peer has spoken ZeroMQ
        self._left = math.inf  # when the last peer that had greeted went, on the monotonic clock
        try:
            (self._socket.bind if kind == zmq.REP else self._socket.connect)(endpoint)
        except zmq.ZMQError as error:
            self.close(linger=0)
            raise ConfigError(
                f"endpoint {endpoint}: {zmq.strerror(error.errno or 0).lower()}; {_endpoint_advice(error)}"
            ) from None
        self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(linger=_LINGER if error is None else 0)

    def close(self, linger: int) -> None:
        """Deliver what has been sent, for at most `linger` milliseconds, and free the port."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(linger)
        self._context.term()

    def send(self, data: bytes) -> None:
        """Send one message."""
        self._socket.send(data)

    def receive(self, watch: Callable[[], None] | None = None) -> bytes:
        """Wait for one message; `watch` is called ten times a second meanwhile and may raise.

        Raises:
            DisconnectedError: if the peer has gone.
            PeerError: if the timeout passed.
            RemoteProtocolError: if the message is not one that its kind of socket sends.
            Interrupted: if a signal asked for the end.
        """
        began = time.monotonic()
        while (data := self._arrived()) is None:
            self._stop.check()
            if watch is not None:
                watch()
            self._check_connection()
            if 0 < self._timeout <= time.monotonic() - began:
                raise self._silence()
        self._stop.check()
        self._spoken = self._engaged = True
        return data

    def _arrived(self) -> bytes | None:
        """A message that comes within a slice.

        The socket itself waits: polling it first costs more than all else that a message needs.
        """
        try:
            data = self._socket.recv()
        except zmq.Again:
            return None
        if self._socket.getsockopt(zmq.RCVMORE):
            raise RemoteProtocolError(f"{self._peer} sends a message in several parts; is it really {self._peer}?")
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
            raise DisconnectedError(f"{self._peer} disconnected before the simulation ended; see its own messages")
        if not self._spoken and time.monotonic() - self._left > _GRACE:
            raise DisconnectedError(f"{self._peer} connected and left without a message; see its own messages")

    def _silence(self) -> PeerError:
        waited = f"waited {self._timeout:g} s"
        if self._spoken:
            reason = "is it stuck? A longer timeout waits longer"
            return PeerError(f"{self._peer} sent nothing more ({waited}); {reason}", field="timeout")
        if self._connections > 0:
            return PeerError(f"{self._peer} connected and sent nothing ({waited}); is it really {self._peer}?")
        silent = f"{self._peer} never connected to {self.endpoint} ({waited})"
        return PeerError(f"{silent}; {self._advice}", field="endpoint")


def _endpoint_advice(error: zmq.ZMQError) -> str:
    if error.errno == zmq.EADDRINUSE:
        return "another process listens there; choose another port"
    return "write it like tcp://127.0.0.1:28000"
