"""What the commands of a decision process say: one struct for the `data` of each kind."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .contents import JobDescription, Natural


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
        """The period."""
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
