"""Toy platforms and workloads, and a scripted policy, for tests whose answers are computed by hand.

A run is told as questions: ``[(0.0, ["begins"]), (0.0, ["a arrives"]), (10.0, ["a done"]), ...]``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import decision.protocol.messages as protocol
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.record import RunRecord
from decision.model.workload import Job, MachineEvent, Profile, Workload

ENDS = {
    "COMPLETED_SUCCESSFULLY": "done",
    "COMPLETED_FAILED": "failed",
    "COMPLETED_WALLTIME_REACHED": "overdue",
    "COMPLETED_KILLED": "killed",
}


def hosts(*speeds: float) -> Platform:
    """Hosts of these speeds in flop/s, without power."""
    return Platform(hosts=tuple(host(number, PowerState(speed)) for number, speed in enumerate(speeds)))


def powered(*pstates: Sequence[PowerState], sleep: Sequence[SleepState] = ()) -> Platform:
    """Hosts with these pstates each, which say what they draw."""
    return Platform(hosts=tuple(host(number, *own, sleep=sleep, has_power=True) for number, own in enumerate(pstates)))


def host(number: int, *pstates: PowerState, sleep: Sequence[SleepState] = (), has_power: bool = False) -> Host:
    return Host(id=number, name=f"node-{number}", pstates=pstates, sleep=tuple(sleep), has_power=has_power)


def job(name: str, profile: str, submit: float = 0.0, size: int = 1, walltime: float = math.inf) -> Job:
    full = name if "!" in name else f"w0!{name}"
    return Job(id=full, submit_time=submit, size=size, walltime=walltime, profile=profile)


def workload(*jobs: Job, name: str = "w0", **profiles: Profile) -> Workload:
    return Workload(name=name, jobs=jobs, profiles=profiles, nb_res=1)


# --- Commands, without their time ----------------------------------------------------------------------------


def full(name: str) -> str:
    return name if "!" in name else f"w0!{name}"


def start(name: str, alloc: str, **more: Any) -> protocol.ExecuteJobData:
    return protocol.ExecuteJobData(full(name), alloc, **more)


def call(time: float) -> protocol.CallMeLaterData:
    return protocol.CallMeLaterData(time)


def kill(*names: str) -> protocol.KillJobData:
    return protocol.KillJobData(tuple(full(name) for name in names))


def reject(name: str) -> protocol.RejectJobData:
    return protocol.RejectJobData(full(name))


def switch(resources: str, pstate: int) -> protocol.SetResourceStateData:
    return protocol.SetResourceStateData(resources, str(pstate))


def notify(what: str) -> protocol.NotifyData:
    return protocol.NotifyData(type=what)


def query() -> protocol.QueryData:
    return protocol.QueryData(protocol.Requests(consumed_energy=protocol.NoData()))


def become(name: str, state: str) -> protocol.ChangeJobStateData:
    return protocol.ChangeJobStateData(full(name), state)


def label(name: str, metadata: str) -> protocol.SetJobMetadataData:
    return protocol.SetJobMetadataData(full(name), metadata)


def register_profile(work: str, name: str, **profile: Any) -> protocol.RegisterProfileData:
    return protocol.RegisterProfileData(work, name, profile)


def register_job(name: str, profile: str, res: int = 1, **more: Any) -> protocol.RegisterJobData:
    fields = {"id": name, "profile": profile, "res": res, "subtime": 0, **more}
    return protocol.RegisterJobData(name, protocol.JobDescription(**fields))


COMMANDS = {
    protocol.CallMeLaterData: protocol.CallMeLater,
    protocol.ChangeJobStateData: protocol.ChangeJobState,
    protocol.ExecuteJobData: protocol.ExecuteJob,
    protocol.KillJobData: protocol.KillJob,
    protocol.NotifyData: protocol.Notify,
    protocol.QueryData: protocol.Query,
    protocol.RegisterJobData: protocol.RegisterJob,
    protocol.RegisterProfileData: protocol.RegisterProfile,
    protocol.RejectJobData: protocol.RejectJob,
    protocol.SetJobMetadataData: protocol.SetJobMetadata,
    protocol.SetResourceStateData: protocol.SetResourceState,
}


# --- A run ---------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """What was asked, in short, and what the run left."""

    engine: ReferenceEngine
    questions: list[tuple[float, list[str]]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)  # all events as they came

    @property
    def told(self) -> list[tuple[float, str]]:
        """Each event and its time, without the grouping into questions, the beginning and the end."""
        every = [(time, text) for time, texts in self.questions for text in texts]
        return [(time, text) for time, text in every if text not in ("begins", "ends", "no more jobs")]

    @property
    def record(self) -> RunRecord:
        return self.engine.record()

    @property
    def progress(self) -> dict[str, Any]:
        """The progress of each killed job."""
        found: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, protocol.JobKilled):
                found.update({short(name): told for name, told in event.data.job_progress.items()})
        return found


def run(
    platform: Platform,
    work: Workload | Sequence[Workload],
    script: Mapping[str, Sequence[Any]],
    events: Sequence[MachineEvent] = (),
    **options: Any,
) -> Run:
    """Run to the end. `script` says which commands follow an event: ``{"a arrives": [start("a", "0")]}``.

    A call is named with its time, ``"call 5"``. All commands have the time of the question.
    """
    works = [work] if isinstance(work, Workload) else work
    result = Run(ReferenceEngine(platform, works, events, EngineOptions(**options)))
    while (question := result.engine.ask()) is not None:
        texts = [told(event) for event in question.events]
        result.questions.append((question.now, texts))
        result.events += question.events
        commands = [command for text in texts for command in script.get(text, ())]
        timed = tuple(COMMANDS[type(command)](question.now, command) for command in commands)
        result.engine.answer(protocol.Message(question.now, timed))
    return result


def short(name: str) -> str:
    return name.removeprefix("w0!")


def told(event: Any) -> str:
    """An event in a few words."""
    data = event.data
    match event:
        case protocol.SimulationBegins():
            return "begins"
        case protocol.SimulationEnds():
            return "ends"
        case protocol.JobSubmitted():
            return f"{short(data.job_id)} arrives"
        case protocol.JobCompleted():
            return f"{short(data.job_id)} {ENDS[data.job_state]}"
        case protocol.JobKilled():
            return f"kill of {' '.join(map(short, data.job_ids))}"
        case protocol.ResourceStateChanged():
            return f"hosts {data.resources} in {data.state}"
        case protocol.RequestedCall():
            return f"call {event.timestamp:g}"
        case protocol.Answer():
            return f"{data.consumed_energy:g} J"
        case protocol.Notify():
            named = {
                "no_more_static_job_to_submit": "no more jobs",
                "no_more_external_event_to_occur": "no more events",
            }
            return named.get(data.type, f"{data.type} {data.resources}".strip())
    raise TypeError(f"{event} is none of Batsim's")
