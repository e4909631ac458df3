"""The wire forms: one module each, which reads and writes the messages of `decision.protocol.messages`."""

from collections.abc import Callable

from .batsim4 import JsonCodec, detect
from .messages import Role
from .versions import V4, V5, Codec, CodecError, Version


def codec_of(version: Version, schema: Callable[[], str | None], peer: Role) -> Codec:
    """What reads and writes messages of a version; arguments are those of the dialects' own classes."""
    if version.encoding == "json":
        return JsonCodec(version, schema, peer)
    from decision.protocol.batsim5.codec import Json5Codec  # of ten modules, which no run without a Batsim 5 needs

    return Json5Codec(version, schema, peer)


def version_heard(data: bytes) -> Version:
    """The version of a Batsim whose first bytes these are; the newest of those that they may be.

    Raises:
        CodecError: if they are of a Batsim that is not supported.
    """
    from decision.protocol.batsim5.codec import says_flags_first, says_size

    if says_flags_first(data):
        raise CodecError("the handshake of early 2025 (flags first), before Batsim 5.0.0-rc0; use 5.0.0-rc2")
    return V5 if says_size(data) else V4


def version_begun(version: Version, data: bytes) -> Version:
    """The version that SIMULATION_BEGINS shows, read in the dialect of `version`."""
    return detect(data) if version.encoding == "json" else version
