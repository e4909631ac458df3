"""What a decision process may send: a rule for each kind of its events, which checks it and enters it in the ledger."""

import math
from collections.abc import Mapping
from functools import partial

from msgspec import UNSET

from decision.model.workload import unloadable_part

from . import messages as m
from .ledger import (
    HAS_ENDED,
    IS_RUNNING,
    IS_WAITING,
    LATEST,
    JobStage,
    Ledger,
    RefusalError,
    Rules,
    answers,
    asks,
    nothing_to_check,
    require_hosts,
    require_start,
    require_walltime,
    shortened_line,
)

_CHANGES: Mapping[JobStage, Mapping[str, JobStage]] = {
    IS_WAITING: {"RUNNING": IS_RUNNING, "REJECTED": HAS_ENDED},
    IS_RUNNING: {
        "COMPLETED_SUCCESSFULLY": HAS_ENDED,
        "COMPLETED_WALLTIME_REACHED": HAS_ENDED,
        "COMPLETED_KILLED": HAS_ENDED,
    },
    HAS_ENDED: {},
}


def _hello(ledger: Ledger, event: m.Hello) -> None:
    require_start(ledger, event)
    ledger.dynamic_jobs = bool(event.data.features.dynamic_registration)
    ledger.acknowledges = bool(event.data.features.acknowledge_dynamic_jobs)


def _reject(ledger: Ledger, event: m.RejectJob) -> None:
    ledger.move(event.data.job_id, IS_WAITING, HAS_ENDED, "is rejected")


def _execute(ledger: Ledger, event: m.ExecuteJob) -> None:
    data = event.data
    ledger.move(data.job_id, IS_WAITING, IS_RUNNING, "is executed")
    require_hosts(data.alloc, "alloc")
    if (data.mapping, data.storage_mapping, data.additional_io_job).count(UNSET) < 2:
        raise RefusalError(
            f"job {shortened_line(data.job_id)} has several of mapping, storage_mapping, additional_io_job; "
            "Batsim takes one"
        )


def _call_by_name(ledger: Ledger, event: m.CallMeLater) -> None:
    name, periodic = event.data.call_id, event.data.periodic
    if not name or name is UNSET:
        raise RefusalError("its call has no name, with which Batsim stops")
    if periodic is UNSET:
        if event.data.timestamp > LATEST:
            raise RefusalError(f"a call at {event.data.timestamp} s is later than {LATEST:g} s")
        ledger.named_calls[name] = ledger.named_calls.get(name, 0) + 1
        ledger.periodic_calls.discard(name)
    elif name in ledger.named_calls:
        raise RefusalError(f"there is a call {shortened_line(name)!r} already")
    else:
        ledger.named_calls[name] = math.inf if periodic.times is None else periodic.times
        ledger.periodic_calls.add(name)


def _stop_call(ledger: Ledger, event: m.StopCall) -> None:
    if event.data.call_id in ledger.periodic_calls:  # Batsim takes the stop of any other, which has no effect
        ledger.periodic_calls.discard(event.data.call_id)
        ledger.named_calls.pop(event.data.call_id, None)


def _create_probe(ledger: Ledger, event: m.CreateProbe) -> None:
    require_hosts(event.data.hosts, "hosts")
    if event.data.probe_id in ledger.probes:
        raise RefusalError(f"there is a probe {shortened_line(event.data.probe_id)!r} already")
    ledger.probes.add(event.data.probe_id)


def _call_later(ledger: Ledger, event: m.CallMeLater) -> None:
    if ledger.version.names_calls:
        _call_by_name(ledger, event)
        return
    if LATEST < event.data.timestamp < math.inf:
        raise RefusalError(f"a call at {event.data.timestamp} s is later than {LATEST:g} s")
    if not event.timestamp < event.data.timestamp < math.inf:
        raise RefusalError(f"a call at {event.data.timestamp} s is not in the future")
    ledger.calls += 1


def _kill(ledger: Ledger, event: m.KillJob) -> None:
    if not event.data.job_ids:
        raise RefusalError("it names no job")
    for job_id in event.data.job_ids:
        ledger.require_remembered(job_id, "is killed")
        if ledger.jobs[job_id] is IS_WAITING:
            raise ledger.unfit(job_id, "is killed")
        if job_id in ledger.killing and ledger.version.kills_once:
            raise RefusalError(f"job {shortened_line(job_id)} is being killed already")
    ledger.killing.update(event.data.job_ids)


def _register_job(ledger: Ledger, event: m.RegisterJob) -> None:
    ledger.require_registration()
    job_id = event.data.job_id
    if job_id in ledger.jobs:
        raise RefusalError(f"job {shortened_line(job_id)} already exists")
    if job_id.count("!") != 1:
        raise RefusalError(f"the job's id {shortened_line(job_id)!r} is not of the form WORKLOAD!NAME")
    if odd := unloadable_part(job_id):
        raise RefusalError(f"the job's id {shortened_line(job_id)} contains {odd!r}, which Batsim cannot load")
    if ledger.version.asks_to_register or event.data.job.walltime != 0:  # Batsim 5 stops such a job at once
        require_walltime(event.data.job, job_id)
    ledger.jobs[job_id] = IS_WAITING
    if ledger.acknowledges:
        ledger.unacknowledged.add(job_id)


def _register_profile(ledger: Ledger, event: m.RegisterProfile) -> None:
    ledger.require_registration()


def _set_state(ledger: Ledger, event: m.SetResourceState) -> None:
    require_hosts(event.data.resources, "resources")
    if not (event.data.state.isascii() and event.data.state.isdigit()):
        raise RefusalError(f"state {shortened_line(event.data.state)!r} is not the number of a pstate")


def _set_metadata(ledger: Ledger, event: m.SetJobMetadata) -> None:
    ledger.require_remembered(event.data.job_id, "is given metadata")
    if '"' in event.data.metadata:
        raise RefusalError(
            f"the metadata of job {shortened_line(event.data.job_id)} has a double quote, which Batsim cannot write"
        )


def _change_state(ledger: Ledger, event: m.ChangeJobState) -> None:
    job_id, name = event.data.job_id, event.data.job_state
    state = ledger.jobs.get(job_id)
    if state is None or name not in _CHANGES[state]:
        raise ledger.unfit(job_id, f"is changed to {shortened_line(name)}")
    ledger.jobs[job_id] = _CHANGES[state][name]


def _decision_notifies(ledger: Ledger, event: m.Notify) -> None:
    finished = {"registration_finished": True, "continue_registration": False}.get(event.data.type)
    if finished is None:
        raise RefusalError(f"Batsim does not know the notification {shortened_line(event.data.type)!r}")
    ledger.registration_finished = finished


def _to_job(ledger: Ledger, event: m.ToJobMsg) -> None:
    ledger.require_remembered(event.data.job_id, "gets a message")


DECISION_RULES: Rules = {
    m.RejectJob: _reject,
    m.ExecuteJob: _execute,
    m.CallMeLater: _call_later,
    m.KillJob: _kill,
    m.RegisterJob: _register_job,
    m.RegisterProfile: _register_profile,
    m.SetResourceState: _set_state,
    m.SetJobMetadata: _set_metadata,
    m.ChangeJobState: _change_state,
    m.ToJobMsg: _to_job,
    m.Notify: _decision_notifies,
    m.Hello: _hello,
    m.StopCall: _stop_call,
    m.CreateProbe: _create_probe,
    m.StopProbe: nothing_to_check,
    m.ForceStop: nothing_to_check,
    m.Query: partial(asks, "consumed_energy"),
    m.Answer: partial(answers, "estimate_waiting_time"),
}
