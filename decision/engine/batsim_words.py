"""The one writer of Batsim's words: the events of its questions, from what either engine knows; and of Batsim 5's."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from decision import __version__
from decision.files.profiles import profile_fields
from decision.model.hosts import format_hosts
from decision.model.platform import Host, Platform
from decision.model.record import FinalState
from decision.model.workload import Composed, Job, MachineEvent, Workload, used_profiles
from decision.protocol import messages as m

from .rules import DECIMALS, EngineOptions
from .truth import LeafTask

NO_MORE_JOBS = "no_more_static_job_to_submit"
NO_MORE_EVENTS = "no_more_external_event_to_occur"

_MACHINE_EVENTS = ("machine_available", "machine_unavailable")


def simulation_begins(platform: Platform, workloads: Iterable[Workload], options: EngineOptions) -> m.SimulationBegins:
    """Batsim's first event: the platform, its options, and the profiles of all workloads."""
    workloads = sorted(workloads, key=lambda workload: workload.name)
    profiles: dict[str, dict[str, Any]] = {}
    for workload in workloads:
        # Those that some job uses: Batsim drops the others when it reads the workload.
        used = used_profiles(workload.profiles, {job.profile for job in workload.jobs})
        profiles[workload.name] = {name: profile_object(name, workload) for name in workload.profiles if name in used}
    config = m.Config(
        redis_enabled=False,
        redis_hostname="127.0.0.1",
        redis_port=6379,
        redis_prefix="default",
        profiles_forwarded_on_submission=options.forward_profiles,
        dynamic_jobs_enabled=options.dynamic_jobs,
        dynamic_jobs_acknowledged=options.acknowledge_dynamic_jobs,
        profile_reuse_enabled=options.dynamic_jobs and options.profile_reuse,
        sched_config=options.sched_config,
        forward_unknown_events=options.forward_unknown_events,
    )
    data = m.SimulationBeginsData(
        nb_resources=len(platform.hosts) + len(platform.storage),
        nb_compute_resources=len(platform.hosts),
        nb_storage_resources=len(platform.storage),
        allow_compute_sharing=options.compute_sharing,
        allow_storage_sharing=True,
        config=config,
        compute_resources=tuple(_resource(host) for host in platform.hosts),
        storage_resources=tuple(_resource(host) for host in platform.storage),
        workloads={workload.name: workload.path for workload in workloads},
        profiles=profiles,
    )
    return m.SimulationBegins(0.0, data)


def profile_object(name: str, workload: Workload) -> dict[str, Any]:
    """A profile's JSON object, as its file has it where that was kept."""
    source = workload.profile_sources.get(name)
    return _as_written(msgspec.json.decode(source) if source else profile_fields(workload.profiles[name]))


def _as_written(value: Any) -> Any:
    """A value of JSON with numbers as Batsim writes them into messages."""
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, dict):
        return {name: _as_written(field) for name, field in value.items()}
    return [_as_written(item) for item in value] if isinstance(value, list | tuple) else value


def _resource(host: Host) -> m.Resource:
    properties = {"role": "", **host.properties}
    return m.Resource(host.id, host.name, "idle", properties, dict(host.zone_properties))


# --- Jobs ----------------------------------------------------------------------------------------------------


def job_submitted(time: float, job: Job, workload: Workload, options: EngineOptions) -> m.JobSubmitted:
    """A job arrives, or is acknowledged."""
    profile = profile_object(job.profile, workload) if options.forward_profiles else UNSET
    return m.JobSubmitted(time, m.JobSubmittedData(job.id, m.JobDescription(**job_fields(job)), profile))


def job_fields(job: Job) -> dict[str, Any]:
    """The job as its workload describes it, with its full id."""
    if job.source is not None:
        source: dict[str, Any] = _as_written(msgspec.json.decode(job.source))
        return source
    fields: dict[str, Any] = _as_written(job.fields(job.id))
    return fields


def job_completed(time: float, job_id: str, final: FinalState, return_code: int, alloc: str) -> m.JobCompleted:
    """A job ended, however it did."""
    state: Any = final.name
    return m.JobCompleted(time, m.JobCompletedData(job_id, state, return_code, alloc))


def job_killed(time: float, job_ids: Sequence[str], progress: Mapping[str, m.TaskProgress]) -> m.JobKilled:
    """A kill is over; jobs that had ended by themselves before are named, and have no progress."""
    return m.JobKilled(time, m.JobKilledData(tuple(job_ids), dict(progress)))


def task_progress(leaf: LeafTask, share: float) -> m.TaskProgress:
    """How far a leaf task is, within the composed profiles around it."""
    progress = m.TaskProgress(leaf.profile, progress=round(share, DECIMALS))
    for profile, index in reversed(leaf.path):
        progress = m.TaskProgress(profile, UNSET, current_task_index=index, current_task=progress)
    return progress


# --- Hosts and notifications ---------------------------------------------------------------------------------


def pstate_changed(time: float, hosts: str, pstate: int) -> m.ResourceStateChanged:
    """All hosts of a request have reached their pstate."""
    return m.ResourceStateChanged(time, m.ResourceStateChangedData(hosts, str(pstate)))


def consumed_energy(time: float, joules: float) -> m.Answer:
    """What all hosts have used so far."""
    return m.Answer(time, m.AnswerData(consumed_energy=round(joules, DECIMALS)))


def notification(time: float, kind: str) -> m.Notify:
    """One of Batsim's notifications that say nothing else."""
    return m.Notify(time, m.NotifyData(type=kind))


def external_event(time: float, event: MachineEvent) -> m.Notify:
    """An external event happened; one of a type that Batsim does not know is passed on as it is."""
    if event.type not in _MACHINE_EVENTS:
        return m.Notify(time, m.NotifyData(**msgspec.json.decode(event.source)))
    return m.Notify(time, m.NotifyData(type=f"event_{event.type}", resources=format_hosts(event.hosts)))


# --- What Batsim 5 says otherwise ------------------------------------------------------------------------------------


def simulation_begins5(
    platform: Platform,
    workloads: Iterable[Workload],
    lists: Mapping[str, str],
    facts: m.BatsimFacts,
    all_profiles: bool,
) -> m.SimulationBegins:
    """Batsim's first event; `lists` are the names and files of external events."""
    workloads = sorted(workloads, key=lambda workload: workload.name)
    data = m.SimulationBeginsData(
        nb_resources=len(platform.hosts) + len(platform.storage),
        nb_compute_resources=len(platform.hosts),
        nb_storage_resources=len(platform.storage),
        allow_compute_sharing=False,
        allow_storage_sharing=True,
        config=m.Config(),
        compute_resources=tuple(_resource5(host) for host in platform.hosts),
        storage_resources=tuple(_resource5(host) for host in platform.storage),
        workloads={workload.name: workload.path for workload in workloads},
        profiles={
            workload.name: {name: profile5(name, workload) for name in workload.profiles} if all_profiles else {}
            for workload in workloads
        },
        external_events=dict(lists),
        batsim=facts,
    )
    return m.SimulationBegins(0.0, data)


def own_facts(arguments: Sequence[str] = (), context: str = "{}") -> m.BatsimFacts:
    """What our engine says about itself as a Batsim 5."""
    return m.BatsimFacts(f"v5.0.0-rc2 (decision {__version__})", "", tuple(arguments), context)


def _resource5(host: Host) -> m.Resource:
    speeds = tuple(pstate.speed for pstate in host.pstates)
    properties, zone = (dict(sorted(some.items())) for some in (host.properties, host.zone_properties))
    if not properties.get("role"):
        properties.pop("role", None)
    return m.Resource(host.id, host.name, "idle", properties, zone, host.initial_pstate, host.cores, speeds)


def profile5(name: str, workload: Workload) -> dict[str, Any]:
    """A profile's object, in which its parts have their full names."""
    fields = profile_object(name, workload)
    if "seq" in fields:
        parts = [full_name(part, workload) for part in fields["seq"]]
        fields = {**fields, "seq": parts, "repeat": fields.get("repeat", 1)}
    return fields


def full_name(name: str, workload: Workload) -> str:
    """A profile's id; one that came from another workload has it as its name."""
    moved = "!" in name and name not in workload.profile_sources
    return name if moved else f"{workload.name}!{name}"


def job_submitted5(time: float, job: Job, workload: Workload, options: EngineOptions) -> m.JobSubmitted:
    """A job arrives, or is acknowledged."""
    fields = {**job_fields(job), "profile": full_name(job.profile, workload), "subtime": job.submit_time}
    if fields.get("walltime") == 0:
        del fields["walltime"]  # which Batsim says of a positive one only
    forwarded: Any = profile5(job.profile, workload) if options.forward_profiles else UNSET
    return m.JobSubmitted(time, m.JobSubmittedData(job.id, m.JobDescription(**fields), forwarded))


def task_progress5(leaf: LeafTask, share: float, workload: Workload) -> m.TaskProgress:
    """How far a leaf task is, within the composed profiles around it."""
    progress = m.TaskProgress(full_name(leaf.profile, workload), share)
    for name, index in reversed(leaf.path):
        around = workload.profiles[name]
        parts = len(around.sequence) if isinstance(around, Composed) else 1
        at, repetition = index % parts, index // parts
        progress = m.TaskProgress(full_name(name, workload), UNSET, at, progress, repetition)
    return progress


def external_event5(time: float, event: MachineEvent) -> m.ExternalEvent:
    """An external event happened, which means nothing to Batsim."""
    source = msgspec.json.decode(event.source)
    return m.ExternalEvent(time, m.ExternalEventData(source["id"], source["data"]))


def stamped(events: Iterable[m.BatsimEvent], before: float) -> tuple[m.BatsimEvent, ...]:
    """The events with Batsim 5's times: switches and external events have the time of the event before them."""
    with_times: list[m.BatsimEvent] = []
    for event in events:
        if isinstance(event, m.ExternalEvent | m.ResourceStateChanged):
            event = msgspec.structs.replace(event, timestamp=before)
        before = event.timestamp
        with_times.append(event)
    return tuple(with_times)
