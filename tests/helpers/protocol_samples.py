"""Short ways to build the messages that the protocol's tests speak of."""

from typing import Any

from decision.protocol import Connection, JsonCodec, Message, Role
from decision.protocol.messages import (
    CallMeLater,
    CallMeLaterData,
    Config,
    Event,
    ExecuteJob,
    ExecuteJobData,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobSubmitted,
    JobSubmittedData,
    KillJob,
    KillJobData,
    RegisterJob,
    RegisterJobData,
    RejectJob,
    RejectJobData,
    Resource,
    SimulationBegins,
    SimulationBeginsData,
)


def begins(t: float = 0.0, **config: Any) -> SimulationBegins:
    hosts = tuple(Resource(id=i, name=f"node-{i}", state="idle") for i in range(4))
    return SimulationBegins(
        t,
        SimulationBeginsData(
            nb_resources=4,
            nb_compute_resources=4,
            nb_storage_resources=0,
            allow_compute_sharing=False,
            allow_storage_sharing=True,
            config=Config(**config),
            compute_resources=hosts,
            storage_resources=(),
            workloads={"w0": "w0.json"},
            profiles={"w0": {"p": {"type": "delay", "delay": 10}}},
        ),
    )


def describe_job(job_id: str, **fields: Any) -> JobDescription:
    return JobDescription(**{"id": job_id, "res": 1, "subtime": 0.0, "walltime": 60, "profile": "p", **fields})


def submitted(job_id: str, t: float = 0.0, **fields: Any) -> JobSubmitted:
    return JobSubmitted(t, JobSubmittedData(job_id, describe_job(job_id, **fields)))


def completed(job_id: str, t: float = 0.0, alloc: str = "0") -> JobCompleted:
    return JobCompleted(t, JobCompletedData(job_id, "COMPLETED_SUCCESSFULLY", 0, alloc))


def execute(job_id: str, t: float = 0.0, alloc: str = "0", **optional: Any) -> ExecuteJob:
    return ExecuteJob(t, ExecuteJobData(job_id, alloc, **optional))


def kill(*job_ids: str, t: float = 0.0) -> KillJob:
    return KillJob(t, KillJobData(job_ids))


def reject(job_id: str, t: float = 0.0) -> RejectJob:
    return RejectJob(t, RejectJobData(job_id))


def call(at: float, t: float = 0.0) -> CallMeLater:
    return CallMeLater(t, CallMeLaterData(at))


def register(job_id: str, t: float = 0.0, **fields: Any) -> RegisterJob:
    return RegisterJob(t, RegisterJobData(job_id, describe_job(job_id, **fields)))


def message(now: float, *events: Event) -> Message:
    return Message(now, events)


def wire(now: float, *events: Event) -> bytes:
    return JsonCodec().encode(message(now, *events))


def talk(role: Role, *turns: Message, version: str | None = None) -> Connection:
    """A connection that has had this conversation: Batsim's turn first, then in alternation."""
    connection = Connection(role, version)
    for number, turn in enumerate(turns):
        speaker = Role.DECISION if number % 2 else Role.BATSIM
        if speaker is role:
            connection.send(turn)
        else:
            connection.receive(JsonCodec().encode(turn))
    return connection
