"""The conversation with a Batsim 5: what may be said, who is to blame, and what is refused before it is sent."""

import json
import struct

import pytest

from decision.protocol import Connection, LocalProtocolError, Message, RemoteProtocolError, Role
from decision.protocol import messages as m
from decision.protocol.batsim5.codec import Json5Codec
from decision.protocol.versions import V5

INIT = struct.pack("<I", 0)
HELLO = {
    "batprotocol_version": "1.0.0",
    "decision_component_name": "x",
    "decision_component_version": "1",
    "decision_component_commit": "",
    "requested_simulation_features": {},
}


def hello(flags=2, **changes):
    event = {"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": {**HELLO, **changes}}
    return struct.pack("<I", flags) + json.dumps({"now": 0.0, "events": [event]}).encode() + b"\0"


def text(now, *events):
    said = [{"timestamp": now, "event_type": kind, "event": data} for kind, data in events]
    return json.dumps({"now": now, "events": said}).encode()


BEGINS = (
    "SimulationBeginsEvent",
    {
        "host_number": 1,
        "computation_host_number": 1,
        "computation_hosts": [{"id": 0, "name": "a", "state": "IDLE", "computation_speed": [1.0]}],
        "something_new": 1,
    },
)
JOB = {"resource_request": 1, "walltime": None, "extra_data": '{"user": "ada"}', "profile_id": "w0!p"}
SUBMITTED = ("JobSubmittedEvent", {"job_id": "w0!1", "job": JOB, "submission_time": 0.0})
START = (
    "ExecuteJobEvent",
    {
        "job_id": "w0!1",
        "allocation": {
            "host_allocation": "0",
            "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
            "executor_placement": {"strategy": "SpreadOverHostsFirst"},
        },
    },
)


def placed(**placement):
    """A start whose executors are placed so."""
    return "ExecuteJobEvent", {"job_id": "w0!1", "allocation": {"host_allocation": "0", **placement}}


def as_batsim(*replies):
    """Batsim's end, after a start of the simulation and these replies."""
    connection = Connection(Role.BATSIM, "5")
    codec = Json5Codec(V5)
    connection.send(Message(0.0, (m.Init(0.0, m.InitData("")),)))
    connection.receive(hello())
    connection.send(codec.decode(text(0.0, BEGINS)))
    connection.receive(text(0.0))
    connection.send(codec.decode(text(0.0, SUBMITTED)))
    for reply in replies:
        connection.receive(reply)
        connection.send(Message(1.0, ()))
    return connection


def as_decision():
    connection = Connection(Role.DECISION)
    connection.receive(INIT)
    connection.send(Message(0.0, (m.Hello(0.0, m.HelloData(name="us", version="1")),)))
    connection.receive(text(0.0, BEGINS) + b"\0")
    return connection


def test_the_version_shows_in_the_first_bytes():
    connection = as_decision()
    assert connection.version is V5


def test_fields_that_batsim_adds_are_taken_and_a_jobs_user_is_read():
    connection = as_decision()
    connection.send(Message(0.0, ()))
    job = connection.receive(text(0.0, SUBMITTED)).events[0].data.job
    assert job.fields["user"] == "ada"
    assert job.walltime == float("inf")


def test_the_init_text_comes_with_the_begin_of_the_simulation():
    connection = Connection(Role.DECISION)
    connection.receive(struct.pack("<I", 2) + "é".encode())
    connection.send(Message(0.0, (m.Hello(0.0, m.HelloData(name="us", version="1")),)))
    assert connection.receive(text(0.0, BEGINS)).events[0].data.config.sched_config == "é"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (struct.pack("<II", 2, 0), "early 2025"),
        (struct.pack("<II", 2, 3) + b"abc", "early 2025"),
        (struct.pack("<I", 2**32 - 1), "bytes that cannot be read"),
        (b"ab", "bytes that cannot be read"),
        (struct.pack("<I", 1) + b"\xff", "bytes that cannot be read"),
        (hello(), "bytes that cannot be read"),
    ],
)
def test_foreign_first_bytes_are_refused(data, said):
    with pytest.raises(RemoteProtocolError, match=said):
        Connection(Role.DECISION).receive(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (hello(flags=1), "JSON follows"),
        (hello(flags=0), "JSON follows"),
        (hello(flags=2**25), "neither 1"),
        (struct.pack("<I", 1) + b"\x10\0\0\0", "--schema"),
        (b"\2\0", "too few"),
        (hello(requested_simulation_features={"forward_unknown_external_events": True}), "unknown field"),
        (hello(unknown=1), "unknown field"),
        (hello()[4:], "without its flags"),
        (struct.pack("<I", 2) + b'{"now": 0, "events": []}', "must begin with one HELLO alone"),
        (struct.pack("<I", 2) + b'{"now": 0}', "missing required field `events`"),
    ],
)
def test_a_hello_that_stops_batsim_is_refused(data, said):
    connection = Connection(Role.BATSIM, "5")
    connection.send(Message(0.0, (m.Init(0.0, m.InitData("")),)))
    with pytest.raises(RemoteProtocolError, match=said):
        connection.receive(data)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([("KillJobsEvent", {"job_ids": []})], "names no job"),
        ([("KillJobsEvent", {"job_ids": ["w0!1"]})], "is killed, but it is waiting"),
        ([START, ("KillJobsEvent", {"job_ids": ["w0!1"]}), ("KillJobsEvent", {"job_ids": ["w0!1"]})], "being killed"),
        ([START, START], "is executed, but it is running"),
        ([("RejectJobEvent", {"job_id": "w0!7"})], "was never submitted"),
        ([("RejectJobEvent", {"job_id": "w0!1", "why": 1})], "unknown field"),
        ([("JobCompletedEvent", {"job_id": "w0!1", "state": "COMPLETED_KILLED"})], "only the other side"),
        ([("CallMeLaterEvent", {"call_me_later_id": "", "when_type": "OneShot", "when": {"time": 1}})], "no name"),
        ([("CallMeLaterEvent", {"call_me_later_id": "a", "when_type": "OneShot", "when": {"time": 1.5}})], "Expected"),
        (
            [("CallMeLaterEvent", {"call_me_later_id": "a", "when_type": "Periodic", "when": {"period": 0}})],
            "missing required field",
        ),
        ([("TurnOnOffHostsEvent", {"host_ids": "0,1", "state": 1})], "not a set of hosts"),
        ([placed()], "missing required field `executor_placement_type`"),
        ([placed(executor_placement_type="NONE", executor_placement={})], "Invalid enum value 'NONE'"),
        ([placed(executor_placement_type="CustomExecutorToHostMapping")], "missing required field"),
        ([placed(executor_placement_type="CustomExecutorToHostMapping", executor_placement={})], "no field `mapping`"),
    ],
)
def test_a_reply_that_stops_batsim_is_refused(events, said):
    with pytest.raises(RemoteProtocolError, match=said):
        as_batsim().receive(text(0.0, *events))


def test_a_reply_has_no_field_of_its_own_and_no_second_hello():
    with pytest.raises(RemoteProtocolError, match="unknown field"):
        as_batsim().receive(b'{"now": 0, "events": [], "more": 1}')
    with pytest.raises(RemoteProtocolError, match="already begun"):
        as_batsim().receive(hello())


def test_a_job_may_be_killed_twice_in_one_command():
    as_batsim().receive(text(0.0, START, ("KillJobsEvent", {"job_ids": ["w0!1", "w0!1"]})))


@pytest.mark.parametrize(
    "event",
    [
        m.SetJobMetadata(0.0, m.SetJobMetadataData("w0!1", "x")),
        m.Query(0.0, m.QueryData(m.Requests(consumed_energy=m.NoData()))),
        m.CallMeLater(0.0, m.CallMeLaterData(5.0)),
    ],
)
def test_what_batsim_5_does_not_have_is_not_sent(event):
    with pytest.raises(LocalProtocolError, match="not sent"):
        as_decision().send(Message(0.0, (event,)))


def test_what_only_batsim_5_has_is_not_sent_to_batsim_4():
    connection = Connection(Role.BATSIM, "4.2.1")
    with pytest.raises(LocalProtocolError):
        connection.send(Message(0.0, (m.Init(0.0, m.InitData("")),)))


def test_what_follows_a_nul_does_not_count():
    assert as_batsim().receive(text(0.0) + b"\0rubbish").events == ()
