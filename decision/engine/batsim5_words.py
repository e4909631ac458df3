"""What Batsim 5 says and writes otherwise than Batsim 4: its messages, and changes of pstate in its files."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from decision import __version__
from decision.model.hosts import parse_hosts
from decision.model.platform import Host, Platform
from decision.model.record import PstateTable, RunRecord
from decision.model.workload import Composed, Job, MachineEvent, Workload
from decision.protocol import messages as m

from . import batsim_words as words
from .compiled import CompiledEngine
from .rules import EngineOptions
from .truth import LeafTask


def simulation_begins_message(
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
        compute_resources=tuple(_resource(host) for host in platform.hosts),
        storage_resources=tuple(_resource(host) for host in platform.storage),
        workloads={workload.name: workload.path for workload in workloads},
        profiles={
            workload.name: {name: profile(name, workload) for name in sorted(workload.profiles)} if all_profiles else {}
            for workload in workloads
        },
        external_events=dict(lists),
        batsim=facts,
    )
    return m.SimulationBegins(0.0, data)


def own_facts(arguments: Sequence[str] = (), context: str = "{}") -> m.BatsimFacts:
    """What our engine says about itself as a Batsim 5."""
    return m.BatsimFacts(f"v5.0.0-rc2 (decision {__version__})", "", tuple(arguments), context)


def _resource(host: Host) -> m.Resource:
    speeds = tuple(pstate.speed for pstate in host.pstates)
    properties, zone = (dict(sorted(some.items())) for some in (host.properties, host.zone_properties))
    if not properties.get("role"):
        properties.pop("role", None)
    return m.Resource(host.id, host.name, "idle", properties, zone, host.initial_pstate, host.cores, speeds)


def profile(name: str, workload: Workload) -> dict[str, Any]:
    """A profile's object, in which its parts have their full names."""
    fields = words.profile_object(name, workload)
    if "seq" in fields:
        parts = [full(part, workload) for part in fields["seq"]]
        fields = {**fields, "seq": parts, "repeat": fields.get("repeat", 1)}
    return fields


def full(name: str, workload: Workload) -> str:
    """A profile's id; one that came from another workload has it as its name."""
    moved = "!" in name and name not in workload.profile_sources
    return name if moved else f"{workload.name}!{name}"


def job_submitted_message(time: float, job: Job, workload: Workload, options: EngineOptions) -> m.JobSubmitted:
    """A job arrives, or is acknowledged."""
    fields = {**words.job_fields(job), "profile": full(job.profile, workload), "subtime": job.submit_time}
    if fields.get("walltime") == 0:
        del fields["walltime"]  # which Batsim says of a positive one only
    forwarded: Any = profile(job.profile, workload) if options.forward_profiles else UNSET
    return m.JobSubmitted(time, m.JobSubmittedData(job.id, m.JobDescription(**fields), forwarded))


def task_progress_message(leaf: LeafTask, share: float, workload: Workload) -> m.TaskProgress:
    """How far a leaf task is, within the composed profiles around it."""
    progress = m.TaskProgress(full(leaf.profile, workload), share)
    for name, index in reversed(leaf.path):
        around = workload.profiles[name]
        parts = len(around.sequence) if isinstance(around, Composed) else 1
        at, repetition = index % parts, index // parts
        progress = m.TaskProgress(full(name, workload), UNSET, at, progress, repetition)
    return progress


def external_event_message(time: float, event: MachineEvent) -> m.ExternalEvent:
    """An external event happened, which means nothing to Batsim."""
    source = msgspec.json.decode(event.source)
    return m.ExternalEvent(time, m.ExternalEventData(source["id"], source["data"]))


def stamped(event: m.BatsimEvent, before: float) -> m.BatsimEvent:
    """An event with Batsim 5's time: that of what came before it for switches, external events and kills of none."""
    none = isinstance(event, m.JobKilled) and not event.data.job_progress
    stale = none or isinstance(event, m.ExternalEvent | m.ResourceStateChanged)
    return msgspec.structs.replace(event, timestamp=before) if stale else event


# --- What it writes of changes of pstate -----------------------------------------------------------------------------


def with_changes_at_once(record: RunRecord, engine: CompiledEngine, at_once: Collection[int]) -> RunRecord:
    """The record as Batsim 5 writes it; `at_once` are the numbers of requests to switch that took no time."""
    return msgspec.structs.replace(
        record,
        pstates=_pstates(record, engine, at_once),
        nb_switches=record.nb_switches - sum(len(parse_hosts(engine.switched_hosts(r))) for r in at_once),
        nb_grouped_switches=record.nb_grouped_switches - len(at_once),
    )


def _pstates(record: RunRecord, engine: CompiledEngine, at_once: Collection[int]) -> PstateTable | None:
    """The pstate trace, in which a change that takes no time has one row."""
    table = record.pstates
    if table is None or not at_once:
        return table
    number = engine.world.sim.nb_pstate_rows
    requests, values = engine.world.rows.pstate_switch[:number], engine.world.rows.pstate_value[:number]
    begun = np.isin(requests, list(at_once)) & (values < 0)
    keep = np.concatenate([np.ones(len(table.time) - number, bool), ~begun])
    hosts = [text for text, stays in zip(table.hosts, keep.tolist(), strict=True) if stays]
    return PstateTable(time=table.time[keep], hosts=hosts, pstate=table.pstate[keep])
