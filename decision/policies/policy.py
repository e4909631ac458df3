"""What a policy is, and the plan that it writes into."""

import operator
from collections.abc import Iterable
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from decision.compiling.entry import Interface
from decision.model.errors import PolicyError
from decision.model.platform import Platform
from decision.state.bitmap import remove_interval
from decision.state.cluster import PSTATE_COMPUTING, ClusterState, PlatformFacts
from decision.state.plan_arrays import (
    CALL_AT,
    KILL,
    REJECT,
    SET_PSTATE,
    START,
    SUSPEND,
    PlanArrays,
    add,
    add_interval,
    clear,
)
from decision.state.view import ClusterView, JobView, hosts_in

from .allocation import take_lowest


class Policy(Protocol):
    """Decides what happens to waiting jobs and idle hosts.

    Any class with these two methods will do; nothing need be inherited.

    Examples:
        >>> class Widest:  # the job on the most hosts first; nothing starts before it
        ...     def reset(self, platform, seed):
        ...         pass
        ...     def decide(self, cluster, plan):
        ...         for job in sorted(cluster.queue, key=lambda job: -job.size):
        ...             if job.size > plan.nb_free:
        ...                 break
        ...             plan.start(job)
        >>> import decision as d
        >>> d.simulate("toy", "toy", Widest()).summary().makespan
        12.0
    """

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins; whatever was remembered of an earlier one is forgotten."""

    def decide(self, cluster: ClusterView, plan: "Plan") -> None:
        """Look at the cluster, which has been brought up to date with all that happens at this instant, and plan."""


Job = JobView | int  # as the view gives it, or its number


class Plan:
    """What is to be done at this instant, in order. Hosts of jobs planned to start are no longer free in it.

    Args:
        arrays: the plan, empty.
        state: the cluster as it is.
        facts: what never changes of it.

    Examples:
        >>> import decision as d
        >>> class Spread:  # one job at a time, on the last hosts, a second after it came
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         for job in cluster.queue[:1]:
        ...             if cluster.running or cluster.now < job.submit_time + 1:
        ...                 plan.call_at(cluster.now + 1)
        ...             else:
        ...                 plan.start(job, plan.free_hosts[-job.size:])
        >>> d.simulate("toy", "toy", Spread()).jobs.allocation[0]
        '1-3'
    """

    def __init__(self, arrays: PlanArrays, state: ClusterState, facts: PlatformFacts) -> None:
        self.arrays, self._state, self._facts = arrays, state, facts

    @property
    def nb_free(self) -> int:
        """Hosts that are still free."""
        return int.from_bytes(self.arrays.free.tobytes()).bit_count()

    @property
    def free_hosts(self) -> list[int]:
        """Ids of the hosts that are still free, ascending."""
        return hosts_in(self.arrays.free)

    def start(self, job: Job, hosts: Iterable[int] | None = None) -> None:
        """Start a waiting job on `hosts`, or on the free ones with the lowest ids.

        Raises:
            PolicyError: if there is no such job or host, or no hosts are named and too few are free.
        """
        # Hosts that the user names are checked with the whole plan (`check_plan`), where the message can say who has
        # them.
        if hosts is not None:
            chosen = self._existing(hosts)
            self._write_hosts(self._add(START, job), chosen)
            return
        size = int(self._state.size[self._number(job)])
        if size > self.nb_free:
            name = job.id if isinstance(job, JobView) else f"job number {job}"
            raise PolicyError(f"{self._when()}: {name} needs {size} hosts, {self.nb_free} free")
        self._keep_room(self.arrays.nb_intervals + size - 1, len(self.arrays.first), "intervals of hosts")
        _take_lowest.from_python(self.arrays.address, self._add(START, job), size)

    def reject(self, job: Job) -> None:
        """Turn a waiting job away."""
        self._add(REJECT, job)

    def kill(self, job: Job) -> None:
        """Stop a running job, which then counts as killed."""
        self._add(KILL, job)

    def suspend(self, job: Job) -> None:
        """Take a running job's hosts away: what is left of it joins the end of the queue, at this very instant.

        The next decision, at the same instant, finds the hosts free and what is left of the job in the queue. With a
        real Batsim it needs dynamic jobs, which ``decision run`` enables where the policy's class has the attribute
        ``suspends = True``.
        """
        self._add(SUSPEND, job)

    def set_pstate(self, hosts: Iterable[int], pstate: int) -> None:
        """Switch hosts to a power state, one in which they compute or one in which they sleep."""
        chosen, target = self._existing(hosts), self._whole(pstate, "the number of a power state")
        if chosen:
            action = self._append(SET_PSTATE)
            _write_target(self.arrays, action, target)
            self._write_hosts(action, chosen)

    def sleep(self, hosts: Iterable[int]) -> None:
        """Put idle hosts to sleep.

        Raises:
            PolicyError: if one of them cannot sleep.
        """
        self._switch_each(hosts, self._facts.sleep_pstate)

    def wake(self, hosts: Iterable[int]) -> None:
        """Wake sleeping hosts, into their first computing power state."""
        self._switch_each(hosts, (self._facts.pstate_kind == PSTATE_COMPUTING).argmax(1))

    def call_at(self, time: float) -> None:
        """Be asked again at `time` (seconds), if nothing happens before."""
        if not isinstance(time, Real):
            raise PolicyError(f"{self._when()}: {time!r} is not a time in seconds")
        self.arrays.time[self._append(CALL_AT)] = time

    def _switch_each(self, hosts: Iterable[int], target: NDArray[np.integer]) -> None:
        """Switch hosts to the power state (H,) of each; below 0 where it has none in which it sleeps."""
        by_pstate: dict[int, list[int]] = {}
        for host in self._existing(hosts):
            if target[host] < 0:
                raise PolicyError(f"{self._when()}: host {host} cannot sleep; the platform gives it no sleep_pstates")
            by_pstate.setdefault(int(target[host]), []).append(host)
        for pstate, group in by_pstate.items():
            self.set_pstate(group, pstate)

    def _existing(self, hosts: Iterable[int]) -> list[int]:
        """The ids of these hosts, ascending."""
        if not isinstance(hosts, Iterable):
            raise PolicyError(f"{self._when()}: hosts are {hosts!r}, and must be a list of ids")
        there = len(self._state.host_state)
        chosen = sorted(self._whole(host, "a host's id") for host in hosts)
        for host in (chosen[0], chosen[-1]) if chosen else ():
            if not 0 <= host < there:
                raise PolicyError(f"{self._when()}: host {host} does not exist; the platform has hosts 0-{there - 1}")
        return chosen

    def _number(self, job: Job) -> int:
        """The number of a job that has been submitted."""
        number = job.number if isinstance(job, JobView) else self._whole(job, "a job, nor a job's number")
        submitted = self._state.nb_jobs
        if not 0 <= number < submitted:
            raise PolicyError(f"{self._when()}: there is no job number {number}; {submitted} were submitted")
        return number

    def _whole(self, value: int, what: str) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise PolicyError(f"{self._when()}: {value!r} is not {what}") from None

    def _add(self, kind: int, job: Job) -> int:
        return self._append(kind, self._number(job))

    def _append(self, kind: int, number: int = -1) -> int:
        self._keep_room(self.arrays.nb_actions, len(self.arrays.kind), "actions")
        return int(_add.from_python(self.arrays.address, kind, number))

    def _write_hosts(self, action: int, hosts: Iterable[int]) -> None:
        kinds, pstate = self._facts.pstate_kind, int(self.arrays.value[action])
        is_known = self.arrays.kind[action] == SET_PSTATE and 0 <= pstate < kinds.shape[1]
        computes = is_known and bool((kinds[:, pstate] == PSTATE_COMPUTING).any())
        for host in hosts:
            self._keep_room(self.arrays.nb_intervals, len(self.arrays.first), "intervals of hosts")
            # Hosts that start a job or fall asleep are no longer free for the next action.
            _add_host.from_python(self.arrays.address, action, host, int(computes))

    def _keep_room(self, used: int, room: int, what: str) -> None:
        if used >= room:
            raise PolicyError(f"{self._when()}: more than {room} {what} in one plan")

    def _when(self) -> str:
        return f"t={self._state.now:.12g} s"


def _write_target(plan: PlanArrays, action: int, pstate: int) -> None:
    """The power state of an action that switches hosts; a plan's arrays, unlike a state's, are written here."""
    plan.value[action] = pstate


# How Python writes a plan: by the addresses of these. A call of the kernels themselves would load numba, which takes
# most of a start, and a few microseconds for each bundle.


@Interface(int, PlanArrays, ClusterState).entry
def empty(plan, state):
    """Empty a plan for another decision, as `decision.state.plan_arrays.clear` does; returns 0."""
    clear(plan, state)
    return 0


@Interface(int, PlanArrays, int, int).entry
def _add(plan, kind, job):
    return add(plan, kind, job)


@Interface(int, PlanArrays, int, int, int).entry
def _add_host(plan, action, host, stays_free):
    add_interval(plan, action, host, host)
    if not stays_free:
        remove_interval(plan.free, host, host)
    return 0


@Interface(int, PlanArrays, int, int).entry
def _take_lowest(plan, action, size):
    take_lowest(plan, action, size)
    return 0
