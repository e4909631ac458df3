"""Recorded conversations: one JSON line per message, ``{"from": "batsim", "message": {...}}``.

These are functions on lines of text; opening files is the caller's task. A message is kept as the text
in which it came, so that numbers keep all their digits.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct, field

from decision.model.errors import InputError

from .messages import Role


class RecordedMessage(Struct, frozen=True):
    """One message of a recording and who sent it."""

    sender: Role = field(name="from")
    message: Raw

    @property
    def data(self) -> bytes:
        """The message as it was sent, in JSON."""
        return bytes(self.message)


_decoder = msgspec.json.Decoder(RecordedMessage)


def record_line(sender: Role, data: bytes) -> str:
    """The line, without its newline, that records a message; `data` is the message's JSON.

    A line break in JSON only ever stands between tokens, so that a space may take its place. Bytes that are
    not UTF-8, which an unread field may hold, are replaced.
    """
    one_line = data.replace(b"\r", b" ").replace(b"\n", b" ")
    return msgspec.json.encode(RecordedMessage(sender, Raw(one_line))).decode(errors="replace")


def read_recording(lines: Iterable[str], where: str = "recording") -> Iterator[RecordedMessage]:
    """The messages of a recording, in order; `where` is its name in errors.

    Raises:
        InputError: at the first line that is not a recorded message.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InputError(
                f"{where}, line {number}: not a recorded message ({error}); "
                'a line looks like {"from": "batsim", "message": {...}}'
            ) from None
