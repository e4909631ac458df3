"""A simulation that is stepped from outside, as batsim-py's handler is."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from decision.model.errors import ConfigError, PolicyError, amount, flag, text
from decision.model.platform import Platform
from decision.model.record import FinalState, HostState
from decision.model.workload import MachineEvent, Workload
from decision.policies.policy import Plan
from decision.state.cluster import ENDED, PSTATE_SLEEP, SLEEPING, JobState
from decision.state.plan_arrays import REJECT, SET_PSTATE, START
from decision.state.view import ClusterView, JobsView, JobView

from . import given
from .given import Source
from .results import SimulationResult, as_table

if TYPE_CHECKING:
    from pandas import DataFrame

    from decision.experiments import stepping
    from decision.model.reshape import Walltimes

EVENTS = ("job_submitted", "job_started", "job_completed", "job_killed", "job_rejected", "host_changed", "ended")
_LATEST = 1e15  # seconds


class SteppedView(ClusterView):
    """A `ClusterView` in which what was asked for since the last step is as if it were done."""

    def __init__(self, view: ClusterView, plan: Plan) -> None:
        super().__init__(view.arrays, view.facts, view.names)
        self._plan = plan

    def _planned(self, *kinds: int) -> np.ndarray:
        plan = self._plan.arrays
        return plan.job[: plan.nb_actions][np.isin(plan.kind[: plan.nb_actions], kinds)]

    @property
    def queue(self) -> JobsView:
        """Jobs that wait, in order of submission."""
        state = self.arrays
        waiting = state.queue[: state.nb_queued]
        gone = self._planned(START, REJECT)
        return JobsView(state, self.names, waiting[~np.isin(waiting, gone)] if len(gone) else waiting)

    @property
    def running(self) -> JobsView:
        """Jobs that run, by expected end, and after them those that were started since the last step."""
        state, begun = self.arrays, self._planned(START)
        numbers = state.running[: state.nb_running]
        return JobsView(state, self.names, np.concatenate([numbers, begun]) if len(begun) else numbers)

    @property
    def host_states(self) -> np.ndarray:
        """What each host is doing (H,), or will be once what was asked for is done: a `HostState` as a number."""
        plan, facts, states = self._plan.arrays, self.facts, self.arrays.host_state.copy()
        for k in range(plan.nb_actions):
            for i in range(plan.begin[k], plan.end[k]):
                first, hosts = plan.first[i], slice(plan.first[i], plan.last[i] + 1)
                if plan.kind[k] == START:
                    states[hosts] = HostState.COMPUTING
                elif plan.kind[k] == SET_PSTATE and facts.pstate_kind[first, plan.value[k]] == PSTATE_SLEEP:
                    states[hosts] = HostState.SWITCHING_OFF
                elif plan.kind[k] == SET_PSTATE:
                    states[hosts] = np.where(states[hosts] == SLEEPING, HostState.SWITCHING_ON, states[hosts])
        return states

    def hosts_that(self, are: HostState) -> list[int]:
        """Ids of the hosts in a state, ascending."""
        return np.flatnonzero(self.host_states == are).tolist()

    def host_state(self, host: int) -> HostState:
        """What a host is doing."""
        return HostState(int(self.host_states[host]))

    @property
    def nb_free(self) -> int:
        """Hosts that can be given a job now."""
        return self._plan.nb_free

    @property
    def free_hosts(self) -> list[int]:
        """Ids of the hosts that can be given a job now, ascending."""
        return self._plan.free_hosts


class Simulation:
    """A simulation that somebody steps: what is asked for is done at this instant, and `step` lets time pass.

    Attributes:
        view: the cluster as it is now, a `ClusterView`: ``queue``, ``running``, ``free_hosts``, ...
        is_over: whether all has ended.

    Args:
        platform: as of `simulate`.
        workload: as of `simulate`.
        energy: simulate power states and energy: hosts may be switched off and on.
        events: what happens to the platform from outside, or the file of it.
        jobs: which jobs of each workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        engine: ``embedded``, or ``batsim``: an external Batsim, with the same events at the same times.
        batsim: command of that one.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.

    Examples:
        >>> import decision as d
        >>> sim = d.Simulation("toy", "toy")
        >>> sim.on("job_completed", lambda sim, job: print(f"{sim.now:g} s: {job.id} has ended"))
        >>> while not sim.is_over:
        ...     for job in sim.view.queue:
        ...         if job.size <= sim.view.nb_free:
        ...             sim.start(job)
        ...     if sim.step() and sim.now > 3:
        ...         break
        4 s: w0!1 has ended
        4 s: w0!3 has ended
        >>> then = sim.copy()  # as it is now, for another future
        >>> then.run_until(100)
        >>> sim.now < then.now
        True
    """

    def __init__(
        self,
        platform: Platform | Source,
        workload: "Workload | DataFrame | Source",
        *,
        energy: bool = False,
        events: Iterable[MachineEvent] | Source = (),
        jobs: slice | None = None,
        nodes: int | None = None,
        walltime: "Walltimes" = "requested",
        engine: Literal["embedded", "batsim"] = "embedded",
        batsim: str = "batsim",
    ) -> None:
        from decision.experiments.inputs import Inputs, LoadedInputs
        from decision.experiments.stepping import BatsimSource, EmbeddedSource

        energy = flag("energy", energy)
        hosts = given.read_platform(platform, energy)
        workloads = given.as_workloads(workload, given.as_selection(jobs, nodes, walltime, None), hosts)
        nb_hosts = len(hosts.hosts)
        for job in (job for each in workloads for job in each.jobs if job.size > nb_hosts):  # it could never start
            there = f"{job.id} needs {job.size:,} hosts, and there are {nb_hosts:,}"
            raise ConfigError(f"workload: {there}; nodes={nb_hosts} leaves it out")
        self._title = f"stepped on {Path(hosts.path).stem or 'platform'}"
        self._platform, self._files = hosts, None
        inputs = Inputs(platform=Path(hosts.path), workloads=(), energy=energy)
        case = LoadedInputs(inputs=inputs, platform=hosts, workloads=workloads, events=given.as_events(events))
        if engine not in ("embedded", "batsim"):
            raise ConfigError(f"engine: must be embedded or batsim; found {engine!r}", field="engine")
        if engine == "batsim":
            self._files = tempfile.TemporaryDirectory(prefix="decision-")
            case = _written(case, Path(self._files.name))
        self._source: stepping.QuestionSource = (
            EmbeddedSource(case) if engine == "embedded" else BatsimSource(case, text("batsim", batsim))
        )
        self._listeners: dict[str, list[Callable[..., Any]]] = {name: [] for name in EVENTS}
        self._calls: list[tuple[float, Callable[[Simulation], Any]]] = []
        self._submitted, self.is_over, self._jobs = 0, False, sum(len(each.jobs) for each in workloads)
        self._look(self._source.ask())

    def _look(self, question: "stepping.Question | None") -> None:
        if question is None:
            self.is_over = True
            return
        view, self._plan = question
        self.view = SteppedView(view, self._plan)
        self._host_state = view.arrays.host_state.copy()

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.view.now

    def job(self, job: "JobView | str | int") -> JobView:
        """The job of an id (``w0!12``) or number. Raises ConfigError if none of it has been submitted."""
        if isinstance(job, JobView):
            return job
        if isinstance(job, str):
            names = list(self.view.names[: self.view.arrays.nb_jobs])
            if job not in names:
                raise ConfigError(f"job: {job!r} has not been submitted at t={self.now:.12g} s", field="job")
            return self.view.job(names.index(job))
        return self.view.job(job)

    @property
    def jobs(self) -> "DataFrame | list[dict[str, Any]]":
        """All jobs that were submitted so far, by submission: ``id``, ``submit_time``, ``size``, ``walltime``,
        ``state`` (``QUEUED``, ``RUNNING``, ``COMPLETED_SUCCESSFULLY``, ...), ``start_time`` and ``end_time`` (seconds,
        nan before); a pandas DataFrame, or a list of dicts without pandas."""
        state = self.view.arrays
        count = int(state.nb_jobs)
        columns: dict[str, Any] = {"id": list(self.view.names[:count])}
        columns |= {name: getattr(state, name)[:count].tolist() for name in ("submit_time", "size", "walltime")}
        codes = state.job_state[:count].tolist()
        columns["state"] = [(JobState(c) if c < ENDED else FinalState(c - ENDED)).name for c in codes]
        columns |= {name: getattr(state, name)[:count].tolist() for name in ("start_time", "end_time")}
        return as_table([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])

    # --- What is to be done at this instant -------------------------------------------------------------------------

    def start(self, job: "JobView | str | int", hosts: Iterable[int] | None = None) -> None:
        """Start a waiting job, on `hosts` or on the free ones with the lowest ids.

        Raises:
            PolicyError: if it does not wait, or the hosts are too few or not free.
        """
        found, plan = self.job(job), self._writable()
        if not self.view.queue.has(found.number):
            raise PolicyError(f"t={self.now:.12g} s: {found.id} does not wait")
        if hosts is not None:
            hosts = list(hosts)
            busy = sorted(set(hosts) - set(self.view.free_hosts))
            if len(set(hosts)) != found.size or busy:
                why = f"host {busy[0]} is not free" if busy else f"{len(set(hosts))} are named"
                raise PolicyError(f"t={self.now:.12g} s: {found.id} needs {found.size} free hosts; {why}")
        plan.start(found, hosts)
        self._tell("job_started", found)

    def reject(self, job: "JobView | str | int") -> None:
        """Turn a waiting job away."""
        found, plan = self.job(job), self._writable()
        if not self.view.queue.has(found.number):
            raise PolicyError(f"t={self.now:.12g} s: {found.id} does not wait")
        plan.reject(found)
        self._tell("job_rejected", found)

    def kill(self, job: "JobView | str | int") -> None:
        """Stop a running job, which then counts as killed."""
        self._writable().kill(self.job(job))

    def switch_off(self, hosts: Iterable[int]) -> None:
        """Put idle hosts to sleep; needs ``energy=True``."""
        self._writable().sleep(hosts)

    def switch_on(self, hosts: Iterable[int]) -> None:
        """Wake hosts that sleep, which takes their time."""
        self._writable().wake(hosts)

    def set_pstate(self, hosts: Iterable[int], pstate: int) -> None:
        """Switch hosts to a power state."""
        self._writable().set_pstate(hosts, pstate)

    def _writable(self) -> Plan:
        if self.is_over:
            raise PolicyError(f"t={self.now:.12g} s: the simulation is over")
        return self._plan

    # --- Time --------------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do what was asked for, and go on to the next instant at which something happens.

        Returns:
            Whether there is one: False, and `is_over`, at the end.

        Raises:
            PolicyError: if something that was asked for is impossible.
            DeadlockError: if nothing can happen any more, and jobs wait.
        """
        self._writable()
        before = self._host_state
        self._look(self._source.ask())
        if self.is_over:
            self._tell("ended")
            return False
        state = self.view.arrays
        for number in state.ended[: state.nb_ended].tolist():
            killed = state.job_state[number] == ENDED + int(FinalState.COMPLETED_KILLED)
            self._tell("job_killed" if killed else "job_completed", self.view.job(number))
        for number in range(self._submitted, int(state.nb_jobs)):
            self._tell("job_submitted", self.view.job(number))
        self._submitted = int(state.nb_jobs)
        if self._listeners["host_changed"]:
            for host in np.flatnonzero(before != state.host_state).tolist():
                self._tell("host_changed", host)
        due = [call for at, call in self._calls if at <= self.now]
        self._calls = [each for each in self._calls if each[0] > self.now]
        for call in due:
            call(self)
        return True

    def run_until(self, time: float) -> None:
        """Step until `time` (seconds), or the end; whatever waits meanwhile goes on waiting."""
        time = amount("time", time, 0.0, _LATEST)
        if time > self.now and not self.is_over and not self._is_done():
            self._writable().call_at(time)
        while not self.is_over and self.now < time:
            self.step()

    def _is_done(self) -> bool:
        """Whether all jobs have come and ended: to ask for a time then would keep the simulation from its end."""
        state = self.view.arrays
        return int(state.nb_jobs) == self._jobs and len(self.view.queue) + len(self.view.running) == 0

    def at(self, time: float, call: "Callable[[Simulation], Any]") -> None:
        """Call ``call(sim)`` at `time` (seconds)."""
        self._writable().call_at(time)
        self._calls.append((time, call))

    def on(self, event: str, call: Callable[..., Any]) -> None:
        """Call ``call(sim, job)`` whenever something happens.

        Args:
            event: ``job_submitted``, ``job_started``, ``job_completed``, ``job_killed`` (at its walltime, too),
                ``job_rejected``; ``host_changed``, with the host's id; ``ended``, without a second argument.
            call: the function.
        """
        if event not in EVENTS:
            raise ConfigError(f"event: must be one of {', '.join(EVENTS)}; found {event!r}", field="event")
        self._listeners[event].append(call)

    def _tell(self, event: str, *about: Any) -> None:
        for call in list(self._listeners[event]):
            call(self, *about)

    # --- Futures, and the end ----------------------------------------------------------------------------------------

    def copy(self) -> "Simulation":
        """The same simulation at this instant, nothing asked for yet, which has a future of its own; no listeners.

        Raises:
            ConfigError: with an external Batsim, or with jobs that communicate.
        """
        other = Simulation.__new__(Simulation)
        other.__dict__.update(self.__dict__)
        other._listeners, other._calls = {name: [] for name in EVENTS}, []
        other._source, question = self._source.copied()
        other._look(question)
        return other

    def result(self) -> SimulationResult:
        """What it came to. Raises ConfigError before the end."""
        if not self.is_over:
            raise ConfigError(f"the simulation is at t={self.now:.12g} s, and not over; step on")
        return SimulationResult(self._source.record(), self._platform, self._title)

    def close(self) -> None:
        """End an external Batsim before its time."""
        self._source.close()
        self.is_over = True

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        done = "over" if self.is_over else f"{len(self.view.queue):,} jobs wait, {len(self.view.running):,} run"
        return f"<{type(self).__name__}: {self._title}, t={self.now:.12g} s, {done}>"


def _written(case: Any, folder: Path) -> Any:
    """The case with its inputs in files, as Batsim reads them."""
    from msgspec.structs import replace

    from decision.files import write_workload

    paths = []
    for workload in case.workloads:
        paths.append(folder / f"{workload.name}.json")
        write_workload(paths[-1], replace(workload, trace=None))
    platform = given.platform_file(case.platform, case.inputs.energy, folder)
    return replace(case, inputs=replace(case.inputs, platform=platform, workloads=tuple(paths)))
