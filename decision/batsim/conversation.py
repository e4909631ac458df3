"""A conversation: answering Batsim's questions until the simulation ends, and recording what was said."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from decision.model.errors import ConfigError
from decision.protocol import Role
from decision.protocol.dialects.batsim5 import says_size
from decision.protocol.recording import record_line

from .end import End
from .roles import Responder

_COLLECT_AFTER = 200_000  # objects made and not freed, between two garbage collections of a conversation


class Conversation(msgspec.Struct):
    """How many messages a conversation had, and how long it took."""

    messages: int = 0  # questions that were answered
    deciding: float = 0.0  # wall-clock seconds from receiving a question to having its reply
    total: float = 0.0  # wall-clock seconds in all, waiting included


class Recorder:
    """A file of JSON lines that is complete and valid after each exchange; without a path it does nothing.

    Raises:
        ConfigError: if the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self._file = path.open("wb", buffering=0) if path else None
        except OSError as error:
            raise self._failure(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def exchange(self, question: bytes, reply: bytes) -> None:
        """Record a question of Batsim and its reply."""
        if self._file is not None:
            self._write(self._file, f"{record_line(Role.BATSIM, question)}\n{record_line(Role.DECISION, reply)}\n")

    def unanswered(self, question: bytes) -> None:
        """Record a question that got no reply, unless it is none."""
        if self._file is not None and (_is_json(question.rstrip(b"\0")) or says_size(question)):
            self._write(self._file, record_line(Role.BATSIM, question) + "\n")

    def _write(self, file: FileIO, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> ConfigError:
        return ConfigError(f"recording {self._path}: cannot be written ({error.strerror}); choose another file")


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def answer_all(agent: Responder, end: End, recorder: Recorder, watch: Callable[[], None] | None = None) -> Conversation:
    """Answer what comes to `end` until the simulation ends."""
    conversation = Conversation()
    began = time.perf_counter()
    agent.get_ready()
    with _rare_garbage_collection():
        while not agent.finished:
            question = end.receive(watch)
            received = time.perf_counter()
            try:
                reply = agent.handle(question)
            except BaseException:
                recorder.unanswered(question)
                raise
            conversation.deciding += time.perf_counter() - received
            conversation.messages += 1
            end.send(reply)
            recorder.exchange(question, reply)
    conversation.total = time.perf_counter() - began
    return conversation


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Messages make no cycles, so that looking for some is wasted; policies in Python may make a few."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
