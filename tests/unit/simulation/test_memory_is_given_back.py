"""What a run needed is free when nobody has it any more: a cycle would keep it until Python looks for cycles, by GB."""

import gc
import weakref

import pytest

from decision.engine.batsim4 import EmbeddedEngine
from decision.files import load_platform, load_workload
from decision.model.computer import find_platform, find_workload
from decision.policies import find_policy
from decision.simulation import simulate_on


@pytest.mark.parametrize("name", ["easy", "saf+easy,guard=1.5x", "learned"])
def test_the_engine_is_free_after_a_run(name):
    platform, policy = load_platform(find_platform("toy")), find_policy(name)
    engine = EmbeddedEngine(platform, [load_workload(find_workload("toy"), "w0")])
    policy.reset(platform, 0)
    gc.disable()
    try:
        simulate_on(engine, policy)
        engine.record()
        left = weakref.ref(engine)
        del engine
        assert left() is None
    finally:
        gc.enable()
