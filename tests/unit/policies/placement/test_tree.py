"""The best free hosts of a tree, against all sets of them; and Slurm's, worked out by hand."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.policies.placement.tree import place_as_slurm, place_best, square_sum

TREES = [(12,), (3, 4), (2, 2, 3), (3, 2, 2), (1, 3, 4), (2, 2, 2, 2), (1, 2, 3, 2)]


def placed(place, down, free, size) -> list[int]:
    taken = np.full(len(free), -1)
    place(np.array(down), np.array(free), size, taken)
    return taken.tolist()


def free_of(down, hosts) -> np.ndarray:
    return np.bincount(np.array(sorted(hosts)) // down[0], minlength=int(np.prod(down[1:])))


@st.composite
def requests(draw):
    down = draw(st.sampled_from(TREES))
    hosts = draw(st.sets(st.integers(0, int(np.prod(down)) - 1), min_size=1, max_size=12))
    return down, hosts, draw(st.integers(1, len(hosts)))


@given(requests())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_hosts_are_the_first_in_order_of_all_that_cost_least(request):
    down, hosts, size = request
    sets = [free_of(down, chosen) for chosen in combinations(sorted(hosts), size)]  # by the lowest places
    squares = [square_sum(np.array(down), on_switch) for on_switch in sets]
    expected = sets[int(np.argmax(squares))]
    assert placed(place_best, down, free_of(down, hosts), size) == expected.tolist()


@given(requests())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_slurm_takes_free_hosts_of_the_lowest_switch_that_has_enough(request):
    down, hosts, size = request
    free = free_of(down, hosts)
    taken = np.array(placed(place_as_slurm, down, free, size))
    assert taken.sum() == size
    assert (taken <= free).all()
    width = 1
    for level in range(1, len(down)):
        below = free.reshape(-1, width).sum(axis=1)
        if (below >= size).any():
            (used,) = np.flatnonzero(taken.reshape(-1, width).sum(axis=1))
            assert below[used] == below[below >= size].min()
            return
        width *= down[level]


@pytest.mark.parametrize(
    ("free", "size", "best", "slurm"),
    [
        ([3, 2, 4, 4], 2, [2, 0, 0, 0], [0, 2, 0, 0]),  # one switch is enough: the first, or the fullest
        ([3, 2, 4, 4], 5, [0, 0, 4, 1], [3, 2, 0, 0]),  # one pod is enough: 4 + 1 hosts are nearer than 3 + 2
        ([1, 1, 4, 4], 5, [0, 0, 4, 1], [0, 0, 4, 1]),
        ([3, 1, 4, 1], 6, [1, 0, 4, 1], [2, 0, 4, 0]),  # five of a pod and one, or 4 and the next switch that fits
        ([4, 1, 1, 4], 8, [4, 0, 0, 4], [4, 0, 0, 4]),
        ([4, 0, 1, 4], 7, [4, 0, 0, 3], [4, 0, 0, 3]),
    ],
)
def test_known_choices_on_two_pods_of_two_switches_of_four(free, size, best, slurm):
    assert placed(place_best, (4, 2, 2), free, size) == best
    assert placed(place_as_slurm, (4, 2, 2), free, size) == slurm


def test_a_job_on_all_free_hosts_gets_them():
    free = [0, 3, 1, 2]
    assert placed(place_best, (3, 2, 2), free, 6) == free
    assert placed(place_as_slurm, (3, 2, 2), free, 6) == free
