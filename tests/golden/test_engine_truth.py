"""The engines do what Batsim 4.2.1 did: given its recorded decisions, they ask its questions and write its files."""

from pathlib import Path

import pytest
from engine_harness import build_engine, compare_outputs, replay

from decision.engine.embedded import EmbeddedEngine
from decision.engine.reference import ReferenceEngine

ENGINES = [ReferenceEngine, EmbeddedEngine]
LOCAL = Path(__file__).parent / "sessions"
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
    "rejected",
    "ties_and_exact_walltimes",
    "two_workloads",
    "walltime_reached",
]


def scenario(name: str) -> Path:
    """The folder of a recorded session, from the repository or from the shared golden data beside it."""
    for folder in (LOCAL / name, SHARED / name):
        if folder.is_dir():
            return folder
    pytest.skip(f"{name} is neither in {LOCAL.name} nor in the shared golden data beside the repository")


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def engine_class(request):
    return request.param


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_engine_repeats_a_recorded_session(engine_class, name, tmp_path):
    folder = scenario(name)
    engine = build_engine(engine_class, folder)
    result = replay(engine, (folder / "session.jsonl").read_text().splitlines())
    assert result.differences == []
    assert result.questions > 40
    assert compare_outputs(engine.record(), folder, tmp_path) == []


def test_a_network_to_the_master_only_delays_what_batsim_tells(engine_class, tmp_path):
    """Messages take 0.25 ms there and the engine has no network: the same events in the same order, a bit earlier."""
    folder = scenario("networked_master")
    engine = build_engine(engine_class, folder)
    result = replay(engine, (folder / "session.jsonl").read_text().splitlines(), slack=1e-3)
    assert result.differences == []
    assert 0.0 < result.largest_delay < 1e-3
    assert compare_outputs(engine.record(), folder, tmp_path, slack=1e-3) == []


def test_a_replay_notices_what_differs(engine_class):
    """The harness itself: a recording that was tampered with is not repeated."""
    folder = scenario("kill")
    lines = (folder / "session.jsonl").read_text().splitlines()
    for old, new in [('"now": 40.0,', '"now": 40.00001,'), ('"progress": 0.100553', '"progress": 0.1006')]:
        told = [line.replace(old, new) if '"from": "batsim"' in line else line for line in lines]
        assert told != lines
        assert replay(build_engine(engine_class, folder), told).differences
