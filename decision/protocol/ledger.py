"""What the two ends have sent each other about jobs, calls and queries: enough to detect an impossible event."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from msgspec import UNSET

from .messages import Answer, Event, JobDescription, Query, Role, event_type
from .versions import Version


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

    def move(self, job_id: str, old: JobStage, new: JobStage, what: str) -> None:
        """Take a job from one state to the next; `what` is what is being done to it."""
        if self.jobs.get(job_id) is not old:
            raise self.unfit(job_id, what)
        self.jobs[job_id] = new

    def unfit(self, job_id: str, what: str) -> RefusalError:
        """The refusal of an event that does not fit the job's state."""
        state = self.jobs.get(job_id)
        why = "was never submitted" if state is None else state.value
        return RefusalError(f"job {shortened_line(job_id)} {what}, but it {why}")

    def require_remembered(self, job_id: str, what: str) -> None:
        """Refuse a command about a job that Batsim does not know or has forgotten."""
        state = self.jobs.get(job_id)
        if state is None or (state is HAS_ENDED and self.version.forgets_ended_jobs):
            raise self.unfit(job_id, what)

    def require_registration(self) -> None:
        """Refuse dynamic jobs and profiles where Batsim does not take them."""
        if not self.version.asks_to_register:
            return
        if not self.dynamic_jobs:
            raise RefusalError("dynamic jobs are not enabled (Batsim's option --enable-dynamic-jobs)")
        if self.registration_finished:
            raise RefusalError("registration_finished was sent, and continue_registration was not sent after it")


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


def require_topic(topic: str, said: Any) -> None:
    """Refuse requests or answers about anything but the one topic that their sender may use."""
    topics = [name for name in said.__struct_fields__ if getattr(said, name) is not UNSET]
    if topics != [topic]:
        raise RefusalError(f"it must be about {topic}, and is about {' and '.join(topics) or 'nothing'}")


def asks(topic: str, ledger: Ledger, event: Query) -> None:
    """A query about the topic."""
    require_topic(topic, event.data.requests)
    ledger.asked[topic] += 1


def answers(topic: str, ledger: Ledger, event: Answer) -> None:
    """The answer to one."""
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
