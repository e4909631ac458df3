"""Lists that kernels keep in order."""

import numpy as np

from decision.compiling.small_kernels import insert_in_order


def test_what_is_inserted_stands_in_order_and_behind_its_equals():
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 10, 50).astype(float)
    keys, others = np.full(60, -1.0), np.full(60, -1, np.int32)
    for length, key in enumerate(drawn):
        insert_in_order(keys, others, length, key, length)
    assert np.array_equal(keys[:50], np.sort(drawn))
    assert np.array_equal(others[:50], np.argsort(drawn, kind="stable"))
    assert (keys[50:] == -1).all(), "no more is written than there is"
