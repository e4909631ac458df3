"""Objects that several of Batsim 5's events have in them (jobs, profiles, numbers), and the union that events make.

Profiles are the vocabulary's as Batsim 4 has them, so that readers and engines know one set of names; what Batsim 5
calls otherwise is renamed on the way in and out.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Union

import msgspec
from msgspec import Meta, Struct

from decision.protocol import messages as m
from decision.protocol.messages import Event

_HOMOGENEOUS = {"computation_amount": "cpu", "communication_amount": "com"}
_SPREAD = "DefinedAmountsSpreadUniformly"

# A profile's type in Batsim 4 and 5, and the fields of 5 by those of 4
_TYPES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("delay", "DelayProfile", {"delay": "delay"}),
    ("parallel", "ParallelTaskProfile", {"computation_vector": "cpu", "communication_matrix": "com"}),
    ("parallel_homogeneous", "ParallelTaskHomogeneousProfile", _HOMOGENEOUS),
    ("composed", "SequentialCompositionProfile", {"repetition_count": "repeat", "profile_ids": "seq"}),
    ("forkjoin", "ForkJoinCompositionProfile", {"profile_ids": "seq"}),
    ("merge", "ParallelTaskMergeCompositionProfile", {"profile_ids": "seq"}),
    ("parallel_homogeneous_pfs", "ParallelTaskOnStorageHomogeneousProfile", {"storage_name": "storage"}),
    (
        "data_staging",
        "ParallelTaskDataStagingBetweenStoragesProfile",
        {"bytes_to_transfer": "nb_bytes", "emitter_storage_name": "from", "receiver_storage_name": "to"},
    ),
    ("smpi", "TraceReplayProfile", {"filename": "trace"}),
)
_READ = {five: (four, names) for four, five, names in _TYPES}
_WRITE = {four: (five, {old: new for new, old in names.items()}) for four, five, names in _TYPES}
_REPLAYS = {"SMPI": "smpi", "FractionalComputation": "usage_trace"}
_TRACES = {kind: trace for trace, kind in _REPLAYS.items()}


def read_wire_profile(kind: str, fields: dict[str, Any], extra_data: str | None) -> dict[str, Any]:
    """A profile as Batsim 4 has it.

    Raises:
        ValueError: if Batsim 5 has no such type.
    """
    if kind not in _READ:
        raise ValueError(f"there is no profile type {kind!r}")
    four, names = _READ[kind]
    profile = {names.get(name, name): value for name, value in fields.items()}
    if kind == "ParallelTaskHomogeneousProfile":
        profile = {"cpu": 0.0, "com": 0.0, **profile}
    if kind == "ParallelTaskHomogeneousProfile" and profile.pop("generation_strategy", "") in (_SPREAD, 1):
        four = "parallel_homogeneous_total"
    if kind == "ParallelTaskProfile":  # what it leaves out is nothing: of computing or of sending
        cpu, com = profile.get("cpu"), profile.get("com")
        if isinstance(cpu, list) and com is None:
            profile["com"] = [0.0] * len(cpu) ** 2
        elif isinstance(com, list) and cpu is None:
            profile["cpu"] = [0.0] * math.isqrt(len(com))
    if kind == "TraceReplayProfile":
        four = _REPLAYS[profile.pop("trace_type", "SMPI")]
    if extra_data is not None:
        profile["extra_data"] = extra_data
    return {"type": four, **profile}


def write_wire_profile(name: str, profile: dict[str, Any]) -> dict[str, Any]:
    """The profile of this id as Batsim 5's messages say it.

    Raises:
        ValueError: if Batsim 5 has no such profile.
    """
    fields = dict(profile)
    four = fields.pop("type")
    extra: Any = {key: fields.pop(key) for key in ("extra_data",) if key in fields}
    fields.pop("ret", None)  # which no message says
    if four in ("parallel_homogeneous", "parallel_homogeneous_total"):
        spread = four == "parallel_homogeneous_total"
        fields["generation_strategy"] = _SPREAD if spread else "DefinedAmountsUsedForEachValue"
        four = "parallel_homogeneous"
    if four in _TRACES:
        fields["trace_type"] = _TRACES[four]
        four = "smpi"
    if four not in _WRITE:
        raise ValueError(f"Batsim 5 has no profile of type {four!r}")
    five, names = _WRITE[four]
    renamed = {names.get(field, field): value for field, value in fields.items()}
    return {"id": name, "profile_type": five, "profile": renamed, **extra}


UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class FromBatsim(Struct, frozen=True, tag_field="event_type", tag=True):
    """An event of Batsim's, with its time; `event`, which each kind adds, is what it says."""

    timestamp: float = 0.0

    def build(self) -> Event:
        """The event in our vocabulary."""
        raise NotImplementedError


class FromDecision(FromBatsim, frozen=True, forbid_unknown_fields=True):
    """An event of the decision process, which may have no other fields."""


Reader = Callable[[Any, float], Event]  # our event, of what the field `event` is and the time


def wire_events(base: type[FromBatsim], readers: Mapping[str, tuple[type[Struct], Reader]]) -> Any:
    """The union of events on the wire.

    Args:
        base: of them all.
        readers: of each type of event, by its name: what its field `event` is, and what makes our event of that.
    """
    return Union[tuple(_wire_event(base, name, *reader) for name, reader in readers.items())]  # noqa: UP007 - of values


def _wire_event(base: type[FromBatsim], name: str, body: type[Struct], read: Reader) -> type[Struct]:
    methods = {"build": lambda self: read(self.event, self.timestamp)}
    return msgspec.defstruct(name, [("event", body)], bases=(base,), namespace=methods, frozen=True, kw_only=True)


def notice(kind: str) -> Reader:
    """The reader of an event that is a notification of Batsim 4's."""
    return lambda _, time: m.Notify(time, m.NotifyData(type=kind))


class EventPart(Struct, frozen=True, forbid_unknown_fields=True):
    """An object within an event of the decision process."""


class Nothing(EventPart, frozen=True):
    """An object without fields, where the schema wants one."""


class WireProfile(Struct, frozen=True):
    """A profile with its id, ``WORKLOAD!NAME``."""

    id: str
    profile_type: str
    profile: dict[str, Any]
    extra_data: str | None = None

    def build(self) -> dict[str, Any]:
        """The profile as Batsim 4 has it."""
        return read_wire_profile(self.profile_type, self.profile, self.extra_data)


class WireJob(Struct, frozen=True):
    """A job, whose id stands beside it in the event."""

    profile_id: str
    resource_request: UInt32 = 0
    walltime: float | None = None
    extra_data: str | None = None

    def build(self, job_id: str, submitted: float) -> m.JobDescription:
        """The job in our vocabulary, with the fields of its author where `extra_data` is an object."""
        fields: dict[str, Any] = {}
        if self.extra_data:
            with suppress(msgspec.DecodeError, RecursionError):
                extra = msgspec.json.decode(self.extra_data)
                fields |= extra if isinstance(extra, dict) else {}
            fields["extra_data"] = self.extra_data
        fields |= {"id": job_id, "res": self.resource_request, "subtime": submitted, "profile": self.profile_id}
        if self.walltime is not None:
            fields["walltime"] = self.walltime
        return m.JobDescription.checked(fields)


class ClosedJob(WireJob, frozen=True, forbid_unknown_fields=True):
    """A job that the decision process registers."""
