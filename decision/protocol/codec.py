"""What turns bytes into messages and back: the interface of the dialects, each of which is one wire form."""

from typing import Protocol

from .messages import Message


class CodecError(ValueError):
    """The bytes are not a message, or the message cannot be written. One line."""


def one_line(error: Exception) -> str:
    """What an error says, short and in one line."""
    return " ".join(str(error).split())[:300]


class Codec(Protocol):
    """Turns bytes into messages and back; it knows an encoding and nothing about the conversation."""

    def decode(self, data: bytes) -> Message:
        """Read one message.

        Raises:
            CodecError: if the bytes are not a message.
        """

    def encode(self, message: Message) -> bytes:
        """Write one message.

        Raises:
            CodecError: if a value cannot be written.
        """
