"""Bundles: arrays that Python and kernels share."""

from typing import Annotated, Any

import numpy as np
import pytest
from numba import types

from decision.compiling.bundle import F8, Bundle, I4x2
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
