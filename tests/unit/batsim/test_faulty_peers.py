"""The decision process and a Batsim that misbehaves: one line that says what it did, exit code 3, no crash."""

import json

import pytest
from helpers.driver_fakes import Peer, ask, peer

from decision.batsim.agent import make_agent
from decision.batsim.zeromq import serve
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.model.errors import PeerError, RemoteProtocolError
from decision.model.record import HostState
from decision.protocol import Connection, Role


@pytest.fixture
def begins(root) -> bytes:
    """What a simulation of the toy begins with."""
    platform = load_platform(root / "platforms" / "toy.xml")
    workload = load_workload(root / "workloads" / "toy.json", keep_source=True)
    return Connection(Role.BATSIM).send(ReferenceEngine(platform, [workload]).ask())


def message(now: float, *events: dict) -> bytes:
    return json.dumps({"now": now, "events": list(events)}).encode()


def submitted(at: float, job: str = "w0!1", size: int = 1) -> dict:
    description = {"id": job, "subtime": at, "res": size, "walltime": 10.0, "profile": "p"}
    return {"timestamp": at, "type": "JOB_SUBMITTED", "data": {"job_id": job, "job": description}}


def completed(at: float, job: str = "w0!1") -> dict:
    data = {"job_id": job, "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0"}
    return {"timestamp": at, "type": "JOB_COMPLETED", "data": data}


def leaves(hosts: str) -> dict:
    return {"timestamp": 5.0, "type": "NOTIFY", "data": {"type": "event_machine_unavailable", "resources": hosts}}


def switched(hosts: str, pstate: str) -> dict:
    return {"timestamp": 5.0, "type": "RESOURCE_STATE_CHANGED", "data": {"resources": hosts, "state": pstate}}


def hear(tmp_path, *questions: bytes) -> None:
    """Serve a policy to a peer that asks these, and then goes."""
    agent, endpoint = make_agent("easy", {}), f"ipc://{tmp_path}/wire"
    with peer(endpoint, ask(*questions, then=Peer.leave)):
        serve(agent, endpoint, timeout=120)


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (b'{"now": 5.0, "events": [{"times', "cannot be read"),
        (b"\xff\xfe not JSON", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"{}", "cannot be read"),
        (message(5.0, {"timestamp": 5.0, "type": "COFFEE_READY", "data": {}}), "COFFEE_READY"),
        (message(5.0, {"type": "REQUESTED_CALL", "data": {}}), "cannot be read"),
        (message(5.0, completed(5.0, "w0!unheard-of")), "w0!unheard-of"),
        (message(-1.0), "goes back in time"),
        (message(5.0, submitted(7.0)), "later than its message"),
        (message(5.0, submitted(5.0), submitted(5.0)), "w0!1"),
        (message(5.0, leaves("0-4000000000")), "there is no host 4000000000, the last one is 3"),
        (message(5.0, switched("4", "0")), "there is no host 4, the last one is 3"),
        (message(5.0, switched("0", "9")), "names pstate '9', but the hosts have pstates 0 to 0"),
        (message(5.0, switched("0", "asleep")), "names pstate 'asleep'"),
    ],
)
def test_nonsense_is_the_peers_fault(begins, tmp_path, second, complaint):
    with pytest.raises(RemoteProtocolError, match=complaint) as caught:
        hear(tmp_path, begins, second)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "conservative"])
def test_jobs_that_ask_for_no_hosts_are_rejected(begins, policy):
    agent = make_agent(policy, {})
    agent.handle(begins)
    reply = json.loads(agent.handle(message(5.0, *(submitted(5.0, f"w0!{i}", size=0) for i in range(200)))))
    assert {event["type"] for event in reply["events"]} == {"REJECT_JOB"}
    assert len(reply["events"]) == 200


@pytest.mark.parametrize("ids", [[], [1, 2], [0, 0], [1, 0]])
def test_hosts_that_do_not_count_up_from_0_are_the_peers_fault(begins, tmp_path, ids):
    message = json.loads(begins)
    data = message["events"][0]["data"]
    data["compute_resources"] = [data["compute_resources"][0] | {"id": number} for number in ids]
    with pytest.raises(RemoteProtocolError, match="Batsim announces"):
        hear(tmp_path, json.dumps(message).encode())


def test_a_message_of_many_equal_host_sets_costs_no_more_than_its_hosts(begins):
    agent = make_agent("fcfs", {})
    agent.handle(begins)
    agent.handle(message(5.0, leaves("0-3 " * 50_000 + "0")))
    assert agent.state.host_state.tolist() == [HostState.UNAVAILABLE] * 4


def test_where_jobs_may_be_registered_batsim_hears_that_none_will_be(root):
    platform = load_platform(root / "platforms" / "toy.xml")
    workload = load_workload(root / "workloads" / "toy.json", keep_source=True)
    for options in (EngineOptions(dynamic_jobs=True), EngineOptions(dynamic_jobs=True, acknowledge_dynamic_jobs=True)):
        record = simulate_by_messages(ReferenceEngine(platform, [workload], (), options), make_agent("easy", {}))
        assert len(record.jobs.id) == len(workload.jobs)


def test_time_that_goes_back_between_messages_is_noticed(begins, tmp_path):
    with pytest.raises(RemoteProtocolError, match=r"goes back in time.*50\.0"):
        hear(tmp_path, begins, message(50.0, submitted(50.0)), message(20.0, completed(20.0)))


def test_a_simulation_begins_once(begins, tmp_path):
    with pytest.raises(RemoteProtocolError, match="SIMULATION_BEGINS"):
        hear(tmp_path, begins, begins)


def test_a_conversation_begins_with_the_beginning(tmp_path):
    with pytest.raises(RemoteProtocolError, match="SIMULATION_BEGINS"):
        hear(tmp_path, message(0.0, submitted(0.0)))


@pytest.mark.parametrize(
    "first",
    [
        b'{"now": 0.0, "events": [{"event_type": "SimulationBeginsEvent", "timestamp": 0.0}]}',
        b"\x10\x00\x00\x00flatbuffers",
    ],
)
def test_another_version_of_batsim_is_named(tmp_path, first):
    with pytest.raises(RemoteProtocolError, match="Batsim 5"):
        hear(tmp_path, first)


def test_an_empty_message_in_mid_run_is_answered(begins, tmp_path):
    ends = {"timestamp": 6.0, "type": "SIMULATION_ENDS", "data": {}}
    hear(tmp_path, begins, message(5.0), message(6.0, ends))


def test_a_peer_that_goes_in_mid_run_is_noticed(begins, tmp_path):
    with pytest.raises(PeerError, match="disconnected before the simulation ended"):
        hear(tmp_path, begins, message(5.0, submitted(5.0)))
