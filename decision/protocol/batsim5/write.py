"""Batsim 5's objects for what the vocabulary of `decision.protocol.messages` says, one function an event."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .commands import COMMAND_WRITERS, Written, wire_job, write_notice, write_switch
from .parts import write_wire_profile


def wire_event(event: Event) -> dict[str, Any]:
    """An event as Batsim 5's object.

    Raises:
        ValueError: if Batsim 5 has no such event, or cannot say all that it says.
    """
    writer = _WRITERS.get(type(event))
    if writer is None:
        raise ValueError(f"Batsim 5 has no {m.event_type(event)}")
    kind, said = writer(event)
    return {"timestamp": event.timestamp, "event_type": kind, "event": said}


def _begins(event: m.SimulationBegins) -> Written:
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


def _full(name: str, job_id: str) -> str:
    """A profile's id with its workload, which is the job's where none is said."""
    return name if "!" in name else f"{job_id.partition('!')[0]}!{name}"


def _submitted(event: m.JobSubmitted) -> Written:
    data = event.data
    job = wire_job(data.job)
    job["profile_id"] = _full(job["profile_id"], data.job_id)
    said = {"job_id": data.job_id, "job": job, "submission_time": data.job.subtime}
    if data.profile is not UNSET:
        said["profile"] = write_wire_profile(job["profile_id"], data.profile)
    return "JobSubmittedEvent", said


def _completed(event: m.JobCompleted) -> Written:
    data = event.data
    said = {"job_id": data.job_id, "state": data.job_state, "return_code": data.return_code % 2**32}
    return "JobCompletedEvent", said


def _progress(progress: m.TaskProgress) -> dict[str, Any]:
    if progress.current_task is UNSET:
        said: dict[str, Any] = {"profile_id": progress.profile_name, "progress": progress.progress}
        return {"kill_progress_type": "KillProgressAtomicProfile", "kill_progress": said}
    repetition = 0 if progress.current_repetition is UNSET else progress.current_repetition
    said = {
        "profile_id": progress.profile_name,
        "current_repetition": repetition,
        "current_task_index": progress.current_task_index,
        "current_task_progress": _progress(progress.current_task),
    }
    return {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": said}


def _killed(event: m.JobKilled) -> Written:
    data = event.data
    profiles: Any = data.profiles if data.profiles is not UNSET else {}
    return "JobsKilledEvent", {
        "job_ids": data.job_ids,
        "progresses": [{"job_id": job, "wrapper": _progress(said)} for job, said in data.job_progress.items()],
        "profiles": [write_wire_profile(name, profile) for name, profile in profiles.items()],
    }


def _called(event: m.RequestedCall) -> Written:
    data = event.data
    if data.call_id is UNSET:
        raise ValueError("a call of Batsim 5 has an id")
    return "RequestedCallEvent", {"call_me_later_id": data.call_id, "last_periodic_call": data.last is True}


def _external(event: m.ExternalEvent) -> Written:
    data = event.data
    said = {"id": data.id, "external_event_type": data.kind, "external_event": {"data": data.text}}
    return "ExternalEventOccurredEvent", said


def _probed(event: m.ProbeDataEmitted) -> Written:
    data = event.data
    several = isinstance(data.value, tuple)
    return "ProbeDataEmittedEvent", {
        "probe_id": data.probe_id,
        "resources_type": "HostResources",
        "resources": {"host_ids": data.hosts},
        "metrics": data.metrics,
        "data_type": "VectorialProbeData" if several else "AggregatedProbeData",
        "data": {"data": data.value},
        "manually_triggered": False,
        "nb_emitted": 0,
        "nb_triggered": 0,
    }


_WRITERS: Mapping[type[Event], Callable[[Any], Written]] = {
    m.SimulationBegins: _begins,
    m.SimulationEnds: lambda event: ("SimulationEndsEvent", {}),
    m.JobSubmitted: _submitted,
    m.JobCompleted: _completed,
    m.JobKilled: _killed,
    m.ResourceStateChanged: write_switch,
    m.RequestedCall: _called,
    m.Notify: write_notice,
    m.ExternalEvent: _external,
    m.ProbeDataEmitted: _probed,
    **COMMAND_WRITERS,
}
