"""Every recorded session of Batsim 4.2.1 is accepted and comes out of the codec as it went in."""

import json
from pathlib import Path

import pytest

from decision.protocol import Connection, JsonCodec, Role, read_recording

HERE = Path(__file__).parent / "sessions"
SHARED = Path(__file__).parents[2].parent / "shared" / "golden" / "sessions-batsim-4.2.1"
SCENARIOS = [
    "compute_heterogeneous",
    "dynamic_jobs",
    "energy_sleep",
    "external_events",
    "fcfs_delay",
    "first_fit_delay",
    "forwarded_profiles",
    "kill",
    "networked_master",
    "rejected",
    "ties_and_exact_walltimes",
    "two_workloads",
    "walltime_reached",
]


@pytest.fixture(params=SCENARIOS)
def session(request):
    """The session's messages, from the repository or, where it holds no copy, from the shared folder."""
    for folder in (HERE, SHARED):
        path = folder / request.param / "session.jsonl"
        if path.exists():
            return list(read_recording(path.read_text().splitlines(), str(path)))
    pytest.skip(f"{request.param} is neither in {HERE.name} nor in the shared golden data beside the repository")


def exactly(data: bytes) -> str:
    """The JSON in a form in which 60 and 60.0 differ and the order of keys does not count."""
    return json.dumps(json.loads(data), sort_keys=True)


@pytest.mark.parametrize("role", Role)
def test_a_recorded_session_is_accepted_and_written_back_as_it_was(session, role):
    connection, codec = Connection(role), JsonCodec()
    for entry in session:
        if entry.sender is role:
            again = connection.send(codec.decode(entry.data))
        else:
            again = codec.encode(connection.receive(entry.data))
        assert exactly(again) == exactly(entry.data)
    assert connection.ended
    assert connection.version.name == "4"


def test_our_two_ends_repeat_a_recorded_session(session):
    ends = {role: Connection(role) for role in Role}
    for entry in session:
        said = JsonCodec().decode(entry.data)
        heard = ends[entry.sender.peer].receive(ends[entry.sender].send(said))
        assert heard == said
    assert all(end.ended for end in ends.values())
