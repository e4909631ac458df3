"""What the reference engine tells of its platform, its workloads and its options."""

from collections.abc import Iterable
from typing import Any

import msgspec

from decision.formats.profiles import profile_fields
from decision.model.platform import Host, Platform
from decision.model.workload import Workload, used_profiles
from decision.protocol import Config, Resource, SimulationBegins, SimulationBeginsData

from .options import EngineOptions


def simulation_begins(platform: Platform, workloads: Iterable[Workload], options: EngineOptions) -> SimulationBegins:
    """Batsim's first event."""
    workloads = sorted(workloads, key=lambda workload: workload.name)
    data = SimulationBeginsData(
        nb_resources=len(platform.hosts) + len(platform.storage),
        nb_compute_resources=len(platform.hosts),
        nb_storage_resources=len(platform.storage),
        allow_compute_sharing=False,
        allow_storage_sharing=True,
        config=_config(options),
        compute_resources=tuple(_resource(host) for host in platform.hosts),
        storage_resources=tuple(_resource(host) for host in platform.storage),
        workloads={workload.name: workload.path for workload in workloads},
        profiles={workload.name: _profiles(workload) for workload in workloads},
    )
    return SimulationBegins(0.0, data)


def profile_object(name: str, workload: Workload) -> dict[str, Any]:
    """A profile's JSON object, as its file has it where that was kept."""
    source = workload.profile_sources.get(name)
    fields: dict[str, Any] = msgspec.json.decode(source) if source else profile_fields(workload.profiles[name])
    return fields


def _profiles(workload: Workload) -> dict[str, dict[str, Any]]:
    """The profiles that some job uses: Batsim drops the others when it reads the workload."""
    used = used_profiles(workload.profiles, {job.profile for job in workload.jobs})
    return {name: profile_object(name, workload) for name in workload.profiles if name in used}


def _config(options: EngineOptions) -> Config:
    return Config(
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


def _resource(host: Host) -> Resource:
    properties = {"role": "", **host.properties}
    return Resource(host.id, host.name, "idle", properties, dict(host.zone_properties))
