"""Composed policies: names, options, and what they refuse."""

import math

import msgspec
import numpy as np
import pytest
from helpers.policy_toys import platform

from decision.model.errors import ConfigError
from decision.policies import ComposedPolicy, find_policy, list_policies
from decision.policies.checks import check_walltime
from decision.policies.options import (
    ALLOCATIONS,
    BACKFILLS,
    ORDER_LINES,
    POWERS,
    Allocation,
    Backfill,
    Order,
    Power,
    composed_names,
    split_name,
)
from decision.policies.traits import traits_of


@pytest.mark.parametrize(
    ("name", "order", "backfill"),
    [
        ("fcfs", Order.FCFS, Backfill.NONE),
        ("sjf", Order.SJF, Backfill.NONE),
        ("easy", Order.FCFS, Backfill.EASY),
        ("conservative", Order.FCFS, Backfill.CONSERVATIVE),
        ("filler", Order.FCFS, Backfill.FIRST_FIT),
        ("first-fit", Order.FCFS, Backfill.FIRST_FIT),
        ("saf+easy", Order.SAF, Backfill.EASY),
        ("wfp3+filler", Order.WFP3, Backfill.FIRST_FIT),
    ],
)
def test_a_preset_is_an_order_and_a_backfilling(name, order, backfill):
    config = find_policy(name).config
    assert (config.order, config.backfill) == (order, backfill)
    assert (config.allocation, config.power) == (Allocation.LOWEST, Power.NEVER)


@pytest.mark.parametrize("name", ["easy+sjf", "easy+easy", "sjf+saf", "sjf+easy+fcfs", "", "+", "EASY"])
def test_other_names_are_no_presets(name):
    assert split_name(name) is None


def test_every_preset_can_be_made_and_is_named_as_it_was_asked_for():
    for name in composed_names():
        expected = name.replace("filler", "first-fit").removeprefix("fcfs+")
        assert find_policy(name).name == expected


def test_options_choose_allocation_and_power():
    policy = find_policy("easy,allocation=best-fit", {"power": "idle-timeout", "idle_timeout": "600"})
    assert policy.config.allocation == Allocation.BEST_FIT
    assert policy.config.power == Power.IDLE_TIMEOUT
    assert policy.config.idle_timeout == 600.0


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("easy,allocation=bestfit", "no allocation 'bestfit'; did you mean best-fit?"),
        ("easy,alocation=random", "no option 'alocation'; did you mean allocation?"),
        ("easy,idle_timeout=60", "idle_timeout does nothing without power=idle-timeout"),
        ("fcfs,max_age=60", "max_age does nothing without order=multifactor"),
        ("easy,power=idle-timeout,idle_timeout=soon", "idle_timeout='soon' must be a number"),
        ("easy,power=keep-awake,keep_awake=1.5", "keep_awake='1.5' must be a whole number"),
        ("easy,power=keep-awake,keep_awake=-1", "keep_awake=-1 must be finite and not negative"),
        ("easy,power=idle-timeout,idle_timeout=nan", "must be finite and not negative"),
        ("easy,verbose", "'verbose' is not an option"),
        ("easy,power=never,power=never", "option power is given twice"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(spec, complaint):
    with pytest.raises(ConfigError) as raised:
        find_policy(spec)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_numbers_have_the_types_that_kernels_were_compiled_for():
    config = find_policy("multifactor,power=keep-awake,keep_awake=2,age_weight=1,max_age=3600").config
    assert {name: type(value) for name, value in config._asdict().items()} == {
        name: type(value) for name, value in ComposedPolicy().config._asdict().items()
    }


@pytest.mark.parametrize("name", ["fcfs", "first-fit", "lcfs", "sqf", "multifactor", "random", "sqf+first-fit"])
def test_rules_that_only_count_hosts_take_jobs_without_walltime(name):
    check_walltime(traits_of(find_policy(name)), "w0!3", math.inf, "jobs.json")


@pytest.mark.parametrize("name", ["easy", "conservative", "sjf", "f1", "wfp3+first-fit", "sqf+easy"])
def test_rules_that_need_walltimes_name_place_and_job(name):
    policy = find_policy(name)
    with pytest.raises(ConfigError, match=r"^jobs.json: job w0!3 has no 'walltime', and policy .* needs one"):
        check_walltime(traits_of(policy), "w0!3", math.inf, "jobs.json")
    check_walltime(traits_of(policy), "w0!3", 60.0, "jobs.json")


def test_reset_takes_the_slowest_hosts_switching_times():
    policy = find_policy("easy,power=idle-timeout")
    policy.reset(platform(4, sleeps=True, wake=20.0, doze=5.0), 7)
    assert (policy.config.wake_time, policy.config.doze_time) == (pytest.approx(20.0), pytest.approx(5.0))
    assert policy.config.seed == 7


def test_where_the_platform_does_not_say_the_option_says_how_long_waking_takes():
    known = platform(2, sleeps=True)
    hosts = tuple(
        msgspec.structs.replace(h, pstates=tuple(msgspec.structs.replace(s, speed=np.nan) for s in h.pstates))
        for h in known.hosts
    )
    policy = find_policy("easy,power=idle-timeout,wake_time=30")
    policy.reset(msgspec.structs.replace(known, hosts=hosts), 0)
    assert (policy.config.wake_time, policy.config.doze_time) == (30.0, 0.0)


def test_the_catalogue_has_a_line_for_each_part():
    lines = list_policies()
    names = {line.name for line in lines}
    assert {*ORDER_LINES, *BACKFILLS, "filler", "ORDER+BACKFILL"} - {"none"} <= names
    assert {f"...,allocation={name}" for name in ALLOCATIONS} <= names
    assert {f"...,power={name}" for name in POWERS} <= names
    assert all(line.summary and "\n" not in line.summary for line in lines)


def test_every_member_of_a_slot_has_a_name():
    for slot, table in ((Order, ORDER_LINES), (Backfill, BACKFILLS), (Allocation, ALLOCATIONS), (Power, POWERS)):
        assert {code for code, _ in table.values()} == set(slot)
