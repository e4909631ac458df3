"""What is lowered without numba's copies and counts computes the same, and frees what it takes."""

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from decision.compiling.bundle import F8, Bundle, I8x2
from decision.compiling.jit import kernel


class Held(Bundle):
    row: F8
    cells: I8x2


@kernel
def move(row, table, small, i, j):
    """Numbers from array to array, by positive and negative indices of several types."""
    table[i, j] = row[i] + 0.75  # a float into an array of integers
    row[-1] = table[-1, j]
    small[i] = row[i] > 1.0
    row[small[0]] = table[np.uint8(1), np.int32(-2)]
    return row[i] * small[-1] + table[0][j]


@kernel
def mixed(held, count):
    """A variable that is an array of a bundle, then one of its own, then a part of either."""
    kept = held.row
    total = 0.0
    for k in range(count):
        kept = np.full(3, 1.0 * k) if k % 2 == 0 else held.row[1:]
        total += kept[0] + held.cells[0, 1]
    return kept + 1.0, total  # a bundle's own array cannot be returned to Python


def arrays():
    return np.array([0.5, 2.0, 4.0]), np.arange(6).reshape(2, 3), np.zeros(2, np.int32)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (1, 2), (-1, -1), (-2, 1)])
def test_a_number_is_read_and_written_where_python_would(i, j):
    compiled, plain = arrays(), arrays()
    assert move(*compiled, i, j) == move.py_func(*plain, i, j)
    for one, other in zip(compiled, plain, strict=True):
        assert np.array_equal(one, other)


def test_an_array_lives_as_long_as_somebody_holds_it_and_no_longer():
    row, table, _ = arrays()
    held = Held(row=row, cells=table)
    mixed(held, 1)  # numba's memory is there
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for count in (1, 2, 5):
        kept, total = mixed(held, count)
        expected, sum_ = mixed.py_func(held, count)
        assert (kept.tolist(), total) == (expected.tolist(), sum_)
    del kept
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert row.tolist() == [0.5, 2.0, 4.0]
