"""One policy, one schedule: compiled on the engine, in Python on it, and as a decision process behind messages."""

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.engine.reference.engine import ReferenceEngine
from decision.formats import load_platform, load_workload
from decision.model.record import RunRecord
from decision.policies import ClusterView, Plan, find_policy
from decision.runs.engines import simulate_by_messages
from decision.simulation import simulate_workloads

POLICIES = [
    ("fcfs", {}),
    ("easy", {}),
    ("conservative", {}),
    ("saf+easy", {"allocation": "best-fit"}),
    ("wfp3+first-fit", {}),
    ("easy", {"power": "idle-timeout", "idle_timeout": "120"}),
    ("conservative", {"power": "keep-awake", "keep_awake": "2"}),
    ("kamelot", {"reaction": "1.5"}),
    ("saf+first-fit", {"guard": "600"}),
    ("sjf+easy", {"power": "idle-timeout", "idle_timeout": "120", "guard": "auto"}),
    ("kamelot", {"guard": "300"}),
]


@pytest.fixture(scope="module")
def taurus(request):
    root = request.config.rootpath
    platform = load_platform(root / "platforms" / "taurus.xml", energy=True)
    return platform, load_workload(root / "workloads" / "taurus_week_flops.json", keep_source=True)


def assert_same(one: RunRecord, other: RunRecord) -> None:
    assert one.jobs.id == other.jobs.id
    assert one.jobs.allocation == other.jobs.allocation
    for column in ("start_time", "runtime", "final_state", "energy"):
        assert np.array_equal(getattr(one.jobs, column), getattr(other.jobs, column), equal_nan=True), column
    assert (one.nb_switches, one.joules) == (other.nb_switches, other.joules)


@pytest.mark.parametrize(("policy", "options"), POLICIES)
def test_the_schedule_is_the_same_in_the_loop_and_through_messages(taurus, policy, options):
    platform, workload = taurus
    energy = EngineOptions(energy=True)
    looped = simulate_workloads(platform, [workload], policy, options, engine_options=energy)
    engine = EmbeddedEngine(platform, [workload], (), energy)
    told = simulate_by_messages(engine, Agent(policy, options, platform=platform))
    assert_same(looped, told)


def test_the_plain_engine_gives_the_same_schedule(taurus):
    platform, workload = taurus
    looped = simulate_workloads(platform, [workload], "easy")
    told = simulate_by_messages(ReferenceEngine(platform, [workload]), Agent("easy", {}))
    assert_same(looped, told)


class InPython:
    """A composed policy that is run like any policy in Python."""

    def __init__(self, name: str) -> None:
        self.policy = find_policy(name)

    def reset(self, platform, seed) -> None:
        self.policy.reset(platform, seed)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        self.policy.decide(cluster, plan)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf+conservative"])
def test_a_policy_in_python_gives_the_trace_of_its_compiled_twin(taurus, policy):
    platform, workload = taurus
    compiled = simulate_workloads(platform, [workload], policy)
    in_python = simulate_workloads(platform, [workload], InPython(policy))
    assert_same(compiled, in_python)
    assert np.array_equal(compiled.host_states.counts, in_python.host_states.counts)
    assert in_python.scheduling_time > 0
