"""Writes a conversation down while it goes on."""

from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from decision.model.errors import ConfigError
from decision.protocol.messages import Role
from decision.protocol.recording import record_line


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
        """Note a question of Batsim's and its reply."""
        if self._file is not None:
            self._write(self._file, f"{record_line(Role.BATSIM, question)}\n{record_line(Role.DECISION, reply)}\n")

    def unanswered(self, question: bytes) -> None:
        """Note a question that got no reply, unless it is no JSON at all."""
        if self._file is not None and _is_json(question):
            self._write(self._file, record_line(Role.BATSIM, question) + "\n")

    def _write(self, file: FileIO, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> ConfigError:
        return ConfigError(f"recording {self._path}: cannot be written ({error.strerror}); choose another place")


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
