"""Jobs that are suspended, or whose hosts fail, under Batsim: killed, and what is left registered at the same instant.

Batsim itself knows no suspension. What is left is counted by our clock, from when we heard that the job started to when
we heard that it is over; the progress that Batsim sends has six decimals. It gets a profile of its own,
because Batsim forgets one with the last job that had it.

Jobs of a closed loop, which come when their users have seen earlier ones end, are registered by the decision process,
too, when it is time (`ClosedLoop`). No policy knows of this before a job comes.
"""

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from decision.engine.batsim_words import job_fields, profile_object
from decision.model.demand import Session, Sessions, of_fixed
from decision.model.errors import ConfigError, PolicyError
from decision.model.workload import Job, Workload, rest_name
from decision.protocol import messages as m
from decision.state import transitions
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import cannot_be_cut

NEEDS_DYNAMIC_JOBS = "start Batsim with --enable-dynamic-jobs"


class Suspensions:
    """What jobs do, which a policy must not see, and what is left of them.

    Args:
        profiles: those of SIMULATION_BEGINS, by workload and name.
        restart: seconds that what is left of a job takes before it goes on.
        every: seconds between two checkpoints of a job that runs; 0 where there are none.
    """

    def __init__(
        self, profiles: Mapping[str, Mapping[str, Mapping[str, Any]]], restart: float, every: float = 0.0
    ) -> None:
        self._profiles, self.restart, self.every = profiles, restart, every
        self._profile: dict[int, tuple[str, Mapping[str, Any]]] = {}  # of each job that was submitted: name and object
        self._task: dict[int, tuple[float, int]] = {}  # of each job that was left of another: seconds and exit code

    def note(self, number: int, job_id: str, name: str, profile: Mapping[str, Any] | UnsetType) -> None:
        """A job of this profile was submitted, which came with it or with SIMULATION_BEGINS."""
        if profile is UNSET:
            profile = self._profiles.get(job_id.partition("!")[0], {}).get(name, {})
        self._profile[number] = name, profile

    def check(self, number: int, job_id: str) -> None:
        """Refuse to suspend a job that cannot be cut.

        Raises:
            PolicyError: naming its profile.
        """
        self._task_of(number, job_id)

    def _task_of(self, number: int, job_id: str) -> tuple[float, int]:
        """Seconds that a job takes, and the exit code with which it ends."""
        if number in self._task:
            return self._task[number]
        name, profile = self._profile.get(number, ("", {}))
        if profile.get("type") != "delay":
            raise PolicyError(cannot_be_cut(job_id, name))
        return float(profile["delay"]), int(profile.get("ret", 0))

    def register(
        self, state: ClusterState, names: Sequence[str], killed: int, rest: int, now: float
    ) -> tuple[str, list[m.DecisionEvent]]:
        """The id of what is left of a job that was killed, and the commands that register it.

        Args:
            state: in which `rest` was submitted.
            names: the jobs' ids by number.
            killed: number of the job.
            rest: number of what is left of it.
            now: seconds: when the commands are sent.
        """
        ran, paid = transitions.progress(state, killed, self.restart, self.every)
        whole, code = self._task_of(killed, names[killed])
        seconds = float(transitions.rest_of(whole, ran, paid, self.restart))
        self._task[rest] = seconds, code
        origin, nth = names[int(state.origin[rest])], int(state.nth_rest[rest])
        workload, _, short = origin.partition("!")
        job_id, profile = rest_name(origin, nth), rest_name(short, nth)
        walltime = float(state.walltime[rest])
        fields: dict[str, Any] = {"id": job_id, "res": int(state.size[rest]), "profile": profile}
        fields["subtime"] = float(state.submit_time[rest])
        fields["walltime"] = walltime if walltime < float("inf") else -1
        task = {"type": "delay", "delay": seconds} | ({"ret": code} if code else {})
        return job_id, [
            m.RegisterProfile(now, m.RegisterProfileData(workload, profile, task)),
            m.RegisterJob(now, m.RegisterJobData(job_id, m.JobDescription(**fields))),
        ]


def check_config(policy: str, suspends: bool, config: m.Config) -> None:
    """Refuse a Batsim that lacks an option which the policy needs.

    A supply of power comes by events; a Batsim that has any, and does not forward them, ends before it asks.

    Raises:
        ConfigError: naming the option.
    """
    if suspends and not config.dynamic_jobs_enabled:
        raise ConfigError(
            f"policy {policy} suspends jobs, and what is left of them must be registered; {NEEDS_DYNAMIC_JOBS}"
        )


# --- Jobs that come when their users have seen earlier ones end ---

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
        """Note that a job was submitted, which sessions may wait for."""
        self._note(self._comings.pop(job_id, ()), now)

    def ended(self, job_id: str, now: float) -> None:
        """Note that a job is over, or was rejected, which sessions may wait for."""
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
        submissions: list[m.JobSubmitted] = []
        commands: list[m.DecisionEvent] = []
        while self._due and self._due[0].time <= now + _NEARLY:
            _, _, job, workload = heapq.heappop(self._due)
            self._left -= 1
            description = m.JobDescription(**{**job_fields(job), "subtime": now})
            profile = self._register(workload, job.profile, now, commands)
            commands.append(m.RegisterJob(now, m.RegisterJobData(job.id, description)))
            submissions.append(m.JobSubmitted(now, m.JobSubmittedData(job.id, description, profile)))
            self.came(job.id, now)
        return submissions, commands

    def _register(self, workload: Workload, name: str, now: float, commands: list[m.DecisionEvent]) -> dict[str, Any]:
        """The JSON of a profile; it and its parts are registered where Batsim does not have them."""
        profile: dict[str, Any] = profile_object(name, workload)
        if (workload.name, name) not in self._known:
            self._known.add((workload.name, name))
            for part in getattr(workload.profiles[name], "sequence", ()):
                self._register(workload, part, now, commands)
            commands.append(m.RegisterProfile(now, m.RegisterProfileData(workload.name, name, profile)))
        return profile
