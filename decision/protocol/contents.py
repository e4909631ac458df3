"""What events say that both ends send, or that the data of both ends have in it; `data` is one struct for each kind.

Fields have the names that Batsim's protocol gives them up to version 4; what only Batsim 5 says is optional, and unset
where it was not said. Host sets (``alloc``, ``resources``) are texts like ``"0-3 7"``; see `decision.model.hosts`.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Natural = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # what Batsim keeps in an int


# --- Objects whose unknown fields must survive --------------------------------------------------------------


class OpenObject:
    """A JSON object of which only some fields mean something here; `fields` keeps them all as they came.

    Raises:
        msgspec.ValidationError: if a field that means something is missing or of the wrong type.
    """

    __slots__ = ("fields",)
    known: ClassVar[type[Struct]]  # the fields that mean something
    fields: Mapping[str, Any]

    def __init__(self, /, **fields: Any) -> None:
        msgspec.convert(fields, self.known)
        self.fields = fields

    @classmethod
    def checked(cls, fields: Mapping[str, Any]) -> Self:
        """The object of fields that were checked before."""
        made = cls.__new__(cls)
        made.fields = fields
        return made

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.fields.items())})"


class _JobFields(Struct):
    id: str | int
    res: Natural
    subtime: float
    profile: str
    walltime: float = -1.0


class JobDescription(OpenObject):
    """A job as its workload describes it, with whatever fields the workload's author added."""

    __slots__ = ()
    known = _JobFields

    @property
    def id(self) -> str:
        """The job's id; the event's own ``job_id`` is the one to trust."""
        return str(self.fields["id"])

    @property
    def res(self) -> int:
        """Requested number of hosts."""
        return int(self.fields["res"])

    @property
    def subtime(self) -> float:
        """Submission time, seconds."""
        return float(self.fields["subtime"])

    @property
    def walltime(self) -> float:
        """Seconds; inf where the job has none, which Batsim writes as -1 or leaves out."""
        walltime = float(self.fields.get("walltime", -1))
        return math.inf if walltime == -1 else walltime

    @property
    def profile(self) -> str:
        """Name of a profile of the job's workload."""
        return str(self.fields["profile"])


class _NotifyFields(Struct):
    type: str


class NotifyData(OpenObject):
    """What is notified: a `type`, and whatever else belongs to it.

    Batsim says ``no_more_static_job_to_submit``, ``no_more_external_event_to_occur``,
    ``event_machine_available`` and ``event_machine_unavailable`` (both with ``resources``), and forwards the
    events of its input file that it does not know as they are. The decision process says
    ``registration_finished`` and ``continue_registration``.
    """

    __slots__ = ()
    known = _NotifyFields

    @property
    def type(self) -> str:
        """Which notification it is."""
        return str(self.fields["type"])

    @property
    def resources(self) -> str:
        """The hosts of ``event_machine_available`` and ``event_machine_unavailable``; else empty."""
        return str(self.fields.get("resources", ""))


# --- Data, both ways -----------------------------------------------------------------------------------------


class NoData(Struct, frozen=True):
    """An empty JSON object."""


class WaitingTimeQuestion(Struct, frozen=True):
    """Asks how long a potential job would wait; `job` has at least ``res`` and ``walltime``."""

    job_id: str
    job: dict[str, Any]


class Requests(Struct, frozen=True, forbid_unknown_fields=True):
    """The decision process may ask for `consumed_energy`, Batsim for `estimate_waiting_time`."""

    consumed_energy: NoData | UnsetType = UNSET
    estimate_waiting_time: WaitingTimeQuestion | UnsetType = UNSET


class QueryData(Struct, frozen=True):
    requests: Requests


class WaitingTimeAnswer(Struct, frozen=True):
    job_id: str
    estimated_waiting_time: float  # seconds


class AnswerData(Struct, frozen=True, forbid_unknown_fields=True):
    """Batsim answers `consumed_energy`, the decision process `estimate_waiting_time`."""

    consumed_energy: float | UnsetType = UNSET  # joules since the simulation began
    estimate_waiting_time: WaitingTimeAnswer | UnsetType = UNSET
