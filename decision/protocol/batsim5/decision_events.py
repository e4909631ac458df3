"""The events of a decision process for Batsim 5 as they are on the wire, with no other fields, and what they say."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .parts import ClosedJob, EventPart, FromDecision, Nothing, UInt32, UInt64, WireProfile, notice, wire_events


class _HelloBody(EventPart, frozen=True, kw_only=True):
    batprotocol_version: str
    decision_component_name: str
    decision_component_version: str
    decision_component_commit: str
    requested_simulation_features: m.Features


def _hello(time: float, said: _HelloBody) -> Event:
    data = m.HelloData(
        name=said.decision_component_name,
        version=said.decision_component_version,
        commit=said.decision_component_commit,
        protocol_version=said.batprotocol_version,
        features=said.requested_simulation_features,
    )
    return m.Hello(time, data)


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


def _execute_job(time: float, said: _Start) -> Event:
    where = said.allocation
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
    return m.ExecuteJob(time, m.ExecuteJobData(said.job_id, where.host_allocation, **optional))


class _JobId(EventPart, frozen=True):
    job_id: str


class _JobIds(EventPart, frozen=True):
    job_ids: tuple[str, ...]


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


def _call_me_later(time: float, said: _CallBody) -> Event:
    if said.when_type == "Periodic":
        periodic = msgspec.convert(said.when, _Period).build()
        return m.CallMeLater(time, m.CallMeLaterData(0.0, said.call_me_later_id, periodic=periodic))
    once = msgspec.convert(said.when, _OneShot)
    in_ms = once.time_unit == "Millisecond"
    when = once.time / 1000 if in_ms else float(once.time)
    return m.CallMeLater(time, m.CallMeLaterData(when, said.call_me_later_id, "ms" if in_ms else "s"))


class _CallId(EventPart, frozen=True):
    call_me_later_id: str


class _JobBody(EventPart, frozen=True):
    job_id: str
    job: ClosedJob


def _register_job(time: float, said: _JobBody) -> Event:
    description = said.job.build(said.job_id, time)
    return m.RegisterJob(time, m.RegisterJobData(said.job_id, description))


class _ProfileBody(EventPart, frozen=True):
    profile: WireProfile


def _register_profile(time: float, body: _ProfileBody) -> Event:
    said = body.profile
    workload, mark, name = said.id.partition("!")
    if not (mark and workload and name):
        raise ValueError(f"the profile's id {said.id[:80]!r} is not of the form WORKLOAD!NAME")
    return m.RegisterProfile(time, m.RegisterProfileData(workload, name, said.build()))


class _SwitchBody(EventPart, frozen=True):
    host_ids: str
    state: m.Natural = 0


def _turn_on_off_hosts(time: float, said: _SwitchBody) -> Event:
    data = m.SetResourceStateData(said.host_ids, str(said.state), at_once=False)
    return m.SetResourceState(time, data)


class _ChangeBody(EventPart, frozen=True):
    host_ids: str
    pstate: m.Natural = 0


def _change_hosts_pstate(time: float, said: _ChangeBody) -> Event:
    data = m.SetResourceStateData(said.host_ids, str(said.pstate), at_once=True)
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
    emission_filtering_policy_type: str | UnsetType = UNSET
    emission_filtering_policy: dict[str, Any] | UnsetType = UNSET


_WITHOUT_EFFECT = (
    "temporal_aggregation_function_type",
    "temporal_aggregation_function",
    "emission_filtering_policy_type",
    "emission_filtering_policy",
)


def _create_probe(time: float, said: _ProbeBody) -> Event:
    periodic = said.measurement_triggering_policy.temporal_trigger.build()
    rest = {name: getattr(said, name) for name in _WITHOUT_EFFECT}
    data = m.CreateProbeData(
        said.probe_id,
        said.resources.host_ids,
        periodic,
        said.resources_aggregation_function_type,
        {name: value for name, value in rest.items() if value is not UNSET},
    )
    return m.CreateProbe(time, data)


class _ProbeId(EventPart, frozen=True):
    probe_id: str


DecisionWire: Any = wire_events(
    FromDecision,
    {
        "EDCHelloEvent": (_HelloBody, _hello),
        "ExecuteJobEvent": (_Start, _execute_job),
        "RejectJobEvent": (_JobId, lambda time, said: m.RejectJob(time, m.RejectJobData(said.job_id))),
        "KillJobsEvent": (_JobIds, lambda time, said: m.KillJob(time, m.KillJobData(said.job_ids))),
        "CallMeLaterEvent": (_CallBody, _call_me_later),
        "StopCallMeLaterEvent": (_CallId, lambda time, said: m.StopCall(time, m.StopCallData(said.call_me_later_id))),
        "RegisterJobEvent": (_JobBody, _register_job),
        "RegisterProfileEvent": (_ProfileBody, _register_profile),
        "FinishRegistrationEvent": (Nothing, notice("registration_finished")),
        "ForceSimulationStopEvent": (Nothing, lambda time, _: m.ForceStop(time)),
        "TurnOnOffHostsEvent": (_SwitchBody, _turn_on_off_hosts),
        "ChangeHostsPStateEvent": (_ChangeBody, _change_hosts_pstate),
        "CreateProbeEvent": (_ProbeBody, _create_probe),
        "StopProbeEvent": (_ProbeId, lambda time, said: m.StopProbe(time, m.StopProbeData(said.probe_id))),
    },
)
