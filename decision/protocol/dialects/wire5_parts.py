"""What both ends of a conversation with Batsim 5 say: kinds of events and their parts, jobs and profiles."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union

import msgspec
from msgspec import Meta, Struct

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .profiles5 import read_wire_profile

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class FromBatsim(Struct, frozen=True, tag_field="event_type", tag=True):
    """An event of Batsim's."""

    timestamp: float = 0.0

    def build(self) -> Event:
        """The event in our vocabulary."""
        raise NotImplementedError


class FromDecision(FromBatsim, frozen=True, forbid_unknown_fields=True):
    """An event of the decision process."""


Reader = Callable[[float, Any], Event]


def wire_events(base: type[FromBatsim], readers: Mapping[str, tuple[type[Struct], Reader]]) -> Any:
    """The union of events on the wire.

    Args:
        base: of them all.
        readers: of each type of event, by its name: what its field `event` is, and what makes our event of the time and
            that.
    """
    return Union[tuple(_wire_event(base, name, *reader) for name, reader in readers.items())]  # noqa: UP007 - of values


def _wire_event(base: type[FromBatsim], name: str, body: type[Struct], read: Reader) -> type[Struct]:
    methods = {"build": lambda self: read(self.timestamp, self.event)}
    return msgspec.defstruct(name, [("event", body)], bases=(base,), namespace=methods, frozen=True, kw_only=True)


def notice(kind: str) -> Reader:
    """The reader of an event that is a notification of Batsim 4's."""
    return lambda time, _: m.Notify(time, m.NotifyData(type=kind))


class EventPart(Struct, frozen=True, forbid_unknown_fields=True):
    """An object within an event of the decision process."""


class Nothing(EventPart, frozen=True):
    """An empty object."""


class WireProfile(Struct, frozen=True):
    """A profile with its id."""

    id: str
    profile_type: str
    profile: dict[str, Any]
    extra_data: str | None = None

    def build(self) -> dict[str, Any]:
        """The profile as Batsim 4 has it."""
        return read_wire_profile(self.profile_type, self.profile, self.extra_data)


class WireJob(Struct, frozen=True):
    """A job, without its id."""

    profile_id: str
    resource_request: UInt32 = 0
    walltime: float | None = None
    extra_data: str | None = None

    def build(self, job_id: str, submitted: float) -> m.JobDescription:
        """With the fields of its user, where `extra_data` is an object."""
        said = _own_fields(self.extra_data) if self.extra_data else {}
        if self.extra_data:
            said["extra_data"] = self.extra_data
        said |= {"id": job_id, "res": self.resource_request, "subtime": submitted, "profile": self.profile_id}
        if self.walltime is not None:
            said["walltime"] = self.walltime
        return m.JobDescription.checked(said)


class ClosedJob(WireJob, frozen=True, forbid_unknown_fields=True):
    """A job that the decision process registers."""


def _own_fields(text: str) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
