"""External events: order and fields."""

from pathlib import Path

import pytest

from decision.files import load_events
from decision.model.errors import InputError
from decision.model.workload import MachineEvent

LINES = """{"type": "machine_unavailable", "resources": "0-1 5", "timestamp": 20}

{"type": "machine_available",  "resources": "3", "timestamp": 20.0}
{"type": "user_specific", "timestamp": 5, "some_field": {"x": 1.50}}
"""


def test_events_are_sorted_by_time_and_available_comes_first(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(LINES)
    events = load_events(tmp_path / "events.txt", forward_unknown=True)
    assert events == [
        MachineEvent(
            timestamp=5.0,
            type="user_specific",
            source=b'{"type":"user_specific","timestamp":5,"some_field":{"x":1.50}}',
        ),
        MachineEvent(
            timestamp=20.0,
            type="machine_available",
            hosts=(3,),
            source=b'{"type":"machine_available","resources":"3","timestamp":20.0}',
        ),
        MachineEvent(
            timestamp=20.0,
            type="machine_unavailable",
            hosts=(0, 1, 5),
            source=b'{"type":"machine_unavailable","resources":"0-1 5","timestamp":20}',
        ),
    ]


def test_unknown_events_are_refused_unless_they_are_to_be_forwarded(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(LINES)
    with pytest.raises(InputError, match="line 4, field 'type': 'user_specific' is unknown"):
        load_events(tmp_path / "events.txt")
