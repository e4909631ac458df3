"""Every recorded session of Batsim 4.2.1 is accepted and comes out of the codec as it went in."""

import json

import pytest
from helpers.golden import SCENARIOS, SESSIONS, repeat_session

from decision.protocol import Connection, JsonCodec, Role, read_recording


@pytest.fixture(params=SCENARIOS)
def session(request):
    """The session's messages."""
    path = SESSIONS / request.param / "session.jsonl"
    return list(read_recording(path.read_text().splitlines(), str(path)))


def exactly(data: bytes) -> str:
    """The JSON in a form in which 60 and 60.0 differ and the order of keys does not count."""
    return json.dumps(json.loads(data), sort_keys=True)


@pytest.mark.parametrize("role", Role)
def test_a_recorded_session_is_accepted_and_written_back_as_it_was(session, role):
    connection, codec = Connection(role), JsonCodec()
    repeat_session(session, connection, codec, exactly)
    assert connection.version.name == "4"


def test_our_two_ends_repeat_a_recorded_session(session):
    ends = {role: Connection(role) for role in Role}
    for entry in session:
        said = JsonCodec().decode(entry.data)
        heard = ends[entry.sender.peer].receive(ends[entry.sender].send(said))
        assert heard == said
    assert all(end.ended for end in ends.values())
