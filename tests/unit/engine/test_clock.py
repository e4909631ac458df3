"""Times as Batsim's messages have them."""

import math
import random

from decision.engine.kernels.clock import six_decimals


def test_six_decimals_are_those_of_printf_also_halfway():
    rng = random.Random(1)
    seconds = [rng.randrange(10**9, 10**16) / 1e6 + half for half in (5e-7, 0.0) for _ in range(2000)]
    seconds += [1070.1500005, 0.5e-6, 1.5e-6, 2.0**-21, 3 * 2.0**-21, 1e9 + 2.0**-21, 1e15]
    assert [six_decimals(each) for each in seconds] == [float(f"{each:.6f}") for each in seconds]
    assert six_decimals(math.inf) == math.inf
