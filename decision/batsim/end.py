"""One end of a conversation, with safe waits: timeouts, signals, and the peer's disconnection."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from decision.model.errors import PeerError, RemoteProtocolError

from .signals import StopRequest

SLICE = 0.1  # seconds between two looks at signals and at what else is watched
_LINGER = 2000  # milliseconds to deliver the last message after the end


class DisconnectedError(PeerError):
    """The peer has gone."""


class End:
    """What waits for the other end's messages, and how long; subclasses have the socket.

    Args:
        peer: what the other end is, for messages: "Batsim".
        timeout: seconds to wait for one message; 0 waits without limit.
        advice: what to check when nobody connects.
        stop: checked while waiting.
    """

    endpoint: str

    def __init__(self, peer: str, timeout: float, advice: str, stop: StopRequest | None) -> None:
        self._peer, self._timeout, self._advice = peer, timeout, advice
        self._stop = stop or StopRequest()
        self._connections = 0
        self._spoken = False  # whether a message has come

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(linger=_LINGER if error is None else 0)

    def close(self, linger: int) -> None:
        """Deliver what has been sent, for at most `linger` milliseconds, and free the endpoint."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        """Send one message."""
        raise NotImplementedError

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
        self._spoken = True
        return data

    def _arrived(self) -> bytes | None:
        """A message that comes within a slice."""
        raise NotImplementedError

    def _check_connection(self) -> None:
        """Raise DisconnectedError where a wait is useless."""

    def _disconnected(self) -> DisconnectedError:
        return DisconnectedError(f"{self._peer} disconnected before the simulation ended; see its own messages")

    def _parts(self) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self._peer} sends a message in several parts; is it really {self._peer}?")

    def _silence(self) -> PeerError:
        waited = f"waited {self._timeout:g} s"
        if self._spoken:
            reason = "is it stuck? A longer timeout waits longer"
            return PeerError(f"{self._peer} sent nothing more ({waited}); {reason}", field="timeout")
        if self._connections > 0:
            return PeerError(f"{self._peer} connected and sent nothing ({waited}); is it really {self._peer}?")
        silent = f"{self._peer} never connected to {self.endpoint} ({waited})"
        causes = ""
        if self.endpoint.startswith("tcp://"):
            causes = ": the name of this host is not resolved there, or the port is another, or is closed"
        return PeerError(f"{silent}{causes}; {self._advice}", field="endpoint")
