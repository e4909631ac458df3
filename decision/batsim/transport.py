"""Transports: what carries messages between the two ends, with safe waits (timeouts, signals, disconnection).

`ZmtpTransport` carries those of a Batsim that we start: ZeroMQ's wire protocol without ZeroMQ. A ZeroMQ socket hands
each message to a thread and takes each from it, and waking it and being woken takes longer than most decisions. A
single peer that asks and waits for the reply needs no thread: the connection itself is read and written, which takes a
quarter of the processor's time (`tests/bench`, ``batsim-scheduling``). It is as much of ZMTP 3.0
(https://rfc.zeromq.org/spec/23) as the reply end of one connection needs: a greeting of 64 bytes, a command READY from
either side, and messages of an empty delimiter and one frame. All else speaks ZeroMQ itself (`zeromq`).
"""

import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from decision.model.errors import PeerError, RemoteProtocolError

from .signals import StopRequest

SLICE = 0.1  # seconds between two looks at signals and at what else is watched
_LINGER = 2000  # milliseconds to deliver the last message after the end


class DisconnectedError(PeerError):
    """The peer has gone, and the conversation cannot go on."""


class Transport:
    """Waits for the other end's messages, and sends ours; subclasses have the socket.

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
        """Send one message to the peer."""
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

    def _several_parts(self) -> RemoteProtocolError:
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


# --- ZMTP 3.0: what is sent and expected, byte by byte ---

_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REP"
_COMMAND, _LONG = 4, 2  # flags of a frame
_DELIMITER = b"\x01\x00"  # an empty frame, which another follows
_HEAD = 4  # bytes of the delimiter and of a short frame's flags and size
_BUFFER = 1 << 16  # bytes that are read at once
_LONGEST_PATH = 100  # bytes of a socket's path, of which Linux takes 107 and others 103


class ZmtpTransport(Transport):
    """Listens for one Batsim.

    Args:
        path: of the socket; a free port of this machine where it is too long or empty.
        timeout: seconds to wait for one message; 0 waits without limit.
        advice: what to check when Batsim does not connect.
        stop: checked while waiting.
    """

    def __init__(self, path: str, *, timeout: float, advice: str, stop: StopRequest | None = None) -> None:
        super().__init__("Batsim", timeout, advice, stop)
        if hasattr(socket, "AF_UNIX") and 0 < len(os.fsencode(path)) <= _LONGEST_PATH:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self.endpoint = f"ipc://{path}"
        else:
            self._listener = socket.socket()
            self._listener.bind(("127.0.0.1", 0))
            self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen()
        self._listener.settimeout(SLICE)
        self._connection: socket.socket | None = None
        self._greeted = False
        self._data = bytearray()  # what has come and is not yet a whole message

    def close(self, linger: int) -> None:
        """End the connection; what has been sent is delivered."""
        self._listener.close()
        if self._connection is not None:
            self._connection.close()

    def send(self, data: bytes) -> None:
        """Send one message, after one was received."""
        size = len(data)
        head = bytes((0, size)) if size < 256 else bytes((_LONG,)) + size.to_bytes(8, "big")
        with suppress(ConnectionError):  # what is received next tells that Batsim has gone
            self._connection.sendall(_DELIMITER + head + data)  # type: ignore[union-attr]

    def _arrived(self) -> bytes | None:
        if self._connection is None and not self._accept():
            return None
        if (message := self._message()) is not None:
            return message
        try:
            data = self._connection.recv(_BUFFER)  # type: ignore[union-attr]
        except BlockingIOError:
            return None
        except ConnectionError:
            data = b""
        if not data and self._greeted:
            raise self._disconnected()
        if not data:
            # closed before it was greeted: ZeroMQ gives up after 30 s and connects again, and kernels that are not
            # compiled yet keep us from greeting for longer than that
            self._connection.close()  # type: ignore[union-attr]
            self._connection, self._connections = None, 0
            self._data.clear()
        self._data += data
        return self._message()

    def _accept(self) -> bool:
        """Whether Batsim connects within a slice."""
        try:
            self._connection, _ = self._listener.accept()
        except TimeoutError:
            return False
        self._connections = 1
        self._connection.settimeout(None)
        slice_ = struct.pack("ll", 0, int(SLICE * 1e6))  # the system's own timeout costs no call of its own
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, slice_)
        if self._connection.family == socket.AF_INET:
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            self._connection.sendall(_GREETING)
        return True

    def _message(self) -> bytes | None:
        """The message that the data begin with; None where it is not whole."""
        data, size = self._data, len(_GREETING)
        if not self._greeted:  # Batsim's greeting and its READY come first, which is answered once they are there
            if not _GREETING.startswith(bytes(data[:1])) or (len(data) > size and data[size] != _COMMAND):
                raise self._stranger()
            if len(data) < size + 2 or len(data) < size + 2 + data[size + 1]:
                return None
            del data[: size + 2 + data[size + 1]]
            self._greeted = True
            with suppress(ConnectionError):
                self._connection.sendall(_READY)  # type: ignore[union-attr]
        if len(data) < _HEAD:
            return None
        if not data.startswith(_DELIMITER):
            raise self._stranger()
        flags = data[2]
        if flags not in (0, _LONG):
            raise self._several_parts()
        # a long frame has its size in eight bytes after its flags, a short one in one
        begin = 11 if flags else 4
        end = begin + (int.from_bytes(data[3:11], "big") if flags else data[3])
        if len(data) < max(begin, end):
            return None
        message = bytes(data[begin:end])
        del data[:end]
        return message

    def _stranger(self) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self._peer} does not speak ZeroMQ; is it really {self._peer}?")
