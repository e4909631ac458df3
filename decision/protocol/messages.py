"""Batsim's events and commands, typed: one struct each, and the `Message` that carries them.

Every struct has a `timestamp` in seconds of simulated time and a `data` struct whose fields have the names
that Batsim's protocol gives them. Host sets (``alloc``, ``resources``) are texts like ``"0-3 7"``; see
`decision.model.hosts`. The facts are those of Batsim 4.2.1's documentation and, where the two disagree, of
its source; what other versions do differently is in `decision.protocol.versions`.
"""

import re
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from .contents import (  # noqa: F401 - these are names of this module, too
    AdditionalIoJob,
    AnswerData,
    BatsimFacts,
    CallMeLaterData,
    ChangeJobStateData,
    Config,
    CreateProbeData,
    ExecuteJobData,
    ExternalEventData,
    Features,
    FinalStateName,
    FromJobMsgData,
    HelloData,
    InitData,
    JobCompletedData,
    JobDescription,
    JobKilledData,
    JobSubmittedData,
    KillJobData,
    Natural,
    NoData,
    NotifyData,
    OpenObject,
    Periodic,
    ProbeData,
    QueryData,
    RegisterJobData,
    RegisterProfileData,
    RejectJobData,
    RequestedCallData,
    Requests,
    Resource,
    ResourceStateChangedData,
    SetJobMetadataData,
    SetResourceStateData,
    SimulationBeginsData,
    StopCallData,
    StopProbeData,
    TaskProgress,
    ToJobMsgData,
    WaitingTimeAnswer,
    WaitingTimeQuestion,
)


class Role(StrEnum):
    """The two ends of the conversation; the values are those of a recording's ``from``."""

    BATSIM = "batsim"
    DECISION = "decision"

    @property
    def peer(self) -> "Role":
        """The other end."""
        return Role.DECISION if self is Role.BATSIM else Role.BATSIM


# --- Events and commands -------------------------------------------------------------------------------------


def _screaming(name: str) -> str:
    """``JobSubmitted`` is ``JOB_SUBMITTED`` on the wire."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper()


class Event(Struct, frozen=True, tag_field="type", tag=_screaming):
    """Something that one end sends to the other; `timestamp` is in seconds of simulated time."""

    timestamp: float


class Query(Event, frozen=True):
    data: QueryData


class Answer(Event, frozen=True):
    data: AnswerData


class Notify(Event, frozen=True):
    data: NotifyData


class SimulationBegins(Event, frozen=True):
    data: SimulationBeginsData


class SimulationEnds(Event, frozen=True):
    data: NoData = NoData()


class JobSubmitted(Event, frozen=True):
    data: JobSubmittedData


class JobCompleted(Event, frozen=True):
    data: JobCompletedData


class JobKilled(Event, frozen=True):
    data: JobKilledData


class ResourceStateChanged(Event, frozen=True):
    data: ResourceStateChangedData


class RequestedCall(Event, frozen=True):
    data: RequestedCallData = RequestedCallData()


class FromJobMsg(Event, frozen=True):
    data: FromJobMsgData


class RejectJob(Event, frozen=True):
    data: RejectJobData


class ExecuteJob(Event, frozen=True):
    data: ExecuteJobData


class CallMeLater(Event, frozen=True):
    data: CallMeLaterData


class KillJob(Event, frozen=True):
    data: KillJobData


class RegisterJob(Event, frozen=True):
    data: RegisterJobData


class RegisterProfile(Event, frozen=True):
    data: RegisterProfileData


class SetResourceState(Event, frozen=True):
    data: SetResourceStateData


class SetJobMetadata(Event, frozen=True):
    data: SetJobMetadataData


class ChangeJobState(Event, frozen=True):
    data: ChangeJobStateData


class ToJobMsg(Event, frozen=True):
    data: ToJobMsgData


# Those of Batsim 5 alone


class Init(Event, frozen=True):
    data: InitData


class Hello(Event, frozen=True):
    data: HelloData


class ExternalEvent(Event, frozen=True):
    data: ExternalEventData


class ProbeDataEmitted(Event, frozen=True):
    data: ProbeData


class CreateProbe(Event, frozen=True):
    data: CreateProbeData


class StopProbe(Event, frozen=True):
    data: StopProbeData


class StopCall(Event, frozen=True):
    data: StopCallData


class ForceStop(Event, frozen=True):
    data: NoData = NoData()


Bidirectional = Query | Answer | Notify
BatsimEvent = (
    Bidirectional
    | SimulationBegins
    | SimulationEnds
    | JobSubmitted
    | JobCompleted
    | JobKilled
    | ResourceStateChanged
    | RequestedCall
    | FromJobMsg
    | Init
    | ExternalEvent
    | ProbeDataEmitted
)
DecisionEvent = (
    Bidirectional
    | RejectJob
    | ExecuteJob
    | CallMeLater
    | KillJob
    | RegisterJob
    | RegisterProfile
    | SetResourceState
    | SetJobMetadata
    | ChangeJobState
    | ToJobMsg
    | Hello
    | CreateProbe
    | StopProbe
    | StopCall
    | ForceStop
)
AnyEvent = BatsimEvent | DecisionEvent
_E = TypeVar("_E", bound=Event)


class Message(Struct, Generic[_E], frozen=True):
    """A question of Batsim's, or the decision process's reply.

    `now` is the simulated time in seconds: in a question the earliest time of a decision, in a reply the time
    at which the decision process has finished deciding. `events` are in ascending order of time.
    """

    now: float
    events: tuple[_E, ...]


def event_type(event: Event) -> str:
    """The event's name on the wire: ``JOB_SUBMITTED``."""
    return str(event.__struct_config__.tag)
