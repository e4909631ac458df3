"""What hosts cost a job: closed forms against the sums over pairs that define them."""

import numpy as np
import pytest

from decision.model.platform import FatTree, Link
from decision.policies.placement.tree import program_cost, square_sum, text_cost, text_costs

TREES = [(6,), (3, 4), (10, 1), (2, 3, 4), (10, 10, 10), (10, 4, 25), (2, 3, 2, 3), (1, 2, 1, 4)]


def tree(down: tuple[int, ...]) -> FatTree:
    return FatTree(down, (1,) * len(down), (1,) * len(down), (Link(1e9, 0.0),) * len(down))


def some_sets(down: tuple[int, ...], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    hosts = int(np.prod(down))
    return [np.sort(rng.choice(hosts, rng.integers(1, min(hosts, 40) + 1), replace=False)) for _ in range(50)]


def squares_of(down: tuple[int, ...], places: np.ndarray) -> int:
    on_switch = np.bincount(places // down[0], minlength=int(np.prod(down[1:])))
    return int(square_sum(np.array(down), on_switch))


@pytest.mark.parametrize("down", TREES)
def test_the_closed_forms_are_the_sums_over_pairs(down):
    for places in some_sets(down, seed=len(down)):
        size, squares = len(places), squares_of(down, places)
        hops = tree(down).distance(places[:, None], places[None, :])
        assert text_cost(len(down), size, squares) == pytest.approx(hops.sum() / size)
        once = (hops[np.triu_indices(size, 1)] - 1).sum()  # 1, 3, 5, ... for each pair
        assert program_cost(len(down), size, squares) == max(1000 * once // size, 1)


@pytest.mark.parametrize("down", TREES)
def test_many_sets_cost_what_each_does(down):
    sets = [*some_sets(down, seed=1), np.zeros(0, int)]
    begin = np.cumsum([0, *map(len, sets)])
    costs = np.full(len(sets), np.nan)
    text_costs(np.array(down), np.concatenate(sets), begin, costs)
    expected = [text_cost(len(down), len(s), squares_of(down, s)) if len(s) else 0.0 for s in sets]
    assert costs.tolist() == expected


def test_known_costs_on_the_tree_of_the_text():
    down = (10, 10, 10)
    assert text_cost(3, 1, squares_of(down, np.array([7]))) == 0.0
    assert text_cost(3, 10, squares_of(down, np.arange(10))) == 18.0  # 90 pairs in both directions, 2 hops, 10 hosts
    assert text_cost(3, 2, squares_of(down, np.array([0, 10]))) == 4.0  # two switches of a pod
    assert text_cost(3, 2, squares_of(down, np.array([0, 100]))) == 6.0  # two pods


def test_the_program_takes_one_for_nothing_and_rounds_down():
    down = (10, 4, 25)
    assert program_cost(3, 1, squares_of(down, np.array([7]))) == 1
    assert program_cost(3, 3, squares_of(down, np.array([0, 1, 40]))) == 3666  # 1 + 5 + 5 hops over 3 hosts
