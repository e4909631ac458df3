"""The conversation with a decision component of Batsim 5: a process that listens, or a library.

A library gets a process of its own, so that its crash is an error and not ours. That process (`library_child`) loads
the library and calls it; messages go through two pipes, each with a byte that says what it is and four bytes of size.
"""

import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import zmq

from decision.engine.batsim5 import Batsim5Engine
from decision.model.errors import ConfigError, PeerError, PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m

from .library_child import FRAME, IS_ANSWER, IS_ERROR, IS_LOADED, IS_MISSING
from .signals import StopRequest, stop_on_signals
from .transport import SLICE, Transport
from .zeromq import START_DECISION, ZmqTransport

_PATIENCE = 5.0  # seconds for the library to end


class LibraryTransport(Transport):
    """The pipes to a process in which a library decides.

    Args:
        path: of the library.
        timeout: seconds to wait for one answer; 0 waits without limit.
        stop: checked while waiting.

    Raises:
        ConfigError: if the library cannot be loaded, or lacks a function that Batsim calls.
    """

    def __init__(self, path: str, *, timeout: float, stop: StopRequest | None = None) -> None:
        super().__init__(f"the library {path}", timeout, "", stop)
        if not Path(path).is_file():
            raise ConfigError(f"library {path}: there is no such file; give the path of a decision component")
        self.endpoint, self._data, self._schema = path, bytearray(), ""
        mine, theirs = os.pipe()
        child, self._to_child = os.pipe()
        command = [sys.executable, "-m", "decision.batsim.library_child", str(Path(path).absolute())]
        self._process = subprocess.Popen(
            [*command, str(child), str(theirs)], stdin=subprocess.DEVNULL, stdout=2, pass_fds=(child, theirs)
        )
        os.close(child)
        os.close(theirs)
        self._from_child = mine
        self._connections = 1
        try:
            self.receive()  # that it is loaded
        except BaseException:
            self.close(0)
            raise

    @property
    def schema(self) -> str | None:
        """The text of the messages' schema, which is in the library or in those that it uses; None where it is not."""
        return self._schema or None

    def close(self, linger: int) -> None:
        """Let the library end.

        Raises:
            PeerError: if it crashes or hangs at that, after a conversation that went well.
        """
        for pipe in (self._to_child, self._from_child):
            os.close(pipe)
        try:
            code = self._process.wait(_PATIENCE if linger else 0.1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            if linger:
                raise PeerError(f"{self._peer} hangs in batsim_edc_deinit (waited {_PATIENCE:g} s)") from None
        else:
            if linger and code:
                raise self._gone()

    def send(self, data: bytes) -> None:
        """Send one message to the library."""
        try:
            view = memoryview(struct.pack("<I", len(data)) + data)
            while view:
                view = view[os.write(self._to_child, view) :]
        except BrokenPipeError:
            raise self._gone() from None

    def _arrived(self) -> bytes | None:
        while True:
            if len(self._data) >= FRAME.size:
                kind, size = FRAME.unpack_from(self._data)
                if len(self._data) >= FRAME.size + size:
                    content = bytes(self._data[FRAME.size : FRAME.size + size])
                    del self._data[: FRAME.size + size]
                    if kind == IS_LOADED:
                        self._schema = content.decode(errors="replace")
                    elif kind == IS_MISSING:
                        raise ConfigError(f"library {self.endpoint}: {content.decode(errors='replace')}")
                    elif kind == IS_ERROR:
                        raise RemoteProtocolError(f"{self._peer} fails: {content.decode(errors='replace')}")
                    else:
                        assert kind == IS_ANSWER
                    return content
            if not select.select([self._from_child], [], [], SLICE)[0]:
                return None
            more = os.read(self._from_child, 1 << 16)
            if not more:
                raise self._gone()
            self._data += more

    def _gone(self) -> PeerError:
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"signal {-code}, {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return PeerError(f"{self._peer} ended its process ({how}); see what it printed")


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
            component = stack.enter_context(LibraryTransport(place, timeout=timeout, stop=stop))
            transport: Transport = component
            schema = schema or component.schema
        else:
            peer = "the decision process"
            socket = ZmqTransport(zmq.REQ, place, peer=peer, timeout=timeout, advice=START_DECISION, stop=stop)
            transport = stack.enter_context(socket)
        keep(*_converse(engine, transport, Connection(Role.BATSIM, "5", lambda: schema), text))


def _converse(
    engine: Batsim5Engine, transport: Transport, connection: Connection, text: str
) -> tuple[RunRecord, float]:
    deciding = 0.0

    def reply_to(question: Message) -> Message:
        nonlocal deciding
        data = connection.send(question)
        began = time.perf_counter()
        transport.send(data)
        reply = transport.receive()
        deciding += time.perf_counter() - began
        return connection.receive(reply)

    hello = reply_to(Message(0.0, (m.Init(0.0, m.InitData(text)),))).events[0]
    assert isinstance(hello, m.Hello)  # which the connection has checked
    engine.greet(hello.data.features)
    try:
        while (question := engine.ask()) is not None:
            engine.answer(reply_to(question))
    except PolicyError as error:  # the policy belongs to the peer
        raise RemoteProtocolError(f"the decision process decided something impossible: {error}") from None
    return engine.record(), deciding
