"""What each end may send in a version of the protocol: one rule for each kind of event and sender."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from typing import Any

from msgspec import UNSET

from decision.model.workload import unloadable_part

from . import messages as m
from .messages import Answer, Event, JobDescription, Query, Role, event_type
from .versions import Version

# What the two ends have sent each other about jobs, calls and queries: enough to detect an impossible event.


class RefusalError(Exception):
    """Why a message cannot be accepted, in one line; `Connection` adds who is to blame."""


class JobStage(Enum):
    """What is known about a job; the values complete the sentence "the job ..."."""

    WAITING = "is waiting"
    RUNNING = "is running"
    ENDED = "has ended"


IS_WAITING, IS_RUNNING, HAS_ENDED = JobStage  # as attributes of the class they take ten times as long
_HOSTS = re.compile(r"\d+(-\d+)?( \d+(-\d+)?)*", re.ASCII).fullmatch
LATEST = 1e12  # seconds, 30,000 years: the decision process cannot want to wait longer


class Ledger:
    """The conversation's memory. It is the same at both ends.

    Args:
        version: of the protocol.
        rules: what each end may send. A rule checks its event against the ledger, enters it, and raises `RefusalError`
            if the event is impossible: Batsim stops on most of these without a useful message.
    """

    def __init__(self, version: Version, rules: Mapping[Role, "Rules"]) -> None:
        self.version = version
        self._rules = rules
        self.jobs: dict[str, JobStage] = {}
        self.unacknowledged: set[str] = set()  # registered jobs whose JOB_SUBMITTED is still to come
        self.killing: set[str] = set()  # jobs whose JOB_KILLED is still to come
        self.calls = 0  # REQUESTED_CALLs still to come, where they have no names
        self.named_calls: dict[str, float] = {}  # how often each call is still to come
        self.periodic_calls: set[str] = set()  # those of them that can be stopped
        self.probes: set[str] = set()  # that were not stopped
        self.asked: Counter[str] = Counter()  # ANSWERs still to come, by request
        self.begun = False
        self.over = False
        self.dynamic_jobs = False
        self.acknowledges = False
        self.registration_finished = False

    def enter(self, sender: Role, event: Event) -> None:
        """Check an event of `sender` and remember it.

        Raises:
            RefusalError: if it cannot be sent now.
        """
        rule = self._rules[sender].get(type(event))
        if rule is not None:
            rule(self, event)
        elif event_type(event) in self.version.lacks:
            raise RefusalError(f"Batsim {self.version.name} has no such event")
        else:
            raise RefusalError("only the other side may send this event")

    def move(self, job_id: str, old: JobStage, new: JobStage, done: str) -> None:
        """Take a job from one state to the next; `done` says what is being done to it."""
        if self.jobs.get(job_id) is not old:
            raise self.unfit(job_id, done)
        self.jobs[job_id] = new

    def unfit(self, job_id: str, done: str) -> RefusalError:
        """The refusal of an event that does not fit the job's state."""
        state = self.jobs.get(job_id)
        why = "was never submitted" if state is None else state.value
        return RefusalError(f"job {shortened_line(job_id)} {done}, but it {why}")

    def require_remembered(self, job_id: str, done: str) -> None:
        """Refuse a command about a job that Batsim does not know or has forgotten."""
        state = self.jobs.get(job_id)
        if state is None or (state is HAS_ENDED and self.version.forgets_ended_jobs):
            raise self.unfit(job_id, done)


def shortened_line(text: str) -> str:
    """A text of the peer, shortened to one line."""
    return text if text.isprintable() and len(text) < 80 else repr(text[:80])


def require_hosts(text: str, where: str) -> None:
    """Refuse a text that is not a set of hosts; `where` it stands."""
    if not _HOSTS(text):
        raise RefusalError(f"{where} {shortened_line(text)!r} is not a set of hosts like '0-3 7'")


def require_walltime(job: JobDescription, job_id: str) -> None:
    """Refuse a walltime that is none."""
    if not job.walltime > 0:
        raise RefusalError(
            f"job {shortened_line(job_id)} has walltime {job.walltime}; it must be positive, or -1 for none"
        )


def require_start(ledger: Ledger, event: Event) -> None:
    """Refuse what comes only before the simulation begins."""
    if ledger.begun:
        raise RefusalError("the simulation has already begun")


def nothing_to_check(ledger: Ledger, event: Event) -> None:
    """An event that is always possible, or whose place the phases of the conversation check."""


def require_topic(topic: str, request: Any) -> None:
    """Refuse requests or answers about anything but the one topic that their sender may use."""
    topics = [name for name in request.__struct_fields__ if getattr(request, name) is not UNSET]
    if topics != [topic]:
        raise RefusalError(f"it must be about {topic}, and is about {' and '.join(topics) or 'nothing'}")


def asks(topic: str, ledger: Ledger, event: Query) -> None:
    """A query about the topic."""
    require_topic(topic, event.data.requests)
    ledger.asked[topic] += 1


def answers(topic: str, ledger: Ledger, event: Answer) -> None:
    """The answer to a query about the topic, which must have been asked."""
    require_topic(topic, event.data)
    if not ledger.asked[topic]:
        raise RefusalError(f"no QUERY asked for {topic}")
    answer = getattr(event.data, topic)
    if not math.isfinite(answer if isinstance(answer, float | int) else answer.estimated_waiting_time):
        raise RefusalError(f"{topic} is not a finite number")
    ledger.asked[topic] -= 1


Rules = Mapping[type[Event], Callable[[Ledger, Any], None]]


def describe_event(event: Event) -> str:
    """An event in an error message: its type and its time."""
    return f"{event_type(event)} at {event.timestamp} s"


# What Batsim may send: a rule for each kind of its events, which checks it and enters it in the ledger.

_MACHINE_EVENTS = frozenset({"event_machine_available", "event_machine_unavailable"})


def _simulation(ledger: Ledger, event: m.SimulationBegins | m.SimulationEnds) -> None:
    """The simulation begins once, and ends once."""
    if isinstance(event, m.SimulationEnds):
        if ledger.over:
            raise RefusalError("the simulation has already ended")
        ledger.over = True
        return
    if ledger.begun:
        raise RefusalError("the simulation has already begun")
    config = event.data.config
    if config.redis_enabled:
        raise RefusalError("the jobs are kept in Redis, which is not supported; start Batsim without --enable-redis")
    ledger.begun = True
    if not ledger.version.begins_with_init:
        ledger.dynamic_jobs = config.dynamic_jobs_enabled
        ledger.acknowledges = config.dynamic_jobs_acknowledged


def _jobs(ledger: Ledger, event: m.JobSubmitted | m.JobCompleted | m.JobKilled | m.FromJobMsg) -> None:
    """What becomes of jobs, and what they say."""
    match event:
        case m.JobSubmitted():
            job_id = event.data.job_id
            require_walltime(event.data.job, job_id)
            if job_id not in ledger.jobs:
                ledger.jobs[job_id] = IS_WAITING
            elif job_id in ledger.unacknowledged:
                ledger.unacknowledged.remove(job_id)
            else:
                raise RefusalError(f"job {shortened_line(job_id)} was already submitted")
        case m.JobCompleted():
            ledger.move(event.data.job_id, IS_RUNNING, HAS_ENDED, "completes")
            if ledger.version.says_allocations:
                require_hosts(event.data.alloc, "alloc")
        case m.JobKilled():
            # A job that ended by itself while the kill was on its way may have its JOB_COMPLETED still to come.
            for job_id in event.data.job_ids:
                if job_id not in ledger.killing:
                    raise RefusalError(f"job {shortened_line(job_id)} is killed, but no KILL_JOB asked for it")
                ledger.killing.remove(job_id)
        case m.FromJobMsg():
            if event.data.job_id not in ledger.jobs:
                raise ledger.unfit(event.data.job_id, "sends a message")


def _hosts(ledger: Ledger, event: m.ResourceStateChanged | m.ProbeDataEmitted | m.Notify) -> None:
    """What is said of hosts; other notifications may say anything."""
    match event:
        case m.ResourceStateChanged():
            require_hosts(event.data.resources, "resources")
        case m.Notify():
            if event.data.type in _MACHINE_EVENTS:
                require_hosts(event.data.resources, "resources")
        case m.ProbeDataEmitted():
            require_hosts(event.data.hosts, "hosts")
            if event.data.probe_id not in ledger.probes:
                raise RefusalError(f"no CREATE_PROBE asked for a probe {shortened_line(event.data.probe_id)!r}")


def _call_made(ledger: Ledger, event: m.RequestedCall) -> None:
    if not ledger.version.names_calls:
        if not ledger.calls:
            raise RefusalError("no CALL_ME_LATER asked for it")
        ledger.calls -= 1
        return
    name = str(event.data.call_id)
    left = ledger.named_calls.get(name, 0)
    if not left:
        raise RefusalError(f"no CALL_ME_LATER asked for a call {shortened_line(name)!r}")
    if left == 1 or event.data.last is True:
        del ledger.named_calls[name]
    else:
        ledger.named_calls[name] = left - 1


BATSIM_RULES: Rules = {
    m.SimulationBegins: _simulation,
    m.SimulationEnds: _simulation,
    m.JobSubmitted: _jobs,
    m.JobCompleted: _jobs,
    m.JobKilled: _jobs,
    m.ResourceStateChanged: _hosts,
    m.RequestedCall: _call_made,
    m.FromJobMsg: _jobs,
    m.Notify: _hosts,
    m.Init: require_start,
    m.ExternalEvent: nothing_to_check,
    m.ProbeDataEmitted: _hosts,
    m.Query: partial(asks, "estimate_waiting_time"),
    m.Answer: partial(answers, "consumed_energy"),
}

# What a decision process may send: a rule for each kind of its events, which checks it and enters it in the ledger.

_CHANGES: Mapping[JobStage, Mapping[str, JobStage]] = {
    IS_WAITING: {"RUNNING": IS_RUNNING, "REJECTED": HAS_ENDED},
    IS_RUNNING: {
        "COMPLETED_SUCCESSFULLY": HAS_ENDED,
        "COMPLETED_WALLTIME_REACHED": HAS_ENDED,
        "COMPLETED_KILLED": HAS_ENDED,
    },
    HAS_ENDED: {},
}


def _greeting(ledger: Ledger, event: m.Hello) -> None:
    require_start(ledger, event)
    ledger.dynamic_jobs = bool(event.data.features.dynamic_registration)
    ledger.acknowledges = bool(event.data.features.acknowledge_dynamic_jobs)


def _decisions(
    ledger: Ledger, event: m.ExecuteJob | m.RejectJob | m.KillJob | m.SetJobMetadata | m.ChangeJobState | m.ToJobMsg
) -> None:
    """What is done with jobs."""
    match event:
        case m.ExecuteJob(data=data):
            ledger.move(data.job_id, IS_WAITING, IS_RUNNING, "is executed")
            require_hosts(data.alloc, "alloc")
            if (data.mapping, data.storage_mapping, data.additional_io_job).count(UNSET) < 2:
                several = "has several of mapping, storage_mapping, additional_io_job; Batsim takes one"
                raise RefusalError(f"job {shortened_line(data.job_id)} {several}")
        case m.RejectJob():
            ledger.move(event.data.job_id, IS_WAITING, HAS_ENDED, "is rejected")
        case m.KillJob():
            if not event.data.job_ids:
                raise RefusalError("it names no job")
            for job_id in event.data.job_ids:
                ledger.require_remembered(job_id, "is killed")
                if ledger.jobs[job_id] is IS_WAITING:
                    raise ledger.unfit(job_id, "is killed")
                if job_id in ledger.killing and ledger.version.kills_once:
                    raise RefusalError(f"job {shortened_line(job_id)} is being killed already")
            ledger.killing.update(event.data.job_ids)
        case m.SetJobMetadata():
            ledger.require_remembered(event.data.job_id, "is given metadata")
            if '"' in event.data.metadata:
                quoted = "has a double quote, which Batsim cannot write"
                raise RefusalError(f"the metadata of job {shortened_line(event.data.job_id)} {quoted}")
        case m.ChangeJobState():
            job_id, name = event.data.job_id, event.data.job_state
            state = ledger.jobs.get(job_id)
            if state is None or name not in _CHANGES[state]:
                raise ledger.unfit(job_id, f"is changed to {shortened_line(name)}")
            ledger.jobs[job_id] = _CHANGES[state][name]
        case m.ToJobMsg():
            ledger.require_remembered(event.data.job_id, "gets a message")


def _calls(ledger: Ledger, event: m.CallMeLater | m.StopCall) -> None:
    """Calls that are asked for, by name where they have names, and stopped."""
    if isinstance(event, m.StopCall):
        if event.data.call_id in ledger.periodic_calls:  # Batsim takes the stop of any other, which has no effect
            ledger.periodic_calls.discard(event.data.call_id)
            ledger.named_calls.pop(event.data.call_id, None)
        return
    time, name, periodic = event.data.timestamp, event.data.call_id, event.data.periodic
    if not ledger.version.names_calls:
        if LATEST < time < math.inf:
            raise RefusalError(f"a call at {time} s is later than {LATEST:g} s")
        if not event.timestamp < time < math.inf:
            raise RefusalError(f"a call at {time} s is not in the future")
        ledger.calls += 1
    elif not name or name is UNSET:
        raise RefusalError("its call has no name, with which Batsim stops")
    elif periodic is UNSET:
        if time > LATEST:
            raise RefusalError(f"a call at {time} s is later than {LATEST:g} s")
        ledger.named_calls[name] = ledger.named_calls.get(name, 0) + 1
        ledger.periodic_calls.discard(name)
    elif name in ledger.named_calls:
        raise RefusalError(f"there is a call {shortened_line(name)!r} already")
    else:
        ledger.named_calls[name] = math.inf if periodic.times is None else periodic.times
        ledger.periodic_calls.add(name)


def _registration(ledger: Ledger, event: m.RegisterJob | m.RegisterProfile | m.Notify) -> None:
    """Dynamic jobs and their profiles, and whether more will come."""
    if isinstance(event, m.Notify):
        finished = {"registration_finished": True, "continue_registration": False}.get(event.data.type)
        if finished is None:
            raise RefusalError(f"Batsim does not know the notification {shortened_line(event.data.type)!r}")
        ledger.registration_finished = finished
        return
    if ledger.version.asks_to_register:
        if not ledger.dynamic_jobs:
            raise RefusalError("dynamic jobs are not enabled (Batsim's option --enable-dynamic-jobs)")
        if ledger.registration_finished:
            raise RefusalError("registration_finished was sent, and continue_registration was not sent after it")
    if isinstance(event, m.RegisterProfile):
        return
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


def _orders_to_hosts(ledger: Ledger, event: m.SetResourceState | m.CreateProbe) -> None:
    """Hosts that are switched or measured."""
    if isinstance(event, m.CreateProbe):
        require_hosts(event.data.hosts, "hosts")
        if event.data.probe_id in ledger.probes:
            raise RefusalError(f"there is a probe {shortened_line(event.data.probe_id)!r} already")
        ledger.probes.add(event.data.probe_id)
        return
    require_hosts(event.data.resources, "resources")
    if not (event.data.state.isascii() and event.data.state.isdigit()):
        raise RefusalError(f"state {shortened_line(event.data.state)!r} is not the number of a pstate")


DECISION_RULES: Rules = {
    m.RejectJob: _decisions,
    m.ExecuteJob: _decisions,
    m.CallMeLater: _calls,
    m.KillJob: _decisions,
    m.RegisterJob: _registration,
    m.RegisterProfile: _registration,
    m.SetResourceState: _orders_to_hosts,
    m.SetJobMetadata: _decisions,
    m.ChangeJobState: _decisions,
    m.ToJobMsg: _decisions,
    m.Notify: _registration,
    m.Hello: _greeting,
    m.StopCall: _calls,
    m.CreateProbe: _orders_to_hosts,
    m.StopProbe: nothing_to_check,
    m.ForceStop: nothing_to_check,
    m.Query: partial(asks, "consumed_energy"),
    m.Answer: partial(answers, "estimate_waiting_time"),
}

_RULES: Mapping[Role, Rules] = {Role.BATSIM: BATSIM_RULES, Role.DECISION: DECISION_RULES}


@cache
def rules_of(version: Version) -> Mapping[Role, Rules]:
    """The rules of a version's events."""
    return {
        role: {kind: rule for kind, rule in rules.items() if kind.__struct_config__.tag not in version.lacks}
        for role, rules in _RULES.items()
    }
