"""Batsim 5's objects, read: the fields of each event as they are on the wire, and the event of ours that they make.

The names of fields are those of Batsim's schema (batprotocol). Batsim's events may have more fields than these, since
its next version may add some; those of a decision process may not, since Batsim stops at a field that it does not know.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .wire_objects import (
    ClosedJob,
    EventPart,
    FromBatsim,
    FromDecision,
    Nothing,
    UInt32,
    UInt64,
    WireJob,
    WireProfile,
    check_wire_profile,
    notice,
    wire_events,
)

_SIGN = 2**31  # return codes are written as if they had no sign

# Values of the schema's enumerations may be said by their number, as well
_Strategy = Literal["SpreadOverHostsFirst", "FillOneHostCoresFirst", 0, 1]
_Unit = Literal["Second", "Millisecond", 0, 1]
_MILLISECOND = ("Millisecond", 1)


# --- What Batsim says ---


class _Submission(Struct, frozen=True):
    job_id: str
    job: WireJob
    submission_time: float = 0.0
    profile: WireProfile | None = None

    def event(self, time: float) -> Event:
        profile: Any = UNSET if self.profile is None else self.profile.build()
        job = self.job.build(self.job_id, self.submission_time)
        return m.JobSubmitted(time, m.JobSubmittedData(self.job_id, job, profile))


class _Completion(Struct, frozen=True):
    job_id: str
    state: m.FinalStateName
    return_code: UInt32 = 0

    def event(self, time: float) -> Event:
        code = (self.return_code + _SIGN) % (2 * _SIGN) - _SIGN
        return m.JobCompleted(time, m.JobCompletedData(self.job_id, self.state, code, ""))


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
    profiles: tuple[WireProfile, ...] = ()

    def event(self, time: float) -> Event:
        progress = {entry.job_id: entry.wrapper.kill_progress.build() for entry in self.progresses}
        profiles = {profile.id: profile.build() for profile in self.profiles}
        return m.JobKilled(time, m.JobKilledData(self.job_ids, progress, profiles or UNSET))


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
    profiles: tuple[WireProfile, ...] = ()

    def event(self, time: float) -> Event:
        profiles: dict[str, dict[str, dict[str, Any]]] = {file.name: {} for file in self.workloads}
        for profile in self.profiles:
            workload, _, name = profile.id.partition("!")
            profiles.setdefault(workload, {})[name] = profile.build()
        facts = m.BatsimFacts(
            self.batsim_version, self.batsim_commit or "", self.batsim_arguments, self.batsim_execution_context_json
        )
        data = m.SimulationBeginsData(
            nb_resources=self.host_number,
            nb_compute_resources=self.computation_host_number,
            nb_storage_resources=self.storage_host_number,
            allow_compute_sharing=False,
            allow_storage_sharing=True,
            config=m.Config(),
            compute_resources=tuple(host.build() for host in self.computation_hosts),
            storage_resources=tuple(host.build() for host in self.storage_hosts),
            workloads={file.name: file.filename for file in self.workloads},
            profiles=profiles,
            external_events={file.name: file.filename for file in self.external_events},
            batsim=facts,
        )
        return m.SimulationBegins(time, data)


class _Text(Struct, frozen=True):
    data: str


class _Occurrence(Struct, frozen=True):
    id: str
    external_event_type: str
    external_event: _Text

    def event(self, time: float) -> Event:
        data = m.ExternalEventData(self.id, self.external_event.data, self.external_event_type)
        return m.ExternalEvent(time, data)


class _Call(Struct, frozen=True):
    call_me_later_id: str
    last_periodic_call: bool = False

    def event(self, time: float) -> Event:
        return m.RequestedCall(time, m.RequestedCallData(self.call_me_later_id, self.last_periodic_call))


class _Switch(Struct, frozen=True):
    host_ids: str
    state: m.Natural

    def event(self, time: float) -> Event:
        data = m.ResourceStateChangedData(self.host_ids, str(self.state), at_once=False)
        return m.ResourceStateChanged(time, data)


class _Change(Struct, frozen=True):
    host_ids: str
    pstate: m.Natural

    def event(self, time: float) -> Event:
        data = m.ResourceStateChangedData(self.host_ids, str(self.pstate), at_once=True)
        return m.ResourceStateChanged(time, data)


class _Hosts(Struct, frozen=True):
    host_ids: str


class _Measure(Struct, frozen=True):
    data: float | tuple[float, ...]


class _Emission(Struct, frozen=True):
    probe_id: str
    resources: _Hosts
    data: _Measure
    metrics: str = "Power"

    def event(self, time: float) -> Event:
        data = m.ProbeData(self.probe_id, self.resources.host_ids, self.data.data, self.metrics)
        return m.ProbeDataEmitted(time, data)


BatsimWire: Any = wire_events(
    FromBatsim,
    {
        "JobSubmittedEvent": (_Submission, _Submission.event),
        "JobCompletedEvent": (_Completion, _Completion.event),
        "JobsKilledEvent": (_Kills, _Kills.event),
        "SimulationBeginsEvent": (_Beginning, _Beginning.event),
        "SimulationEndsEvent": (m.NoData, lambda _, time: m.SimulationEnds(time)),
        "AllStaticJobsHaveBeenSubmittedEvent": (m.NoData, notice("no_more_static_job_to_submit")),
        "AllStaticExternalEventsHaveBeenInjectedEvent": (m.NoData, notice("no_more_external_event_to_occur")),
        "ExternalEventOccurredEvent": (_Occurrence, _Occurrence.event),
        "RequestedCallEvent": (_Call, _Call.event),
        "HostsTurnedOnOffEvent": (_Switch, _Switch.event),
        "HostsPStateChangedEvent": (_Change, _Change.event),
        "ProbeDataEmittedEvent": (_Emission, _Emission.event),
    },
)

# --- What a decision process says, with no other fields ---


class _HelloBody(EventPart, frozen=True, kw_only=True):
    batprotocol_version: str
    decision_component_name: str
    decision_component_version: str
    decision_component_commit: str
    requested_simulation_features: m.Features

    def event(self, time: float) -> Event:
        data = m.HelloData(
            name=self.decision_component_name,
            version=self.decision_component_version,
            commit=self.decision_component_commit,
            protocol_version=self.batprotocol_version,
            features=self.requested_simulation_features,
        )
        return m.Hello(time, data)


class _Placement(EventPart, frozen=True):
    strategy: _Strategy = "SpreadOverHostsFirst"
    mapping: tuple[UInt32, ...] | UnsetType = UNSET


class _Allocation(EventPart, frozen=True):
    host_allocation: str
    executor_placement_type: Literal["PredefinedExecutorPlacementStrategyWrapper", "CustomExecutorToHostMapping"]
    executor_placement: _Placement


class _Storage(EventPart, frozen=True):
    storage_name: str
    host_id: UInt32 = 0


class _Start(EventPart, frozen=True):
    job_id: str
    allocation: _Allocation
    profile_allocation_override: tuple[dict[str, Any], ...] | UnsetType = UNSET
    storage_placement: tuple[_Storage, ...] | UnsetType = UNSET

    def event(self, time: float) -> Event:
        where = self.allocation
        placement = where.executor_placement
        optional: dict[str, Any] = {}
        if where.executor_placement_type == "CustomExecutorToHostMapping":
            places: Any = placement.mapping
            if places is UNSET:
                raise ValueError(f"the custom mapping of {self.job_id} has no field `mapping`")
            optional["mapping"] = {str(executor): place for executor, place in enumerate(places)}
        elif placement.strategy not in ("SpreadOverHostsFirst", 0):
            optional["strategy"] = "FillOneHostCoresFirst"
        if self.storage_placement is not UNSET:
            optional["storage_mapping"] = {storage.storage_name: storage.host_id for storage in self.storage_placement}
        if self.profile_allocation_override is not UNSET:
            optional["overrides"] = self.profile_allocation_override
        return m.ExecuteJob(time, m.ExecuteJobData(self.job_id, where.host_allocation, **optional))


class _JobId(EventPart, frozen=True):
    job_id: str


class _JobIds(EventPart, frozen=True):
    job_ids: tuple[str, ...]


class _Mode(EventPart, frozen=True):
    nb_periods: UInt32 = 0


class _Period(EventPart, frozen=True):
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
        return m.Periodic(self.period, "ms" if self.time_unit in _MILLISECOND else "s", times)


class _OneShot(EventPart, frozen=True):
    time: UInt64 = 0
    time_unit: _Unit = "Second"


class _CallBody(EventPart, frozen=True):
    call_me_later_id: str
    when_type: Literal["OneShot", "Periodic"]
    when: dict[str, Any]

    def event(self, time: float) -> Event:
        if self.when_type == "Periodic":
            periodic = msgspec.convert(self.when, _Period).build()
            return m.CallMeLater(time, m.CallMeLaterData(0.0, self.call_me_later_id, periodic=periodic))
        once = msgspec.convert(self.when, _OneShot)
        in_ms = once.time_unit in _MILLISECOND
        when = once.time / 1000 if in_ms else float(once.time)
        return m.CallMeLater(time, m.CallMeLaterData(when, self.call_me_later_id, "ms" if in_ms else "s"))


class _CallId(EventPart, frozen=True):
    call_me_later_id: str


class _JobBody(EventPart, frozen=True):
    job_id: str
    job: ClosedJob

    def event(self, time: float) -> Event:
        description = self.job.build(self.job_id, time)
        return m.RegisterJob(time, m.RegisterJobData(self.job_id, description))


class _ProfileBody(EventPart, frozen=True):
    profile: WireProfile

    def event(self, time: float) -> Event:
        profile = self.profile
        workload, mark, name = profile.id.partition("!")
        if not (mark and workload and name):
            raise ValueError(f"the profile's id {profile.id[:80]!r} is not of the form WORKLOAD!NAME")
        check_wire_profile(profile)
        return m.RegisterProfile(time, m.RegisterProfileData(workload, name, profile.build()))


class _SwitchBody(EventPart, frozen=True):
    host_ids: str
    state: m.Natural = 0

    def event(self, time: float) -> Event:
        data = m.SetResourceStateData(self.host_ids, str(self.state), at_once=False)
        return m.SetResourceState(time, data)


class _ChangeBody(EventPart, frozen=True):
    host_ids: str
    pstate: m.Natural = 0

    def event(self, time: float) -> Event:
        data = m.SetResourceStateData(self.host_ids, str(self.pstate), at_once=True)
        return m.SetResourceState(time, data)


class _ProbeHosts(EventPart, frozen=True):
    host_ids: str


class _Accumulation(EventPart, frozen=True):
    reset_mode_type: Literal["NoReset"]
    reset_mode: Nothing
    cumulative_function: str = "Sum"
    temporal_normalization: bool = False


class _Trigger(EventPart, frozen=True):
    temporal_trigger_type: Literal["Periodic"]
    temporal_trigger: _Period


class _ProbeBody(EventPart, frozen=True, kw_only=True):
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
    resources_aggregation_function: Nothing
    temporal_aggregation_function_type: str | UnsetType = UNSET
    temporal_aggregation_function: dict[str, Any] | UnsetType = UNSET
    emission_filtering_policy_type: Literal["NoFiltering", "ThresholdFilteringFunction"]
    emission_filtering_policy: dict[str, Any] | UnsetType = UNSET

    def event(self, time: float) -> Event:
        periodic = self.measurement_triggering_policy.temporal_trigger.build()
        rest = {name: getattr(self, name) for name in _WITHOUT_EFFECT}
        data = m.CreateProbeData(
            self.probe_id,
            self.resources.host_ids,
            periodic,
            self.resources_aggregation_function_type,
            {name: value for name, value in rest.items() if value is not UNSET},
        )
        return m.CreateProbe(time, data)


# Fields of a probe that Batsim 5.0.0-rc2 reads and does nothing with: kept, so that they are sent on as they came
_WITHOUT_EFFECT = (
    "temporal_aggregation_function_type",
    "temporal_aggregation_function",
    "emission_filtering_policy_type",
    "emission_filtering_policy",
)


class _ProbeId(EventPart, frozen=True):
    probe_id: str


DecisionWire: Any = wire_events(
    FromDecision,
    {
        "EDCHelloEvent": (_HelloBody, _HelloBody.event),
        "ExecuteJobEvent": (_Start, _Start.event),
        "RejectJobEvent": (_JobId, lambda body, time: m.RejectJob(time, m.RejectJobData(body.job_id))),
        "KillJobsEvent": (_JobIds, lambda body, time: m.KillJob(time, m.KillJobData(body.job_ids))),
        "CallMeLaterEvent": (_CallBody, _CallBody.event),
        "StopCallMeLaterEvent": (_CallId, lambda body, time: m.StopCall(time, m.StopCallData(body.call_me_later_id))),
        "RegisterJobEvent": (_JobBody, _JobBody.event),
        "RegisterProfileEvent": (_ProfileBody, _ProfileBody.event),
        "FinishRegistrationEvent": (Nothing, notice("registration_finished")),
        "ForceSimulationStopEvent": (Nothing, lambda _, time: m.ForceStop(time)),
        "TurnOnOffHostsEvent": (_SwitchBody, _SwitchBody.event),
        "ChangeHostsPStateEvent": (_ChangeBody, _ChangeBody.event),
        "CreateProbeEvent": (_ProbeBody, _ProbeBody.event),
        "StopProbeEvent": (_ProbeId, lambda body, time: m.StopProbe(time, m.StopProbeData(body.probe_id))),
    },
)
