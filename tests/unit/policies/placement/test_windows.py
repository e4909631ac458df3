"""Windows: the exact one against all ways to place the jobs, and what searches may do."""

from itertools import product

import numpy as np
import pytest

from decision.policies.placement.search import Search, anneal, anneal_along
from decision.policies.placement.windows import (
    DYNAMIC,
    FREE,
    MOST_SUBSETS,
    STATIC,
    groups_of,
    nb_subsets,
    place_by_highs,
    place_exactly,
    place_in_turn,
    worth,
)

TREES = [(12,), (3, 4), (2, 2, 3), (2, 3, 2), (2, 2, 2, 2)]


class Case:
    """Some free hosts of a tree, and jobs for them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.down = np.array(TREES[seed % len(TREES)])
        self.switches, all_hosts = int(np.prod(self.down[1:])), int(np.prod(self.down))
        self.length = int(rng.integers(2, min(all_hosts, 11) + 1))
        hosts = np.sort(rng.choice(all_hosts, self.length, replace=False))
        self.groups = groups_of(self.down, hosts // self.down[0])
        sizes: list[int] = []
        while len(sizes) < 3 and sum(sizes) < self.length:
            sizes.append(int(rng.integers(1, self.length - sum(sizes) + 1)))
        self.sizes = np.array(sizes)
        self.held = np.full((len(sizes), max(sizes)), -1)

    def worth(self, placed: list[np.ndarray]) -> float:
        on = np.zeros(self.switches, np.int64)
        return sum(worth(self.groups, on, entries) for entries in placed)

    def placed(self) -> list[np.ndarray]:
        found = [entries[:size] for entries, size in zip(self.held, self.sizes, strict=True)]
        used = np.concatenate(found)
        assert len(np.unique(used)) == len(used), "no entry is used twice"
        assert (used >= 0).all()
        return found

    def best_static(self) -> float:
        best = -1.0
        for starts in product(range(self.length), repeat=len(self.sizes)):
            placed = [(s + np.arange(n)) % self.length for s, n in zip(starts, self.sizes, strict=True)]
            if len(np.unique(np.concatenate(placed))) == self.sizes.sum():
                best = max(best, self.worth(placed))
        return best


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_window_is_the_best_of_all_with_wrap_around(seed):
    case = Case(seed)
    best = place_exactly(case.groups, case.switches, case.sizes, case.held)
    assert best == pytest.approx(case.best_static())
    assert case.worth(case.placed()) == pytest.approx(best)
    for entries in case.placed():
        assert (entries == (entries[0] + np.arange(len(entries))) % case.length).all()


def test_jobs_of_one_size_are_interchangeable():
    sizes, held = np.full(20, 1), np.zeros((20, 1), np.int64)  # of different sizes they would be 2 ** 20 subsets
    groups = groups_of(np.array([4, 8]), np.arange(32) // 4)
    assert place_exactly(groups, 8, sizes, held) == 20
    assert held[:, 0].tolist() == list(range(20))


def test_a_program_for_highs_finds_what_the_subsets_find():
    pytest.importorskip("highspy")
    for seed in range(15):
        case = Case(seed)
        starts = np.cumsum(case.sizes) - case.sizes
        best = place_by_highs(case.groups, case.switches, case.sizes, starts).found
        assert best == pytest.approx(case.best_static())
        for job, size in enumerate(case.sizes):
            case.held[job, :size] = (starts[job] + np.arange(size)) % case.length
        assert case.worth(case.placed()) == pytest.approx(best)


@pytest.mark.parametrize("jobs", [4, 8, 12])
def test_both_exact_solvers_agree_on_windows_of_the_paper(jobs):
    pytest.importorskip("highspy")
    rng, down = np.random.default_rng(jobs), np.array([10, 4, 25])
    sizes = rng.integers(2, 21, jobs)
    free = np.sort(rng.choice(1000, sizes.sum() + 10, replace=False))
    groups, held = groups_of(down, free // 10), np.zeros((jobs, 20), np.int64)
    by_subsets = place_exactly(groups, 100, sizes, held)
    placed = place_by_highs(groups, 100, sizes, np.cumsum(sizes) - sizes)
    assert placed == pytest.approx((by_subsets, by_subsets))


def test_highs_ends_in_time_with_what_was_found_and_a_bound():
    pytest.importorskip("highspy")
    sizes, groups = np.arange(2, 32), np.repeat(np.arange(100), 10)[np.newaxis]
    starts = np.cumsum(sizes) - sizes
    placed = place_by_highs(groups, 100, sizes, starts, limit=0.0)
    taken = [(start + np.arange(size)) % 1000 for start, size in zip(starts, sizes, strict=True)]
    assert len(np.unique(np.concatenate(taken))) == sizes.sum()
    on_switch = [np.unique(hosts // 10, return_counts=True)[1] for hosts in taken]
    worth = sum(np.square(on).sum() / size for on, size in zip(on_switch, sizes, strict=True))
    assert placed.found == pytest.approx(worth)
    assert placed.bound > placed.found


def test_subsets_of_equal_jobs_are_counted_once():
    assert [nb_subsets(np.array(sizes)) for sizes in ([5], [5, 5], [5, 3, 5])] == [2, 3, 6]
    assert nb_subsets(np.arange(2, 14)) == MOST_SUBSETS
    assert nb_subsets(np.arange(2, 60)) == MOST_SUBSETS + 1


def search_for(strategy: int, undo: bool = True, steps: int = 60) -> Search:
    return Search(strategy, steps, undo, 0, 2000.0, 2500.0, 2.5)


@pytest.mark.parametrize("strategy", [STATIC, DYNAMIC, FREE])
@pytest.mark.parametrize("undo", [True, False])
def test_a_search_gives_the_best_window_that_it_has_seen(strategy, undo):
    for seed in range(20):
        case = Case(seed)
        place_in_turn(case.down, case.groups, case.sizes, strategy, case.held)
        first = case.worth(case.placed())
        best = anneal(
            case.down, case.groups, case.switches, case.sizes, search_for(strategy, undo), np.uint64(seed), case.held
        )
        assert case.worth(case.placed()) == pytest.approx(best)
        assert best >= first - 1e-9
        if strategy == STATIC:
            assert best <= case.best_static() + 1e-9


def test_with_enough_steps_annealing_finds_the_best_static_window():
    for seed in range(20):
        case = Case(seed)
        found = anneal(
            case.down, case.groups, case.switches, case.sizes, search_for(STATIC, steps=3000), np.uint64(1), case.held
        )
        assert found == pytest.approx(case.best_static())


def test_without_steps_a_search_places_jobs_in_turn():
    case = Case(3)
    anneal(case.down, case.groups, case.switches, case.sizes, search_for(DYNAMIC, steps=0), np.uint64(1), case.held)
    assert np.concatenate(case.placed()).tolist() == list(range(case.sizes.sum()))


@pytest.mark.parametrize(("temperature", "same"), [(1e15, True), (1e-15, False)])
def test_where_it_is_hot_enough_no_move_is_rejected(temperature, same):
    """Then a search that undoes what it rejects goes where the published walk goes; on any hosts they move alike."""
    different = 0
    for seed in range(40):
        found = []
        for undo in (True, False):
            case, along = Case(seed), np.zeros(30)
            search = Search(FREE, 30, undo, 0, 2000.0, temperature, temperature)
            anneal_along(case.down, case.groups, case.switches, case.sizes, search, np.uint64(seed), case.held, along)
            found.append((along.tolist(), case.held.tolist()))
        different += found[0] != found[1]
    assert (different == 0) == same


def test_undoing_rejected_moves_is_better_than_the_published_walk():
    rng = np.random.default_rng(0)
    down, sizes = np.array([10, 4, 25]), np.array([12, 25, 31, 40])
    undone, walked = [], []
    for seed in range(20):
        groups = groups_of(down, np.sort(rng.choice(1000, 180, replace=False)) // 10)
        held = np.zeros((4, 40), np.int64)
        for undo, found in ((True, undone), (False, walked)):
            found.append(anneal(down, groups, 100, sizes, search_for(DYNAMIC, undo, 500), np.uint64(seed), held))
    assert np.mean(undone) > 1.02 * np.mean(walked)
