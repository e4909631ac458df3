"""Bundles: arrays that Python and kernels share."""

from typing import Annotated, Any

import numpy as np
import pytest
from numba import types

from decision.compiling.bundle import F8, Bundle, Float, I4x2, Int, begin_again
from decision.compiling.jit import kernel
from decision.compiling.whole_program import numba_type


class Table(Bundle):
    weights: F8
    cells: I4x2


@kernel
def _weigh(table):
    table.weights[0] = table.cells[1, 2] * 0.5


def test_a_kernel_reads_and_writes_the_arrays_of_a_bundle():
    table = Table(weights=np.zeros(1), cells=np.arange(6, dtype=np.int32).reshape(2, 3))
    _weigh(table)
    assert table.weights[0] == 2.5


def test_a_field_says_its_type_whatever_numpys_own_annotations_look_like():
    assert numba_type(F8) == types.Array(types.float64, 1, "C")
    assert numba_type(Annotated[Any, I4x2.__metadata__[0]]) == types.Array(types.int32, 2, "C")


@pytest.mark.parametrize("weights", [np.zeros(1, np.float32), np.zeros((1, 1)), np.zeros(4)[::2]])
def test_an_array_of_another_kind_is_refused(weights):
    with pytest.raises(TypeError, match=r"Table\.weights: a float.* array of . dimensions, not"):
        Table(weights=weights, cells=np.zeros((1, 1), np.int32))


@pytest.mark.parametrize("name", ["table", "address", "copy"])
def test_a_field_named_as_what_each_bundle_has_is_refused(name):
    with pytest.raises(TypeError, match=rf"Mine\.{name}: each bundle has an attribute of that name"):
        type("Mine", (Bundle,), {"__annotations__": {name: F8}})


@kernel
def _heaviest(table, whole):
    weights = table.weights
    for _ in range(2):
        weights = weights if whole else weights[1:]
    return 1, weights


def test_a_bundles_array_does_not_reach_python_where_nobody_would_keep_it():
    with pytest.raises(TypeError, match="_heaviest: returns an array of a bundle"):
        _heaviest(Table(weights=np.zeros(3), cells=np.zeros((1, 1), np.int32)), True)


class Clock(Bundle):
    now: Float  # seconds
    nb_jobs: Int
    head: Int = -1
    times: F8


@kernel
def _count(clock):
    clock.now += 0.5
    clock.nb_jobs += 2
    if clock.head < 0:
        clock.head = clock.nb_jobs
    clock.times[clock.nb_jobs] = clock.now
    return clock.nb_jobs, clock.now


def test_numbers_begin_as_declared_and_are_the_same_to_kernels_and_python():
    clock = Clock(times=np.zeros(8), now=1)
    assert (clock.now, clock.nb_jobs, clock.head) == (1.0, 0, -1)
    assert type(clock.now) is float
    assert _count(clock) == (2, 1.5)
    clock.nb_jobs += 1
    assert _count(clock) == (5, 2.0)
    assert (clock.now, clock.nb_jobs, clock.head) == (2.0, 5, 2)
    assert clock.times.tolist() == [0, 0, 1.5, 0, 0, 2.0, 0, 0]


def test_a_bundle_with_other_fields_shares_the_numbers_that_it_keeps():
    clock = Clock(times=np.zeros(8))
    other = clock._replace(times=np.zeros(8))
    _count(other)
    assert (clock.now, clock.nb_jobs, clock.head) == (0.5, 2, 2)
    clock.now = 9.0
    assert other.now == 9.0


def test_a_bundle_with_another_number_has_numbers_of_its_own():
    clock = Clock(times=np.zeros(8), now=3.0)
    other = clock._replace(head=7)
    _count(other)
    assert (clock.now, clock.nb_jobs, clock.head, other.now, other.head) == (3.0, 0, -1, 3.5, 7)
    assert other.times is clock.times


def test_a_copy_has_numbers_of_its_own():
    clock = Clock(times=np.zeros(8))
    copied = clock.copy()
    _count(clock)
    assert (copied.now, copied.nb_jobs, copied.head) == (0.0, 0, -1)


@kernel
def _forget(clock):
    begin_again(clock)


def test_a_kernel_lets_all_numbers_begin_again():
    clock = Clock(times=np.ones(8), now=4.0, head=3)
    _forget(clock)
    assert (clock.now, clock.nb_jobs, clock.head, clock.times.sum()) == (0.0, 0, -1, 8.0)


class Alarm(Clock):
    head: Int = 3
    rings: Int = 1


def test_a_bundle_that_extends_another_has_its_numbers():
    alarm = Alarm(times=np.zeros(8), nb_jobs=1)
    assert _count(alarm) == (3, 0.5)
    assert (alarm.head, alarm.rings) == (3, 1)


def test_a_number_of_another_kind_is_refused():
    with pytest.raises(TypeError, match=r"Clock\.nb_jobs: a float64 array of 0 dimensions, not int64 number"):
        Clock(times=np.zeros(8), nb_jobs=Clock(times=np.zeros(8)).arrays()["now"])
    with pytest.raises(TypeError, match=r"Clock\.times: 3, not float64 array of 1 dimensions"):
        Clock(times=3)


class Ends(Bundle):
    first: Int = -1


class Pays(Bundle):
    price: Float = 1.25


class Both(Ends, Pays):
    count: Int


class All(Both):
    price: Float = 2.0


def test_numbers_of_several_bases_begin_with_what_the_nearest_base_says():
    found = [(bundle.first, bundle.price, bundle.count) for bundle in (Both(), All())]
    assert found == [(-1, 1.25, 0), (-1, 2.0, 0)]
