"""The JSON that Batsim speaks up to version 4: the vocabulary of `messages` as it is, one object a message."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from .messages import AnyEvent, Message, OpenObject, SimulationBegins
from .versions import NEWEST, V3, V4, CodecError, Version, one_line


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
            hint = ""  # a guess about bytes that are not a message of a supported version
            if b'"event_type"' in data:
                hint = " (a message of Batsim 5 before its handshake?)"
            elif not data.lstrip().startswith(b"{"):
                hint = " (neither JSON nor the first message of a Batsim 5; is the peer a Batsim?)"
            elif b'"resources_data"' in data:
                hint = " (is the peer older than Batsim 3.1?)"
            raise CodecError(f"{one_line(error)}{hint}") from None

    def encode(self, message: Message) -> bytes:
        """Write one message, without what the version lacks."""
        try:
            if self._partial and message.events and isinstance(message.events[0], SimulationBegins):
                plain = msgspec.to_builtins(message, enc_hook=_fields)
                begins = plain["events"][0]["data"]
                for key in self._version.config_lacks:
                    begins["config"].pop(key)
                for resource in begins["compute_resources"] + begins["storage_resources"]:
                    for key in self._version.resource_lacks:
                        resource.pop(key)
                return _encoder.encode(plain)
            return _encoder.encode(message)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise CodecError(one_line(error)) from None


class _Events(Struct):
    events: tuple[Raw, ...]


class _Config(Struct, rename="kebab"):
    sched_config: str | UnsetType = UNSET
    profile_reuse_enabled: bool | UnsetType = UNSET


class _Data(Struct):
    config: _Config


class _Begins(Struct):
    data: _Data


def detect(begins: bytes) -> Version:
    """The version of the Batsim that sent this message, one that was read and begins with SIMULATION_BEGINS."""
    first = msgspec.json.decode(begins, type=_Events).events[0]
    config = msgspec.json.decode(first, type=_Begins).data.config
    return V3 if config == _Config() else V4
