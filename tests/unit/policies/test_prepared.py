"""All policies are asked in one way, whatever they are made of."""

import math

import pytest
from helpers.policy_toys import Toy, platform

from decision.model.errors import PolicyError
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy
from decision.policies.options import PolicyConfig
from decision.policies.prepared import ask, ask_and_check, prepare
from decision.simulation import simulate_workloads


class FirstFit:
    """Starts what fits, in Python."""

    def reset(self, platform, seed):
        self.asked = 0

    def decide(self, cluster, plan):
        self.asked += 1
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)


class Around(FirstFit):
    """A policy in Python made of a compiled one."""

    def __init__(self, name):
        self.inner = find_policy(name)

    def reset(self, platform, seed):
        self.inner.reset(platform, seed)

    def decide(self, cluster, plan):
        self.inner.decide(cluster, plan)


class Fails(FirstFit):
    def __init__(self, error):
        self.error = error

    def decide(self, cluster, plan):
        raise self.error


class StartsOnOneHost(FirstFit):
    def decide(self, cluster, plan):
        plan.start(cluster.queue[0], [0])


def prepared(policy):
    """A policy that is ready for a cluster of four hosts on which a job of three and one of two wait."""
    toy = Toy(4, PolicyConfig())
    toy.submit(3, 10.0)
    toy.submit(2, 10.0)
    policy.reset(platform(4), 0)
    ready = prepare(policy, toy.facts, ["w0!0", "w0!1"])
    return toy, ready, ready.memory_for(toy.state, toy.plan)


@pytest.mark.parametrize("policy", [find_policy("first-fit"), FirstFit(), Around("first-fit")])
@pytest.mark.parametrize("way", [ask, ask_and_check])
def test_one_compiled_function_asks_every_policy(policy, way):
    toy, ready, memory = prepared(policy)
    assert way(ready.address, toy.state, toy.facts, memory.address, toy.plan)
    assert toy.starts() == [(0, [0, 1, 2])]
    assert len(way.signatures) == 1


def test_time_is_measured_in_python_only():
    toy, ready, memory = prepared(FirstFit())
    ask(ready.address, toy.state, toy.facts, memory.address, toy.plan)
    assert 0.0 < ready.seconds < 60.0
    assert math.isnan(prepared(find_policy("easy"))[1].seconds)


@pytest.mark.parametrize("way", [ask, ask_and_check])
def test_an_impossible_plan_is_refused_with_its_reason(way):
    toy, ready, memory = prepared(StartsOnOneHost())
    assert not way(ready.address, toy.state, toy.facts, memory.address, toy.plan)
    assert isinstance(ready.error(), PolicyError)
    assert str(ready.error()) == "t=0 s: w0!0 needs 3 hosts, 1 given (0)"


def workload() -> Workload:
    jobs = [Job(id=f"w0!{i}", submit_time=2.0 * i, size=1 + i % 4, walltime=30.0, profile="p") for i in range(40)]
    return Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)


def test_what_a_policy_raises_reaches_the_caller_of_the_run():
    with pytest.raises(
        PolicyError, match=r"^t=0 s: policy Fails: decide failed: ValueError: no luck \(.*\)$"
    ) as raised:
        simulate_workloads(platform(4), [workload()], Fails(ValueError("no luck")))
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(KeyboardInterrupt):
        simulate_workloads(platform(4), [workload()], Fails(KeyboardInterrupt()))


@pytest.mark.parametrize("name", ["easy", "conservative", "wfp3+first-fit", "saf+conservative,allocation=random"])
def test_a_compiled_policy_decides_the_same_behind_python(name):
    compiled, around = (
        simulate_workloads(platform(4), [workload()], policy, seed=3) for policy in (name, Around(name))
    )
    assert compiled.jobs.start_time.tolist() == around.jobs.start_time.tolist()
    assert compiled.jobs.allocation == around.jobs.allocation


@pytest.mark.parametrize("policy", ["easy", FirstFit()])
def test_progress_is_shown_and_changes_nothing(policy):
    times = []
    shown = simulate_workloads(platform(4), [workload()], policy, progress=lambda now, state: times.append(now))
    assert times and times == sorted(times)
    assert (
        shown.jobs.start_time.tolist() == simulate_workloads(platform(4), [workload()], policy).jobs.start_time.tolist()
    )
