"""What may be said of jobs, calls and queries, one rule at a time, with Batsim's own reasons."""

import pytest
from helpers.protocol_samples import (
    begins,
    call,
    completed,
    execute,
    kill,
    message,
    register,
    reject,
    submitted,
    talk,
    wire,
)

from decision.protocol import LocalProtocolError, RemoteProtocolError, Role
from decision.protocol.messages import (
    AdditionalIoJob,
    Answer,
    AnswerData,
    ChangeJobState,
    ChangeJobStateData,
    Event,
    FromJobMsg,
    FromJobMsgData,
    JobKilled,
    JobKilledData,
    NoData,
    Notify,
    NotifyData,
    Query,
    QueryData,
    RegisterProfile,
    RegisterProfileData,
    RequestedCall,
    Requests,
    ResourceStateChanged,
    ResourceStateChangedData,
    SetJobMetadata,
    SetJobMetadataData,
    SetResourceState,
    SetResourceStateData,
    ToJobMsg,
    ToJobMsgData,
    WaitingTimeAnswer,
    WaitingTimeQuestion,
)

DYNAMIC = {"dynamic_jobs_enabled": True, "dynamic_jobs_acknowledged": True}


def killed(*job_ids: str) -> JobKilled:
    return JobKilled(0.0, JobKilledData(job_ids))


def notify(kind: str, **fields: object) -> Notify:
    return Notify(0.0, NotifyData(type=kind, **fields))


def ask_energy() -> Query:
    return Query(0.0, QueryData(Requests(consumed_energy=NoData())))


def energy(joules: float) -> Answer:
    return Answer(0.0, AnswerData(consumed_energy=joules))


def ask_wait() -> Query:
    return Query(0.0, QueryData(Requests(estimate_waiting_time=WaitingTimeQuestion("w!1", {"res": 1}))))


def wait(seconds: float) -> Answer:
    return Answer(0.0, AnswerData(estimate_waiting_time=WaitingTimeAnswer("w!1", seconds)))


def change(job_id: str, state: str) -> ChangeJobState:
    return ChangeJobState(0.0, ChangeJobStateData(job_id, state))


def metadata(job_id: str, text: str = "x") -> SetJobMetadata:
    return SetJobMetadata(0.0, SetJobMetadataData(job_id, text))


def set_state(resources: str, state: str) -> SetResourceState:
    return SetResourceState(0.0, SetResourceStateData(resources, state))


def profile() -> RegisterProfile:
    return RegisterProfile(0.0, RegisterProfileData("dyn", "p", {"type": "delay", "delay": 1}))


# A conversation is a list of turns at time 0, Batsim's and the decision process's by turns, each a list of
# events. The last event of the last turn is the one in question.
RUNNING = [[submitted("w0!1")], [execute("w0!1")]]
ENDED = [*RUNNING, [completed("w0!1")]]

ALLOWED = {
    "a call that was asked for": [[], [call(1.0)], [RequestedCall(0.0)]],
    "metadata of a waiting job": [[submitted("w0!1")], [metadata("w0!1")]],
    "metadata of a running job": [[submitted("w0!1")], [execute("w0!1"), metadata("w0!1")]],
    "a kill": [*RUNNING, [], [kill("w0!1")], [completed("w0!1"), killed("w0!1")]],
    "a second kill of the same job": [*RUNNING, [], [kill("w0!1"), kill("w0!1")], [killed("w0!1")]],
    "JOB_KILLED before JOB_COMPLETED": [*RUNNING, [], [kill("w0!1")], [killed("w0!1"), completed("w0!1")]],
    "energy": [[], [ask_energy(), ask_energy()], [energy(1.0), energy(2.0)]],
    "a waiting time": [[ask_wait()], [wait(5.0)]],
    "a dynamic job that is acknowledged": [[], [profile(), register("dyn!1")], [submitted("dyn!1")]],
    "a dynamic job that runs before it is acknowledged": [
        [],
        [register("dyn!1"), execute("dyn!1")],
        [submitted("dyn!1"), completed("dyn!1")],
    ],
    "registration that continues": [
        [],
        [notify("registration_finished"), notify("continue_registration"), register("dyn!1")],
    ],
    "messages of and to a job": [
        *RUNNING,
        [FromJobMsg(0.0, FromJobMsgData("w0!1", 5))],
        [ToJobMsg(0.0, ToJobMsgData("w0!1", "x"))],
    ],
    "a job moved by hand": [[submitted("w0!1")], [change("w0!1", "RUNNING"), change("w0!1", "COMPLETED_KILLED")]],
    "a job rejected by hand": [[submitted("w0!1")], [change("w0!1", "REJECTED")]],
    "hosts that change state": [
        [],
        [set_state("0-1 3", "1")],
        [ResourceStateChanged(0.0, ResourceStateChangedData("0-1 3", "1"))],
    ],
    "an event of the user's own": [[notify("heatwave", degrees=41)]],
    "machines that leave": [[notify("event_machine_unavailable", resources="0 2-3")]],
    "a job without walltime": [[submitted("w0!1", walltime=-1)]],
}

REFUSED = {
    "a job submitted twice": ([[submitted("w0!1"), submitted("w0!1")]], "job w0!1 was already submitted"),
    "a walltime of zero": ([[submitted("w0!1", walltime=0)]], "walltime 0.0; it must be positive, or -1 for none"),
    "an unknown job executed": ([[], [execute("w0!9")]], "job w0!9 is executed, but it was never submitted"),
    "a job executed twice": ([[submitted("w0!1")], [execute("w0!1"), execute("w0!1")]], "executed, but it is running"),
    "an ended job executed": ([*ENDED, [execute("w0!1")]], "job w0!1 is executed, but it has ended"),
    "a rejected job executed": ([[submitted("w0!1")], [reject("w0!1"), execute("w0!1")]], "but it has ended"),
    "hosts that are no hosts": ([[submitted("w0!1")], [execute("w0!1", alloc="0,1")]], "'0,1' is not a set of hosts"),
    "no hosts": ([[submitted("w0!1")], [execute("w0!1", alloc="")]], "'' is not a set of hosts"),
    "two mappings": (
        [[submitted("w0!1")], [execute("w0!1", mapping={"0": 0}, additional_io_job=AdditionalIoJob("0", "io"))]],
        "job w0!1 has several of mapping, storage_mapping, additional_io_job",
    ),
    "an unknown job completed": ([[completed("w0!9")]], "job w0!9 completes, but it was never submitted"),
    "a waiting job completed": ([[submitted("w0!1"), completed("w0!1")]], "job w0!1 completes, but it is waiting"),
    "a job completed twice": ([*ENDED[:2], [completed("w0!1"), completed("w0!1")]], "completes, but it has ended"),
    "an unknown job rejected": ([[], [reject("w0!9")]], "job w0!9 is rejected, but it was never submitted"),
    "a running job rejected": ([*RUNNING, [], [reject("w0!1")]], "job w0!1 is rejected, but it is running"),
    "an unknown job killed": ([[], [kill("w0!9")]], "job w0!9 is killed, but it was never submitted"),
    "a waiting job killed": ([[submitted("w0!1")], [kill("w0!1")]], "job w0!1 is killed, but it is waiting"),
    "an ended job killed": ([*ENDED, [kill("w0!1")]], "job w0!1 is killed, but it has ended"),
    "nobody killed": ([[], [kill()]], "it names no job"),
    "a kill that nobody asked for": ([*RUNNING, [killed("w0!1")]], "is killed, but no KILL_JOB asked for it"),
    "a job killed twice": ([*RUNNING, [], [kill("w0!1")], [killed("w0!1"), killed("w0!1")]], "no KILL_JOB asked"),
    "a completion on no hosts": ([*RUNNING, [completed("w0!1", alloc="?")]], "alloc '?' is not a set of hosts"),
    "a change of no hosts": (
        [[ResourceStateChanged(0.0, ResourceStateChangedData("none", "1"))]],
        "resources 'none' is not a set of hosts",
    ),
    "a call that nobody asked for": ([[RequestedCall(0.0)]], "no CALL_ME_LATER asked for it"),
    "a second call": ([[], [call(1.0)], [RequestedCall(0.0), RequestedCall(0.0)]], "no CALL_ME_LATER asked for it"),
    "a call in the past": ([[], [call(-1.0)]], "a call at -1.0 s is not in the future"),
    "a call after 30,000 years": ([[], [call(1e13)]], "a call at 10000000000000.0 s is later than 1e+12 s"),
    "a call now": ([[], [call(0.0)]], "a call at 0.0 s is not in the future"),
    "metadata of an unknown job": ([[], [metadata("w0!9")]], "is given metadata, but it was never submitted"),
    "metadata of an ended job": ([*ENDED, [metadata("w0!1")]], "is given metadata, but it has ended"),
    "metadata with a double quote": ([[submitted("w0!1")], [metadata("w0!1", 'a"b')]], "double quote"),
    "a message to an unknown job": ([[], [ToJobMsg(0.0, ToJobMsgData("w0!9", "x"))]], "never submitted"),
    "a message from an unknown job": ([[FromJobMsg(0.0, FromJobMsgData("w0!9", "x"))]], "never submitted"),
    "a waiting job completed by hand": (
        [[submitted("w0!1")], [change("w0!1", "COMPLETED_KILLED")]],
        "job w0!1 is changed to COMPLETED_KILLED, but it is waiting",
    ),
    "a state that batsim cannot set": ([*RUNNING, [], [change("w0!1", "COMPLETED_FAILED")]], "but it is running"),
    "a job rejected by hand and executed": (
        [[submitted("w0!1")], [change("w0!1", "REJECTED"), execute("w0!1")]],
        "job w0!1 is executed, but it has ended",
    ),
    "an unknown job changed": ([[], [change("w0!9", "RUNNING")]], "but it was never submitted"),
    "a state of no number": ([[], [set_state("0", "off")]], "state 'off' is not the number of a pstate"),
    "a state of no hosts": ([[], [set_state("", "1")]], "resources '' is not a set of hosts"),
    "a dynamic job that exists": ([[submitted("w0!1")], [register("w0!1")]], "job w0!1 already exists"),
    "a dynamic job with an odd id": ([[], [register("w0!a,b")]], "contains ',', which Batsim cannot load"),
    "a dynamic job without workload": ([[], [register("lonely")]], "'lonely' is not of the form WORKLOAD!NAME"),
    "a dynamic job too late": ([[], [notify("registration_finished"), register("dyn!1")]], "registration_finished"),
    "a dynamic profile too late": ([[], [notify("registration_finished"), profile()]], "registration_finished was"),
    "an acknowledgement twice": ([[], [register("dyn!1")], [submitted("dyn!1"), submitted("dyn!1")]], "was already"),
    "a notification that batsim does not know": ([[], [notify("submission_finished")]], "does not know"),
    "machines of no name": ([[notify("event_machine_available")]], "resources '' is not a set of hosts"),
    "an answer that nobody asked for": ([[energy(1.0)]], "no QUERY asked for consumed_energy"),
    "a second answer": ([[], [ask_energy()], [energy(1.0), energy(1.0)]], "no QUERY asked for consumed_energy"),
    "a waiting time that nobody asked for": ([[], [wait(1.0)]], "no QUERY asked for estimate_waiting_time"),
    "batsim asking for energy": ([[ask_energy()]], "must be about estimate_waiting_time, and is about consumed"),
    "a question about nothing": ([[], [Query(0.0, QueryData(Requests()))]], "and is about nothing"),
    "an answer about nothing": ([[], [ask_energy()], [Answer(0.0, AnswerData())]], "and is about nothing"),
}


def hold(turns: list[list[Event]], us: Role, **config: bool) -> None:
    """Hold the conversation up to the last turn, then let `us` send or receive the last."""
    opening = [message(0.0, begins(**config)), message(0.0)]
    *before, last = [message(0.0, *events) for events in turns]
    connection = talk(us, *opening, *before)
    sender = Role.BATSIM if len(turns) % 2 else Role.DECISION
    if sender is us:
        connection.send(last)
    else:
        connection.receive(wire(last.now, *last.events))


@pytest.mark.parametrize("turns", ALLOWED.values(), ids=ALLOWED)
@pytest.mark.parametrize("us", Role)
def test_what_batsim_allows_is_allowed(turns, us):
    hold(turns, us, **DYNAMIC)


@pytest.mark.parametrize(("turns", "says"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("us", Role)
def test_what_cannot_be_is_refused_and_its_sender_blamed(turns, says, us):
    sender = Role.BATSIM if len(turns) % 2 else Role.DECISION
    with pytest.raises((LocalProtocolError, RemoteProtocolError)) as caught:
        hold(turns, us, **DYNAMIC)
    assert type(caught.value) is (LocalProtocolError if sender is us else RemoteProtocolError)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dynamic_jobs_are_refused_where_batsim_does_not_take_them():
    with pytest.raises(LocalProtocolError, match="--enable-dynamic-jobs"):
        hold([[], [register("dyn!1")]], Role.DECISION)


def test_a_dynamic_job_is_not_submitted_where_batsim_does_not_acknowledge():
    with pytest.raises(RemoteProtocolError, match="was already submitted"):
        hold([[], [register("dyn!1")], [submitted("dyn!1")]], Role.DECISION, dynamic_jobs_enabled=True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_answer_that_json_cannot_express_is_not_sent(bad):
    with pytest.raises(LocalProtocolError, match="not a finite number"):
        hold([[ask_wait()], [wait(bad)]], Role.DECISION)
    with pytest.raises(LocalProtocolError, match="not a finite number"):
        hold([[], [ask_energy()], [energy(bad)]], Role.BATSIM)
    with pytest.raises(LocalProtocolError, match="not in the future"):
        hold([[], [call(bad)]], Role.DECISION)


def test_a_peers_text_cannot_break_the_line_of_an_error():
    with pytest.raises(RemoteProtocolError) as caught:
        hold([[completed("w0!\n" + "x" * 500)]], Role.DECISION)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
