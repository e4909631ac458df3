"""The decision process's commands: each is checked whole before it changes anything.

Where Batsim 4.2.1 would stop with an assertion, a `PolicyError` names the time, the job and the hosts.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from decision.formats.profiles import read_profile
from decision.model.errors import ConfigError
from decision.model.hosts import parse_hosts
from decision.model.record import FinalState, HostState
from decision.model.workload import Composed, Job, Workload
from decision.protocol import (
    Answer,
    AnswerData,
    CallMeLaterData,
    ChangeJobStateData,
    DecisionEvent,
    ExecuteJobData,
    JobDescription,
    KillJobData,
    NotifyData,
    QueryData,
    RegisterJobData,
    RegisterProfileData,
    RejectJobData,
    SetJobMetadataData,
    SetResourceStateData,
    ToJobMsgData,
)

from .profiles import ADVICE
from .reference_actors import call_later, execute, kill
from .reference_jobs import Entry, Phase
from .reference_kernel import Call, Steps
from .reference_machines import Machine
from .reference_world import World


class Commands:
    """The server's reactions to commands."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._handlers: dict[type, Callable[[Any], Steps[None] | None]] = {
            CallMeLaterData: self._call_me_later,
            ChangeJobStateData: self._change_job_state,
            ExecuteJobData: self._execute_job,
            KillJobData: self._kill_job,
            NotifyData: self._notify,
            QueryData: self._query,
            RegisterJobData: self._register_job,
            RegisterProfileData: self._register_profile,
            RejectJobData: self._reject_job,
            SetJobMetadataData: self._set_job_metadata,
            SetResourceStateData: self._set_resource_state,
            ToJobMsgData: self._to_job_msg,
        }

    def handle(self, command: DecisionEvent) -> Steps[None] | None:
        """Do what the decision process wants.

        Raises:
            PolicyError: if it is impossible.
        """
        return self._handlers[type(command.data)](command.data)

    # --- Jobs ---------------------------------------------------------------------------------------------

    def _job(self, job_id: str) -> Entry:
        """A job that a command may name: submitted, and not told as ended."""
        entry = self.world.jobs.get(job_id)
        if entry is None:
            raise self.world.refuse(f"there is no job {job_id}")
        if entry.phase is Phase.UNKNOWN:
            raise self.world.refuse(f"{job_id} is not submitted yet")
        if entry.forgotten:
            raise self.world.refuse(f"{job_id} has ended already, and Batsim no longer knows it")
        return entry

    def _execute_job(self, data: ExecuteJobData) -> Steps[None]:
        entry = self._job(data.job_id)
        if data.additional_io_job is not UNSET:
            raise self.world.refuse(f"{entry.id}: additional_io_job needs a network and storage; {ADVICE}")
        machines = self._machines(data.alloc, entry.id)
        mapping = {} if data.mapping is UNSET else data.mapping
        executors = self._executors(entry, machines, mapping) if mapping else machines
        if mapping:
            self._check_size(entry, len(executors), "executors")
        self._check_phase(entry, "start")
        self._check_size(entry, len(executors), "hosts")
        for machine in machines:
            self._check_can_compute(entry, machine, data.alloc)
        entry.phase, entry.machines, entry.executors = Phase.RUNNING, machines, executors
        self.world.server.nb_running += 1
        body = execute(self.world, entry)
        entry.actor = yield Call(partial(self.world.kernel.start, body, machines[0]))

    def _check_phase(self, entry: Entry, verb: str) -> None:
        if entry.phase is not Phase.SUBMITTED:
            raise self.world.refuse(f"{entry.id} cannot {verb}: it is {entry.phase.value}")

    def _machines(self, hosts: str, who: str) -> list[Machine]:
        try:
            ids = parse_hosts(hosts)
        except ConfigError as error:
            raise self.world.refuse(f"{who}: {error}") from None
        if not ids:
            raise self.world.refuse(f"{who}: no hosts given")
        for host in ids:
            if host >= len(self.world.machines):
                raise self.world.refuse(f"{who}: there is no host {host}")
            if host >= self.world.nb_compute:
                raise self.world.refuse(f"{who}: host {host} is a storage host")
        return [self.world.machines[host] for host in ids]

    def _check_can_compute(self, entry: Entry, machine: Machine, alloc: str) -> None:
        if machine.job:
            reason = f"host {machine.id} computes {machine.job}"
        elif machine.state is not HostState.IDLE:
            reason = f"host {machine.id} is {_state(machine)}"
        elif self.world.options.energy and not machine.computes:
            reason = f"host {machine.id} cannot compute in pstate {machine.pstate}"
        else:
            return
        raise self.world.refuse(f"{entry.id} cannot start on hosts {alloc}: {reason}")

    def _executors(self, entry: Entry, machines: Sequence[Machine], mapping: dict[str, str | int]) -> list[Machine]:
        """Where each executor runs; keys of the mapping are executors, values index the allocation."""
        try:
            places = {int(executor): int(place) for executor, place in mapping.items()}
            if sorted(places) != list(range(len(places))) or min(places.values()) < 0:
                raise ValueError
            return [machines[places[executor]] for executor in range(len(places))]
        except (ValueError, IndexError):
            reason = f"executors 0 to n-1 on places 0 to {len(machines) - 1} of its allocation"
            raise self.world.refuse(f"{entry.id}: its mapping must put {reason}; found {mapping}") from None

    def _check_size(self, entry: Entry, given: int, what: str) -> None:
        if given != entry.job.size and not entry.moldable:
            raise self.world.refuse(f"{entry.id} needs {entry.job.size} {what}, {given} given")

    def _reject_job(self, data: RejectJobData) -> None:
        self._reject(self._job(data.job_id))

    def _reject(self, entry: Entry) -> None:
        self._check_phase(entry, "be rejected")
        entry.phase, entry.final = Phase.ENDED, FinalState.REJECTED
        self.world.server.note_end(entry)

    def _kill_job(self, data: KillJobData) -> Steps[None]:
        entries = [self._job(job_id) for job_id in data.job_ids]
        for entry in entries:
            started = entry.actor is not None and entry.phase in (Phase.RUNNING, Phase.ENDED)
            if not started:
                raise self.world.refuse(f"{entry.id} cannot be killed: it was never executed")
        asked = [entry for entry in dict.fromkeys(entries) if not entry.kill_asked]
        for entry in asked:
            entry.kill_asked = True
        if asked:
            yield Call(partial(self.world.kernel.start, kill(self.world, asked)))
            self.world.server.nb_killers += 1

    def _set_job_metadata(self, data: SetJobMetadataData) -> None:
        entry = self._job(data.job_id)
        if '"' in data.metadata:
            raise self.world.refuse(f"{entry.id}: metadata must not contain a double quote")
        entry.metadata = data.metadata

    def _to_job_msg(self, data: ToJobMsgData) -> None:
        self._job(data.job_id)  # none of the profiles that the engine simulates reads messages

    def _change_job_state(self, data: ChangeJobStateData) -> None:
        """Batsim's documentation says what this does; 4.2.1 itself stops at any change but to RUNNING."""
        entry, now = self._job(data.job_id), self.world.now
        if entry.actor is not None:
            raise self.world.refuse(f"{entry.id} was executed on hosts {entry.allocation}; kill it instead")
        wanted = (entry.phase, data.job_state)
        if wanted == (Phase.SUBMITTED, "RUNNING"):
            entry.phase, entry.start = Phase.RUNNING, now
            self.world.server.nb_running += 1
        elif wanted == (Phase.SUBMITTED, "REJECTED"):
            self._reject(entry)
        elif entry.phase is Phase.RUNNING and data.job_state in _COMPLETED:
            entry.end(FinalState[data.job_state], now)
            self.world.server.nb_running -= 1
            self.world.server.note_end(entry)
        else:
            raise self.world.refuse(f"{entry.id} is {entry.phase.value} and cannot become {data.job_state!r}")

    # --- Dynamic jobs -------------------------------------------------------------------------------------

    def _notify(self, data: NotifyData) -> None:
        if data.type not in ("registration_finished", "continue_registration"):
            raise self.world.refuse(f"Batsim knows no notification {data.type!r}")
        open_again = data.type == "continue_registration"
        self.world.server.registration_open = open_again and self.world.options.dynamic_jobs

    def _check_registration(self, what: str) -> None:
        if not self.world.options.dynamic_jobs:
            raise self.world.refuse(f"{what} cannot be registered: dynamic jobs are not enabled")
        if not self.world.server.registration_open:
            raise self.world.refuse(f"{what} cannot be registered after registration_finished")

    def _register_profile(self, data: RegisterProfileData) -> None:
        what = f"profile {data.profile_name!r} of {data.workload_name!r}"
        self._check_registration(what)
        name, workload = data.profile_name, self.world.workloads.get(data.workload_name)
        workload = workload or Workload(name=data.workload_name, jobs=(), profiles={}, nb_res=0, path="dynamic")
        if name in workload.profiles:
            raise self.world.refuse(f"{what} exists already")
        source = msgspec.json.encode(data.profile)
        try:
            profile = read_profile(source)
        except msgspec.ValidationError as error:
            raise self.world.refuse(f"{what}: {error}") from None
        missing = set(profile.sequence) - workload.profiles.keys() if isinstance(profile, Composed) else ()
        if missing:
            raise self.world.refuse(f"{what}: there is no profile {min(missing)!r}")
        self.world.add_profile(workload, name, profile, source)

    def _register_job(self, data: RegisterJobData) -> None:
        self._check_registration(data.job_id)
        job = self._read_job(data.job_id, data.job)
        if (job.workload, job.profile) in self.world.forgotten_profiles:
            advice = "enable profile reuse, or register a new profile"
            raise self.world.refuse(
                f"{job.id}: Batsim forgot profile {job.profile!r} with the job that had it; {advice}"
            )
        description = JobDescription(**{**data.job.fields, "id": job.id})
        try:
            entry = self.world.add_job(job, description)
        except ConfigError as error:
            raise self.world.refuse(f"{job.id}: {error}") from None
        self.world.submit(entry)
        if self.world.options.acknowledge_dynamic_jobs:
            self.world.server.tell_submitted(entry)

    def _read_job(self, job_id: str, job: JobDescription) -> Job:
        name, _, short = job_id.partition("!")
        workload = self.world.workloads.get(name)
        if workload is None:
            raise self.world.refuse(f"{job_id}: there is no workload {name!r}; register a profile of it first")
        if job.profile not in workload.profiles:
            raise self.world.refuse(f"{job_id}: workload {name!r} has no profile {job.profile!r}")
        if job.id not in (job_id, short) or not short or "!" in short:
            raise self.world.refuse(f"{job_id}: its description has id {job.id!r}")
        if not job.walltime > 0:
            raise self.world.refuse(f"{job_id}: walltime {job.walltime:g} must be above 0, or -1 for none")
        return Job(
            id=job_id, submit_time=job.subtime, size=job.res, walltime=job.walltime, profile=job.profile, source=None
        )

    # --- Calls, hosts, energy -----------------------------------------------------------------------------

    def _call_me_later(self, data: CallMeLaterData) -> Steps[None]:
        if not data.timestamp > self.world.now:
            raise self.world.refuse(f"asked to be called at t={data.timestamp:.12g} s, which is past")
        yield Call(partial(self.world.kernel.start, call_later(self.world, data.timestamp)))
        self.world.server.nb_calls += 1

    def _query(self, data: QueryData) -> Steps[None]:
        if data.requests.consumed_energy is UNSET or data.requests.estimate_waiting_time is not UNSET:
            raise self.world.refuse("QUERY: Batsim answers only consumed_energy")
        self._check_energy("QUERY of consumed_energy")
        joules = yield from self.world.joules(self.world.machines)
        answer = Answer(self.world.told_now, AnswerData(consumed_energy=round(float(joules), 6)))
        self.world.server.outbox.append(answer)

    def _check_energy(self, what: str) -> None:
        if not self.world.options.energy:
            raise self.world.refuse(f"{what} needs the energy simulation; enable it")

    def _set_resource_state(self, data: SetResourceStateData) -> Steps[None] | None:
        self._check_energy("SET_RESOURCE_STATE")
        machines = self._machines(data.resources, "SET_RESOURCE_STATE")
        try:
            pstate = int(data.state)
        except ValueError:
            raise self.world.refuse(f"SET_RESOURCE_STATE: {data.state!r} is no pstate; give a number") from None
        for machine in machines:
            reason = _why_not(machine, pstate)
            if reason:
                raise self.world.refuse(f"host {machine.id} cannot go to pstate {pstate}: {reason}")
        return self.world.server.switches.request(machines, pstate)


_COMPLETED = {state.name for state in FinalState if state is not FinalState.REJECTED}


def _state(machine: Machine) -> str:
    return machine.state.name.lower().replace("_", " ")


def _why_not(machine: Machine, pstate: int) -> str:
    """Why a host cannot go to a pstate now; empty if it can."""
    if not 0 <= pstate < len(machine.facts.pstates):
        return f"it has pstates 0 to {len(machine.facts.pstates) - 1}"
    if pstate in machine.facts.virtual_pstates:
        return "that pstate only models a switch"
    if machine.state in (HostState.SWITCHING_ON, HostState.SWITCHING_OFF):
        return f"it is {_state(machine)}"
    if machine.computes and machine.facts.is_computing_pstate(pstate):
        return ""
    if machine.job:
        return f"it computes {machine.job}"
    if machine.state is HostState.UNAVAILABLE:
        return "it is unavailable"
    if not machine.computes and not machine.facts.is_computing_pstate(pstate):
        return f"it sleeps in pstate {machine.pstate}; wake it first"
    return ""
