"""Every recorded session of Batsim 5.0.0-rc2 is accepted and comes out of its dialect as it went in; and one of our
policies decides in it as it did."""

import json

import pytest
from helpers.golden import SCENARIOS_5, SESSIONS_5, repeat_session
from msgspec import UNSET

from decision.batsim.agent import Agent
from decision.batsim.conversation import replay
from decision.protocol import Connection, Role, read_recording, record_line
from decision.protocol.batsim5.codec import Json5Codec
from decision.protocol.versions import V5

FIRST_COME = ["external_events", "fcfs_delay", "networked_master", "rejected", "ties_and_exact_walltimes"]


@pytest.fixture(params=SCENARIOS_5)
def session(request):
    """The session's messages."""
    path = SESSIONS_5 / request.param / "session.jsonl"
    return list(read_recording(path.read_text().splitlines(), str(path)))


def exactly(data: bytes) -> tuple[bytes, str]:
    """Bytes of a handshake, and JSON in a form in which 60 and 60.0 differ and the order of keys does not count."""
    begin = data.find(b"{") if b"{" in data[:5] else len(data)
    said = data[begin:].rstrip(b"\0")
    return data[:begin], json.dumps(json.loads(said), sort_keys=True) if said else ""


@pytest.mark.parametrize("role", Role)
def test_a_recorded_session_is_accepted_and_written_back_as_it_was(session, role):
    connection, codec = Connection(role, "5" if role is Role.BATSIM else None), Json5Codec(V5)
    repeat_session(session, connection, codec, exactly)
    assert connection.version.name == "5"


def test_a_recording_of_a_recording_is_the_same(session):
    lines = [record_line(entry.sender, entry.data + b"\0" * (entry.init is UNSET)) for entry in session]
    assert [entry.data for entry in read_recording(lines)] == [entry.data for entry in session]


@pytest.mark.parametrize("name", FIRST_COME)
def test_fcfs_decides_as_recorded(name):
    found = replay(SESSIONS_5 / name / "session.jsonl", Agent("fcfs", {}))
    assert found.difference is None
    assert found.messages > 20


def test_all_fifteen_recorded_sessions_are_there():
    assert len(SCENARIOS_5) == 15
