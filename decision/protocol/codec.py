"""Bytes to messages and back: the interface of codecs, and the JSON that Batsim speaks up to version 4."""

from typing import Any, Protocol

import msgspec

from .messages import AnyEvent, Message, OpenObject, SimulationBegins
from .versions import NEWEST, Version, hint, leave_out


class CodecError(ValueError):
    """The bytes are not a message, or the message cannot be written. One line."""


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


def _open_object(kind: type, value: Any) -> OpenObject:
    if not isinstance(value, dict):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    try:
        return kind(**value)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None  # to which msgspec adds where the object is


def _fields(value: Any) -> Any:
    if isinstance(value, OpenObject):
        return value.fields
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_decoder = msgspec.json.Decoder(Message[AnyEvent], dec_hook=_open_object)
_encoder = msgspec.json.Encoder(enc_hook=_fields)


class JsonCodec:
    """Reads any version's JSON; writes one version's."""

    def __init__(self, version: Version = NEWEST) -> None:
        self._partial = bool(version.config_lacks or version.resource_lacks)
        self._version = version

    def decode(self, data: bytes) -> Message:
        """Read one message; what the version lacks has its default value."""
        try:
            return _decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise CodecError(f"{_line(error)}{hint(data)}") from None

    def encode(self, message: Message) -> bytes:
        """Write one message, without what the version lacks."""
        try:
            if self._partial and message.events and isinstance(message.events[0], SimulationBegins):
                return _encoder.encode(self._begins(message))
            return _encoder.encode(message)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise CodecError(_line(error)) from None

    def _begins(self, message: Message) -> Any:
        plain = msgspec.to_builtins(message, enc_hook=_fields)
        leave_out(self._version, plain["events"][0]["data"])
        return plain


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
