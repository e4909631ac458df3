"""Where the recorded truth is: sessions of Batsim 4.2.1 and 5.0.0-rc2, and schedules of batsched under the former."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "tests" / "golden" / "sessions"
SESSIONS_5 = ROOT / "tests" / "golden" / "sessions5"
SCHEDULES = ROOT / "tests" / "golden" / "schedules"
SCENARIOS = sorted(folder.parent.name for folder in SESSIONS.glob("*/session.jsonl"))
CASES = sorted(folder.parent.name for folder in SCHEDULES.glob("*/workload.json"))
SCENARIOS_5 = sorted(folder.parent.name for folder in SESSIONS_5.glob("*/session.jsonl"))


def repeat_session(session, connection, codec, exactly):
    """That each message of a recording is accepted, and comes out of the codec as it went in; `exactly` compares."""
    for entry in session:
        if entry.sender is connection.role:
            again = connection.send(codec.decode(entry.data))
        else:
            again = codec.encode(connection.receive(entry.data))
        assert exactly(again) == exactly(entry.data)
    assert connection.ended
