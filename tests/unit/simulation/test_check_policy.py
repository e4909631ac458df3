"""`try_policy` finds the rule that a policy breaks, and nothing in one that keeps them."""

import pytest
from helpers.failing_policies import First as Good

from decision.policies import find_policy
from decision.simulation import trials, try_policy


class Raises(Good):
    def decide(self, cluster, plan):
        raise KeyError("w0!1")


class StartsRunningJobs(Good):
    def decide(self, cluster, plan):
        super().decide(cluster, plan)
        for job in cluster.running:
            plan.start(job, job.hosts)


class OverAllocates(Good):
    def decide(self, cluster, plan):
        for job in cluster.queue:
            plan.start(job, range(job.size))


class NeverStarts(Good):
    def decide(self, cluster, plan):
        pass


class CallsForEver(Good):
    def decide(self, cluster, plan):
        plan.call_at(cluster.now + 1.0)


class WritesTheState(Good):
    def decide(self, cluster, plan):
        super().decide(cluster, plan)
        cluster.arrays.walltime[0] += 1.0


class Remembers(Good):
    """Its first decision of a run depends on the run before."""

    runs = 0

    def reset(self, platform, seed):
        self.runs += 1

    def decide(self, cluster, plan):
        for job in sorted(cluster.queue, key=lambda job: job.size * (-1) ** self.runs):
            if job.size <= plan.nb_free:
                plan.start(job)


class DrawsFromNowhere(Good):
    made = 0

    def __init__(self):
        type(self).made += 1
        self.sign = (-1) ** self.made

    def decide(self, cluster, plan):
        for job in sorted(cluster.queue, key=lambda job: job.size * self.sign):
            if job.size <= plan.nb_free:
                plan.start(job)


class NeedsWalltimes(Good):
    needs_walltime = True

    def decide(self, cluster, plan):
        assert all(job.walltime < 1e9 for job in cluster.queue)
        super().decide(cluster, plan)


@pytest.mark.parametrize("policy", [Good, NeedsWalltimes])
def test_nothing_is_found_in_a_policy_that_keeps_the_rules(policy):
    assert try_policy(policy) == []


@pytest.mark.parametrize("name", ["fcfs", "easy", "conservative", "multifactor+first-fit", "easy,power=keep-awake"])
def test_nothing_is_found_in_composed_policies(name):
    assert try_policy(lambda: find_policy(name)) == []


@pytest.mark.parametrize(
    ("policy", "finding"),
    [
        (Raises, "decide failed: KeyError: 'w0!1' ("),
        (StartsRunningJobs, "cannot start: it is running"),
        (OverAllocates, "cannot start on hosts"),
        (NeverStarts, "nothing can happen any more"),
        (CallsForEver, "asked 2000 times, and jobs still wait"),
        (WritesTheState, "it writes the state (walltime), which it may only read"),
        (Remembers, "reset does not forget the run before: w0!"),
        (DrawsFromNowhere, "two runs with the same seed differ: w0!"),
    ],
)
def test_a_broken_rule_is_found_and_named_in_one_line(policy, finding):
    findings = try_policy(policy)
    assert any(finding in line for line in findings)
    assert all("\n" not in line for line in findings)
    assert all(line.partition(": ")[0] in {trial.name for trial in trials(True)} for line in findings)
