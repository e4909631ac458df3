"""`ClusterView`: what a policy written in Python sees of the cluster; it reads the arrays and writes nothing.

Design
------
Lists of jobs (`JobsView`) are views of the cluster's own numbers: a queue of 10,000 jobs costs what is read of it.
Columns of them are arrays of numpy, for observations; single jobs are objects, for rules.
"""

import math
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import PolicyError
from decision.model.record import HostState

from .cluster import ClusterState, JobState, PlatformFacts, nb_hosts


class JobView:
    """A job as a scheduler may know it. Equal to another view of the same job.

    Examples:
        >>> import decision as d
        >>> class Shortest:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         for job in sorted(cluster.queue, key=lambda job: job.walltime):
        ...             if job.size <= plan.nb_free:
        ...                 plan.start(job)
        >>> d.simulate("toy", "toy", Shortest()).summary().jobs
        5
    """

    __slots__ = ("_names", "_state", "number")

    def __init__(self, state: ClusterState, names: Sequence[str], number: int) -> None:
        self._state, self._names = state, names
        self.number = number  # in the order of submission, from 0

    @property
    def id(self) -> str:
        """Batsim's name of the job: ``w0!12``."""
        return self._names[self.number]

    @property
    def size(self) -> int:
        """Hosts that it asks for."""
        return int(self._state.size[self.number])

    @property
    def walltime(self) -> float:
        """Seconds; inf where the job has none."""
        return float(self._state.walltime[self.number])

    @property
    def expected_runtime(self) -> float:
        """Seconds that it is expected to run: the walltime, or what the policy's `estimate` says."""
        return float(self._state.expected_runtime[self.number])

    @property
    def value(self) -> float:
        """What it is worth once it has ended; 0 where it does not say it."""
        return float(self._state.value[self.number])

    @property
    def qos(self) -> float:
        """Percent, in (0, 100]; nan where it does not say it."""
        return float(self._state.qos[self.number]) or math.nan

    @property
    def deadline(self) -> float:
        """Seconds; inf where it has none."""
        return float(self._state.deadline[self.number]) or math.inf

    @property
    def expected(self) -> float:
        """Seconds that its owner expects it to run; its walltime where that does not say it."""
        return float(self._state.expected[self.number]) or self.walltime

    @property
    def origin(self) -> "JobView":
        """The job that was submitted, of which this is what was left when it was suspended; or the job itself."""
        number = int(self._state.origin[self.number]) if self._state.nth_rest[self.number] else self.number
        return JobView(self._state, self._names, number)

    @property
    def submit_time(self) -> float:
        """When it was submitted, in seconds."""
        return float(self._state.submit_time[self.number])

    @property
    def start_time(self) -> float:
        """Seconds; nan before the start."""
        return float(self._state.start_time[self.number])

    @property
    def end_time(self) -> float:
        """Seconds; nan before the end."""
        return float(self._state.end_time[self.number])

    @property
    def expected_end(self) -> float:
        """Start and expected run time together, in seconds; nan before the start, inf without walltime."""
        return self.start_time + self.expected_runtime

    @property
    def waiting_time(self) -> float:
        """Seconds from the submission to the start, or until now."""
        until = self.start_time if not math.isnan(self.start_time) else float(self._state.now)
        return until - self.submit_time

    @property
    def user(self) -> int:
        """Number of the user, -1 where unknown."""
        return int(self._state.user[self.number])

    @property
    def state(self) -> JobState:
        """Whether it waits, runs or is over."""
        return JobState(min(int(self._state.job_state[self.number]), JobState.ENDED))

    @property
    def hosts(self) -> list[int]:
        """Ids of the hosts that it runs or ran on; none before the start."""
        begin, count = int(self._state.alloc_first[self.number]), int(self._state.alloc_count[self.number])
        intervals = slice(begin, begin + count)
        firsts, lasts = self._state.interval_first[intervals].tolist(), self._state.interval_last[intervals].tolist()
        return [host for first, last in zip(firsts, lasts, strict=True) for host in range(first, last + 1)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobView) and other.number == self.number and other._state is self._state

    def __hash__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.size} hosts, walltime {self.walltime:g} s, {self.state.name.lower()}>"


class JobsView(Sequence[JobView]):
    """Jobs in an order: a sequence of `JobView`, and columns of numbers, one for each job (n,).

    It is a view: it costs nothing, whatever its length, and a part of it (``cluster.queue[:16]``) costs as little; a
    column copies its n numbers. It is what it is until the decision is made: ``list(cluster.queue)`` keeps the jobs.

    Examples:
        >>> import decision as d
        >>> class ShortestOfTheFirst:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         first = cluster.queue[:16]
        ...         for at in first.walltime.argsort():
        ...             if first[at].size <= plan.nb_free:
        ...                 plan.start(first[at])
        >>> d.simulate("toy", "toy", ShortestOfTheFirst()).summary().jobs
        5
    """

    __slots__ = ("_names", "_numbers", "_state")

    def __init__(self, state: ClusterState, names: Sequence[str], numbers: NDArray[np.int32]) -> None:
        self._state, self._names, self._numbers = state, names, numbers

    @property
    def number(self) -> NDArray[np.int32]:
        """In the order of submission, from 0."""
        return self._numbers.copy()

    @property
    def size(self) -> NDArray[np.int32]:
        """Hosts that each asks for."""
        return self._state.size[self._numbers]

    @property
    def walltime(self) -> NDArray[np.float64]:
        """Seconds; inf where a job has none."""
        return self._state.walltime[self._numbers]

    @property
    def expected_runtime(self) -> NDArray[np.float64]:
        """Seconds that each is expected to run: its walltime, or what the policy's `estimate` says."""
        return self._state.expected_runtime[self._numbers]

    @property
    def submit_time(self) -> NDArray[np.float64]:
        """When each was submitted, in seconds."""
        return self._state.submit_time[self._numbers]

    @property
    def start_time(self) -> NDArray[np.float64]:
        """Seconds; nan before the start."""
        return self._state.start_time[self._numbers]

    @property
    def end_time(self) -> NDArray[np.float64]:
        """Seconds; nan before the end."""
        return self._state.end_time[self._numbers]

    @property
    def expected_end(self) -> NDArray[np.float64]:
        """Start and expected run time together, in seconds; nan before the start, inf without walltime."""
        return self.start_time + self.expected_runtime

    @property
    def waiting_time(self) -> NDArray[np.float64]:
        """Seconds from the submission to the start, or until now."""
        start = self.start_time
        return np.where(np.isnan(start), self._state.now, start) - self.submit_time

    @property
    def user(self) -> NDArray[np.int32]:
        """Numbers of the users, -1 where unknown."""
        return self._state.user[self._numbers]

    def has(self, number: int) -> bool:
        """Whether the job of this number is one of them."""
        return bool((self._numbers == number).any())

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> JobView: ...
    @overload
    def __getitem__(self, at: slice) -> "JobsView": ...
    def __getitem__(self, at: int | slice) -> "JobView | JobsView":
        chosen = self._numbers[at]
        return JobsView(self._state, self._names, chosen) if isinstance(at, slice) else self._job(int(chosen))

    def __iter__(self) -> Iterator[JobView]:
        return map(self._job, self._numbers.tolist())

    def _job(self, number: int) -> JobView:
        return JobView(self._state, self._names, number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of any list

    def __repr__(self) -> str:
        return repr(list(self))


class ClusterView:
    """The cluster at one instant. Nothing in it can be changed; what a policy wants goes into its `Plan`.

    Args:
        state: the arrays; `arrays` gives them to those who want numpy, to be read only.
        facts: what never changes.
        names: ids of the jobs by number.

    Examples:
        >>> import decision as d
        >>> class Watcher:
        ...     def reset(self, platform, seed):
        ...         self.longest = 0
        ...     def decide(self, cluster, plan):
        ...         self.longest = max(self.longest, len(cluster.queue))
        ...         if cluster.queue and cluster.queue[0].size <= cluster.nb_free:
        ...             plan.start(cluster.queue[0])
        >>> watcher = Watcher()
        >>> d.simulate("toy", "toy", watcher).summary().jobs, watcher.longest
        (5, 4)
    """

    def __init__(self, state: ClusterState, facts: PlatformFacts, names: Sequence[str]) -> None:
        self.arrays, self.facts, self.names = state, facts, names

    @property
    def now(self) -> float:
        """Simulated time in seconds, as Batsim's messages say it."""
        return float(self.arrays.now)

    @property
    def queue(self) -> JobsView:
        """Jobs that wait, in order of submission."""
        return self._jobs(self.arrays.queue, self.arrays.nb_queued)

    @property
    def running(self) -> JobsView:
        """Jobs that run, by expected end."""
        return self._jobs(self.arrays.running, self.arrays.nb_running)

    @property
    def ended(self) -> JobsView:
        """Jobs that ended since the last decision."""
        return self._jobs(self.arrays.ended, self.arrays.nb_ended)

    def _jobs(self, numbers: NDArray[np.int32], length: int) -> JobsView:
        return JobsView(self.arrays, self.names, numbers[:length])

    def job(self, number: int) -> JobView:
        """The job with this number.

        Raises:
            PolicyError: if there is none.
        """
        if not 0 <= number < self.arrays.nb_jobs:
            raise PolicyError(f"t={self.now:.12g} s: there is no job number {number}")
        return JobView(self.arrays, self.names, number)

    @property
    def nb_hosts(self) -> int:
        """Compute hosts of the platform."""
        return nb_hosts(self.arrays)

    @property
    def nb_free(self) -> int:
        """Hosts that can be given a job now."""
        return self.arrays.nb_free

    @property
    def power(self) -> float:
        """Watts that the hosts draw by what the platform says of their pstates: at full load where a job runs.

        nan where the platform says nothing of power (with a real Batsim: where its file was not given).
        """
        state, facts = self.arrays, self.facts
        hosts, busy = np.arange(len(state.pstate)), state.host_state == HostState.COMPUTING
        return float(np.where(busy, facts.full[hosts, state.pstate], facts.idle[hosts, state.pstate]).sum())

    @property
    def supply(self) -> int:
        """Hosts that may compute at a time; all of them where power is not limited."""
        return int(self.arrays.supply)

    @property
    def forecast(self) -> list[int]:
        """Hosts that are expected to have power, by step of the supply from the next on."""
        return self.arrays.forecast[: self.arrays.nb_forecast].tolist()

    @property
    def free_hosts(self) -> list[int]:
        """Ids of the hosts that can be given a job now, ascending."""
        return hosts_in(self.arrays.free)

    @property
    def host_states(self) -> NDArray[np.int8]:
        """What each host is doing (H,), a `HostState` as a number."""
        states = self.arrays.host_state.view()
        states.flags.writeable = False
        return states

    def hosts_that(self, are: HostState) -> list[int]:
        """Ids of the hosts in a state, ascending: ``cluster.hosts_that(HostState.SLEEPING)``."""
        return np.flatnonzero(self.arrays.host_state == are).tolist()

    def host_state(self, host: int) -> HostState:
        """What a host is doing."""
        return HostState(int(self.arrays.host_state[host]))

    def idle_since(self, host: int) -> float:
        """When a host's state last changed, in seconds."""
        return float(self.arrays.host_since[host])

    def pstate(self, host: int) -> int:
        """A host's present power state."""
        return int(self.arrays.pstate[host])


def hosts_in(bitmap: NDArray[np.uint64]) -> list[int]:
    """Ids of the hosts of a bitmap (W,), ascending."""
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")).tolist()
