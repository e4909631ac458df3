"""Batsim 5's messages as they are on the wire, and what each says in the vocabulary of `decision.protocol.messages`.

One struct an event, with the names that Batsim's schema gives its fields. Batsim's own may have more fields than these.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .profiles5 import read_wire_profile

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_SIGN = 2**31


class _Open(Struct, frozen=True, tag_field="event_type", tag=lambda name: name[1:]):
    """An event of Batsim's."""

    timestamp: float = 0.0

    def build(self) -> Event:
        """The event in our vocabulary."""
        raise NotImplementedError


class _Closed(_Open, frozen=True, forbid_unknown_fields=True):
    """An event of the decision process."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    """An object within an event of the decision process."""


class _Nothing(_Part, frozen=True):
    """An empty object."""


# --- Jobs and profiles ---------------------------------------------------------------------------------------


class _Profile(Struct, frozen=True):
    id: str
    profile_type: str
    profile: dict[str, Any]
    extra_data: str | None = None

    def build(self) -> dict[str, Any]:
        return read_wire_profile(self.profile_type, self.profile, self.extra_data)


class _Job(Struct, frozen=True):
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


class _ClosedJob(_Job, frozen=True, forbid_unknown_fields=True):
    pass


def _own_fields(text: str) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


class _Submission(Struct, frozen=True):
    job_id: str
    job: _Job
    submission_time: float = 0.0
    profile: _Profile | None = None


class _JobSubmittedEvent(_Open, frozen=True, kw_only=True):
    event: _Submission

    def build(self) -> Event:
        said = self.event
        profile: Any = UNSET if said.profile is None else said.profile.build()
        job = said.job.build(said.job_id, said.submission_time)
        return m.JobSubmitted(self.timestamp, m.JobSubmittedData(said.job_id, job, profile))


class _Completion(Struct, frozen=True):
    job_id: str
    state: m.FinalStateName
    return_code: UInt32 = 0


class _JobCompletedEvent(_Open, frozen=True, kw_only=True):
    event: _Completion

    def build(self) -> Event:
        said = self.event
        code = (said.return_code + _SIGN) % (2 * _SIGN) - _SIGN
        return m.JobCompleted(self.timestamp, m.JobCompletedData(said.job_id, said.state, code, ""))


class _KillProgress(Struct, frozen=True):
    profile_id: str
    progress: float = 0.0
    current_repetition: int = 0
    current_task_index: int = 0
    current_task_progress: "_Wrapper | None" = None

    def build(self) -> m.TaskProgress:
        if self.current_task_progress is None:
            return m.TaskProgress(self.profile_id, self.progress)
        task = self.current_task_progress.kill_progress.build()
        return m.TaskProgress(self.profile_id, UNSET, self.current_task_index, task, self.current_repetition)


class _Wrapper(Struct, frozen=True):
    kill_progress_type: str
    kill_progress: _KillProgress


class _JobProgress(Struct, frozen=True):
    job_id: str
    wrapper: _Wrapper


class _Kills(Struct, frozen=True):
    job_ids: tuple[str, ...]
    progresses: tuple[_JobProgress, ...]
    profiles: tuple[_Profile, ...] = ()


class _JobsKilledEvent(_Open, frozen=True, kw_only=True):
    event: _Kills

    def build(self) -> Event:
        said = self.event
        progress = {one.job_id: one.wrapper.kill_progress.build() for one in said.progresses}
        profiles = {profile.id: profile.build() for profile in said.profiles}
        return m.JobKilled(self.timestamp, m.JobKilledData(said.job_ids, progress, profiles or UNSET))


# --- The simulation ------------------------------------------------------------------------------------------


class _Pair(Struct, frozen=True):
    key: str
    value: str


class _Host(Struct, frozen=True):
    id: m.Natural
    name: str
    state: str
    pstate: m.Natural = 0
    pstate_count: m.Natural = 1
    properties: tuple[_Pair, ...] = ()
    zone_properties: tuple[_Pair, ...] = ()
    core_count: m.Natural = 1
    computation_speed: tuple[float, ...] = ()

    def build(self) -> m.Resource:
        return m.Resource(
            self.id,
            self.name,
            self.state.lower(),
            {pair.key: pair.value for pair in self.properties},
            {pair.key: pair.value for pair in self.zone_properties},
            self.pstate,
            self.core_count,
            self.computation_speed,
        )


class _File(Struct, frozen=True):
    name: str
    filename: str


class _Beginning(Struct, frozen=True, kw_only=True):
    host_number: m.Natural
    computation_host_number: m.Natural
    computation_hosts: tuple[_Host, ...]
    storage_host_number: m.Natural = 0
    storage_hosts: tuple[_Host, ...] = ()
    batsim_version: str = ""
    batsim_commit: str | None = None
    batsim_arguments: tuple[str, ...] = ()
    batsim_execution_context_json: str = "{}"
    workloads: tuple[_File, ...] = ()
    external_events: tuple[_File, ...] = ()
    profiles: tuple[_Profile, ...] = ()


class _SimulationBeginsEvent(_Open, frozen=True, kw_only=True):
    event: _Beginning

    def build(self) -> Event:
        said = self.event
        profiles: dict[str, dict[str, dict[str, Any]]] = {file.name: {} for file in said.workloads}
        for profile in said.profiles:
            workload, _, name = profile.id.partition("!")
            profiles.setdefault(workload, {})[name] = profile.build()
        facts = m.BatsimFacts(
            said.batsim_version, said.batsim_commit or "", said.batsim_arguments, said.batsim_execution_context_json
        )
        data = m.SimulationBeginsData(
            nb_resources=said.host_number,
            nb_compute_resources=said.computation_host_number,
            nb_storage_resources=said.storage_host_number,
            allow_compute_sharing=False,
            allow_storage_sharing=True,
            config=m.Config(),
            compute_resources=tuple(host.build() for host in said.computation_hosts),
            storage_resources=tuple(host.build() for host in said.storage_hosts),
            workloads={file.name: file.filename for file in said.workloads},
            profiles=profiles,
            external_events={file.name: file.filename for file in said.external_events},
            batsim=facts,
        )
        return m.SimulationBegins(self.timestamp, data)


class _SimulationEndsEvent(_Open, frozen=True, kw_only=True):
    event: m.NoData

    def build(self) -> Event:
        return m.SimulationEnds(self.timestamp)


class _AllStaticJobsHaveBeenSubmittedEvent(_Open, frozen=True, kw_only=True):
    event: m.NoData

    def build(self) -> Event:
        return m.Notify(self.timestamp, m.NotifyData(type="no_more_static_job_to_submit"))


class _AllStaticExternalEventsHaveBeenInjectedEvent(_Open, frozen=True, kw_only=True):
    event: m.NoData

    def build(self) -> Event:
        return m.Notify(self.timestamp, m.NotifyData(type="no_more_external_event_to_occur"))


class _Text(Struct, frozen=True):
    data: str


class _Occurrence(Struct, frozen=True):
    id: str
    external_event_type: str
    external_event: _Text


class _ExternalEventOccurredEvent(_Open, frozen=True, kw_only=True):
    event: _Occurrence

    def build(self) -> Event:
        said = self.event
        data = m.ExternalEventData(said.id, said.external_event.data, said.external_event_type)
        return m.ExternalEvent(self.timestamp, data)


class _Call(Struct, frozen=True):
    call_me_later_id: str
    last_periodic_call: bool = False


class _RequestedCallEvent(_Open, frozen=True, kw_only=True):
    event: _Call

    def build(self) -> Event:
        said = self.event
        return m.RequestedCall(self.timestamp, m.RequestedCallData(said.call_me_later_id, said.last_periodic_call))


# --- Hosts ---------------------------------------------------------------------------------------------------


class _Switch(Struct, frozen=True):
    host_ids: str
    state: m.Natural


class _HostsTurnedOnOffEvent(_Open, frozen=True, kw_only=True):
    event: _Switch

    def build(self) -> Event:
        said = self.event
        data = m.ResourceStateChangedData(said.host_ids, str(said.state), at_once=False)
        return m.ResourceStateChanged(self.timestamp, data)


class _Change(Struct, frozen=True):
    host_ids: str
    pstate: m.Natural


class _HostsPStateChangedEvent(_Open, frozen=True, kw_only=True):
    event: _Change

    def build(self) -> Event:
        said = self.event
        data = m.ResourceStateChangedData(said.host_ids, str(said.pstate), at_once=True)
        return m.ResourceStateChanged(self.timestamp, data)


class _Hosts(Struct, frozen=True):
    host_ids: str


class _Measure(Struct, frozen=True):
    data: float | tuple[float, ...]


class _Emission(Struct, frozen=True):
    probe_id: str
    resources: _Hosts
    data: _Measure
    metrics: str = "Power"


class _ProbeDataEmittedEvent(_Open, frozen=True, kw_only=True):
    event: _Emission

    def build(self) -> Event:
        said = self.event
        data = m.ProbeData(said.probe_id, said.resources.host_ids, said.data.data, said.metrics)
        return m.ProbeDataEmitted(self.timestamp, data)


# --- The decision process ------------------------------------------------------------------------------------


class _HelloBody(_Part, frozen=True, kw_only=True):
    batprotocol_version: str
    decision_component_name: str
    decision_component_version: str
    decision_component_commit: str
    requested_simulation_features: m.Features


class _EDCHelloEvent(_Closed, frozen=True, kw_only=True):
    event: _HelloBody

    def build(self) -> Event:
        said = self.event
        data = m.HelloData(
            name=said.decision_component_name,
            version=said.decision_component_version,
            commit=said.decision_component_commit,
            protocol_version=said.batprotocol_version,
            features=said.requested_simulation_features,
        )
        return m.Hello(self.timestamp, data)


class _Placement(_Part, frozen=True):
    strategy: Literal["SpreadOverHostsFirst", "FillOneHostCoresFirst"] = "SpreadOverHostsFirst"
    mapping: tuple[UInt32, ...] | UnsetType = UNSET


class _Allocation(_Part, frozen=True):
    host_allocation: str
    executor_placement_type: Literal["PredefinedExecutorPlacementStrategyWrapper", "CustomExecutorToHostMapping"]
    executor_placement: _Placement


class _Storage(_Part, frozen=True):
    storage_name: str
    host_id: UInt32 = 0


class _Start(_Part, frozen=True):
    job_id: str
    allocation: _Allocation
    profile_allocation_override: tuple[dict[str, Any], ...] | UnsetType = UNSET
    storage_placement: tuple[_Storage, ...] | UnsetType = UNSET


class _ExecuteJobEvent(_Closed, frozen=True, kw_only=True):
    event: _Start

    def build(self) -> Event:
        said, where = self.event, self.event.allocation
        placement = where.executor_placement
        optional: dict[str, Any] = {}
        if where.executor_placement_type == "CustomExecutorToHostMapping":
            places: Any = placement.mapping if placement.mapping is not UNSET else ()
            optional["mapping"] = {str(executor): place for executor, place in enumerate(places)}
        elif placement.strategy != "SpreadOverHostsFirst":
            optional["strategy"] = placement.strategy
        if said.storage_placement is not UNSET:
            optional["storage_mapping"] = {one.storage_name: one.host_id for one in said.storage_placement}
        if said.profile_allocation_override is not UNSET:
            optional["overrides"] = said.profile_allocation_override
        return m.ExecuteJob(self.timestamp, m.ExecuteJobData(said.job_id, where.host_allocation, **optional))


class _JobId(_Part, frozen=True):
    job_id: str


class _RejectJobEvent(_Closed, frozen=True, kw_only=True):
    event: _JobId

    def build(self) -> Event:
        return m.RejectJob(self.timestamp, m.RejectJobData(self.event.job_id))


class _JobIds(_Part, frozen=True):
    job_ids: tuple[str, ...]


class _KillJobsEvent(_Closed, frozen=True, kw_only=True):
    event: _JobIds

    def build(self) -> Event:
        return m.KillJob(self.timestamp, m.KillJobData(self.event.job_ids))


class _Mode(_Part, frozen=True):
    nb_periods: UInt32 = 0


_Unit = Literal["Second", "Millisecond"]


class _Period(_Part, frozen=True):
    period: UInt64
    mode_type: Literal["Infinite", "FinitePeriodNumber"]
    mode: _Mode
    time_unit: _Unit = "Second"
    offset: UInt64 = 0

    def build(self) -> m.Periodic:
        if self.offset:
            raise ValueError(f"a period with offset {self.offset}, which Batsim 5 does not take")
        times = None if self.mode_type == "Infinite" else self.mode.nb_periods
        if self.period == 0 or times == 0:
            raise ValueError(f"a period of {self.period}, {times} times; both must be above 0")
        return m.Periodic(self.period, "ms" if self.time_unit == "Millisecond" else "s", times)


class _OneShot(_Part, frozen=True):
    time: UInt64 = 0
    time_unit: _Unit = "Second"


class _CallBody(_Part, frozen=True):
    call_me_later_id: str
    when_type: Literal["OneShot", "Periodic"]
    when: dict[str, Any]


class _CallMeLaterEvent(_Closed, frozen=True, kw_only=True):
    event: _CallBody

    def build(self) -> Event:
        said = self.event
        if said.when_type == "Periodic":
            periodic = msgspec.convert(said.when, _Period).build()
            return m.CallMeLater(self.timestamp, m.CallMeLaterData(0.0, said.call_me_later_id, periodic=periodic))
        once = msgspec.convert(said.when, _OneShot)
        in_ms = once.time_unit == "Millisecond"
        time = once.time / 1000 if in_ms else float(once.time)
        return m.CallMeLater(self.timestamp, m.CallMeLaterData(time, said.call_me_later_id, "ms" if in_ms else "s"))


class _CallId(_Part, frozen=True):
    call_me_later_id: str


class _StopCallMeLaterEvent(_Closed, frozen=True, kw_only=True):
    event: _CallId

    def build(self) -> Event:
        return m.StopCall(self.timestamp, m.StopCallData(self.event.call_me_later_id))


class _JobBody(_Part, frozen=True):
    job_id: str
    job: _ClosedJob


class _RegisterJobEvent(_Closed, frozen=True, kw_only=True):
    event: _JobBody

    def build(self) -> Event:
        said = self.event
        description = said.job.build(said.job_id, self.timestamp)
        return m.RegisterJob(self.timestamp, m.RegisterJobData(said.job_id, description))


class _ProfileBody(_Part, frozen=True):
    profile: _Profile


class _RegisterProfileEvent(_Closed, frozen=True, kw_only=True):
    event: _ProfileBody

    def build(self) -> Event:
        said = self.event.profile
        workload, mark, name = said.id.partition("!")
        if not (mark and workload and name):
            raise ValueError(f"the profile's id {said.id[:80]!r} is not of the form WORKLOAD!NAME")
        return m.RegisterProfile(self.timestamp, m.RegisterProfileData(workload, name, said.build()))


class _FinishRegistrationEvent(_Closed, frozen=True, kw_only=True):
    event: _Nothing

    def build(self) -> Event:
        return m.Notify(self.timestamp, m.NotifyData(type="registration_finished"))


class _ForceSimulationStopEvent(_Closed, frozen=True, kw_only=True):
    event: _Nothing

    def build(self) -> Event:
        return m.ForceStop(self.timestamp)


class _SwitchBody(_Part, frozen=True):
    host_ids: str
    state: m.Natural = 0


class _TurnOnOffHostsEvent(_Closed, frozen=True, kw_only=True):
    event: _SwitchBody

    def build(self) -> Event:
        said = self.event
        data = m.SetResourceStateData(said.host_ids, str(said.state), at_once=False)
        return m.SetResourceState(self.timestamp, data)


class _ChangeBody(_Part, frozen=True):
    host_ids: str
    pstate: m.Natural = 0


class _ChangeHostsPStateEvent(_Closed, frozen=True, kw_only=True):
    event: _ChangeBody

    def build(self) -> Event:
        said = self.event
        data = m.SetResourceStateData(said.host_ids, str(said.pstate), at_once=True)
        return m.SetResourceState(self.timestamp, data)


class _ProbeHosts(_Part, frozen=True):
    host_ids: str


class _Accumulation(_Part, frozen=True):
    reset_mode_type: Literal["NoReset"]
    reset_mode: _Nothing
    cumulative_function: str = "Sum"
    temporal_normalization: bool = False


class _Trigger(_Part, frozen=True):
    temporal_trigger_type: Literal["Periodic"]
    temporal_trigger: _Period


class _ProbeBody(_Part, frozen=True, kw_only=True):
    """What Batsim 5.0.0-rc2 can measure: joules of hosts, accumulated without reset, periodically."""

    probe_id: str
    metrics: Literal["Power"] = "Power"
    resources_type: Literal["HostResources"]
    resources: _ProbeHosts
    data_accumulation_strategy_type: Literal["ProbeDataAccumulation"]
    data_accumulation_strategy: _Accumulation
    measurement_triggering_policy_type: Literal["TemporalTriggerWrapper"]
    measurement_triggering_policy: _Trigger
    resources_aggregation_function_type: Literal["NoResourcesAggregation", "Sum", "ArithmeticMean"]
    resources_aggregation_function: _Nothing
    temporal_aggregation_function_type: str | UnsetType = UNSET
    temporal_aggregation_function: dict[str, Any] | UnsetType = UNSET
    emission_filtering_policy_type: str | UnsetType = UNSET
    emission_filtering_policy: dict[str, Any] | UnsetType = UNSET


_WITHOUT_EFFECT = (
    "temporal_aggregation_function_type",
    "temporal_aggregation_function",
    "emission_filtering_policy_type",
    "emission_filtering_policy",
)


class _CreateProbeEvent(_Closed, frozen=True, kw_only=True):
    event: _ProbeBody

    def build(self) -> Event:
        said = self.event
        periodic = said.measurement_triggering_policy.temporal_trigger.build()
        rest = {name: getattr(said, name) for name in _WITHOUT_EFFECT}
        data = m.CreateProbeData(
            said.probe_id,
            said.resources.host_ids,
            periodic,
            said.resources_aggregation_function_type,
            {name: value for name, value in rest.items() if value is not UNSET},
        )
        return m.CreateProbe(self.timestamp, data)


class _ProbeId(_Part, frozen=True):
    probe_id: str


class _StopProbeEvent(_Closed, frozen=True, kw_only=True):
    event: _ProbeId

    def build(self) -> Event:
        return m.StopProbe(self.timestamp, m.StopProbeData(self.event.probe_id))


WireEvent = (
    _JobSubmittedEvent
    | _JobCompletedEvent
    | _JobsKilledEvent
    | _SimulationBeginsEvent
    | _SimulationEndsEvent
    | _AllStaticJobsHaveBeenSubmittedEvent
    | _AllStaticExternalEventsHaveBeenInjectedEvent
    | _ExternalEventOccurredEvent
    | _RequestedCallEvent
    | _HostsTurnedOnOffEvent
    | _HostsPStateChangedEvent
    | _ProbeDataEmittedEvent
    | _EDCHelloEvent
    | _ExecuteJobEvent
    | _RejectJobEvent
    | _KillJobsEvent
    | _CallMeLaterEvent
    | _StopCallMeLaterEvent
    | _RegisterJobEvent
    | _RegisterProfileEvent
    | _FinishRegistrationEvent
    | _ForceSimulationStopEvent
    | _TurnOnOffHostsEvent
    | _ChangeHostsPStateEvent
    | _CreateProbeEvent
    | _StopProbeEvent
)


class WireMessage(Struct, frozen=True):
    """A message of either end."""

    events: tuple[WireEvent, ...]
    now: float = 0.0
