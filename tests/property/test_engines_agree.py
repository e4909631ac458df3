"""The compiled engine does what the reference engine does, whatever the world and the decision process."""

from helpers.engine_compare import converse
from helpers.engine_worlds import World, worlds
from hypothesis import given, settings

AGREE = settings(max_examples=100, deadline=None, derandomize=True)


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


@given(worlds(mischief=True))
@AGREE
def test_engines_refuse_the_same(world: World) -> None:
    assert converse(world) == []
