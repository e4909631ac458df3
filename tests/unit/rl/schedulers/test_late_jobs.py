"""The bound of `learned`: wide jobs are guarded so early that the longest wait stays near EASY's; the option."""

import functools

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.gates import measure
from decision.experiments.run import simulate_by_messages
from decision.files.generate.lublin import lublin_workload
from decision.model.errors import ConfigError
from decision.model.record import JobTable
from decision.model.reshape import at_load, shaken
from decision.model.workload import Workload
from decision.policies import find_policy, list_options
from decision.policies.runtimes import apply_estimates
from decision.rl.envs import equal_hosts
from decision.simulation import simulate_workloads

HOSTS = 48


@functools.cache
def log() -> Workload:
    """A made log on which the learned numbers alone let one job wait 1.5 times as long as EASY does."""
    rng = np.random.default_rng(14)
    return at_load(apply_estimates(lublin_workload(rng, 800, HOSTS), "tsafrir", rng), 0.7)


def run(policy: str, copy: int = 0) -> JobTable:
    return simulate_workloads(equal_hosts(HOSTS), [shaken(log(), copy)], policy).jobs


def test_the_longest_wait_is_shorter_under_the_bound():
    easy, bare, bound = (measure(run(name)) for name in ("easy", "learned,bound=false", "learned"))
    assert bare.longest > 1.45 * easy.longest
    assert bound.longest < 1.3 * easy.longest
    assert bound.wait < easy.wait


@pytest.mark.parametrize("engine", [EmbeddedEngine, ReferenceEngine])
def test_the_schedule_is_the_same_through_messages(engine):
    on, jobs = equal_hosts(HOSTS), log()
    told = simulate_by_messages(engine(on, [jobs], (), EngineOptions()), Agent("learned", {}, platform=on)).jobs
    own = run("learned")
    there = dict(zip(told.id, zip(told.start_time.tolist(), told.allocation, strict=True), strict=True))
    assert there == dict(zip(own.id, zip(own.start_time.tolist(), own.allocation, strict=True), strict=True))


def test_the_option_is_listed_and_a_value_that_is_none_is_refused():
    assert {line.name: line.default for line in list_options("learned")}["bound"] == "true"
    with pytest.raises(ConfigError, match=r"option bound='maybe' must be true or false"):
        find_policy("learned,bound=maybe")
    with pytest.raises(ConfigError, match="has no option 'bound'"):
        find_policy("ranking,bound=true")
