"""Jobs that come when their users have seen earlier ones end: registered by the decision process when it is time.

No policy knows of this before a job comes.
"""

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from decision.engine.batsim_words import job_fields, profile_object
from decision.model.sessions import Session, Sessions, of_fixed
from decision.model.workload import Job, Workload
from decision.protocol import messages as m

_NEARLY = 1e-6  # seconds: the last digit of times in messages
_SOON = 1e-3  # seconds: Batsim 5 calls at whole milliseconds


class _Waiting(msgspec.Struct):
    """A session that has not begun."""

    workload: Workload
    session: Session
    needs: int  # ends and submissions that are still to come
    ready: float = -math.inf  # seconds: the latest of those that came


class _Due(NamedTuple):
    time: float  # seconds
    number: int
    job: Job
    workload: Workload


class ClosedLoop:
    """The jobs of later sessions, until they are sent.

    Args:
        workloads: with all jobs, each with its sessions.
    """

    def __init__(self, workloads: Sequence[tuple[Workload, Sessions]]) -> None:
        self._ends: dict[str, list[_Waiting]] = {}  # sessions by a job whose end they wait for
        self._comings: dict[str, list[_Waiting]] = {}  # and by one that has to come before
        self._due: list[_Due] = []
        self._numbers = itertools.count()
        self._asked = math.inf  # seconds: the next call that is under way
        self._known: set[tuple[str, str]] = set()  # profiles that Batsim has, by workload
        self._left = 0
        for workload, sessions in workloads:
            self._known |= {(workload.name, name) for name in of_fixed(workload, sessions).profiles}
            for session in sessions.later:
                self._left += len(session.jobs)
                waiting = _Waiting(workload, session, len(session.after) + 1)
                self._comings.setdefault(workload.jobs[session.follows].id, []).append(waiting)
                for row in session.after:
                    self._ends.setdefault(workload.jobs[row].id, []).append(waiting)

    @property
    def is_open(self) -> bool:
        """Whether jobs are still to come."""
        return self._left > 0

    def came(self, job_id: str, now: float) -> None:
        """A job was submitted."""
        self._note(self._comings.pop(job_id, ()), now)

    def ended(self, job_id: str, now: float) -> None:
        """A job is over, or was rejected."""
        self._note(self._ends.pop(job_id, ()), now)

    def _note(self, sessions: Sequence[_Waiting], now: float) -> None:
        for waiting in sessions:
            waiting.needs -= 1
            waiting.ready = max(waiting.ready, now)
            if waiting.needs == 0:
                begin = waiting.ready + waiting.session.think
                for row, offset in zip(waiting.session.jobs, waiting.session.offsets, strict=True):
                    due = _Due(begin + offset, next(self._numbers), waiting.workload.jobs[row], waiting.workload)
                    heapq.heappush(self._due, due)

    def next_call(self, now: float) -> float | None:
        """When to be called, seconds; None where that has been asked for, or nothing is due."""
        if not self._due or self._due[0].time >= self._asked:
            return None
        self._asked = self._due[0].time
        return max(self._asked, now + _SOON)

    def send(self, now: float) -> tuple[list[m.JobSubmitted], list[m.DecisionEvent]]:
        """The jobs that come now, as Batsim would tell of them, and the commands that register them."""
        if now + _NEARLY >= self._asked:
            self._asked = math.inf
        told: list[m.JobSubmitted] = []
        commands: list[m.DecisionEvent] = []
        while self._due and self._due[0].time <= now + _NEARLY:
            _, _, job, workload = heapq.heappop(self._due)
            self._left -= 1
            description = m.JobDescription(**{**job_fields(job), "subtime": now})
            profile = self._register(workload, job.profile, now, commands)
            commands.append(m.RegisterJob(now, m.RegisterJobData(job.id, description)))
            told.append(m.JobSubmitted(now, m.JobSubmittedData(job.id, description, profile)))
            self.came(job.id, now)
        return told, commands

    def _register(self, workload: Workload, name: str, now: float, commands: list[m.DecisionEvent]) -> dict[str, Any]:
        """The JSON of a profile; it and its parts are registered where Batsim does not have them."""
        profile: dict[str, Any] = profile_object(name, workload)
        if (workload.name, name) not in self._known:
            self._known.add((workload.name, name))
            for part in getattr(workload.profiles[name], "sequence", ()):
                self._register(workload, part, now, commands)
            commands.append(m.RegisterProfile(now, m.RegisterProfileData(workload.name, name, profile)))
        return profile
