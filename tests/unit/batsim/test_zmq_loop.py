"""The decision process over a socket: who may come, when it ends, and what it says when it does not go well."""

import json
import socket
import threading
import time

import pytest
import zmq
from helpers.driver_fakes import BEGINS, CALL, ENDS, NOTHING, Agent, Peer, ask, free_port, peer

from decision.batsim.zeromq import check_endpoint, serve
from decision.model.errors import ConfigError, PeerError, PolicyError, RemoteProtocolError


@pytest.fixture
def endpoint(tmp_path):
    return f"ipc://{tmp_path}/wire"


def test_serve_answers_until_the_simulation_ends(endpoint):
    agent = Agent()
    with peer(endpoint, ask(BEGINS, CALL, ENDS)):
        conversation = serve(agent, endpoint, timeout=5)
    assert agent.questions == [BEGINS, CALL, ENDS]
    assert conversation.messages == 3
    assert 0 < conversation.deciding <= conversation.total


def test_the_last_reply_reaches_the_peer(endpoint):
    replies = []

    def play(other):
        for question in (BEGINS, ENDS):
            other.send(question)
            replies.append(other.recv())

    with peer(endpoint, play):
        serve(Agent(), endpoint, timeout=5)
    assert replies == [NOTHING, NOTHING]


def test_a_peer_that_never_comes_is_reported_with_the_time_waited_and_what_to_check(endpoint):
    with pytest.raises(PeerError, match=r"Batsim never connected to ipc://.*waited 0\.3 s.*start batsim with -s"):
        serve(Agent(), endpoint, timeout=0.3)


def test_a_peer_that_stops_talking_is_reported(endpoint):
    with (
        peer(endpoint, ask(BEGINS, then=Peer.wait)),
        pytest.raises(PeerError, match=r"Batsim sent nothing more \(waited 0\.3 s\)"),
    ):
        serve(Agent(), endpoint, timeout=0.3)


def test_a_peer_that_connects_and_says_nothing_is_told_from_one_that_never_comes(endpoint):
    with peer(endpoint, Peer.wait), pytest.raises(PeerError, match="connected and sent nothing"):
        serve(Agent(), endpoint, timeout=0.4)


def test_a_peer_that_disconnects_in_mid_run_is_noticed_long_before_the_timeout(endpoint):
    began = time.monotonic()
    with (
        peer(endpoint, ask(BEGINS, then=Peer.leave)),
        pytest.raises(PeerError, match="Batsim disconnected before the simulation ended"),
    ):
        serve(Agent(), endpoint, timeout=30)
    assert time.monotonic() - began < 5


def test_a_batsim_that_dies_while_it_loads_is_noticed_within_seconds(endpoint):
    def die(other):
        time.sleep(0.3)
        other.leave()

    began = time.monotonic()
    with peer(endpoint, die), pytest.raises(PeerError, match="Batsim connected and left without a message"):
        serve(Agent(), endpoint, timeout=60)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("frames", [[b"x"], [b"x", BEGINS], [b""]])
def test_a_message_without_the_empty_delimiter_does_not_outwait_the_timeout(endpoint, frames):
    def send(other):
        other.end.send_multipart(frames)
        other.wait()

    began = time.monotonic()
    with peer(endpoint, send, zmq.DEALER), pytest.raises(PeerError, match=r"sent nothing.*waited 0\.5 s"):
        serve(Agent(), endpoint, timeout=0.5)
    assert time.monotonic() - began < 5


def test_a_message_in_parts_is_the_peers_fault(endpoint):
    def send(other):
        other.end.send_multipart([BEGINS, b"more"])
        other.wait()

    with peer(endpoint, send), pytest.raises(RemoteProtocolError, match="in several parts"):
        serve(Agent(), endpoint, timeout=5)


def test_a_second_batsim_gets_nothing_and_one_line_and_the_first_run_ends_as_if_alone(endpoint, caplog):
    replies, begun = {"first": [], "second": []}, threading.Event()
    second = b'{"now": 0, "events": [{"data": {"workloads": {"w0": "other.json"}}}]}'

    def first(other):
        for question in (BEGINS, CALL, ENDS):
            other.send(question)
            replies["first"].append(other.recv())
            begun.set()
            time.sleep(0.3)

    def come_second(other):
        begun.wait()
        other.send(second)
        replies["second"] += [other.recv()] if other.end.poll(1000) else []

    agent = Agent()
    with peer(endpoint, first), peer(endpoint, come_second):
        conversation = serve(agent, endpoint, timeout=5)
    assert agent.questions == [BEGINS, CALL, ENDS] and conversation.messages == 3
    assert [len(answers) for answers in replies.values()] == [3, 0]
    assert [record.message[:42] for record in caplog.records] == ["another Batsim (other.json) has connected:"]


def test_a_second_batsim_does_not_hide_that_the_first_one_died(endpoint):
    begun = threading.Event()

    def die(other):
        other.send(BEGINS)
        other.recv()
        begun.set()
        other.leave()

    def come_second(other):
        begun.wait()
        other.wait()

    with (
        peer(endpoint, die),
        peer(endpoint, come_second),
        pytest.raises(PeerError, match="Batsim disconnected before the simulation ended"),
    ):
        serve(Agent(), endpoint, timeout=30)


def test_a_visitor_that_says_nothing_and_leaves_does_no_harm(endpoint):
    def visit(other):
        time.sleep(0.15)
        other.leave()

    def come_later(other):
        time.sleep(0.4)
        ask(BEGINS, ENDS)(other)

    with peer(endpoint, visit), peer(endpoint, come_later):
        assert serve(Agent(), endpoint, timeout=5).messages == 2


def test_a_visitor_that_speaks_another_language_does_no_harm():
    port = free_port()

    def knock(other):
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", port), 5) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.recv(64)
        time.sleep(0.2)
        ask(BEGINS, ENDS)(other)

    with peer(f"tcp://127.0.0.1:{port}", knock):
        assert serve(Agent(), f"tcp://127.0.0.1:{port}", timeout=5).messages == 2


def test_no_reply_reaches_the_peer_when_the_policy_fails(endpoint):
    replies = []

    def play(other):
        other.send(BEGINS)
        replies.append(other.recv())

    def fail(question):
        raise PolicyError("t=0 s: w0!1 needs 8 hosts, 5 free")

    with peer(endpoint, play), pytest.raises(PolicyError, match="needs 8 hosts"):
        serve(Agent(fail), endpoint, timeout=5)
    assert replies == []


def test_an_endpoint_in_use_is_the_users_mistake():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"{port}: address already in use; another process listens there"):
            serve(Agent(), f"tcp://127.0.0.1:{port}", timeout=1)


@pytest.mark.parametrize("wrong", ["127.0.0.1:28000", "tcp://127.0.0.1", "tcp://127.0.0.1:port", "http://localhost:1"])
def test_an_endpoint_that_is_none_is_the_users_mistake(wrong):
    with pytest.raises(ConfigError, match=f"endpoint {wrong}: .*write it like tcp://127.0.0.1:28000"):
        serve(Agent(), wrong, timeout=1)


def test_a_recording_holds_every_message_in_order(endpoint, tmp_path):
    record = tmp_path / "session.jsonl"
    with peer(endpoint, ask(BEGINS, CALL, ENDS)):
        serve(Agent(), endpoint, timeout=5, record=record)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["from"] for line in lines] == ["batsim", "decision"] * 3
    assert [line["message"] for line in lines[::2]] == [json.loads(q) for q in (BEGINS, CALL, ENDS)]


def test_a_recording_ends_with_the_question_at_which_the_policy_failed(endpoint, tmp_path):
    def fail_at_call(question):
        if question == CALL:
            raise PolicyError("no")
        return NOTHING

    record = tmp_path / "session.jsonl"
    with peer(endpoint, ask(BEGINS, CALL)), pytest.raises(PolicyError):
        serve(Agent(fail_at_call), endpoint, timeout=5, record=record)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["from"] for line in lines] == ["batsim", "decision", "batsim"]
    assert lines[-1]["message"] == json.loads(CALL)


def test_half_a_message_does_not_spoil_the_recording(endpoint, tmp_path):
    def check(question):
        try:
            json.loads(question)
        except ValueError:
            raise RemoteProtocolError("not a message") from None
        return NOTHING

    record = tmp_path / "session.jsonl"
    with peer(endpoint, ask(BEGINS, CALL[:30])), pytest.raises(RemoteProtocolError):
        serve(Agent(check), endpoint, timeout=5, record=record)
    assert [json.loads(line)["from"] for line in record.read_text().splitlines()] == ["batsim", "decision"]


def test_a_recording_that_cannot_be_written_is_the_users_mistake(endpoint, tmp_path):
    with pytest.raises(ConfigError, match=r"recording .*absent/s\.jsonl: cannot be written \(No such file"):
        serve(Agent(), endpoint, timeout=1, record=tmp_path / "absent" / "s.jsonl")


def test_a_disk_that_fills_up_during_a_recording_ends_the_run_in_one_line(endpoint, tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with peer(endpoint, ask(BEGINS, ENDS)), pytest.raises(ConfigError, match="No space left on device"):
        serve(Agent(), endpoint, timeout=5, record=full)


@pytest.mark.parametrize("port", ["99999", "65536", "0", "-1", "x", ""])
def test_a_port_that_there_is_not_is_refused_before_anything_starts(port):
    with pytest.raises(ConfigError, match="port") as caught:
        check_endpoint(f"tcp://127.0.0.1:{port}")
    assert caught.value.field == "endpoint"
    check_endpoint("tcp://127.0.0.1:*")
    check_endpoint("ipc:///tmp/x:99999")
