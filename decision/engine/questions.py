"""From the log to a question: what the compiled engine says, as Batsim says it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from decision.model.hosts import format_hosts
from decision.model.record import FinalState
from decision.protocol import (
    Answer,
    AnswerData,
    BatsimEvent,
    JobCompleted,
    JobCompletedData,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    Message,
    Notify,
    NotifyData,
    RequestedCall,
    ResourceStateChanged,
    ResourceStateChangedData,
    SimulationEnds,
    TaskProgress,
)
from decision.state.cluster import ENDED

from . import arrays as a
from .reference_messages import profile_object, simulation_begins
from .reference_world import describe

if TYPE_CHECKING:
    from .embedded import EmbeddedEngine

_PLACES = 6  # decimals of the numbers in Batsim's messages


def question(engine: "EmbeddedEngine") -> Message:
    """Everything that was logged since the last question."""
    sim = engine.sim
    events = []
    for i in range(sim.flag[a.LOG_N]):
        build = _BUILDERS[int(sim.log_kind[i])]
        events.append(build(engine, float(sim.log_time[i]), int(sim.log_arg[i]), float(sim.log_value[i])))
    return Message(float(engine.state.now[0]), tuple(events))


def _submitted(engine: "EmbeddedEngine", time: float, job: int, _: float) -> BatsimEvent:
    facts = engine.job(job)
    engine.number[facts.id] = job
    profile: Any = UNSET
    if engine.options.forward_profiles:
        profile = profile_object(facts.profile, engine.workloads[facts.workload])
    return JobSubmitted(time, JobSubmittedData(facts.id, describe(facts), profile))


def _completed(engine: "EmbeddedEngine", time: float, job: int, _: float) -> BatsimEvent:
    state: Any = FinalState(int(engine.state.job_state[job]) - ENDED).name
    data = JobCompletedData(engine.job(job).id, state, int(engine.sim.exit_code[job]), engine.allocation(job))
    return JobCompleted(time, data)


def _killed(engine: "EmbeddedEngine", time: float, request: int, _: float) -> BatsimEvent:
    sim = engine.sim
    jobs = [int(job) for job in sim.kill_job[sim.kill_begin[request] : sim.kill_end[request]]]
    progress = {engine.job(job).id: _progress(engine, job) for job in jobs if sim.kill_asked[job] == 2}
    return JobKilled(time, JobKilledData(tuple(engine.job(job).id for job in jobs), progress))


def _progress(engine: "EmbeddedEngine", job: int) -> TaskProgress:
    leaf = engine.names.leaves[engine.sim.truth_of[job]][engine.sim.leaf[job]]
    progress = TaskProgress(leaf.profile, progress=round(float(engine.sim.progress[job]), _PLACES))
    for profile, index in reversed(leaf.path):
        progress = TaskProgress(profile, UNSET, current_task_index=index, current_task=progress)
    return progress


def _changed(engine: "EmbeddedEngine", time: float, request: int, _: float) -> BatsimEvent:
    pstate = str(int(engine.sim.group_pstate[request]))
    return ResourceStateChanged(time, ResourceStateChangedData(engine.switched_hosts(request), pstate))


def _external(engine: "EmbeddedEngine", time: float, event: int, _: float) -> BatsimEvent:
    facts = engine.events[event]
    if facts.type not in ("machine_available", "machine_unavailable"):
        return Notify(time, NotifyData(**msgspec.json.decode(facts.source)))
    return Notify(time, NotifyData(type=f"event_{facts.type}", resources=format_hosts(facts.hosts)))


def _notification(kind: str) -> Callable[..., BatsimEvent]:
    return lambda engine, time, arg, value: Notify(time, NotifyData(type=kind))


_BUILDERS: dict[int, Callable[["EmbeddedEngine", float, int, float], BatsimEvent]] = {
    a.LOG_BEGINS: lambda engine, *_: simulation_begins(engine.platform, engine.workloads.values(), engine.options),
    a.LOG_SUBMITTED: _submitted,
    a.LOG_COMPLETED: _completed,
    a.LOG_KILLED: _killed,
    a.LOG_CHANGED: _changed,
    a.LOG_CALLED: lambda engine, time, *_: RequestedCall(time),
    a.LOG_NO_MORE_JOBS: _notification("no_more_static_job_to_submit"),
    a.LOG_NO_MORE_EVENTS: _notification("no_more_external_event_to_occur"),
    a.LOG_EVENT: _external,
    a.LOG_ENERGY: lambda engine, time, arg, joules: Answer(time, AnswerData(consumed_energy=round(joules, _PLACES))),
    a.LOG_ENDS: lambda engine, time, *_: SimulationEnds(time),
}
