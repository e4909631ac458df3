"""Recorded conversations: one JSON line per message, ``{"from": "batsim", "message": {...}}``.

Of Batsim 5's handshake the first line has the text (`init`) and the second the `flags`. These are functions on lines of
text; opening files is the caller's task. A message is kept as the text in which it came, so that numbers keep all their
digits; the NUL that ends one of Batsim 5 is not kept.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from decision.model.errors import InputError

from .messages import Role

_NUMBER = struct.Struct("<I")  # of bytes, or flags


class RecordedMessage(Struct, frozen=True):
    """One message of a recording and who sent it."""

    sender: Role = field(name="from")
    message: Raw = Raw()
    init: str | UnsetType = UNSET
    flags: int | UnsetType = UNSET

    @property
    def greets(self) -> bool:
        """Whether it belongs to the handshake."""
        return self.init is not UNSET or self.flags is not UNSET

    @property
    def data(self) -> bytes:
        """The message as it was sent."""
        if self.init is not UNSET:
            text = self.init.encode()
            return _NUMBER.pack(len(text)) + text
        message = bytes(self.message)
        return message if self.flags is UNSET else _NUMBER.pack(self.flags) + message


_decoder = msgspec.json.Decoder(RecordedMessage)


def record_line(sender: Role, data: bytes) -> str:
    """The line, without its newline, that records a message as it was sent.

    A line break in JSON only ever stands between tokens, so that a space may take its place. Bytes that are
    not UTF-8, which an unread field may hold, are replaced.
    """
    number = _NUMBER.unpack_from(data)[0] if len(data) >= _NUMBER.size else -1
    rest = data[_NUMBER.size :]
    line: dict[str, Any] = {"from": sender}
    if number == len(rest):
        line["init"] = rest.decode(errors="replace")
    elif rest.startswith(b"{") and not data.startswith(b"{"):
        line |= {"flags": number, "message": _one_line(rest)}
    else:
        line["message"] = _one_line(data)
    return msgspec.json.encode(line).decode(errors="replace")


def _one_line(data: bytes) -> Raw:
    return Raw(data.partition(b"\0")[0].replace(b"\r", b" ").replace(b"\n", b" "))


def read_recording(lines: Iterable[str], where: str = "recording") -> Iterator[RecordedMessage]:
    """The messages of a recording, in order; `where` is its name in errors.

    Raises:
        InputError: at the first line that is not a recorded message.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            recorded = _decoder.decode(line)
            if recorded.init is UNSET and not bytes(recorded.message):
                raise ValueError("it has no message")
            yield recorded
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InputError(
                f"{where}, line {number}: not a recorded message ({error}); "
                'a line looks like {"from": "batsim", "message": {...}}'
            ) from None
