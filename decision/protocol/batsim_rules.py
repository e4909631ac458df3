"""What Batsim may send: a rule for each kind of its events, which checks it and enters it in the ledger."""

from functools import partial

from . import messages as m
from .ledger import (
    HAS_ENDED,
    IS_RUNNING,
    IS_WAITING,
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

_MACHINE_EVENTS = frozenset({"event_machine_available", "event_machine_unavailable"})


def _begins(ledger: Ledger, event: m.SimulationBegins) -> None:
    if ledger.begun:
        raise RefusalError("the simulation has already begun")
    config = event.data.config
    if config.redis_enabled:
        raise RefusalError("the jobs are kept in Redis, which is not supported; start Batsim without --enable-redis")
    ledger.begun = True
    if not ledger.version.begins_with_init:
        ledger.dynamic_jobs = config.dynamic_jobs_enabled
        ledger.acknowledges = config.dynamic_jobs_acknowledged


def _ends(ledger: Ledger, event: m.SimulationEnds) -> None:
    if ledger.over:
        raise RefusalError("the simulation has already ended")
    ledger.over = True


def _submitted(ledger: Ledger, event: m.JobSubmitted) -> None:
    job_id = event.data.job_id
    require_walltime(event.data.job, job_id)
    if job_id not in ledger.jobs:
        ledger.jobs[job_id] = IS_WAITING
    elif job_id in ledger.unacknowledged:
        ledger.unacknowledged.remove(job_id)
    else:
        raise RefusalError(f"job {shortened_line(job_id)} was already submitted")


def _completed(ledger: Ledger, event: m.JobCompleted) -> None:
    ledger.move(event.data.job_id, IS_RUNNING, HAS_ENDED, "completes")
    if ledger.version.says_allocations:
        require_hosts(event.data.alloc, "alloc")


def _killed(ledger: Ledger, event: m.JobKilled) -> None:
    # A job that ended by itself while the kill was on its way may have its JOB_COMPLETED still to come.
    for job_id in event.data.job_ids:
        if job_id not in ledger.killing:
            raise RefusalError(f"job {shortened_line(job_id)} is killed, but no KILL_JOB asked for it")
        ledger.killing.remove(job_id)


def _changed(ledger: Ledger, event: m.ResourceStateChanged) -> None:
    require_hosts(event.data.resources, "resources")


def _called(ledger: Ledger, event: m.RequestedCall) -> None:
    if ledger.version.names_calls:
        _named_call(ledger, event)
    elif not ledger.calls:
        raise RefusalError("no CALL_ME_LATER asked for it")
    else:
        ledger.calls -= 1


def _named_call(ledger: Ledger, event: m.RequestedCall) -> None:
    name = str(event.data.call_id)
    left = ledger.named_calls.get(name, 0)
    if not left:
        raise RefusalError(f"no CALL_ME_LATER asked for a call {shortened_line(name)!r}")
    if left == 1 or event.data.last is True:
        del ledger.named_calls[name]
    else:
        ledger.named_calls[name] = left - 1


def _probed(ledger: Ledger, event: m.ProbeDataEmitted) -> None:
    require_hosts(event.data.hosts, "hosts")
    if event.data.probe_id not in ledger.probes:
        raise RefusalError(f"no CREATE_PROBE asked for a probe {shortened_line(event.data.probe_id)!r}")


def _batsim_notifies(ledger: Ledger, event: m.Notify) -> None:
    if event.data.type in _MACHINE_EVENTS:
        require_hosts(event.data.resources, "resources")


def _from_job(ledger: Ledger, event: m.FromJobMsg) -> None:
    if event.data.job_id not in ledger.jobs:
        raise ledger.unfit(event.data.job_id, "sends a message")


BATSIM_RULES: Rules = {
    m.SimulationBegins: _begins,
    m.SimulationEnds: _ends,
    m.JobSubmitted: _submitted,
    m.JobCompleted: _completed,
    m.JobKilled: _killed,
    m.ResourceStateChanged: _changed,
    m.RequestedCall: _called,
    m.FromJobMsg: _from_job,
    m.Notify: _batsim_notifies,
    m.Init: require_start,
    m.ExternalEvent: nothing_to_check,
    m.ProbeDataEmitted: _probed,
    m.Query: partial(asks, "estimate_waiting_time"),
    m.Answer: partial(answers, "consumed_energy"),
}
