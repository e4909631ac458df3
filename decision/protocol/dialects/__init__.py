"""The wire forms: one module each, which reads and writes the messages of `decision.protocol.messages`."""

from collections.abc import Callable, Mapping

from decision.protocol.codec import Codec
from decision.protocol.versions import Version

from .batsim4 import JsonCodec

DIALECTS: Mapping[str, Callable[[Version], Codec]] = {"json": JsonCodec}  # by a version's encoding
