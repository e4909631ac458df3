"""The one reader of commands: what a decision process says, checked as far as that needs no engine.

Names become jobs and hosts here; profiles, descriptions, mappings and metadata are read; who may say what is checked.
What comes out is a `Command`, which each engine carries out in its own way. Whether a command is possible
depends on the cluster when the command's time comes, and is left to the engine (`decision.engine.rules`).

A job is whatever the engine hands in at `submit`: an object of the reference engine, a number of the compiled one.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET

from decision.files.profiles import read_profile
from decision.model.errors import ConfigError, InternalError, PolicyError
from decision.model.hosts import parse_hosts
from decision.model.platform import Platform
from decision.model.record import FinalState
from decision.model.workload import Composed, Job, Profile, Workload, used_profiles
from decision.protocol import messages as m
from decision.protocol.messages import DecisionEvent, JobDescription

from .rules import ADVICE, EngineOptions, network_refusal, size_refusal
from .truth import LeafTask, check_width, flatten, is_moldable

# --- Commands, read and checked --------------------------------------------------------------------------------------

J = TypeVar("J")


class Start(msgspec.Struct, Generic[J], frozen=True):
    """Let a job compute on hosts, ascending."""

    job: J
    hosts: list[int]
    alloc: str  # the hosts as they were given
    places: list[int]  # (n,) for each executor, its host's index in `hosts`; empty for one executor on each host


class Reject(msgspec.Struct, Generic[J], frozen=True):
    """Turn a waiting job away."""

    job: J


class Kill(msgspec.Struct, Generic[J], frozen=True):
    """Kill jobs, all by one request."""

    jobs: list[J]


class ChangeState(msgspec.Struct, Generic[J], frozen=True):
    """Let a job that runs outside of the simulation start or end."""

    job: J
    wanted: str  # "RUNNING", a FinalState's name, or anything else, which is impossible

    @property
    def final(self) -> FinalState | None:
        """How the job is to end; None where that is not what is wanted."""
        return FinalState.__members__.get(self.wanted)


class CallLater(msgspec.Struct, frozen=True):
    """Ask again at `time`, in seconds."""

    time: float


class SetPstate(msgspec.Struct, frozen=True):
    """Let hosts, ascending, go to a pstate."""

    hosts: list[int]
    pstate: int


class QueryEnergy(msgspec.Struct, frozen=True):
    """Answer how many joules were used so far."""


class SetRegistration(msgspec.Struct, frozen=True):
    """From now on jobs may be registered, or no longer."""

    allowed: bool


class Register(msgspec.Struct, frozen=True):
    """A new job, with what it does."""

    job: Job
    leaves: tuple[LeafTask, ...]
    moldable: bool


class SetMetadata(msgspec.Struct, Generic[J], frozen=True):
    """Text that Batsim writes next to the job's results."""

    job: J
    text: str


class NoEffect(msgspec.Struct, frozen=True):
    """Nothing that a simulation could notice: a profile, which was registered here, or a message to a job."""


Command = (
    Start[J]
    | Reject[J]
    | Kill[J]
    | ChangeState[J]
    | CallLater
    | SetPstate
    | QueryEnergy
    | SetRegistration
    | Register
    | SetMetadata[J]
    | NoEffect
)

# --- The reader ------------------------------------------------------------------------------------------------------

_PSTATES = 2**31  # no host has so many: a number beyond is read as none


class CommandReader(Generic[J]):
    """Reads commands, and knows what they may name.

    Args:
        platform: the hosts.
        workloads: by name; profiles and workloads are added when they are registered.
        options: Batsim's options.
        ids: ids of all jobs of the simulation, of which more may be added.
        job_of: what a job is that `submit` got.
        refuse: makes the error of an impossible command, with the time.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        options: EngineOptions,
        ids: Container[str],
        job_of: Callable[[J], Job],
        refuse: Callable[[str], PolicyError],
    ) -> None:
        self._nb_compute = len(platform.hosts)
        self._nb_hosts = len(platform.hosts) + len(platform.storage)
        self._options, self._ids, self._job_of, self._refuse = options, ids, job_of, refuse
        self._registered = Registrations(workloads, options, ids, network_refusal(platform), refuse)
        self._submitted: dict[str, J] = {}
        self._forgotten: set[str] = set()  # ids of jobs whose end was reported

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """By name, with what was registered."""
        return self._registered.workloads

    def set_options(self, options: EngineOptions) -> None:
        """Take other options, before anything is read."""
        self._options = options
        self._registered.set_options(options)

    def read(self, command: DecisionEvent) -> Command[J]:
        """The command that an event is.

        Raises:
            PolicyError: if it names what does not exist, or asks for what no engine can do.
        """
        match command:
            case m.ExecuteJob(data=data):
                job = self._job(data.job_id)
                if data.additional_io_job is not UNSET:
                    raise self._refuse(f"{data.job_id}: additional_io_job needs a network and storage; {ADVICE}")
                hosts = self._hosts(data.alloc, data.job_id)
                by_hand = {} if data.mapping is UNSET else data.mapping
                places = self._places(job, len(hosts), by_hand) if by_hand else []
                return Start(job, hosts, data.alloc, places)
            case m.RejectJob(data=data):
                return Reject(self._job(data.job_id))
            case m.KillJob(data=data):
                return Kill([self._job(job_id) for job_id in data.job_ids])
            case m.ChangeJobState(data=data):
                return ChangeState(self._job(data.job_id), data.job_state)
            case m.CallMeLater(data=data):
                return CallLater(data.timestamp)
            case m.SetResourceState(data=data):
                return self._set_resource_state(data)
            case m.Query(data=data):
                if data.requests.consumed_energy is UNSET or data.requests.estimate_waiting_time is not UNSET:
                    raise self._refuse("QUERY: Batsim answers only consumed_energy")
                self._need_energy("QUERY of consumed_energy")
                return QueryEnergy()
            case m.SetJobMetadata(data=data):
                job = self._job(data.job_id)
                if '"' in data.metadata:
                    raise self._refuse(f"{data.job_id}: metadata must not contain a double quote")
                return SetMetadata(job, data.metadata)
            case m.ToJobMsg(data=data):
                self._job(data.job_id)
                return NoEffect()  # none of the profiles that the engines simulate reads messages
            case m.Notify(data=data):
                return self._registered.notify(data)
            case m.RegisterProfile(data=data):
                return self._registered.register_profile(data)
            case m.RegisterJob(data=data):
                return self._registered.register_job(data)
        raise InternalError(f"{type(command).__name__} is no command")

    def check_time(self, command: DecisionEvent, now: float) -> None:
        """Refuse a command whose time is after the reply's own, `now`, in seconds."""
        if command.timestamp > now:
            name = type(command).__name__
            raise self._refuse(f"{name} is for t={command.timestamp:g} s, after the reply's now={now:g} s")

    def submit(self, job_id: str, job: J) -> None:
        """A job is submitted: commands may name it from now on."""
        self._submitted[job_id] = job

    def forget(self, job: Job) -> None:
        """Forget a job whose end was reported, as Batsim does: with its profile, unless profiles are to be reused."""
        self._forgotten.add(job.id)
        self._registered.forget(job)

    # --- Jobs -------------------------------------------------------------------------------------------------

    def _job(self, job_id: str) -> J:
        """A job that a command may name: submitted, and its end not reported."""
        if job_id in self._forgotten:
            raise self._refuse(f"{job_id} has ended already, and Batsim no longer knows it")
        if job_id in self._submitted:
            return self._submitted[job_id]
        if job_id in self._ids:
            raise self._refuse(f"{job_id} is not submitted yet")
        raise self._refuse(f"there is no job {job_id}")

    def _places(self, job: J, nb_hosts: int, mapping: dict[str, str | int]) -> list[int]:
        """Where each executor runs; keys of the mapping are executors, values index the allocation."""
        facts = self._job_of(job)
        try:
            places = {int(executor): int(place) for executor, place in mapping.items()}
        except ValueError:
            places = {}
        if sorted(places) != list(range(len(mapping))) or not all(0 <= place < nb_hosts for place in places.values()):
            wanted = f"executors 0 to n-1 on places 0 to {nb_hosts - 1} of its allocation"
            raise self._refuse(f"{facts.id}: its mapping must put {wanted}; found {mapping}")
        moldable = not self._options.rules.checks_sizes or is_moldable(facts.profile, self.workloads[facts.workload])
        refusal = size_refusal(facts.id, facts.size, moldable, len(places), "executors")
        if refusal:
            raise self._refuse(refusal)
        return [places[executor] for executor in range(len(places))]

    # --- Hosts and energy -------------------------------------------------------------------------------------

    def _hosts(self, text: str, subject: str) -> list[int]:
        try:
            hosts = parse_hosts(text, self._nb_hosts)
        except ConfigError as error:
            raise self._refuse(f"{subject}: {error}") from None
        if not hosts:
            raise self._refuse(f"{subject}: no hosts given")
        # Storage hosts have the highest ids, and Batsim runs no jobs there.
        if hosts[-1] >= self._nb_compute:
            storage = next(host for host in hosts if host >= self._nb_compute)
            raise self._refuse(f"{subject}: host {storage} is a storage host")
        return hosts

    def _set_resource_state(self, data: m.SetResourceStateData) -> SetPstate:
        if not self._options.rules.switches_without_energy:
            self._need_energy("SET_RESOURCE_STATE")
        hosts = self._hosts(data.resources, "SET_RESOURCE_STATE")
        try:
            pstate = int(data.state)
        except ValueError:
            pstate = _PSTATES
        if not -_PSTATES < pstate < _PSTATES:
            raise self._refuse(f"SET_RESOURCE_STATE: {data.state!r} is not a pstate; give a number")
        return SetPstate(hosts, pstate)

    def _need_energy(self, command: str) -> None:
        if not self._options.energy:
            raise self._refuse(f"{command} needs the energy simulation; enable it")


# --- What is registered while the simulation goes on: profiles, and jobs that have them ------------------------------


class Registrations:
    """The workloads, to which profiles and workloads are added when they are registered.

    Args:
        workloads: those of the simulation.
        options: Batsim's options.
        ids: ids of all jobs of the simulation, of which more may be added.
        no_network: why jobs that communicate cannot be simulated; empty if they can.
        refuse: makes the error of an impossible command, with the time.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        options: EngineOptions,
        ids: Container[str],
        no_network: str,
        refuse: Callable[[str], PolicyError],
    ) -> None:
        self.workloads = {workload.name: workload for workload in workloads}
        self._ids, self._no_network, self._refuse = ids, no_network, refuse
        self._forgotten_profiles: set[tuple[str, str]] = set()  # (workload, profile)
        self._growing: dict[str, dict[str, dict[str, Any]]] = {}  # profiles and their sources, of `workloads`
        self.set_options(options)

    def set_options(self, options: EngineOptions) -> None:
        """Take other options, before anything is registered."""
        self._options, self._open = options, options.dynamic_jobs

    def forget(self, job: Job) -> None:
        """Forget the profile of a job whose end was reported, unless profiles are to be reused."""
        if self._options.may_register and not self._options.keeps_profiles:
            profiles = self.workloads[job.workload].profiles
            self._forgotten_profiles |= {(job.workload, name) for name in used_profiles(profiles, [job.profile])}

    def notify(self, data: m.NotifyData) -> SetRegistration:
        """Registration ends, or goes on."""
        if data.type not in ("registration_finished", "continue_registration"):
            raise self._refuse(f"Batsim knows no notification {data.type!r}")
        self._open = data.type == "continue_registration" and self._options.dynamic_jobs
        return SetRegistration(self._open)

    def _check_registration(self, named: str) -> None:
        if not self._options.rules.asks_to_register:
            return
        if not self._options.dynamic_jobs:
            raise self._refuse(f"{named} cannot be registered: dynamic jobs are not enabled")
        if not self._open:
            raise self._refuse(f"{named} cannot be registered after registration_finished")

    def register_profile(self, data: m.RegisterProfileData) -> NoEffect:
        """A profile is there from now on."""
        name, full_name = data.profile_name, f"profile {data.profile_name!r} of {data.workload_name!r}"
        self._check_registration(full_name)
        empty = Workload(name=data.workload_name, jobs=(), profiles={}, nb_res=0, path="dynamic")
        workload = self.workloads.get(data.workload_name, empty)
        if name in workload.profiles:
            raise self._refuse(f"{full_name} exists already")
        fields, parts = data.profile, data.profile.get("seq")
        if isinstance(parts, list | tuple):  # Batsim 5 names them with their own workload
            fields = {**fields, "seq": [str(part).removeprefix(f"{data.workload_name}!") for part in parts]}
        source = msgspec.json.encode(fields)
        try:
            profile = read_profile(source)
        except msgspec.ValidationError as error:
            raise self._refuse(f"{full_name}: {error}") from None
        missing = set(profile.sequence) - workload.profiles.keys() if isinstance(profile, Composed) else set()
        if missing:
            raise self._refuse(f"{full_name}: there is no profile {min(missing)!r}")
        # A workload is frozen; the first registration copies its profiles, and those that follow only add to them.
        if workload.name not in self._growing:
            growing = {"profiles": dict[str, Any](workload.profiles), "profile_sources": dict(workload.profile_sources)}
            workload = self.workloads[workload.name] = msgspec.structs.replace(workload, **growing)
            self._growing[workload.name] = growing
        self._growing[workload.name]["profiles"][name] = profile
        self._growing[workload.name]["profile_sources"][name] = source
        return NoEffect()

    def register_job(self, data: m.RegisterJobData) -> Register:
        """A job, and what it does."""
        self._check_registration(data.job_id)
        job = self._described_job(data.job_id, data.job)
        workload = self.workloads[job.workload]
        try:
            if job.id in self._ids:
                raise ConfigError(f"job {job.id} exists already; give it another id")
            leaves = flatten(job.profile, workload, self._no_network)
            check_width(job, leaves, workload)
        except ConfigError as error:
            raise self._refuse(f"{job.id}: {error}") from None
        return Register(job, leaves, is_moldable(job.profile, workload))

    def _profile_of(self, job_id: str, workload: str, profile: str) -> str:
        """A profile of a job's workload by its name there; that of another workload becomes one of this."""
        owner, mark, name = profile.partition("!")
        if not mark or owner == workload:
            return name if mark else profile
        source = self.workloads.get(owner)
        if source is None or name not in source.profiles or (owner, name) in self._forgotten_profiles:
            raise self._refuse(f"{job_id}: there is no profile {profile!r}")
        empty = Workload(name=workload, jobs=(), profiles={}, nb_res=0, path="dynamic")
        mine = self.workloads.get(workload, empty)
        used: dict[str, Profile] = {}
        for part in used_profiles(source.profiles, [name]):
            moved = source.profiles[part]
            if isinstance(moved, Composed):  # there its parts have their full names
                moved = msgspec.structs.replace(moved, sequence=tuple(f"{owner}!{each}" for each in moved.sequence))
            used[f"{owner}!{part}"] = moved
        self.workloads[workload] = msgspec.structs.replace(mine, profiles={**used, **mine.profiles})
        # Other dictionaries than those that grow: the next registration copies these.
        self._growing.pop(workload, None)
        return profile

    def _described_job(self, job_id: str, job: JobDescription) -> Job:
        name, _, short = job_id.partition("!")
        profile = self._profile_of(job_id, name, job.profile)
        workload = self.workloads.get(name)
        if workload is None:
            raise self._refuse(f"{job_id}: there is no workload {name!r}; register a profile of it first")
        if profile not in workload.profiles:
            raise self._refuse(f"{job_id}: workload {name!r} has no profile {profile!r}")
        # Batsim drops a profile with a job that had it, unless it was told to keep them.
        if (name, profile) in self._forgotten_profiles:
            advice = "enable profile reuse, or register a new profile"
            raise self._refuse(f"{job_id}: Batsim forgot profile {profile!r} with the job that had it; {advice}")
        if job.id not in (job_id, short) or not short or "!" in short:
            raise self._refuse(f"{job_id}: its description has id {job.id!r}")
        if not job.walltime > 0 and (job.walltime < 0 or self._options.rules.asks_to_register):
            raise self._refuse(f"{job_id}: walltime {job.walltime:g} must be above 0, or -1 for none")
        source = msgspec.json.encode({**job.fields, "id": job_id})
        return Job(
            id=job_id, submit_time=job.subtime, size=job.res, walltime=job.walltime, profile=profile, source=source
        )
