"""What a policy in Python sees, and how it writes its plan."""

import math
from doctest import DocTestParser

import pytest
from helpers.policy_toys import Toy

from decision.model.errors import PolicyError
from decision.model.record import HostState
from decision.policies import ClusterView, Plan, Policy
from decision.policies.options import PolicyConfig
from decision.simulation import try_policy
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import JobState
from decision.state.plan_arrays import clear

NAMES = ["w0!a", "w0!b", "w0!c"]


@pytest.fixture
def toy():
    """At t=100 s on 6 hosts: a (2 hosts, till 50 s past 0) runs on 0-1, b (3 hosts) and c (1 host) wait since 60."""
    toy = Toy(6, PolicyConfig(), sleeps=True)
    toy.submit(2, 500.0)
    toy.decide()
    toy.carry_out()
    toy.state.now = 60.0
    toy.submit(3, 300.0)
    toy.submit(1)
    toy.state.now = 100.0
    clear(toy.plan, toy.state)
    return toy


@pytest.fixture
def cluster(toy):
    return ClusterView(toy.state, toy.facts, NAMES)


@pytest.fixture
def plan(toy):
    return Plan(toy.plan, toy.state, toy.facts)


def test_a_plan_takes_no_more_hosts_than_it_has_room_for(toy, plan):
    room = len(toy.plan.first)
    for _ in range(room // 2):
        plan.set_pstate([0, 2], 0)
    with pytest.raises(PolicyError, match=f"more than {room} intervals of hosts in one plan"):
        plan.start(1)


def test_a_policy_sees_who_waits_and_who_runs(cluster):
    assert cluster.now == 100.0
    assert [job.id for job in cluster.queue] == ["w0!b", "w0!c"]
    assert [job.id for job in cluster.running] == ["w0!a"]
    assert cluster.ended == []
    assert (cluster.nb_hosts, cluster.nb_free, cluster.free_hosts) == (6, 4, [2, 3, 4, 5])


def test_a_policy_sees_what_a_job_asked_for_and_what_became_of_it(toy, cluster):
    running, waiting = cluster.running[0], cluster.queue[0]
    assert (waiting.size, waiting.walltime, waiting.submit_time, waiting.waiting_time) == (3, 300.0, 60.0, 40.0)
    assert waiting.state == JobState.QUEUED
    assert waiting.hosts == []
    assert math.isnan(waiting.start_time)
    assert cluster.queue[1].walltime == math.inf
    assert (running.start_time, running.expected_end, running.hosts) == (0.0, 500.0, [0, 1])
    assert running.state == JobState.RUNNING
    toy.end(0)
    assert [job.id for job in cluster.ended] == ["w0!a"]
    assert (cluster.ended[0].state, cluster.ended[0].end_time) == (JobState.ENDED, 100.0)


def test_views_of_one_job_are_equal(cluster):
    assert cluster.queue[0] == cluster.job(1)
    assert cluster.queue[0] != cluster.queue[1]
    assert len({cluster.job(1), cluster.job(1)}) == 1
    with pytest.raises(PolicyError, match="no job number 3"):
        cluster.job(3)


def test_a_view_prints_what_matters(cluster):
    assert repr(cluster.queue[0]) == "<job w0!b: 3 hosts, walltime 300 s, queued>"


def test_a_policy_sees_what_hosts_do(toy, cluster):
    transitions.end_switch(toy.state, toy.facts, 5, 1, False)
    assert cluster.hosts_that(HostState.COMPUTING) == [0, 1]
    assert cluster.host_state(5) == HostState.SLEEPING
    assert (cluster.pstate(5), cluster.idle_since(5), cluster.idle_since(4)) == (1, 100.0, 0.0)


def test_starts_take_the_lowest_free_hosts_unless_told_which(toy, cluster, plan):
    plan.start(cluster.queue[0])
    plan.start(2, [5])
    assert toy.starts() == [(1, [2, 3, 4]), (2, [5])]
    assert (plan.nb_free, plan.free_hosts) == (0, [])


def test_a_start_without_hosts_needs_enough_of_them(cluster, plan):
    plan.start(cluster.queue[1])
    plan.start(cluster.queue[0])
    with pytest.raises(PolicyError, match=r"t=100 s: w0!c needs 1 hosts, 0 free"):
        plan.start(cluster.queue[1])


def test_hosts_are_put_to_sleep_and_woken_in_their_own_pstates(toy, plan):
    transitions.end_switch(toy.state, toy.facts, 5, 1, False)
    clear(toy.plan, toy.state)
    plan.sleep([2, 3])
    plan.wake([5])
    assert list(toy.actions()) == [(p.SET_PSTATE, -1, [2, 3]), (p.SET_PSTATE, -1, [5])]
    assert toy.plan.value[:2].tolist() == [1, 0]
    assert plan.free_hosts == [4]


def test_actions_are_kept_in_order(toy, cluster, plan):
    plan.kill(cluster.running[0])
    plan.reject(cluster.queue[0])
    plan.call_at(200.0)
    assert [kind for kind, *_ in toy.actions()] == [p.KILL, p.REJECT, p.CALL_AT]
    assert toy.plan.time[2] == 200.0


def test_a_host_that_does_not_exist_is_refused_at_once(plan):
    with pytest.raises(PolicyError, match=r"host 6 does not exist; the platform has hosts 0-5"):
        plan.start(2, [6])


def test_a_host_that_cannot_sleep_is_refused_at_once():
    toy = Toy(2, PolicyConfig())
    with pytest.raises(PolicyError, match="host 1 cannot sleep"):
        Plan(toy.plan, toy.state, toy.facts).sleep([1])


def test_a_plan_without_end_is_refused(plan):
    with pytest.raises(PolicyError, match=r"more than \d+ actions in one plan"):
        for _ in range(10_000):
            plan.call_at(200.0)
    with pytest.raises(PolicyError, match=r"more than \d+ "):
        for _ in range(10_000):
            plan.start(2, [2, 4])


def test_the_example_of_the_documentation_is_a_policy():
    namespace: dict = {}
    exec(DocTestParser().get_examples(Policy.__doc__ or "")[0].source, namespace)
    assert try_policy(namespace["Widest"]) == []
