"""Impossible plans are refused in one line that names time, job and hosts."""

import pytest
from helpers.policy_toys import Toy

from decision.model.errors import PolicyError
from decision.policies import Plan, check_plan
from decision.policies.options import PolicyConfig
from decision.policies.prepared import first_fault
from decision.state import transitions
from decision.state.plan_arrays import SET_PSTATE, START, add, add_interval, clear

NAMES = [f"w0!{i}" for i in range(10)]


@pytest.fixture
def toy():
    """At t=3600 s on 8 hosts: w0!0 runs on 0-1, w0!1 is over, w0!2 (3 hosts) and w0!3 (3 hosts) wait."""
    toy = Toy(8, PolicyConfig(), sleeps=True)
    toy.submit(2, 1e4)
    toy.submit(1, 1e4)
    toy.decide()
    toy.carry_out()
    toy.end(1)
    toy.state.now = 3600.0
    toy.submit(3, 100.0)
    toy.submit(3, 100.0)
    clear(toy.plan, toy.state)
    return toy


def complaint(toy, *actions) -> str:
    plan = Plan(toy.plan, toy.state, toy.facts)
    with pytest.raises(PolicyError) as raised:
        for action in actions:
            action(plan)
        check_plan(toy.state, toy.facts, toy.plan, NAMES)
    assert str(raised.value).startswith("t=3600 s: ")
    return str(raised.value).removeprefix("t=3600 s: ")


def test_a_possible_plan_passes(toy):
    plan = Plan(toy.plan, toy.state, toy.facts)
    plan.start(2, [7, 3, 5])
    plan.start(3)
    plan.kill(0)
    plan.call_at(3601.0)
    check_plan(toy.state, toy.facts, toy.plan, NAMES)
    assert tuple(first_fault(toy.state, toy.facts, toy.plan)) == (-1, 0, -1)
    assert toy.starts() == [(2, [3, 5, 7]), (3, [2, 4, 6])]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda p: p.start(2, [2, 3]), "w0!2 needs 3 hosts, 2 given (2-3)"),
        (lambda p: p.start(2, []), "w0!2 needs 3 hosts, 0 given"),
        (lambda p: p.start(2, [3, 4, 3]), "w0!2 cannot start on hosts 3-4: host 3 is given twice"),
        (lambda p: p.start(2, [0, 2, 3]), "w0!2 cannot start on hosts 0 2-3: host 0 computes w0!0"),
        (lambda p: p.start(0, [2, 3]), "w0!0 cannot start: it is running"),
        (lambda p: p.start(1, [2]), "w0!1 cannot start: it is over"),
        (lambda p: p.start(7, [2]), "there is no job number 7; 4 were submitted"),
        (lambda p: p.start(-1, [2]), "there is no job number -1; 4 were submitted"),
        (lambda p: p.reject(0), "w0!0 cannot be rejected: it is running"),
        (lambda p: p.kill(2), "w0!2 cannot be killed: it is waiting"),
        (lambda p: p.kill(1), "w0!1 cannot be killed: it is over"),
        (lambda p: p.call_at(3600.0), "asks to be called at t=3600 s, which is past"),
        (lambda p: p.call_at(float("nan")), "asks to be called at t=nan s, which is not a time"),
        (lambda p: p.set_pstate([4], 9), "hosts 4 cannot go to pstate 9: host 4 has no such pstate"),
        (lambda p: p.set_pstate([4], 2), "hosts 4 cannot go to pstate 2: host 4 has no such pstate, or it only models"),
        (lambda p: p.sleep([1]), "hosts 1 cannot go to pstate 1: host 1 computes w0!0"),
    ],
)
def test_an_impossible_action_is_named(toy, action, expected):
    assert complaint(toy, action).startswith(expected)


def test_actions_of_one_plan_may_not_contradict_each_other(toy):
    assert complaint(toy, lambda p: (p.start(2), p.start(2))) == "w0!2 is named by two actions of one plan"


def test_hosts_are_given_once_in_a_plan(toy):
    taken = complaint(toy, lambda p: (p.start(2, [2, 3, 4]), p.start(3, [4, 5, 6])))
    assert taken == "w0!3 cannot start on hosts 4-6: host 4 is taken by an earlier action of the plan"


def test_hosts_put_to_sleep_cannot_be_given_to_a_job(toy):
    taken = complaint(toy, lambda p: (p.sleep([4]), p.start(2, [4, 5, 6])))
    assert taken == "w0!2 cannot start on hosts 4-6: host 4 is taken by an earlier action of the plan"


@pytest.mark.parametrize(
    ("happens", "what"),
    [
        (lambda t: transitions.leave(t.state, t.facts, 4), "unavailable"),
        (lambda t: transitions.begin_switch(t.state, t.facts, 4, 2, False), "switching off"),
        (lambda t: transitions.end_switch(t.state, t.facts, 4, 1, False), "sleeping"),
        (lambda t: transitions.begin_switch(t.state, t.facts, 4, 3, True), "switching on"),
    ],
)
def test_a_host_that_cannot_compute_is_named_with_what_it_does(toy, happens, what):
    happens(toy)
    clear(toy.plan, toy.state)
    message = complaint(toy, lambda p: p.start(2, [4, 5, 6]))
    assert message == f"w0!2 cannot start on hosts 4-6: host 4 is {what}"


def test_a_sleeping_host_can_be_woken_once(toy):
    transitions.end_switch(toy.state, toy.facts, 4, 1, False)
    clear(toy.plan, toy.state)
    Plan(toy.plan, toy.state, toy.facts).wake([4])
    check_plan(toy.state, toy.facts, toy.plan, NAMES)
    assert complaint(toy, lambda p: p.wake([4])).endswith("host 4 is taken by an earlier action of the plan")


def test_a_plan_written_by_hand_is_checked_too(toy):
    action = add(toy.plan, START, 2)
    add_interval(toy.plan, action, 6, 8)
    assert complaint(toy) == "w0!2 cannot start on hosts 6-8: there is no host 8, the last one is 7"
    clear(toy.plan, toy.state)
    add(toy.plan, SET_PSTATE, -1)
    toy.plan.value[0] = 1
    assert complaint(toy) == "pstate 1 is set for no hosts"
