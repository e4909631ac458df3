"""From a reply to commands: what a decision process says, as actions of a plan that the compiled engine carries out.

Names become numbers here, and what no kernel needs is done here: profiles, metadata, mappings. Whether a command is
possible is seen when its time comes (`decision.engine.possible`); `why_not` then says why it is not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from decision.formats.profiles import read_profile
from decision.model.errors import ConfigError
from decision.model.hosts import intervals, parse_hosts
from decision.model.record import FinalState
from decision.model.workload import Composed, Job, Workload, used_profiles
from decision.policies import plan as p
from decision.protocol import DecisionEvent, Message
from decision.protocol import messages as m
from decision.state import transitions

from . import arrays as a
from . import commands as c
from .mapping import mapped_leaves
from .profiles import ADVICE
from .refusals import why_not_become

if TYPE_CHECKING:
    from .embedded import EmbeddedEngine


def load(engine: "EmbeddedEngine", reply: Message) -> None:
    """Turn a reply into the engine's plan.

    Raises:
        PolicyError: if a command names what does not exist, or asks for what no engine can do.
    """
    engine.make_room_for(reply)
    p.clear(engine.plan, engine.state)
    times = []
    for command in reply.events:
        if command.timestamp > reply.now:
            name = type(command).__name__
            raise engine.refuse(f"{name} is for t={command.timestamp:g} s, after the reply's now={reply.now:g} s")
        engine.reads_at = command.timestamp
        before = engine.plan.count[0]
        _READERS[type(command)](engine, command)
        times += [command.timestamp] * int(engine.plan.count[0] - before)
    engine.reads_at = 0.0
    engine.set_command_times(times)


def _known(engine: "EmbeddedEngine", job_id: str) -> int:
    number = engine.number.get(job_id)
    if number is None and job_id in engine.names.number:
        raise engine.refuse(f"{job_id} is not submitted yet")
    if number is None:
        raise engine.refuse(f"there is no job {job_id}")
    if number in engine.forgotten:
        raise engine.refuse(f"{job_id} has ended already, and Batsim no longer knows it")
    return number


def _hosts(engine: "EmbeddedEngine", action: int, text: str, who: str) -> list[int]:
    try:
        ids = parse_hosts(text)
    except ConfigError as error:
        raise engine.refuse(f"{who}: {error}") from None
    compute, known = len(engine.platform.hosts), len(engine.platform.hosts) + len(engine.platform.storage)
    if not ids:
        raise engine.refuse(f"{who}: no hosts given")
    for host in ids:
        if host >= compute:
            reason = f"there is no host {host}" if host >= known else f"host {host} is a storage host"
            raise engine.refuse(f"{who}: {reason}")
    for first, last in intervals(ids):
        p.add_interval(engine.plan, action, first, last)
    return ids


def _execute(engine: "EmbeddedEngine", command: m.ExecuteJob) -> None:
    data = command.data
    job = _known(engine, data.job_id)
    if data.additional_io_job is not UNSET:
        raise engine.refuse(f"{data.job_id}: additional_io_job needs a network and storage; {ADVICE}")
    action = p.add(engine.plan, p.START, job)
    ids = _hosts(engine, action, data.alloc, data.job_id)
    if data.mapping is not UNSET and data.mapping:
        engine.set_leaves(job, mapped_leaves(engine, job, ids, data.mapping))


def _reject(engine: "EmbeddedEngine", command: m.RejectJob) -> None:
    p.add(engine.plan, p.REJECT, _known(engine, command.data.job_id))


def _kill(engine: "EmbeddedEngine", command: m.KillJob) -> None:
    if not command.data.job_ids:
        p.add(engine.plan, c.NOTHING, -1)
    for i, job_id in enumerate(command.data.job_ids):
        action = p.add(engine.plan, p.KILL, _known(engine, job_id))
        engine.plan.value[action] = 0 if i else c.NEW_REQUEST


def _call(engine: "EmbeddedEngine", command: m.CallMeLater) -> None:
    action = p.add(engine.plan, p.CALL_AT, -1)
    engine.plan.time[action] = command.data.timestamp


def _set_state(engine: "EmbeddedEngine", command: m.SetResourceState) -> None:
    _need_energy(engine, "SET_RESOURCE_STATE")
    action = p.add(engine.plan, p.SET_PSTATE, -1)
    _hosts(engine, action, command.data.resources, "SET_RESOURCE_STATE")
    try:
        engine.plan.value[action] = int(command.data.state)
    except (ValueError, OverflowError):
        raise engine.refuse(f"SET_RESOURCE_STATE: {command.data.state!r} is no pstate; give a number") from None


def _query(engine: "EmbeddedEngine", command: m.Query) -> None:
    requests = command.data.requests
    if requests.consumed_energy is UNSET or requests.estimate_waiting_time is not UNSET:
        raise engine.refuse("QUERY: Batsim answers only consumed_energy")
    _need_energy(engine, "QUERY of consumed_energy")
    p.add(engine.plan, c.QUERY_ENERGY, -1)


def _need_energy(engine: "EmbeddedEngine", what: str) -> None:
    if not engine.options.energy:
        raise engine.refuse(f"{what} needs the energy simulation; enable it")


def _metadata(engine: "EmbeddedEngine", command: m.SetJobMetadata) -> None:
    job = _known(engine, command.data.job_id)
    if '"' in command.data.metadata:
        raise engine.refuse(f"{command.data.job_id}: metadata must not contain a double quote")
    engine.metadata[job] = command.data.metadata
    p.add(engine.plan, c.NOTHING, job)


def _to_job(engine: "EmbeddedEngine", command: m.ToJobMsg) -> None:
    job = _known(engine, command.data.job_id)
    p.add(engine.plan, c.NOTHING, job)  # none of the profiles that the engine simulates reads messages


def _change(engine: "EmbeddedEngine", command: m.ChangeJobState) -> None:
    job, wanted = _known(engine, command.data.job_id), command.data.job_state
    if wanted == "RUNNING":
        p.add(engine.plan, c.START_ELSEWHERE, job)
    elif wanted in FinalState.__members__:
        action = p.add(engine.plan, c.END_ELSEWHERE, job)
        engine.plan.value[action] = FinalState[wanted]
    else:
        raise why_not_become(engine, job, wanted)


def _notify(engine: "EmbeddedEngine", command: m.Notify) -> None:
    kind = command.data.type
    if kind not in ("registration_finished", "continue_registration"):
        raise engine.refuse(f"Batsim knows no notification {kind!r}")
    action = p.add(engine.plan, c.SET_REGISTRATION, -1)
    engine.registering = kind == "continue_registration" and engine.options.dynamic_jobs
    engine.plan.value[action] = engine.registering


def _check_registration(engine: "EmbeddedEngine", what: str) -> None:
    if not engine.options.dynamic_jobs:
        raise engine.refuse(f"{what} cannot be registered: dynamic jobs are not enabled")
    if not engine.registering:
        raise engine.refuse(f"{what} cannot be registered after registration_finished")


def _register_profile(engine: "EmbeddedEngine", command: m.RegisterProfile) -> None:
    data = command.data
    what = f"profile {data.profile_name!r} of {data.workload_name!r}"
    _check_registration(engine, what)
    empty = Workload(name=data.workload_name, jobs=(), profiles={}, nb_res=0, path="dynamic")
    workload = engine.workloads.get(data.workload_name, empty)
    if data.profile_name in workload.profiles:
        raise engine.refuse(f"{what} exists already")
    source = msgspec.json.encode(data.profile)
    try:
        profile = read_profile(source)
    except msgspec.ValidationError as error:
        raise engine.refuse(f"{what}: {error}") from None
    missing = set(profile.sequence) - workload.profiles.keys() if isinstance(profile, Composed) else set()
    if missing:
        raise engine.refuse(f"{what}: there is no profile {min(missing)!r}")
    engine.workloads[workload.name] = msgspec.structs.replace(
        workload,
        profiles={**workload.profiles, data.profile_name: profile},
        profile_sources={**workload.profile_sources, data.profile_name: source},
    )
    p.add(engine.plan, c.NOTHING, -1)


def _register_job(engine: "EmbeddedEngine", command: m.RegisterJob) -> None:
    job_id = command.data.job_id
    _check_registration(engine, job_id)
    job = _read_job(engine, job_id, command.data.job)
    try:
        truth = engine.register(job)
    except ConfigError as error:
        raise engine.refuse(f"{job_id}: {error}") from None
    number = int(transitions.submit(engine.state, job.size, job.walltime, -1))
    engine.sim.truth_of[number] = truth
    engine.number[job_id] = number
    p.add(engine.plan, c.REGISTER, number)


def _read_job(engine: "EmbeddedEngine", job_id: str, job: m.JobDescription) -> Job:
    name, _, short = job_id.partition("!")
    workload = engine.workloads.get(name)
    if workload is None:
        raise engine.refuse(f"{job_id}: there is no workload {name!r}; register a profile of it first")
    if job.profile not in workload.profiles:
        raise engine.refuse(f"{job_id}: workload {name!r} has no profile {job.profile!r}")
    if (name, job.profile) in engine.forgotten_profiles:
        advice = "enable profile reuse, or register a new profile"
        raise engine.refuse(f"{job_id}: Batsim forgot profile {job.profile!r} with the job that had it; {advice}")
    if job.id not in (job_id, short) or not short or "!" in short:
        raise engine.refuse(f"{job_id}: its description has id {job.id!r}")
    if not job.walltime > 0:
        raise engine.refuse(f"{job_id}: walltime {job.walltime:g} must be above 0, or -1 for none")
    source = msgspec.json.encode({**job.fields, "id": job_id})
    return Job(
        id=job_id, submit_time=job.subtime, size=job.res, walltime=job.walltime, profile=job.profile, source=source
    )


_READERS: dict[type[DecisionEvent], Callable[["EmbeddedEngine", Any], None]] = {
    m.ExecuteJob: _execute,
    m.RejectJob: _reject,
    m.KillJob: _kill,
    m.CallMeLater: _call,
    m.SetResourceState: _set_state,
    m.Query: _query,
    m.Answer: lambda engine, command: None,  # Batsim asked nothing and reads no answer
    m.SetJobMetadata: _metadata,
    m.ToJobMsg: _to_job,
    m.ChangeJobState: _change,
    m.Notify: _notify,
    m.RegisterProfile: _register_profile,
    m.RegisterJob: _register_job,
}


def forget_ended(engine: "EmbeddedEngine") -> None:
    """Jobs that ended before a question are forgotten, as Batsim does; with their profiles, unless those are reused."""
    for number in engine.sim.ended[len(engine.forgotten) : engine.sim.flag[a.ENDED_N]].tolist():
        engine.forgotten.add(number)
        _forget_profile(engine, engine.job(number))


def _forget_profile(engine: "EmbeddedEngine", job: Job) -> None:
    if engine.options.dynamic_jobs and not engine.options.profile_reuse:
        profiles = engine.workloads[job.workload].profiles
        engine.forgotten_profiles |= {(job.workload, name) for name in used_profiles(profiles, [job.profile])}
