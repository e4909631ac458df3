"""Bounds from prices of hosts: above all windows on any hosts, and below no search."""

from itertools import combinations

import numpy as np
import pytest

from decision.policies.placement.search import ROUNDS, Search, bound_worth, gap, search_with_bound
from decision.policies.placement.tree import square_sum, text_cost
from decision.policies.placement.windows import FREE, groups_of, worth

TREES = [(10,), (3, 4), (2, 2, 3), (2, 3, 2), (2, 2, 2, 2)]
SEARCH = Search(FREE, 200, True, 0, 2000.0, 2500.0, 2.5)


class Case:
    """Up to ten free hosts of a small tree, and up to three jobs for them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.down = np.array(TREES[seed % len(TREES)])
        self.switches, hosts = int(np.prod(self.down[1:])), int(np.prod(self.down))
        self.length = int(rng.integers(4, min(hosts, 10) + 1))
        free = np.sort(rng.choice(hosts, self.length, replace=False))
        self.groups = groups_of(self.down, free // self.down[0])
        sizes: list[int] = []
        while len(sizes) < 3 and sum(sizes) + 2 <= self.length:
            sizes.append(int(rng.integers(2, self.length - sum(sizes) + 1)))
        self.sizes = np.array(sizes)
        self.problem = self.down, self.groups, self.switches, self.sizes

    def best(self, left: tuple[int, ...], job: int = 0) -> float:
        """The most that the jobs from one on are worth on the entries that are left, over all ways."""
        if job == len(self.sizes):
            return 0.0
        on = np.zeros(self.switches, np.int64)
        return max(
            worth(self.groups, on, np.array(own))
            + self.best(tuple(entry for entry in left if entry not in own), job + 1)
            for own in combinations(left, int(self.sizes[job]))
        )


@pytest.mark.parametrize("seed", range(40))
def test_the_best_window_lies_between_what_is_found_and_the_bound(seed):
    case = Case(seed)
    best, held = case.best(tuple(range(case.length))), np.zeros((len(case.sizes), case.length), np.int64)
    found, bound = search_with_bound(*case.problem, SEARCH, np.uint64(seed), held)
    assert found <= best + 1e-9
    assert best <= bound + 1e-9
    placed = [held[job, :size] for job, size in enumerate(case.sizes)]
    assert len(np.unique(np.concatenate(placed))) == case.sizes.sum()
    on = np.zeros(case.switches, np.int64)
    assert sum(worth(case.groups, on, entries) for entries in placed) == pytest.approx(found)
    first = bound_worth(*case.problem, 0.0, 1)
    assert best - 1e-9 <= bound_worth(*case.problem, best, ROUNDS) <= first + 1e-9


def test_a_window_whose_jobs_do_not_meet_is_seen_to_be_best_at_once():
    groups = groups_of(np.array([4, 2, 2]), np.arange(16) // 4)
    held = np.zeros((3, 4), np.int64)
    found, bound = search_with_bound(np.array([4, 2, 2]), groups, 4, np.array([4, 3, 4]), SEARCH, np.uint64(0), held)
    assert found == bound == 2 * (4 + 3 + 4)


def test_prices_show_that_two_jobs_cannot_have_one_switch():
    # three hosts are free on one switch, two on another one, and one on each of three; each switch is a pod
    down, hosts = np.array([4, 1, 5]), np.array([0, 0, 0, 1, 1, 2, 3, 4])
    groups, sizes, held = groups_of(down, hosts), np.array([3, 3]), np.zeros((2, 3), np.int64)
    assert bound_worth(down, groups, 5, sizes, 0.0, 1) == pytest.approx(2 * 2 * 9 / 3)
    found, bound = search_with_bound(down, groups, 5, sizes, SEARCH, np.uint64(0), held)
    assert found == pytest.approx(2 * (9 / 3 + 5 / 3))
    assert bound == pytest.approx(found, rel=1e-3)


def test_the_gap_is_a_share_of_the_hops_of_the_bound():
    down, sizes = (4, 2, 3), np.array([5, 3])
    hosts = [np.array([4, 1, 0, 0, 0, 0]), np.array([0, 0, 3, 0, 0, 0])]
    squares = [square_sum(np.array(down), on) for on in hosts]
    hops = sum(text_cost(3, size, square) for size, square in zip(sizes, squares, strict=True))
    found = sum(square / size for size, square in zip(sizes, squares, strict=True))
    assert gap(3, sizes, found, found) == 0
    assert gap(3, sizes, found - 1.5, found) == pytest.approx((hops + 3) / hops - 1)
