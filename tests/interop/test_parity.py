"""One policy, one schedule: compiled on the engine, in Python on it, and as a decision process behind messages."""

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.metrics import communication_hops
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.files.generate.jobs import workload_of
from decision.files.generate.platforms import networked
from decision.model.platform import FatTree, Link, PowerState
from decision.model.record import RunRecord
from decision.policies import ClusterView, Plan, find_policy
from decision.simulation import simulate_workloads

POLICIES = [
    ("fcfs", {}),
    ("easy", {}),
    ("conservative", {}),
    ("saf+easy", {"allocation": "best-fit"}),
    ("wfp3+first-fit", {}),
    ("easy", {"power": "idle-timeout", "idle_timeout": "120"}),
    ("conservative", {"power": "keep-awake", "keep_awake": "2"}),
    ("saf+easy", {"power": "idle-timeout", "idle_timeout": "120", "start": "bound", "patience": "60"}),
    ("kamelot", {"reaction": "1.5"}),
    ("saf+first-fit", {"guard": "600"}),
    ("sjf+easy", {"power": "idle-timeout", "idle_timeout": "120", "guard": "auto"}),
    ("kamelot", {"guard": "300"}),
]


TREE_POLICIES = [
    "easy,allocation=tree",
    "sjf+conservative,allocation=slurm-tree",
    "window,steps=20",
    "window,solver=exact",
    "window,strategy=free,solver=sequential,period=20,jobs=0",
]


@pytest.fixture(scope="module")
def taurus(request):
    root = request.config.rootpath
    platform = load_platform(root / "platforms" / "taurus.xml", energy=True)
    return platform, load_workload(root / "workloads" / "taurus_week_flops.json", keep_source=True)


@pytest.fixture(scope="module")
def fat_tree():
    """64 hosts without links to Batsim's own host, so that starts are those of the policy alone."""
    tree = FatTree((4, 4, 4), (1, 4, 4), (1, 1, 1), (Link(1e9, 0.0),) * 3)
    platform = networked(tree, (PowerState(1e9),))
    rng, jobs = np.random.default_rng(5), 200
    submit = np.cumsum(rng.integers(5, 60, jobs)).astype(float)
    runtimes = rng.integers(10, 900, jobs).astype(float)
    sizes = rng.integers(1, 25, jobs)
    return platform, workload_of(submit, sizes, runtimes, 64, walltimes=np.full(jobs, 900.0))


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


@pytest.mark.parametrize("policy", TREE_POLICIES)
def test_on_a_tree_the_schedule_is_the_same_in_all_engines(fat_tree, policy):
    platform, workload = fat_tree
    looped = simulate_workloads(platform, [workload], policy)
    assert_same(looped, simulate_workloads(platform, [workload], InPython(policy)))
    for engine in (EmbeddedEngine, ReferenceEngine):
        told = simulate_by_messages(
            engine(platform, [workload], (), EngineOptions()), Agent(policy, {}, platform=platform)
        )
        assert_same(looped, told)


@pytest.mark.parametrize("allocation", ["tree", "slurm-tree"])
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_an_allocation_changes_hosts_and_no_start(fat_tree, policy, allocation):
    platform, workload = fat_tree
    lowest, other = (
        simulate_workloads(platform, [workload], f"{policy}{more}") for more in ("", f",allocation={allocation}")
    )
    assert np.array_equal(lowest.jobs.start_time, other.jobs.start_time)
    assert lowest.jobs.allocation != other.jobs.allocation
    hops = [communication_hops(run.jobs, platform.distance).mean() for run in (lowest, other)]
    assert hops[1] < hops[0]


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
