"""Prices of free hosts: the best hosts by cost and price, against all sets of them, priced in plain Python."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.policies.placement.tree import place_best, place_priced, square_sum, text_cost
from decision.policies.placement.windows import FEATURES, N_FEATURES, fill_worth

TREES = [(3, 3), (2, 2, 2), (3, 3, 1), (1, 3, 3), (2, 2, 2, 1)]


def price(down, left, size, walltime, weights, chosen) -> float:
    """Hops that the hosts of a job are worth to others, feature by feature."""
    known = [seconds for seconds in left if 0 <= seconds < inf]
    mean = sum(known) / len(known) if known else 0.0
    total, width = 0.0, 1
    for level in range(1, len(down)):
        width *= down[level - 1]
        for begin in range(0, len(left), width):
            below = left[begin : begin + width]
            busy = [seconds for seconds in below if seconds >= 0]
            free, took = width - len(busy), len([host for host in chosen if begin <= host < begin + width])
            for taken in range(1, took + 1):
                seen = dict.fromkeys(FEATURES, 0.0)
                seen["left"] = (free - taken) / width
                seen["left_squared"] = seen["left"] ** 2
                seen["last"] = float(taken == free)
                seen["first"] = float(taken == 1 and not busy)
                seen["soon"] = sum(_share(mean, seconds) for seconds in busy) / width
                if walltime < inf:
                    seen["apart"] = sum(_apart(walltime, seconds) for seconds in busy) / width
                    seen["outlasted"] = sum(_outlasts(walltime, seconds) for seconds in busy) / width
                    seen["long_left"] = walltime / (walltime + mean) * seen["left"] if walltime else 0.0
                total += float(np.dot(weights[level - 1], [seen[name] for name in FEATURES]))
    return total


def _share(mean, seconds):
    if seconds == inf:
        return 0.0
    return mean / (mean + seconds) if mean else 1.0


def _apart(walltime, seconds):
    if seconds == inf:
        return 1.0
    return abs(walltime - seconds) / (walltime + seconds) if walltime + seconds else 0.0


def _outlasts(walltime, seconds):
    return _apart(walltime, seconds) if walltime > seconds else 0.0


def on_switches(down, chosen) -> np.ndarray:
    return np.bincount(np.array(sorted(chosen)) // down[0], minlength=int(np.prod(down[1:])))


def placed(down, left, size, walltime, weights) -> list[int]:
    down, left = np.array(down), np.array(left, float)
    switch = (np.arange(len(left)) // down[0]).astype(np.int32)
    taken = np.full(int(np.prod(down[1:])), -1)
    begin, worth = fill_worth(down, switch, left, size, walltime, np.array(weights, float))
    place_priced(down, on_switches(down, np.flatnonzero(left < 0)), size, begin, worth, taken)
    return taken.tolist()


@st.composite
def requests(draw):
    down = draw(st.sampled_from(TREES))
    seconds = st.sampled_from([-1.0, -1.0, -1.0, 0.0, 5.0, 60.0, 3600.0, inf])
    left = draw(st.lists(seconds, min_size=int(np.prod(down)), max_size=int(np.prod(down))))
    left[draw(st.integers(0, len(left) - 1))] = -1.0
    size = draw(st.integers(1, left.count(-1.0)))
    return down, left, size, draw(st.sampled_from([0.0, 1.0, 60.0, 1e6, inf])), draw(st.integers(0, 2**32))


@given(requests())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_no_hosts_have_less_cost_and_price_together(request):
    down, left, size, walltime, seed = request
    weights = np.random.default_rng(seed).normal(0, 3, (len(down) - 1, N_FEATURES))

    def total(chosen):
        squares = square_sum(np.array(down), on_switches(down, chosen))
        return text_cost(len(down), size, squares) + price(down, left, size, walltime, weights, chosen)

    sets = list(combinations(np.flatnonzero(np.array(left) < 0).tolist(), size))
    taken = placed(down, left, size, walltime, weights)
    chosen = next(each for each in sets if on_switches(down, each).tolist() == taken)
    assert total(chosen) == pytest.approx(min(map(total, sets)), abs=1e-6)


@given(requests())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_without_prices_they_are_the_hosts_of_least_cost(request):
    down, left, size, walltime, _ = request
    expected = np.zeros(int(np.prod(down[1:])), np.int64)
    place_best(np.array(down), on_switches(down, np.flatnonzero(np.array(left) < 0)), size, expected)
    assert placed(down, left, size, walltime, np.zeros((len(down) - 1, N_FEATURES))) == expected.tolist()


def test_a_high_price_keeps_an_idle_switch_whole():
    left = [-1.0] * 4 + [-1.0, -1.0, 60.0, 60.0] + [-1.0, -1.0, 60.0, 60.0]
    weights = np.zeros((1, N_FEATURES))
    assert placed((4, 3), left, 3, inf, weights) == [3, 0, 0]
    weights[0, FEATURES.index("first")] = 10.0
    assert placed((4, 3), left, 3, inf, weights) == [0, 2, 1]


def test_a_job_goes_to_neighbours_that_end_with_it_where_their_distance_has_a_price():
    left = [-1.0, -1.0, 60.0, 60.0, -1.0, -1.0, 3600.0, 3600.0]
    weights = np.zeros((1, N_FEATURES))
    weights[0, FEATURES.index("apart")] = 1.0
    assert placed((4, 2), left, 2, 60.0, weights) == [2, 0]
    assert placed((4, 2), left, 2, 3600.0, weights) == [0, 2]
    assert placed((4, 2), left, 2, inf, weights) == [2, 0], "without walltime by the lowest ids"


@pytest.mark.parametrize("size", [1, 4096, 16384])
def test_the_largest_weights_overflow_nothing(size):
    left = np.full(16384, -1.0)
    for sign in (-100.0, 100.0):
        taken = placed((16, 16, 64), left, size, 60.0, np.full((2, N_FEATURES), sign))
        assert sum(taken) == size
        assert min(taken) >= 0
