"""What stands around a policy works wherever policies do: `helpers.quiet_hours` is all that such a one takes."""

import numpy as np
import pytest
from helpers.env_toys import workload
from helpers.quiet_hours import BEGIN, DAY, END, QuietHours

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.model.errors import PolicyError
from decision.policies import find_policy
from decision.policies.traits import traits_of
from decision.policies.wrappers import entries_of, innermost, layers
from decision.rl.envs import equal_hosts, evaluate, make_setup
from decision.simulation import simulate_workloads, try_policy

HOSTS, NAME = 8, "helpers.quiet_hours:QuietHours"
INNER = [
    "easy",
    "saf+conservative,allocation=random",
    "sjf+easy,estimate=last2,guard=600",
    "kamelot,guard=auto",
    "wfp3+first-fit,late=keep",
    "helpers.green_worlds:Restful",
]


class InPython:
    """Asks a policy as one does that is made of others."""

    def __init__(self, policy) -> None:
        self.policy = policy

    def reset(self, platform, seed) -> None:
        self.policy.reset(platform, seed)

    def decide(self, cluster, plan) -> None:
        self.policy.decide(cluster, plan)


@pytest.fixture(scope="module")
def two_days():
    rng = np.random.default_rng(3)
    submit, run = np.cumsum(rng.integers(0, 1200, 250)), rng.integers(60, 7200, 250)
    return workload(HOSTS, *zip(submit - submit[0], rng.integers(1, 5, 250).tolist(), 2 * run, run, strict=True))


def test_jobs_wait_until_the_hours_are_over():
    rows = ((7100, 2, 50, 50), (7150, 8, 80, 80), (7200, 1, 9, 9), (14399, 1, 9, 9), (14400, 1, 9, 9), (93600, 1, 9, 9))
    record = simulate_workloads(equal_hosts(HOSTS), [workload(HOSTS, *rows)], QuietHours("easy"))
    assert sorted(record.jobs.start_time.tolist()) == [7100, 7150, 14400, 14400, 14400, 100800]


@pytest.mark.parametrize("inner", INNER)
def test_it_is_the_same_everywhere(two_days, inner):
    hosts = equal_hosts(HOSTS)
    compiled = simulate_workloads(hosts, [two_days], NAME, {"policy": inner}, seed=3)
    hour = compiled.jobs.start_time % DAY
    assert not ((hour >= BEGIN) & (hour < END)).any()
    assert (compiled.jobs.start_time % DAY == END).any()
    others = [
        simulate_workloads(hosts, [two_days], InPython(QuietHours(inner)), seed=3),
        *(
            simulate_by_messages(engine(hosts, [two_days]), Agent(NAME, {"policy": inner}, platform=hosts, seed=3))
            for engine in (EmbeddedEngine, ReferenceEngine)
        ),
    ]
    for other in others:
        assert other.jobs.id == compiled.jobs.id
        assert other.jobs.start_time.tolist() == compiled.jobs.start_time.tolist()
        assert other.jobs.allocation == compiled.jobs.allocation


@pytest.mark.parametrize("inner", INNER)
def test_environments_judge_it(two_days, inner):
    setup, placed = make_setup(two_days, encoder="dbf", jobs=None, online=False), []
    evaluate(QuietHours(inner), setup, first=[0], placed=placed, seed=3)
    record = simulate_workloads(equal_hosts(HOSTS), [two_days], QuietHours(inner), seed=3)
    waited = record.jobs.start_time - record.jobs.submit_time
    assert sorted(placed[0].wait.tolist()) == pytest.approx(sorted(waited.tolist()))


def test_it_keeps_the_rules_of_policies():
    assert try_policy(lambda: QuietHours("sjf+easy,guard=60")) == []


def test_what_is_in_it_is_known():
    policy = find_policy(NAME, {"policy": "hvf,guard=600", "late": "keep"})
    assert [type(layer).__name__ for layer in layers(policy)] == ["SuppliedPolicy", "QuietHours", "ComposedPolicy"]
    assert innermost(policy).config.guard == 600
    assert len(entries_of(policy)) == 3
    assert traits_of(policy).needs_value


def test_what_a_policy_in_it_raises_is_said_once():
    class Fails:
        def reset(self, platform, seed) -> None:
            pass

        def decide(self, cluster, plan) -> None:
            raise ValueError("no luck")

    policy = QuietHours("easy")
    policy.policy = Fails()
    for each in (policy, InPython(policy)):
        with pytest.raises(PolicyError, match=r"^t=0 s: policy .*Fails: decide failed: ValueError: no luck ") as raised:
            simulate_workloads(equal_hosts(HOSTS), [workload(HOSTS, (0, 1, 10, 5))], each)
        assert str(raised.value).count("test_around.py") == 1
