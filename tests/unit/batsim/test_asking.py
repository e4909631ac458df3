"""An engine that asks a decision process over a socket: Batsim's end of the conversation."""

import json
import time

import pytest
import zmq
from helpers.driver_fakes import Peer, peer

from decision.batsim.zeromq import ask_all
from decision.engine.reference.engine import ReferenceEngine
from decision.model.errors import PeerError, RemoteProtocolError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, Workload


@pytest.fixture
def endpoint(tmp_path):
    return f"ipc://{tmp_path}/wire"


@pytest.fixture
def engine():
    """One job of 10 s on a platform of two hosts."""
    hosts = tuple(Host(id=i, name=f"node-{i}", pstates=(PowerState(1e9),)) for i in range(2))
    job = Job(id="w0!1", submit_time=1.0, size=2, walltime=60.0, profile="p")
    return ReferenceEngine(
        Platform(hosts=hosts), [Workload(name="w0", jobs=[job], profiles={"p": Delay(10.0)}, nb_res=2)]
    )


def execute(job="w0!1", alloc="0-1"):
    return {"type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}}


def deciding(*commands):
    """A decision process that gives these commands at the first submission, and nothing else."""

    def play(other: Peer) -> None:
        while True:
            question = json.loads(other.recv())
            events = [{**c, "timestamp": question["now"]} for c in commands if _submits(question)]
            other.send(json.dumps({"now": question["now"], "events": events}).encode())

    return play


def _submits(question):
    return any(event["type"] == "JOB_SUBMITTED" for event in question["events"])


def replying(reply: bytes):
    """A decision process that gives one reply to everything."""

    def play(other: Peer) -> None:
        while True:
            other.recv()
            other.send(reply)

    return play


def test_the_engine_runs_on_the_decisions_of_another_process(engine, endpoint):
    with peer(endpoint, deciding(execute()), zmq.REP):
        record = ask_all(engine, endpoint, timeout=5)
    assert record.jobs.id == ["w0!1"]
    assert record.jobs.start_time[0] == pytest.approx(1.0)
    assert record.jobs.allocation == ["0-1"]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (execute(job="w0!2"), r"w0!2"),
        (execute(alloc="0-2"), r"2"),
        (execute(alloc="0"), r"w0!1"),
        ({"type": "DANCE", "data": {}}, "DANCE"),
    ],
)
def test_an_impossible_command_is_the_peers_fault(engine, endpoint, command, complaint):
    with peer(endpoint, deciding(command), zmq.REP), pytest.raises(RemoteProtocolError, match=complaint):
        ask_all(engine, endpoint, timeout=5)


def test_a_process_that_never_starts_anything_is_named_not_waited_for(engine, endpoint):
    with (
        peer(endpoint, deciding(), zmq.REP),
        pytest.raises(RemoteProtocolError, match=r"nothing can happen any more.*w0!1"),
    ):
        ask_all(engine, endpoint, timeout=60)


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b'{"now": 0.0, "ev', "cannot be read"),
        (b"\x00\x01", "cannot be read"),
        (b'{"now": -5.0, "events": []}', "goes back in time"),
    ],
)
def test_a_reply_that_is_none_is_the_peers_fault(engine, endpoint, reply, complaint):
    with peer(endpoint, replying(reply), zmq.REP), pytest.raises(RemoteProtocolError, match=complaint):
        ask_all(engine, endpoint, timeout=5)


def test_a_decision_process_that_is_not_there_is_reported(engine, endpoint):
    with pytest.raises(PeerError, match=r"never connected.*waited 0\.3 s.*start the decision process"):
        ask_all(engine, endpoint, timeout=0.3)


def test_a_decision_process_that_dies_is_noticed_long_before_the_timeout(engine, endpoint):
    def die(other: Peer) -> None:
        other.recv()
        other.leave()

    began = time.monotonic()
    with peer(endpoint, die, zmq.REP), pytest.raises(PeerError, match="disconnected"):
        ask_all(engine, endpoint, timeout=30)
    assert time.monotonic() - began < 5
