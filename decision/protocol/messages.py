"""Batsim's events and commands, typed: one struct each, the `data` that it carries, and the `Message` around them.

An event has a `timestamp` in seconds of simulated time and a `data` struct, whose fields have the names that Batsim's
protocol gives them up to version 4; what only Batsim 5 says is optional, and unset where it was not said. Host sets
(``alloc``, ``resources``) are texts like ``"0-3 7"``; see `decision.model.hosts`. The facts are those of Batsim 4.2.1's
documentation and, where the two disagree, of its source; what other versions do differently is in
`decision.protocol.versions`.
"""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType


class Role(StrEnum):
    """The two ends of the conversation; the values are those of a recording's ``from``."""

    BATSIM = "batsim"
    DECISION = "decision"

    @property
    def peer(self) -> "Role":
        """The end that the other messages come from."""
        return Role.DECISION if self is Role.BATSIM else Role.BATSIM


Natural = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # what Batsim keeps in an int


# --- Objects whose unknown fields must survive ---
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
        """How many hosts the job asks for."""
        return int(self.fields["res"])

    @property
    def subtime(self) -> float:
        """When the job is submitted, in seconds of simulated time."""
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
        """Which notification it is, by its name on the wire."""
        return str(self.fields["type"])

    @property
    def resources(self) -> str:
        """The hosts of ``event_machine_available`` and ``event_machine_unavailable``; else empty."""
        return str(self.fields.get("resources", ""))


# --- What is asked and answered, both ways ---
class NoData(Struct, frozen=True):
    """The data of an event that says no more than its type: an empty object."""


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


# --- What Batsim's events say ---
class Config(Struct, frozen=True, rename="kebab"):
    """Batsim's options, as far as it sends them."""

    redis_enabled: bool = False
    redis_hostname: str = ""
    redis_port: int = 0
    redis_prefix: str = ""
    profiles_forwarded_on_submission: bool = False
    dynamic_jobs_enabled: bool = False
    dynamic_jobs_acknowledged: bool = False
    profile_reuse_enabled: bool = False
    sched_config: str = ""
    forward_unknown_events: bool = False


class Resource(Struct, frozen=True):
    """A host; its `id` is its number in host sets."""

    id: Natural
    name: str
    state: str  # "idle", "computing", "sleeping", "switching_on", "switching_off" or "unavailable"
    properties: dict[str, str] = {}
    zone_properties: dict[str, str] = {}
    pstate: Natural | UnsetType = UNSET
    cores: Natural | UnsetType = UNSET
    speeds: tuple[float, ...] | UnsetType = UNSET  # flop/s, by pstate


class BatsimFacts(Struct, frozen=True):
    """What Batsim 5 says about itself."""

    version: str = ""
    commit: str = ""
    arguments: tuple[str, ...] = ()
    context: str = "{}"  # JSON: where it finds the decision process and writes its files


class SimulationBeginsData(Struct, frozen=True, kw_only=True):
    nb_resources: Natural
    nb_compute_resources: Natural
    nb_storage_resources: Natural
    allow_compute_sharing: bool
    allow_storage_sharing: bool
    config: Config
    compute_resources: tuple[Resource, ...]
    storage_resources: tuple[Resource, ...]
    workloads: dict[str, str]  # file name of each workload
    profiles: dict[str, dict[str, dict[str, Any]]]  # of each workload, by name
    external_events: dict[str, str] | UnsetType = UNSET  # file name of each list
    batsim: BatsimFacts | UnsetType = UNSET


class JobSubmittedData(Struct, frozen=True):
    job_id: str
    job: JobDescription
    profile: dict[str, Any] | UnsetType = UNSET  # set where Batsim forwards profiles


FinalStateName = Literal["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"]


class JobCompletedData(Struct, frozen=True):
    job_id: str
    job_state: FinalStateName
    return_code: int
    alloc: str


class TaskProgress(Struct, frozen=True):
    """How far a killed job came: a share in [0, 1], or the task that a sequence was in and its progress."""

    profile_name: str
    progress: float | UnsetType = UNSET
    current_task_index: int | UnsetType = UNSET  # -1: the sequence had not begun
    current_task: "TaskProgress | UnsetType" = UNSET
    current_repetition: int | UnsetType = UNSET  # of the sequence; else the index counts on over repetitions


class JobKilledData(Struct, frozen=True):
    job_ids: tuple[str, ...]
    job_progress: dict[str, TaskProgress] = {}  # of the jobs that had not ended before the kill
    profiles: dict[str, dict[str, Any]] | UnsetType = UNSET  # of those jobs, by id; set where Batsim 5 forwards them


class ResourceStateChangedData(Struct, frozen=True):
    resources: str
    state: str  # a pstate's number
    at_once: bool | UnsetType = UNSET  # whether it was set without a switch that takes time


class RequestedCallData(Struct, frozen=True):
    call_id: str | UnsetType = UNSET
    last: bool | UnsetType = UNSET  # whether it is the last of a periodic call


class ExternalEventData(Struct, frozen=True):
    """An external event that means nothing to Batsim 5."""

    id: str
    text: str
    kind: str = "GenericExternalEvent"


class ProbeData(Struct, frozen=True):
    """What a probe measured on its hosts: a value for each, or one for all; joules since 0 s."""

    probe_id: str
    hosts: str
    value: float | tuple[float, ...]
    metrics: str = "Power"


class InitData(Struct, frozen=True):
    """Batsim 5's first message: the text that its user has for the decision process."""

    text: str = ""


class FromJobMsgData(Struct, frozen=True):
    job_id: str
    msg: Any


# --- What the commands of a decision process say ---
class RejectJobData(Struct, frozen=True):
    job_id: str


class AdditionalIoJob(Struct, frozen=True):
    """Input and output that is merged into a job; `profile` only where its name is new to Batsim."""

    alloc: str
    profile_name: str
    profile: dict[str, Any] | UnsetType = UNSET


class ExecuteJobData(Struct, frozen=True):
    """Batsim takes one of the three optional fields, not several."""

    job_id: str
    alloc: str
    mapping: dict[str, str | int] | UnsetType = UNSET  # executor -> index in `alloc`
    storage_mapping: dict[str, int] | UnsetType = UNSET  # label in the profile -> storage host
    additional_io_job: AdditionalIoJob | UnsetType = UNSET
    strategy: str | UnsetType = UNSET  # how executors are put on hosts, where it is not one after the other
    overrides: tuple[dict[str, Any], ...] | UnsetType = UNSET  # other hosts for parts of a composed profile


class Periodic(Struct, frozen=True):
    """Every `period` of `unit` since 0 s, so often as `times`; None means for ever."""

    period: Annotated[int, Meta(gt=0)]
    unit: Literal["s", "ms"] = "s"
    times: Annotated[int, Meta(gt=0)] | None = None

    @property
    def milliseconds(self) -> int:
        """The period in milliseconds, whatever its unit."""
        return self.period if self.unit == "ms" else 1000 * self.period


class CallMeLaterData(Struct, frozen=True):
    timestamp: float  # seconds; when to call
    call_id: str | UnsetType = UNSET
    unit: Literal["s", "ms"] | UnsetType = UNSET  # in which the time is said
    periodic: Periodic | UnsetType = UNSET  # in place of the timestamp


class StopCallData(Struct, frozen=True):
    call_id: str


class CreateProbeData(Struct, frozen=True):
    """Asks for the joules that hosts have used, of each or in one number."""

    probe_id: str
    hosts: str
    periodic: Periodic
    aggregation: Literal["NoResourcesAggregation", "Sum", "ArithmeticMean"] = "Sum"
    rest: dict[str, Any] = {}  # what has no effect, as it was said


class StopProbeData(Struct, frozen=True):
    probe_id: str


class Features(Struct, frozen=True, forbid_unknown_fields=True):
    """What a decision process wants of Batsim 5; what it says nothing of it does not want."""

    dynamic_registration: bool | UnsetType = UNSET
    profile_reuse: bool | UnsetType = UNSET
    acknowledge_dynamic_jobs: bool | UnsetType = UNSET
    forward_profiles_on_job_submission: bool | UnsetType = UNSET
    forward_profiles_on_jobs_killed: bool | UnsetType = UNSET
    forward_profiles_on_simulation_begins: bool | UnsetType = UNSET


class HelloData(Struct, frozen=True, kw_only=True):
    """The answer to `InitData`: who decides, in which form its messages come (`flags`), and what it wants."""

    name: str
    version: str
    commit: str = ""
    protocol_version: str = "1.0.0"
    features: Features = Features()
    flags: Natural = 2


class KillJobData(Struct, frozen=True):
    job_ids: tuple[str, ...]


class RegisterJobData(Struct, frozen=True):
    job_id: str
    job: JobDescription


class RegisterProfileData(Struct, frozen=True):
    workload_name: str
    profile_name: str
    profile: dict[str, Any]


class SetResourceStateData(Struct, frozen=True):
    resources: str
    state: str  # a pstate's number
    at_once: bool | UnsetType = UNSET  # whether without a switch that takes time


class SetJobMetadataData(Struct, frozen=True):
    job_id: str
    metadata: str


class ChangeJobStateData(Struct, frozen=True):
    job_id: str
    job_state: str
    kill_reason: str | UnsetType = UNSET


class ToJobMsgData(Struct, frozen=True):
    job_id: str
    msg: str


# --- Events and commands: what is sent ---
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
