"""The compiled engine does what the reference engine does, whatever the world and the decision process.

`DECISION_CAMPAIGN` sets how many worlds of each kind are tried.
"""

import os

from helpers.cases import by_day
from helpers.engine_compare import converse
from helpers.engine_worlds import World, worlds
from hypothesis import given, settings

CASES = int(os.environ.get("DECISION_CAMPAIGN", by_day(50, of=100)))
AGREE = settings(max_examples=CASES, deadline=None, derandomize=True)


@given(worlds(energy=False))
@AGREE
def test_engines_agree_without_energy(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True))
@AGREE
def test_engines_agree_with_energy(world: World) -> None:
    assert converse(world) == []


@given(worlds(links=True))
@AGREE
def test_engines_agree_where_messages_take_time(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True, links=True))
@AGREE
def test_engines_agree_with_energy_where_messages_take_time(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True, network=True))
@AGREE
def test_engines_agree_where_jobs_communicate(world: World) -> None:
    assert converse(world) == []


@given(worlds(links=True, network=True))
@AGREE
def test_engines_agree_where_jobs_communicate_and_messages_take_time(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True, links=True, network=True))
@AGREE
def test_engines_agree_with_energy_where_jobs_communicate_and_messages_take_time(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True, sharing=True))
@AGREE
def test_engines_agree_where_jobs_share_hosts(world: World) -> None:
    assert converse(world) == []


@given(worlds(energy=True, links=True, network=True, sharing=True))
@AGREE
def test_engines_agree_where_jobs_share_hosts_and_links_and_messages_take_time(world: World) -> None:
    assert converse(world) == []


@given(worlds(mischief=True))
@AGREE
def test_engines_refuse_the_same(world: World) -> None:
    assert converse(world) == []
