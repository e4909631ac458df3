"""The wire forms: one module each, which reads and writes the messages of `decision.protocol.messages`."""

from collections.abc import Callable, Mapping

from decision.protocol.codec import Codec, CodecError
from decision.protocol.messages import Role
from decision.protocol.versions import V4, V5, Version

from .batsim4 import JsonCodec, detect
from .batsim5 import Json5Codec, says_flags_first, says_size

# By a version's encoding
DIALECTS: Mapping[str, Callable[[Version, Callable[[], str | None], Role], Codec]] = {
    "json": JsonCodec,
    "json5": Json5Codec,
}


def version_heard(data: bytes) -> Version:
    """The version of a Batsim whose first bytes these are; the newest of those that they may be.

    Raises:
        CodecError: if they are of a Batsim that is not supported.
    """
    if says_flags_first(data):
        raise CodecError("the handshake of early 2025 (flags first), before Batsim 5.0.0-rc0; use 5.0.0-rc2")
    return V5 if says_size(data) else V4


def version_begun(version: Version, data: bytes) -> Version:
    """The version that SIMULATION_BEGINS shows, read in the dialect of `version`."""
    return detect(data) if version.encoding == "json" else version
