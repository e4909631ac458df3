"""The events of a decision process for Batsim 5 as they are on the wire, with no other fields, and what they say."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .wire5_parts import ClosedJob, EventPart, FromDecision, Nothing, UInt32, UInt64, WireProfile


class _HelloBody(EventPart, frozen=True, kw_only=True):
    batprotocol_version: str
    decision_component_name: str
    decision_component_version: str
    decision_component_commit: str
    requested_simulation_features: m.Features


class _EDCHelloEvent(FromDecision, frozen=True, kw_only=True):
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


class _Placement(EventPart, frozen=True):
    strategy: Literal["SpreadOverHostsFirst", "FillOneHostCoresFirst"] = "SpreadOverHostsFirst"
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


class _ExecuteJobEvent(FromDecision, frozen=True, kw_only=True):
    event: _Start

    def build(self) -> Event:
        said, where = self.event, self.event.allocation
        placement = where.executor_placement
        optional: dict[str, Any] = {}
        if where.executor_placement_type == "CustomExecutorToHostMapping":
            places: Any = placement.mapping
            if places is UNSET:
                raise ValueError(f"the custom mapping of {said.job_id} has no field `mapping`")
            optional["mapping"] = {str(executor): place for executor, place in enumerate(places)}
        elif placement.strategy != "SpreadOverHostsFirst":
            optional["strategy"] = placement.strategy
        if said.storage_placement is not UNSET:
            optional["storage_mapping"] = {one.storage_name: one.host_id for one in said.storage_placement}
        if said.profile_allocation_override is not UNSET:
            optional["overrides"] = said.profile_allocation_override
        return m.ExecuteJob(self.timestamp, m.ExecuteJobData(said.job_id, where.host_allocation, **optional))


class _JobId(EventPart, frozen=True):
    job_id: str


class _RejectJobEvent(FromDecision, frozen=True, kw_only=True):
    event: _JobId

    def build(self) -> Event:
        return m.RejectJob(self.timestamp, m.RejectJobData(self.event.job_id))


class _JobIds(EventPart, frozen=True):
    job_ids: tuple[str, ...]


class _KillJobsEvent(FromDecision, frozen=True, kw_only=True):
    event: _JobIds

    def build(self) -> Event:
        return m.KillJob(self.timestamp, m.KillJobData(self.event.job_ids))


class _Mode(EventPart, frozen=True):
    nb_periods: UInt32 = 0


_Unit = Literal["Second", "Millisecond"]


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
        return m.Periodic(self.period, "ms" if self.time_unit == "Millisecond" else "s", times)


class _OneShot(EventPart, frozen=True):
    time: UInt64 = 0
    time_unit: _Unit = "Second"


class _CallBody(EventPart, frozen=True):
    call_me_later_id: str
    when_type: Literal["OneShot", "Periodic"]
    when: dict[str, Any]


class _CallMeLaterEvent(FromDecision, frozen=True, kw_only=True):
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


class _CallId(EventPart, frozen=True):
    call_me_later_id: str


class _StopCallMeLaterEvent(FromDecision, frozen=True, kw_only=True):
    event: _CallId

    def build(self) -> Event:
        return m.StopCall(self.timestamp, m.StopCallData(self.event.call_me_later_id))


class _JobBody(EventPart, frozen=True):
    job_id: str
    job: ClosedJob


class _RegisterJobEvent(FromDecision, frozen=True, kw_only=True):
    event: _JobBody

    def build(self) -> Event:
        said = self.event
        description = said.job.build(said.job_id, self.timestamp)
        return m.RegisterJob(self.timestamp, m.RegisterJobData(said.job_id, description))


class _ProfileBody(EventPart, frozen=True):
    profile: WireProfile


class _RegisterProfileEvent(FromDecision, frozen=True, kw_only=True):
    event: _ProfileBody

    def build(self) -> Event:
        said = self.event.profile
        workload, mark, name = said.id.partition("!")
        if not (mark and workload and name):
            raise ValueError(f"the profile's id {said.id[:80]!r} is not of the form WORKLOAD!NAME")
        return m.RegisterProfile(self.timestamp, m.RegisterProfileData(workload, name, said.build()))


class _FinishRegistrationEvent(FromDecision, frozen=True, kw_only=True):
    event: Nothing

    def build(self) -> Event:
        return m.Notify(self.timestamp, m.NotifyData(type="registration_finished"))


class _ForceSimulationStopEvent(FromDecision, frozen=True, kw_only=True):
    event: Nothing

    def build(self) -> Event:
        return m.ForceStop(self.timestamp)


class _SwitchBody(EventPart, frozen=True):
    host_ids: str
    state: m.Natural = 0


class _TurnOnOffHostsEvent(FromDecision, frozen=True, kw_only=True):
    event: _SwitchBody

    def build(self) -> Event:
        said = self.event
        data = m.SetResourceStateData(said.host_ids, str(said.state), at_once=False)
        return m.SetResourceState(self.timestamp, data)


class _ChangeBody(EventPart, frozen=True):
    host_ids: str
    pstate: m.Natural = 0


class _ChangeHostsPStateEvent(FromDecision, frozen=True, kw_only=True):
    event: _ChangeBody

    def build(self) -> Event:
        said = self.event
        data = m.SetResourceStateData(said.host_ids, str(said.pstate), at_once=True)
        return m.SetResourceState(self.timestamp, data)


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
    emission_filtering_policy_type: str | UnsetType = UNSET
    emission_filtering_policy: dict[str, Any] | UnsetType = UNSET


_WITHOUT_EFFECT = (
    "temporal_aggregation_function_type",
    "temporal_aggregation_function",
    "emission_filtering_policy_type",
    "emission_filtering_policy",
)


class _CreateProbeEvent(FromDecision, frozen=True, kw_only=True):
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


class _ProbeId(EventPart, frozen=True):
    probe_id: str


class _StopProbeEvent(FromDecision, frozen=True, kw_only=True):
    event: _ProbeId

    def build(self) -> Event:
        return m.StopProbe(self.timestamp, m.StopProbeData(self.event.probe_id))


DecisionWire = (
    _EDCHelloEvent
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
