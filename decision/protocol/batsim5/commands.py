"""What a decision process says as Batsim 5's objects, one function an event, and what both ends say."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .parts import write_wire_profile

Written = tuple[str, dict[str, Any]]


def _set(**fields: Any) -> dict[str, Any]:
    """The fields that are set."""
    return {name: value for name, value in fields.items() if value is not UNSET}


def _hello(event: m.Hello) -> Written:
    data = event.data
    features = _set(**msgspec.structs.asdict(data.features))
    return "EDCHelloEvent", {
        "batprotocol_version": data.protocol_version,
        "decision_component_name": data.name,
        "decision_component_version": data.version,
        "decision_component_commit": data.commit,
        "requested_simulation_features": features,
    }


def wire_job(job: m.JobDescription) -> dict[str, Any]:
    """A job without its id."""
    fields = job.fields
    walltime = fields.get("walltime", -1)
    said = {"resource_request": fields["res"], "walltime": None if walltime == -1 else walltime}
    extra = fields.get("extra_data")
    if extra is None:
        extra = {name: value for name, value in fields.items() if name not in _JOB_FIELDS}
    return {**said, "extra_data": _extra(extra), "profile_id": fields["profile"]}


_JOB_FIELDS = ("id", "res", "subtime", "walltime", "profile", "extra_data")


def _extra(extra: Any) -> str:
    """A text as it is; an object as JSON, empty where there is nothing."""
    if isinstance(extra, str):
        return extra
    return json.dumps(extra, separators=(",", ":"), ensure_ascii=False) if extra else ""


def _register_job(event: m.RegisterJob) -> Written:
    job = {name: value for name, value in wire_job(event.data.job).items() if value not in (None, "")}
    return "RegisterJobEvent", {"job_id": event.data.job_id, "job": job}


def _register_profile(event: m.RegisterProfile) -> Written:
    data = event.data
    return "RegisterProfileEvent", {
        "profile": write_wire_profile(f"{data.workload_name}!{data.profile_name}", data.profile)
    }


def _execute(event: m.ExecuteJob) -> Written:
    data = event.data
    if data.additional_io_job is not UNSET:
        raise ValueError(f"Batsim 5 has no additional_io_job, which {data.job_id} has")
    if data.mapping is not UNSET:
        mapping = {int(executor): int(place) for executor, place in data.mapping.items()}
        kind = "CustomExecutorToHostMapping"
        placement: dict[str, Any] = {"mapping": [mapping[executor] for executor in range(len(mapping))]}
    else:
        kind = "PredefinedExecutorPlacementStrategyWrapper"
        placement = {"strategy": "SpreadOverHostsFirst" if data.strategy is UNSET else data.strategy}
    said: dict[str, Any] = {
        "job_id": data.job_id,
        "allocation": {"host_allocation": data.alloc, "executor_placement_type": kind, "executor_placement": placement},
    }
    said |= _set(profile_allocation_override=data.overrides)
    if data.storage_mapping is not UNSET:
        storage = data.storage_mapping.items()
        said["storage_placement"] = [{"storage_name": name, "host_id": host} for name, host in storage]
    return "ExecuteJobEvent", said


def _periodic(periodic: m.Periodic) -> dict[str, Any]:
    said: dict[str, Any] = {"period": periodic.period}
    if periodic.unit == "ms":
        said["time_unit"] = "Millisecond"
    if periodic.times is None:
        return {**said, "mode_type": "Infinite", "mode": {}}
    return {**said, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": periodic.times}}


def _call(event: m.CallMeLater) -> Written:
    data = event.data
    if data.call_id is UNSET:
        raise ValueError("a call of Batsim 5 needs an id")
    if data.periodic is not UNSET:
        kind, when = "Periodic", _periodic(data.periodic)
    elif data.unit == "ms":
        kind, when = "OneShot", {"time": round(data.timestamp * 1000), "time_unit": "Millisecond"}
    else:
        kind, when = "OneShot", {"time": round(data.timestamp)}
    return "CallMeLaterEvent", {"call_me_later_id": data.call_id, "when_type": kind, "when": when}


def _create_probe(event: m.CreateProbe) -> Written:
    data = event.data
    said = {
        "probe_id": data.probe_id,
        "metrics": "Power",
        "resources_type": "HostResources",
        "resources": {"host_ids": data.hosts},
        "data_accumulation_strategy_type": "ProbeDataAccumulation",
        "data_accumulation_strategy": {
            "reset_mode_type": "NoReset",
            "reset_mode": {},
            "cumulative_function": "Sum",
            "temporal_normalization": False,
        },
        "measurement_triggering_policy_type": "TemporalTriggerWrapper",
        "measurement_triggering_policy": {
            "temporal_trigger_type": "Periodic",
            "temporal_trigger": _periodic(data.periodic),
        },
        "resources_aggregation_function_type": data.aggregation,
        "resources_aggregation_function": {},
        "temporal_aggregation_function_type": "NoTemporalAggregation",
        "temporal_aggregation_function": {},
        "emission_filtering_policy_type": "NoFiltering",
        "emission_filtering_policy": {},
    }
    return "CreateProbeEvent", said | data.rest


def write_switch(event: m.ResourceStateChanged | m.SetResourceState) -> Written:
    """The change of hosts' states, asked for or reported."""
    data = event.data
    asked = isinstance(event, m.SetResourceState)
    if data.at_once is True:
        kind = "ChangeHostsPStateEvent" if asked else "HostsPStateChangedEvent"
        return kind, {"host_ids": data.resources, "pstate": int(data.state)}
    kind = "TurnOnOffHostsEvent" if asked else "HostsTurnedOnOffEvent"
    return kind, {"host_ids": data.resources, "state": int(data.state)}


_NOTIFICATIONS = {
    "no_more_static_job_to_submit": "AllStaticJobsHaveBeenSubmittedEvent",
    "no_more_external_event_to_occur": "AllStaticExternalEventsHaveBeenInjectedEvent",
    "registration_finished": "FinishRegistrationEvent",
}


def write_notice(event: m.Notify) -> Written:
    """What has no more than its type."""
    if event.data.type not in _NOTIFICATIONS:
        raise ValueError(f"Batsim 5 has no notification {event.data.type!r}")
    return _NOTIFICATIONS[event.data.type], {}


COMMAND_WRITERS: Mapping[type[Event], Callable[[Any], Written]] = {
    m.Hello: _hello,
    m.RejectJob: lambda event: ("RejectJobEvent", {"job_id": event.data.job_id}),
    m.ExecuteJob: _execute,
    m.CallMeLater: _call,
    m.StopCall: lambda event: ("StopCallMeLaterEvent", {"call_me_later_id": event.data.call_id}),
    m.KillJob: lambda event: ("KillJobsEvent", {"job_ids": event.data.job_ids}),
    m.RegisterJob: _register_job,
    m.RegisterProfile: _register_profile,
    m.SetResourceState: write_switch,
    m.CreateProbe: _create_probe,
    m.StopProbe: lambda event: ("StopProbeEvent", {"probe_id": event.data.probe_id}),
    m.ForceStop: lambda event: ("ForceSimulationStopEvent", {}),
}
