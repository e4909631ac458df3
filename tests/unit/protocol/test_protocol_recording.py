"""Recordings keep messages as they were said."""

import pytest

from decision.model.errors import InputError
from decision.protocol import Role, read_recording, record_line


def test_a_recorded_message_comes_back_to_the_last_digit():
    said = b'{"now": 1.10, "events": [], "x": [60, 60.0, 6e1, 0.1000000000000000055511151231257827]}'
    (entry,) = read_recording([record_line(Role.BATSIM, said)])
    assert (entry.sender, entry.data) == (Role.BATSIM, said)


def test_a_message_of_several_lines_is_recorded_in_one():
    line = record_line(Role.DECISION, b'{\r\n  "now": 1.0,\n  "events": []\n}')
    assert "\n" not in line and "\r" not in line
    assert line.startswith('{"from":"decision","message":{')
    assert next(read_recording([line])).sender is Role.DECISION


def test_bytes_that_are_no_text_are_recorded_all_the_same():
    (entry,) = read_recording([record_line(Role.BATSIM, b'{"now":1.0,"x\xff":1}')])
    assert entry.data == '{"now":1.0,"x\ufffd":1}'.encode()


def test_blank_lines_are_skipped():
    lines = ["", record_line(Role.BATSIM, b'{"now":0}'), "  \n", record_line(Role.DECISION, b'{"now":1}')]
    assert [entry.data for entry in read_recording(lines)] == [b'{"now":0}', b'{"now":1}']


@pytest.mark.parametrize(
    "bad", ['{"from": "batsim", "message": {"now', "{}", '{"from": "nobody", "message": {}}', "hello", "[" * 100_000]
)
def test_a_line_that_is_no_message_is_named(bad):
    with pytest.raises(InputError, match=r"run\.jsonl, line 2: not a recorded message"):
        list(read_recording([record_line(Role.BATSIM, b"{}"), bad], "run.jsonl"))
