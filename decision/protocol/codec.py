"""What a codec is: the bytes of one version of the protocol, turned into messages and back."""

from typing import Protocol

from .messages import Message


class CodecError(ValueError):
    """These bytes are no message, or this message cannot be written. One line."""


class Codec(Protocol):
    """Turns bytes into messages and back; it knows an encoding and nothing of the conversation."""

    def decode(self, data: bytes) -> Message:
        """Read one message.

        Raises:
            CodecError: if the bytes are no message.
        """

    def encode(self, message: Message) -> bytes:
        """Write one message.

        Raises:
            CodecError: if a value cannot be written.
        """
