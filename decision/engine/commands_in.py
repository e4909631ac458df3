"""The one reader of commands: what a decision process says, checked as far as that needs no engine.

Names become jobs and hosts here; profiles, descriptions, mappings and metadata are read; who may say what is checked.
What comes out is one of `command_kinds`, which each engine carries out in its own way. Whether a command is possible
depends on the cluster when the command's time comes, and is left to the engine (`decision.engine.refusals`).

A job is whatever the engine hands in at `submit`: an object of the reference engine, a number of the compiled one.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Generic

from msgspec import UNSET

from decision.model.errors import ConfigError, PolicyError
from decision.model.hosts import parse_hosts
from decision.model.platform import Platform
from decision.model.workload import Job, Workload
from decision.protocol import messages as m
from decision.protocol.messages import DecisionEvent

from .command_kinds import (
    CallLater,
    ChangeState,
    Command,
    J,
    Kill,
    NoEffect,
    QueryEnergy,
    Reject,
    SetMetadata,
    SetPstate,
    Start,
)
from .options import EngineOptions
from .profiles import is_moldable
from .refusals import ADVICE, network_refusal, size_refusal
from .registrations import Registrations

_PSTATES = 2**31  # no host has so many


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
        self._readers: dict[type[DecisionEvent], Callable[[Any], Command[J]]] = {
            m.ExecuteJob: self._execute,
            m.RejectJob: lambda data: Reject(self._job(data.job_id)),
            m.KillJob: lambda data: Kill([self._job(job_id) for job_id in data.job_ids]),
            m.ChangeJobState: lambda data: ChangeState(self._job(data.job_id), data.job_state),
            m.CallMeLater: lambda data: CallLater(data.timestamp),
            m.SetResourceState: self._set_resource_state,
            m.Query: self._query,
            m.SetJobMetadata: self._set_metadata,
            m.ToJobMsg: self._message_to_job,
            m.Notify: self._registered.notify,
            m.RegisterProfile: self._registered.register_profile,
            m.RegisterJob: self._registered.register_job,
        }

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
        return self._readers[type(command)](command.data)

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

    def _execute(self, data: m.ExecuteJobData) -> Start[J]:
        job = self._job(data.job_id)
        if data.additional_io_job is not UNSET:
            raise self._refuse(f"{data.job_id}: additional_io_job needs a network and storage; {ADVICE}")
        hosts = self._hosts(data.alloc, data.job_id)
        places = self._places(job, len(hosts), data.mapping) if data.mapping is not UNSET and data.mapping else []
        return Start(job, hosts, data.alloc, places)

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

    def _set_metadata(self, data: m.SetJobMetadataData) -> SetMetadata[J]:
        job = self._job(data.job_id)
        if '"' in data.metadata:
            raise self._refuse(f"{data.job_id}: metadata must not contain a double quote")
        return SetMetadata(job, data.metadata)

    def _message_to_job(self, data: m.ToJobMsgData) -> NoEffect:
        self._job(data.job_id)
        return NoEffect()  # none of the profiles that the engines simulate reads messages

    # --- Hosts and energy -------------------------------------------------------------------------------------

    def _hosts(self, text: str, who: str) -> list[int]:
        try:
            hosts = parse_hosts(text, self._nb_hosts)
        except ConfigError as error:
            raise self._refuse(f"{who}: {error}") from None
        if not hosts:
            raise self._refuse(f"{who}: no hosts given")
        if hosts[-1] >= self._nb_compute:
            storage = next(host for host in hosts if host >= self._nb_compute)
            raise self._refuse(f"{who}: host {storage} is a storage host")
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

    def _query(self, data: m.QueryData) -> QueryEnergy:
        if data.requests.consumed_energy is UNSET or data.requests.estimate_waiting_time is not UNSET:
            raise self._refuse("QUERY: Batsim answers only consumed_energy")
        self._need_energy("QUERY of consumed_energy")
        return QueryEnergy()

    def _need_energy(self, what: str) -> None:
        if not self._options.energy:
            raise self._refuse(f"{what} needs the energy simulation; enable it")
