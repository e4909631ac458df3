"""Batsim 5's own events as they are on the wire, which may have more fields than these, and what each says."""

from typing import Any

from msgspec import UNSET, Struct

from decision.protocol import messages as m
from decision.protocol.messages import Event

from .parts import FromBatsim, UInt32, WireJob, WireProfile, notice, wire_events

_SIGN = 2**31


class _Submission(Struct, frozen=True):
    job_id: str
    job: WireJob
    submission_time: float = 0.0
    profile: WireProfile | None = None


def _job_submitted(time: float, said: _Submission) -> Event:
    profile: Any = UNSET if said.profile is None else said.profile.build()
    job = said.job.build(said.job_id, said.submission_time)
    return m.JobSubmitted(time, m.JobSubmittedData(said.job_id, job, profile))


class _Completion(Struct, frozen=True):
    job_id: str
    state: m.FinalStateName
    return_code: UInt32 = 0


def _job_completed(time: float, said: _Completion) -> Event:
    code = (said.return_code + _SIGN) % (2 * _SIGN) - _SIGN
    return m.JobCompleted(time, m.JobCompletedData(said.job_id, said.state, code, ""))


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


def _jobs_killed(time: float, said: _Kills) -> Event:
    progress = {one.job_id: one.wrapper.kill_progress.build() for one in said.progresses}
    profiles = {profile.id: profile.build() for profile in said.profiles}
    return m.JobKilled(time, m.JobKilledData(said.job_ids, progress, profiles or UNSET))


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
    profiles: tuple[WireProfile, ...] = ()


def _simulation_begins(time: float, said: _Beginning) -> Event:
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
    return m.SimulationBegins(time, data)


class _Text(Struct, frozen=True):
    data: str


class _Occurrence(Struct, frozen=True):
    id: str
    external_event_type: str
    external_event: _Text


def _external_event_occurred(time: float, said: _Occurrence) -> Event:
    data = m.ExternalEventData(said.id, said.external_event.data, said.external_event_type)
    return m.ExternalEvent(time, data)


class _Call(Struct, frozen=True):
    call_me_later_id: str
    last_periodic_call: bool = False


def _requested_call(time: float, said: _Call) -> Event:
    return m.RequestedCall(time, m.RequestedCallData(said.call_me_later_id, said.last_periodic_call))


# --- Hosts ---------------------------------------------------------------------------------------------------


class _Switch(Struct, frozen=True):
    host_ids: str
    state: m.Natural


def _hosts_turned_on_off(time: float, said: _Switch) -> Event:
    data = m.ResourceStateChangedData(said.host_ids, str(said.state), at_once=False)
    return m.ResourceStateChanged(time, data)


class _Change(Struct, frozen=True):
    host_ids: str
    pstate: m.Natural


def _hosts_pstate_changed(time: float, said: _Change) -> Event:
    data = m.ResourceStateChangedData(said.host_ids, str(said.pstate), at_once=True)
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


def _probe_data_emitted(time: float, said: _Emission) -> Event:
    data = m.ProbeData(said.probe_id, said.resources.host_ids, said.data.data, said.metrics)
    return m.ProbeDataEmitted(time, data)


BatsimWire: Any = wire_events(
    FromBatsim,
    {
        "JobSubmittedEvent": (_Submission, _job_submitted),
        "JobCompletedEvent": (_Completion, _job_completed),
        "JobsKilledEvent": (_Kills, _jobs_killed),
        "SimulationBeginsEvent": (_Beginning, _simulation_begins),
        "SimulationEndsEvent": (m.NoData, lambda time, _: m.SimulationEnds(time)),
        "AllStaticJobsHaveBeenSubmittedEvent": (m.NoData, notice("no_more_static_job_to_submit")),
        "AllStaticExternalEventsHaveBeenInjectedEvent": (m.NoData, notice("no_more_external_event_to_occur")),
        "ExternalEventOccurredEvent": (_Occurrence, _external_event_occurred),
        "RequestedCallEvent": (_Call, _requested_call),
        "HostsTurnedOnOffEvent": (_Switch, _hosts_turned_on_off),
        "HostsPStateChangedEvent": (_Change, _hosts_pstate_changed),
        "ProbeDataEmittedEvent": (_Emission, _probe_data_emitted),
    },
)
