"""The engines do what Batsim 4.2.1 did: given its recorded decisions, they ask its questions and write its files."""

import pytest
from helpers.engine_harness import build_engine, compare_outputs, replay
from helpers.golden import SCENARIOS, SESSIONS

from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine

ENGINES = [ReferenceEngine, EmbeddedEngine]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def engine_class(request):
    return request.param


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_engine_repeats_a_recorded_session(engine_class, name, tmp_path):
    folder = SESSIONS / name
    engine = build_engine(engine_class, folder)
    result = replay(engine, (folder / "session.jsonl").read_text().splitlines())
    assert result.differences == []
    assert result.questions > 40
    assert compare_outputs(engine.record(), folder, tmp_path) == []


def test_all_fifteen_recorded_sessions_are_there():
    assert len(SCENARIOS) == 15


def test_a_replay_notices_what_differs(engine_class):
    """The harness itself: a recording that was tampered with is not repeated."""
    folder = SESSIONS / "kill"
    lines = (folder / "session.jsonl").read_text().splitlines()
    for old, new in [('"now": 40.0,', '"now": 40.00001,'), ('"progress": 0.100553', '"progress": 0.1006')]:
        told = [line.replace(old, new) if '"from": "batsim"' in line else line for line in lines]
        assert told != lines
        assert replay(build_engine(engine_class, folder), told).differences
