"""The binary form: what is written is read again, by a schema's text, and what is no message is refused."""

import struct

import pytest

from decision.protocol.batsim5.flatbuffers import BinaryForm

SCHEMA = """
namespace some.where; // a comment {
enum Color : byte { Red, Green = 4, Blue }
table Small { text: string (required); number: uint64; }
table Other { values: [float64]; flag: bool = true; }
union Either { Small, other: Other }
table EventAndTimestamp { timestamp: float64; event: Either; color: Color; }
table Message { now: float64; events: [EventAndTimestamp]; names: [string]; }
root_type Message;
"""
SAID = {
    "now": 1.5,
    "events": [
        {"timestamp": 1.0, "event_type": "Small", "event": {"text": "é", "number": 2**60}, "color": "Blue"},
        {"timestamp": 1.5, "event_type": "Other", "event": {"values": [0.25, -1.0], "flag": False}},
    ],
    "names": ["", "abc"],
}


def test_what_is_written_is_read_again():
    form = BinaryForm(SCHEMA)
    assert form.read(form.write(SAID)) == SAID


def test_numbers_stand_where_their_size_divides_the_place():
    data = BinaryForm(SCHEMA).write({"now": 7.0})
    assert data.index(struct.pack("<d", 7.0)) % 8 == 0


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_a_cut_message_is_refused(length):
    form = BinaryForm(SCHEMA)
    with pytest.raises((ValueError, struct.error, IndexError)):
        form.read(form.write(SAID)[:length])


@pytest.mark.parametrize(
    ("said", "why"), [({"later": 1}, "has no later"), ({"events": [{"color": "Pink"}]}, "no 'Pink'")]
)
def test_what_the_schema_does_not_have_is_refused(said, why):
    with pytest.raises(ValueError, match=why):
        BinaryForm(SCHEMA).write(said)


@pytest.mark.parametrize("text", ["", "table Message {} root_type Other;", SCHEMA.replace("Color;", "Hue;")])
def test_a_text_that_is_no_schema_is_refused(text):
    with pytest.raises(ValueError):
        BinaryForm(text)
