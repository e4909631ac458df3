"""Batsim 5's objects for what the vocabulary of `decision.protocol.messages` says.

The names of fields and of events are those of Batsim's schema (batprotocol). What Batsim 5 cannot say raises
ValueError.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .wire_objects import write_wire_profile

_Written = tuple[str, dict[str, Any]]


def wire_event(event: Event) -> dict[str, Any]:
    """An event as Batsim 5's object.

    Raises:
        ValueError: if Batsim 5 has no such event, or cannot say all that it says.
    """
    writer = _WRITERS.get(type(event))
    if writer is None:
        raise ValueError(f"Batsim 5 has no {m.event_type(event)}")
    kind, body = writer(event)
    return {"timestamp": event.timestamp, "event_type": kind, "event": body}


# --- What Batsim says ---


def _begins(event: m.SimulationBegins) -> _Written:
    data = event.data
    facts = data.batsim if data.batsim is not UNSET else m.BatsimFacts()
    lists: Any = data.external_events if data.external_events is not UNSET else {}
    return "SimulationBeginsEvent", {
        "batsim_version": facts.version,
        "batsim_commit": facts.commit,
        "host_number": data.nb_resources,
        "computation_host_number": data.nb_compute_resources,
        "computation_hosts": [_host(resource) for resource in data.compute_resources],
        "storage_host_number": data.nb_storage_resources,
        "storage_hosts": [_host(resource) for resource in data.storage_resources],
        "batsim_arguments": facts.arguments,
        "batsim_execution_context_json": facts.context,
        "workloads": [{"name": name, "filename": file} for name, file in data.workloads.items()],
        "external_events": [{"name": name, "filename": file} for name, file in lists.items()],
        "profiles": [
            write_wire_profile(f"{workload}!{name}", profile)
            for workload, profiles in data.profiles.items()
            for name, profile in profiles.items()
        ],
    }


def _host(resource: m.Resource) -> dict[str, Any]:
    speeds: Any = resource.speeds if resource.speeds is not UNSET else ()
    return {
        "id": resource.id,
        "name": resource.name,
        "pstate": 0 if resource.pstate is UNSET else resource.pstate,
        "pstate_count": max(len(speeds), 1),
        "state": resource.state.upper(),
        "properties": _pairs(resource.properties),
        "zone_properties": _pairs(resource.zone_properties),
        "core_count": 1 if resource.cores is UNSET else resource.cores,
        "computation_speed": speeds,
    }


def _pairs(properties: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in properties.items()]


def _jobs(event: m.JobSubmitted | m.JobCompleted | m.JobKilled) -> _Written:
    """What becomes of jobs, with the profiles that go with it."""
    if isinstance(event, m.JobCompleted):
        done = event.data
        body: dict[str, Any] = {"job_id": done.job_id, "state": done.job_state}
        return "JobCompletedEvent", {**body, "return_code": done.return_code % 2**32}
    if isinstance(event, m.JobKilled):
        killed = event.data
        profiles: Any = killed.profiles if killed.profiles is not UNSET else {}
        progresses = killed.job_progress.items()
        return "JobsKilledEvent", {
            "job_ids": killed.job_ids,
            "progresses": [{"job_id": job, "wrapper": _progress(progress)} for job, progress in progresses],
            "profiles": [write_wire_profile(name, profile) for name, profile in profiles.items()],
        }
    data, described = event.data, _job(event.data.job)
    if "!" not in described["profile_id"]:  # of the job's workload
        described["profile_id"] = f"{data.job_id.partition('!')[0]}!{described['profile_id']}"
    body = {"job_id": data.job_id, "job": described, "submission_time": data.job.subtime}
    if data.profile is not UNSET:
        body["profile"] = write_wire_profile(described["profile_id"], data.profile)
    return "JobSubmittedEvent", body


def _job(job: m.JobDescription) -> dict[str, Any]:
    """A job without its id."""
    fields = job.fields
    walltime = fields.get("walltime", -1)
    body = {"resource_request": fields["res"], "walltime": None if walltime == -1 else walltime}
    extra = fields.get("extra_data")
    if extra is None:
        extra = {name: value for name, value in fields.items() if name not in _JOB_FIELDS}
    if not isinstance(extra, str):  # JSON, empty where there is nothing
        extra = json.dumps(extra, separators=(",", ":"), ensure_ascii=False) if extra else ""
    return {**body, "extra_data": extra, "profile_id": fields["profile"]}


_JOB_FIELDS = ("id", "res", "subtime", "walltime", "profile", "extra_data")


def _progress(progress: m.TaskProgress) -> dict[str, Any]:
    if progress.current_task is UNSET:
        body: dict[str, Any] = {"profile_id": progress.profile_name, "progress": progress.progress}
        return {"kill_progress_type": "KillProgressAtomicProfile", "kill_progress": body}
    repetition = 0 if progress.current_repetition is UNSET else progress.current_repetition
    body = {
        "profile_id": progress.profile_name,
        "current_repetition": repetition,
        "current_task_index": progress.current_task_index,
        "current_task_progress": _progress(progress.current_task),
    }
    return {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": body}


# --- What a decision process says ---


def _hello(event: m.Hello) -> _Written:
    data = event.data
    features = _set(**msgspec.structs.asdict(data.features))
    return "EDCHelloEvent", {
        "batprotocol_version": data.protocol_version,
        "decision_component_name": data.name,
        "decision_component_version": data.version,
        "decision_component_commit": data.commit,
        "requested_simulation_features": features,
    }


def _execute(event: m.ExecuteJob) -> _Written:
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
    body: dict[str, Any] = {
        "job_id": data.job_id,
        "allocation": {"host_allocation": data.alloc, "executor_placement_type": kind, "executor_placement": placement},
    }
    body |= _set(profile_allocation_override=data.overrides)
    if data.storage_mapping is not UNSET:
        storage = data.storage_mapping.items()
        body["storage_placement"] = [{"storage_name": name, "host_id": host} for name, host in storage]
    return "ExecuteJobEvent", body


def _registration(event: m.RegisterJob | m.RegisterProfile) -> _Written:
    data = event.data
    if isinstance(data, m.RegisterProfileData):
        profile = write_wire_profile(f"{data.workload_name}!{data.profile_name}", data.profile)
        return "RegisterProfileEvent", {"profile": profile}
    job = {name: value for name, value in _job(data.job).items() if value not in (None, "")}
    return "RegisterJobEvent", {"job_id": data.job_id, "job": job}


# --- What both say ---


def _calls(event: m.CallMeLater | m.RequestedCall) -> _Written:
    """A call that is asked for, or is made."""
    if event.data.call_id is UNSET:
        raise ValueError(f"a call of Batsim 5 {'needs' if isinstance(event, m.CallMeLater) else 'has'} an id")
    body: dict[str, Any] = {"call_me_later_id": event.data.call_id}
    if isinstance(event, m.RequestedCall):
        return "RequestedCallEvent", {**body, "last_periodic_call": event.data.last is True}
    data = event.data
    if data.periodic is not UNSET:
        return "CallMeLaterEvent", {**body, "when_type": "Periodic", "when": _periodic(data.periodic)}
    when: dict[str, Any] = {"time": round(data.timestamp)}
    if data.unit == "ms":
        when = {"time": round(data.timestamp * 1000), "time_unit": "Millisecond"}
    return "CallMeLaterEvent", {**body, "when_type": "OneShot", "when": when}


def _periodic(periodic: m.Periodic) -> dict[str, Any]:
    body: dict[str, Any] = {"period": periodic.period}
    if periodic.unit == "ms":
        body["time_unit"] = "Millisecond"
    if periodic.times is None:
        return {**body, "mode_type": "Infinite", "mode": {}}
    return {**body, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": periodic.times}}


def _probes(event: m.CreateProbe | m.ProbeDataEmitted) -> _Written:
    """A probe that is asked for, or what it measured."""
    body: dict[str, Any] = {"probe_id": event.data.probe_id, "resources_type": "HostResources"}
    body["resources"] = {"host_ids": event.data.hosts}
    if isinstance(event, m.ProbeDataEmitted):
        several = isinstance(event.data.value, tuple)
        return "ProbeDataEmittedEvent", {
            **body,
            "metrics": event.data.metrics,
            "data_type": "VectorialProbeData" if several else "AggregatedProbeData",
            "data": {"data": event.data.value},
            "manually_triggered": False,
            "nb_emitted": 0,
            "nb_triggered": 0,
        }
    body |= {
        "metrics": "Power",
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
            "temporal_trigger": _periodic(event.data.periodic),
        },
        "resources_aggregation_function_type": event.data.aggregation,
        "resources_aggregation_function": {},
        "temporal_aggregation_function_type": "NoTemporalAggregation",
        "temporal_aggregation_function": {},
        "emission_filtering_policy_type": "NoFiltering",
        "emission_filtering_policy": {},
    }
    return "CreateProbeEvent", body | event.data.rest


def _set(**fields: Any) -> dict[str, Any]:
    """The fields that are set."""
    return {name: value for name, value in fields.items() if value is not UNSET}


def _switch(event: m.ResourceStateChanged | m.SetResourceState) -> _Written:
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


def _events(event: m.Notify | m.ExternalEvent) -> _Written:
    """An event from outside, or what has no more than its type."""
    if isinstance(event, m.ExternalEvent):
        data = event.data
        body = {"id": data.id, "external_event_type": data.kind, "external_event": {"data": data.text}}
        return "ExternalEventOccurredEvent", body
    if event.data.type not in _NOTIFICATIONS:
        raise ValueError(f"Batsim 5 has no notification {event.data.type!r}")
    return _NOTIFICATIONS[event.data.type], {}


_WRITERS: Mapping[type[Event], Callable[[Any], _Written]] = {
    m.SimulationBegins: _begins,
    m.SimulationEnds: lambda event: ("SimulationEndsEvent", {}),
    m.JobSubmitted: _jobs,
    m.JobCompleted: _jobs,
    m.JobKilled: _jobs,
    m.ResourceStateChanged: _switch,
    m.RequestedCall: _calls,
    m.Notify: _events,
    m.ExternalEvent: _events,
    m.ProbeDataEmitted: _probes,
    m.Hello: _hello,
    m.RejectJob: lambda event: ("RejectJobEvent", {"job_id": event.data.job_id}),
    m.ExecuteJob: _execute,
    m.CallMeLater: _calls,
    m.StopCall: lambda event: ("StopCallMeLaterEvent", {"call_me_later_id": event.data.call_id}),
    m.KillJob: lambda event: ("KillJobsEvent", {"job_ids": event.data.job_ids}),
    m.RegisterJob: _registration,
    m.RegisterProfile: _registration,
    m.SetResourceState: _switch,
    m.CreateProbe: _probes,
    m.StopProbe: lambda event: ("StopProbeEvent", {"probe_id": event.data.probe_id}),
    m.ForceStop: lambda event: ("ForceSimulationStopEvent", {}),
}
