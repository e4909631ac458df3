"""The versions of Batsim's protocol that we speak, and all that differs between them.

Nothing outside this package knows which version it talks to. Between 3.1.0 (2019) and 4.2.1 (2025) the JSON
protocol kept its events, their fields and their meaning, except for this:

======================================  =====================  ==========================================
what                                    3.1.0                  4.0.0, 4.1.0, 4.2.0, 4.2.1
======================================  =====================  ==========================================
``config.sched-config``                 absent                 the text of ``--sched-cfg``
``config.profile-reuse-enabled``        absent                 whether ``--enable-profile-reuse`` was given
``zone_properties`` of a resource       absent                 the properties of the host's SimGrid zone
``profiles`` in SIMULATION_BEGINS       all                    those that a job uses
profile whose last job has ended        kept                   forgotten, unless profile reuse is enabled
KILL_JOB, SET_JOB_METADATA and the      taken                  Batsim has forgotten the job and stops
like for a job that ended in an
earlier message
======================================  =====================  ==========================================

What holds in all of them, and differs from the documentation: REGISTER_JOB needs ``subtime``; EXECUTE_JOB
takes at most one of ``mapping``, ``storage_mapping`` and ``additional_io_job``; CHANGE_JOB_STATE cannot set
COMPLETED_FAILED; ``job_progress`` names a profile by ``profile_name``; numbers come with six decimals.

4.0.0 to 4.2.1 cannot be distinguished on the wire, 3.1.0 can. Older versions (``resources_data``,
``SUBMIT_JOB``) are not supported.

Batsim 5 (release candidates since September 2025) has another wire form and other rules, which are the fields
of `Version`: a handshake, calls with names at whole milliseconds, external events that mean nothing to it, probes in
place of queries, and more that stops it. `V5` is as 5.0.0-rc2 was measured.
"""

from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from decision.model.errors import ConfigError

from .messages import AnyEvent, Message, OpenObject, SimulationBegins

_ONLY_IN_5 = frozenset(
    {"INIT", "HELLO", "EXTERNAL_EVENT", "PROBE_DATA_EMITTED", "CREATE_PROBE", "STOP_PROBE", "STOP_CALL", "FORCE_STOP"}
)
_NOT_IN_5 = frozenset({"QUERY", "ANSWER", "FROM_JOB_MSG", "TO_JOB_MSG", "SET_JOB_METADATA", "CHANGE_JOB_STATE"})


class Version(Struct, frozen=True, kw_only=True):
    """A version of the protocol: the releases of Batsim that speak it, and its peculiarities."""

    name: str
    releases: tuple[str, ...]
    encoding: str = "json"
    config_lacks: frozenset[str] = frozenset()
    resource_lacks: frozenset[str] = frozenset()
    forgets_ended_jobs: bool = True  # a command about a job that has ended stops Batsim
    lacks: frozenset[str] = _ONLY_IN_5  # events that it does not have
    begins_with_init: bool = False  # whether both ends say who they are before the simulation begins
    says_allocations: bool = True  # whether the end of a job comes with its hosts
    names_calls: bool = False  # whether calls have names, by which they are matched
    calls_in_ms: bool = False  # whether calls are at whole milliseconds, and may be in the past
    tells_switches_apart: bool = False  # whether sleeping and waking is another command than a change of speed
    stamps_all: bool = True  # whether external events and switches have the time at which they happened
    switches_without_energy: bool = False  # whether hosts may change their pstate where energy is not simulated
    kills_once: bool = False  # whether a kill of a job that is being killed stops Batsim
    checks_sizes: bool = True  # whether a job must get as many hosts, and executors, as it asks for
    shares_hosts: bool = False  # whether several jobs may compute on one host without being allowed to
    frees_hosts: bool = True  # whether a host is idle once its jobs have ended, and not computing until it switches
    asks_to_register: bool = True  # whether jobs may be registered only where that was asked for


V3 = Version(
    name="3.1",
    releases=("3.1.0",),
    config_lacks=frozenset({"sched-config", "profile-reuse-enabled"}),
    resource_lacks=frozenset({"zone_properties"}),
    forgets_ended_jobs=False,
)
V4 = Version(name="4", releases=("4.0.0", "4.1.0", "4.2.0", "4.2.1"))
V5 = Version(
    name="5",
    releases=("5.0.0-rc0", "5.0.0-rc1", "5.0.0-rc2"),
    encoding="json5",
    lacks=_NOT_IN_5,
    begins_with_init=True,
    says_allocations=False,
    names_calls=True,
    calls_in_ms=True,
    tells_switches_apart=True,
    stamps_all=False,
    switches_without_energy=True,
    kills_once=True,
    checks_sizes=False,
    shares_hosts=True,
    frees_hosts=False,
    asks_to_register=False,
)
PROTOCOL_VERSIONS = (V3, V4, V5)
NEWEST = V4  # of which there is a release: 5 has candidates only


def version_named(name: str) -> Version:
    """The version that a release of Batsim speaks; `name` is ``"4.2.1"``, ``"4.2"`` or ``"4"``.

    Raises:
        ConfigError: if no known release has this name.
    """
    for version in PROTOCOL_VERSIONS:
        if any(release == name or release.startswith(name + ".") for release in version.releases):
            return version
    known = ", ".join(release for version in PROTOCOL_VERSIONS for release in version.releases)
    raise ConfigError(f"Batsim {name!r}: this version of the protocol is not supported; known are {known}")


# What turns bytes into messages and back: the interface of a wire form.


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


# The JSON that Batsim speaks up to version 4: the vocabulary of `messages` as it is, one object a message.


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
