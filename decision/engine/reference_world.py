"""What all actors of the reference engine share: time, hosts, jobs, and what is written down."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from decision.model.errors import ConfigError, PolicyError
from decision.model.platform import Platform
from decision.model.record import HostState
from decision.model.workload import Job, Profile, Workload, used_profiles
from decision.protocol import JobDescription

from .options import EngineOptions
from .profiles import Leaf, check_width, flatten, is_moldable
from .reference_jobs import Entry, Phase
from .reference_kernel import STEP, Call, Kernel, Put, Steps
from .reference_machines import Machine
from .reference_rows import Rows

if TYPE_CHECKING:
    from .reference_server import Handler, Server


class World:
    """The state of a simulation. Host ids count compute hosts first, then storage hosts."""

    server: "Server"  # set by the server itself

    def __init__(self, platform: Platform, workloads: Sequence[Workload], options: EngineOptions) -> None:
        self.kernel = Kernel()
        self.options = options
        self.nb_compute = len(platform.hosts)
        self.machines = [Machine(host, options.energy) for host in (*platform.hosts, *platform.storage)]
        self.in_state = [0] * len(HostState)  # compute hosts in each state
        self.in_state[HostState.IDLE] = self.nb_compute
        self.workloads = {workload.name: workload for workload in workloads}
        self.jobs: dict[str, Entry] = {}
        self.submitted: list[Entry] = []  # in order of submission
        self._leaves: dict[tuple[str, str], tuple[Leaf, ...]] = {}  # of each profile that a job has had
        self.forgotten_profiles: set[tuple[str, str]] = set()  # (workload, profile)
        self.rows = Rows()
        for workload in workloads:
            for job in workload.jobs:
                self.add_job(job, describe(job))

    # --- Jobs ---------------------------------------------------------------------------------------------

    def add_job(self, job: Job, description: JobDescription) -> Entry:
        """Take a job in.

        Raises:
            ConfigError: if its profile cannot be simulated, or its id is taken or belongs to no workload.
        """
        if job.workload not in self.workloads:
            raise ConfigError(f"job {job.id}: there is no workload {job.workload!r}; ids are WORKLOAD!NAME")
        if job.id in self.jobs:
            raise ConfigError(f"job {job.id} exists already; give it another id")
        workload = self.workloads[job.workload]
        key = (job.workload, job.profile)
        if key not in self._leaves:
            self._leaves[key] = flatten(job.profile, workload)
        leaves = self._leaves[key]
        check_width(job, leaves, workload)
        entry = Entry(job, description, leaves, is_moldable(job.profile, workload))
        self.jobs[job.id] = entry
        return entry

    def add_profile(self, workload: Workload, name: str, profile: Profile, source: bytes) -> None:
        """Add a profile to a workload that is here already, or to a new one."""
        self.workloads[workload.name] = msgspec.structs.replace(
            workload,
            profiles={**workload.profiles, name: profile},
            profile_sources={**workload.profile_sources, name: source},
        )

    def forget(self, entry: Entry) -> None:
        """Forget an ended job as Batsim does: with its profile, unless profiles are to be reused."""
        entry.forgotten = True
        if self.options.dynamic_jobs and not self.options.profile_reuse:
            workload = self.workloads[entry.job.workload]
            for name in used_profiles(workload.profiles, [entry.job.profile]):
                self.forgotten_profiles.add((workload.name, name))

    def submit(self, entry: Entry) -> None:
        """A job arrives."""
        entry.phase = Phase.SUBMITTED
        self.submitted.append(entry)

    def waiting(self) -> list[Entry]:
        """Jobs that were submitted and neither started nor rejected, in order of submission."""
        return [entry for entry in self.submitted if entry.phase is Phase.SUBMITTED]

    # --- Time, messages, errors ---------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Simulated time, seconds."""
        return self.kernel.now

    @property
    def told_now(self) -> float:
        """The time as Batsim writes it into messages: six decimals."""
        return round(self.kernel.now, 6)

    def send(self, handler: "Handler") -> Steps[None]:
        """Let the server run `handler`; goes on when the server has taken it."""
        yield STEP
        yield Put(handler)

    def refuse(self, reason: str) -> PolicyError:
        """The error of an impossible command."""
        return PolicyError(f"t={self.now:.12g} s: {reason}")

    # --- Hosts and energy ---------------------------------------------------------------------------------

    def enter(self, machine: Machine, state: HostState) -> None:
        """Change the state of a host."""
        self.in_state[machine.state] -= 1
        self.in_state[state] += 1
        machine.enter(state, self.now)

    def host_row(self) -> None:
        """Write down how many hosts are in each state."""
        if self.options.trace:
            self.rows.hosts.append((self.now, list(self.in_state)))

    def joules(self, machines: Iterable[Machine]) -> Steps[np.longdouble]:
        """Joules of these machines since the beginning; each that is not up to date takes a round.

        The sum is as wide as Batsim's: rows can be nanoseconds apart, and tell of the power between them.
        """
        total = np.longdouble(0.0)
        for machine in machines:
            if machine.needs_measure(self.now):
                yield Call(partial(machine.measure, self.now))
            total += machine.joules
        return total

    def energy_row(self, kind: str) -> Steps[np.longdouble]:
        """Write down the energy so far; returns it."""
        total = yield from self.joules(self.machines)
        self.rows.energy.append((self.now, total, kind, sum(machine.power.epsilon for machine in self.machines)))
        return total


def describe(job: Job) -> JobDescription:
    """The job as its workload describes it, with its full id."""
    if job.source is not None:
        return JobDescription(**msgspec.json.decode(job.source))
    fields: dict[str, Any] = {"id": job.id, "subtime": job.submit_time, "res": job.size, "profile": job.profile}
    if job.walltime != float("inf"):
        fields["walltime"] = job.walltime
    if job.user:
        fields["user"] = job.user
    return JobDescription(**fields)
