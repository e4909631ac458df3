"""Jobs that are suspended, or whose hosts fail, under Batsim: killed, and what is left registered at the same instant.

Batsim itself knows no suspension. What is left is counted by our clock, from when we heard that the job started to when
we heard that it is over; the progress that Batsim sends has six decimals. It gets a profile of its own,
because Batsim forgets one with the last job that had it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from decision.model.errors import ConfigError, PolicyError
from decision.model.workload import rest_name
from decision.protocol import messages as m
from decision.state import transitions
from decision.state.cluster import ClusterState
from decision.state.rules import cannot_be_cut

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
