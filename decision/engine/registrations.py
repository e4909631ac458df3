"""What a decision process registers while the simulation goes on: profiles, and jobs that have them."""

from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec

from decision.formats.profiles import read_profile
from decision.model.errors import ConfigError, PolicyError
from decision.model.workload import Composed, Job, Profile, Workload, used_profiles
from decision.protocol import messages as m
from decision.protocol.messages import JobDescription

from .command_kinds import NoEffect, Register, SetRegistration
from .options import EngineOptions
from .profiles import check_width, flatten, is_moldable


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

    def _check_registration(self, what: str) -> None:
        if not self._options.rules.asks_to_register:
            return
        if not self._options.dynamic_jobs:
            raise self._refuse(f"{what} cannot be registered: dynamic jobs are not enabled")
        if not self._open:
            raise self._refuse(f"{what} cannot be registered after registration_finished")

    def register_profile(self, data: m.RegisterProfileData) -> NoEffect:
        """A profile is there from now on."""
        name, what = data.profile_name, f"profile {data.profile_name!r} of {data.workload_name!r}"
        self._check_registration(what)
        empty = Workload(name=data.workload_name, jobs=(), profiles={}, nb_res=0, path="dynamic")
        workload = self.workloads.get(data.workload_name, empty)
        if name in workload.profiles:
            raise self._refuse(f"{what} exists already")
        source = msgspec.json.encode(_with_short_parts(data.profile, data.workload_name))
        try:
            profile = read_profile(source)
        except msgspec.ValidationError as error:
            raise self._refuse(f"{what}: {error}") from None
        missing = set(profile.sequence) - workload.profiles.keys() if isinstance(profile, Composed) else set()
        if missing:
            raise self._refuse(f"{what}: there is no profile {min(missing)!r}")
        if workload.name not in self._growing:
            own = {"profiles": dict[str, Any](workload.profiles), "profile_sources": dict(workload.profile_sources)}
            workload = self.workloads[workload.name] = msgspec.structs.replace(workload, **own)
            self._growing[workload.name] = own
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
        used = {
            f"{owner}!{part}": _moved(source.profiles[part], owner) for part in used_profiles(source.profiles, [name])
        }
        self.workloads[workload] = msgspec.structs.replace(mine, profiles={**used, **mine.profiles})
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


def _with_short_parts(profile: dict[str, Any], workload: str) -> dict[str, Any]:
    """A profile whose parts are named without its own workload, which Batsim 5 says."""
    parts = profile.get("seq")
    if not isinstance(parts, list | tuple):
        return profile
    return {**profile, "seq": [str(part).removeprefix(f"{workload}!") for part in parts]}


def _moved(profile: Profile, owner: str) -> Profile:
    """A profile in another workload, where those of `owner` have their full names."""
    if not isinstance(profile, Composed):
        return profile
    return msgspec.structs.replace(profile, sequence=tuple(f"{owner}!{part}" for part in profile.sequence))
