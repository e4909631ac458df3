"""What Batsim's events say: one struct for the `data` of each kind."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from .contents import JobDescription, Natural


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
