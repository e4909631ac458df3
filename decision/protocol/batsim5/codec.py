"""The JSON that Batsim 5 speaks, its handshake included.

The first message is four bytes of size and a text (`Init`); the answer is four bytes of flags and a message with one
`Hello`; then messages alternate, each JSON with a final NUL. Facts are those of Batsim 5.0.0-rc2, which was recorded.

Unknown fields are taken from Batsim, whose next version may have more, and refused to Batsim, which stops at them.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from decision.protocol import messages as m
from decision.protocol.messages import Message
from decision.protocol.versions import CodecError, Version, one_line

from .flatbuffers import BinaryForm
from .read import BatsimWire, DecisionWire
from .write import wire_event


class WireMessage(msgspec.Struct, frozen=True):
    """A message of either end as it is on the wire, with the names that Batsim's schema gives its fields."""

    events: tuple[BatsimWire | DecisionWire, ...]
    now: float = 0.0


class WireReply(WireMessage, frozen=True, forbid_unknown_fields=True):
    """A message of the decision process."""


JSON_FLAG = 2
FLAGS = struct.Struct("<I")
_decoders: Mapping[m.Role, msgspec.json.Decoder[WireMessage]] = {
    m.Role.BATSIM: msgspec.json.Decoder(WireMessage),
    m.Role.DECISION: msgspec.json.Decoder(WireReply),
}
_encoder = msgspec.json.Encoder()
_NUL = b"\0"  # ends a message of JSON, but for the first one
_FLAGS = range(4)  # those that there are


class Json5Codec:
    """Reads `peer`'s messages and writes the other end's, and remembers the handshake: SIMULATION_BEGINS does not
    repeat it."""

    def __init__(
        self, version: Version, schema: Callable[[], str | None] = lambda: None, peer: m.Role = m.Role.BATSIM
    ) -> None:
        self._decoder = _decoders[peer]
        self._config = m.Config(forward_unknown_events=True)
        self._schema = schema
        self._greeting = True  # until the simulation has begun
        self._binary: BinaryForm | None = None  # once the handshake has asked for it

    def decode(self, data: bytes) -> Message:
        """Read one message of the peer; raises CodecError if it is none."""
        try:
            message = _built(self._from_binary(data)) if self._binary else self._read(data)
        except (msgspec.MsgspecError, ValueError, RecursionError, struct.error, IndexError) as error:
            raise CodecError(one_line(error)) from None
        return self._remember(message) if self._greeting and message.events else message

    def encode(self, message: Message) -> bytes:
        """Write one message of ours; raises CodecError if Batsim 5 cannot say it."""
        try:
            if self._greeting and message.events:
                self._remember(message)
            if self._binary and not is_init(message):
                return write_message(message, self._binary.write)
            return write_message(message, _encoder.encode) + _NUL[: not is_init(message)]
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, struct.error) as error:
            raise CodecError(one_line(error)) from None

    def _read(self, data: bytes) -> Message:
        if data.startswith(b"{") or (data[:1].isspace() and not says_size(data)):
            message = _built(self._decoder.decode(data.partition(_NUL)[0]))
            if message.events and isinstance(message.events[0], m.Hello):
                raise ValueError("a hello without its flags: the four bytes before it are 2, little-endian, for JSON")
            return message
        if says_size(data):
            return Message(0.0, (m.Init(0.0, m.InitData(data[FLAGS.size :].decode())),))
        return self._read_hello(data)

    def _read_hello(self, data: bytes) -> Message:
        if len(data) < FLAGS.size:
            raise ValueError(f"{len(data)} bytes, too few for the flags of a handshake or a message")
        flags, rest = FLAGS.unpack_from(data)[0], data[FLAGS.size :]
        if flags not in _FLAGS:
            raise ValueError(f"flags {flags} of the handshake are neither 1 (binary) nor 2 (JSON), little-endian")
        if flags & JSON_FLAG:
            message = _built(self._decoder.decode(rest.partition(_NUL)[0]))
        else:
            says = f"flags {flags} of the handshake say that messages are binary"
            if rest.startswith(b"{"):
                raise ValueError(f"{says}, and JSON follows; JSON has flags 2")
            text = self._schema()
            if text is None:
                raise ValueError(f"{says}, and their schema is not known; give --schema FILE, or answer with flags 2")
            try:
                self._binary = BinaryForm(text)
            except ValueError as error:
                raise ValueError(f"{says}, and their schema cannot be used: {error}") from None
            message = _built(self._from_binary(rest))
        if len(message.events) == 1 and isinstance(message.events[0], m.Hello):
            hello = message.events[0]
            hello = m.Hello(hello.timestamp, msgspec.structs.replace(hello.data, flags=flags))
            return Message(message.now, (hello,))
        return message

    def _from_binary(self, data: bytes) -> WireMessage:
        assert self._binary is not None
        message = self._binary.read(data)
        for event in message.get("events", ()):
            if event.get("event_type") == "EDCHelloEvent":
                # what Batsim does not read is left out: fields are places there, and more of them do no harm
                hello, known = event.get("event", {}), m.Features.__struct_fields__
                asked = hello.get("requested_simulation_features", {})
                hello["requested_simulation_features"] = {name: asked[name] for name in asked if name in known}
                hello.pop("scheduling_constraints", None)
        return msgspec.convert(message, WireMessage)

    def _remember(self, message: Message) -> Message:
        """Keep what the handshake says, and add it to SIMULATION_BEGINS."""
        first = message.events[0]
        if isinstance(first, m.Init):
            self._config = msgspec.structs.replace(self._config, sched_config=first.data.text)
        elif isinstance(first, m.Hello):
            self._config = config_of(first.data.features, self._config.sched_config)
        elif isinstance(first, m.SimulationBegins):
            self._greeting = False
            begins = msgspec.structs.replace(first.data, config=self._config)
            return Message(message.now, (m.SimulationBegins(first.timestamp, begins), *message.events[1:]))
        return message


def config_of(features: m.Features, text: str) -> m.Config:
    """What Batsim 4 would say about its options, were they these."""
    return m.Config(
        profiles_forwarded_on_submission=bool(features.forward_profiles_on_job_submission),
        dynamic_jobs_enabled=bool(features.dynamic_registration),
        dynamic_jobs_acknowledged=bool(features.acknowledge_dynamic_jobs),
        profile_reuse_enabled=bool(features.dynamic_registration and features.profile_reuse),
        sched_config=text,
        forward_unknown_events=True,
    )


def is_init(message: Message) -> bool:
    """Whether it is the first message of the handshake."""
    return len(message.events) == 1 and isinstance(message.events[0], m.Init)


def says_size(data: bytes) -> bool:
    """Whether bytes begin with the number of those that follow, as the first message does."""
    return len(data) >= FLAGS.size and FLAGS.unpack_from(data)[0] == len(data) - FLAGS.size


def says_flags_first(data: bytes) -> bool:
    """Whether bytes are flags, a size and so many bytes: the first message before 5.0.0-rc0."""
    if len(data) < 2 * FLAGS.size or says_size(data):
        return False
    flags, size = FLAGS.unpack_from(data)[0], FLAGS.unpack_from(data, FLAGS.size)[0]
    return flags in _FLAGS and size == len(data) - 2 * FLAGS.size


def _built(message: WireMessage) -> Message:
    return Message(message.now, tuple([event.build() for event in message.events]))


def write_message(message: Message, encode: Callable[[Any], bytes]) -> bytes:
    """A message as bytes, all of it but a final NUL; `encode` writes its object."""
    if is_init(message):
        text = message.events[0].data.text.encode()
        return FLAGS.pack(len(text)) + text
    data = encode({"now": message.now, "events": [wire_event(event) for event in message.events]})
    if message.events and isinstance(message.events[0], m.Hello):
        return FLAGS.pack(message.events[0].data.flags) + data
    return data
