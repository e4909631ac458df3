"""Where removed jobs go back: the best start against all of them, what a network sees, and convolutions by hand."""

import numpy as np
import pytest

from decision.policies.placement.search import (
    AT_BEST,
    AT_RANDOM,
    BY_NETWORK,
    SEEN,
    Search,
    StartRule,
    anneal,
    choose_start,
    logits,
    see_entries,
    take_from,
)
from decision.policies.placement.windows import DYNAMIC, groups_of, worth

DOWN = np.array([4, 2, 3])
SIGHT = np.zeros(5 * SEEN, np.float32)


def sequence(*hosts: int) -> np.ndarray:
    return groups_of(DOWN, np.array(hosts) // 4)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_start_costs_the_job_least_of_all_starts(seed):
    rng = np.random.default_rng(seed)
    hosts = np.sort(rng.choice(24, 16, replace=False))
    groups, taken = sequence(*hosts), rng.random(16) < 0.3
    left = int((~taken).sum())
    size, first = int(rng.integers(1, left + 1)), int(rng.choice([0, 3]))
    values = []
    for start in range(min(first, left) if first else left):
        entries = np.zeros(size, np.int64)
        take_from(taken.copy(), start, entries)
        values.append(worth(groups, np.zeros(6, np.int64), entries))
    found = choose_start(AT_BEST, DOWN, groups, taken, size, 0, first, 0.5, SIGHT)
    assert found == int(np.argmax(values))


def test_a_network_sees_switch_pod_presence_and_both_numbers_of_hosts():
    left, seen = np.array([0, 2, 3]), np.full(5 * 4, 9, np.float32)
    assert see_entries(DOWN, sequence(0, 5, 9, 23), left, 20, 10, seen) == 3
    assert seen.reshape(5, 4).tolist() == pytest.approx(
        np.array([[0, 2 / 5, 1, 0], [0, 1 / 2, 1, 0], [1, 1, 1, 0], [0.5, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0]])
    )


def test_a_network_is_shown_the_first_entries_only():
    seen = np.zeros(5 * 2, np.float32)
    assert see_entries(DOWN, sequence(0, 5, 9), np.arange(3), 1, 0, seen) == 2


def test_taking_goes_on_from_the_last_entry_to_the_first():
    taken, entries = np.array([False, True, False, False, True]), np.zeros(3, np.int64)
    take_from(taken, 2, entries)
    assert entries.tolist() == [3, 0, 2]
    assert taken.all()
    last = np.array([False, False, True, False, False])
    take_from(last, 2, entries)
    assert (entries.tolist(), last.tolist()) == ([3, 4, 0], [True, False, True, True, True])


def test_layers_are_dense_or_convolutions_and_tanh_follows_where_it_is_said():
    dense = np.array([1, 10, 2, 20, 0.5, -0.5], np.float32)  # (inputs, outputs), then biases
    twice = StartRule(BY_NETWORK, np.array([[2, 2, 0, 0, 1]]), dense)
    assert logits(twice, np.array([1, 0.1], np.float32), 1) == pytest.approx(np.tanh([1 + 0.2 + 0.5, 12 - 0.5]))
    # 2 of 3 features of 4 entries, the first one is left out; (outputs, inputs, width) and stride 2
    slide = StartRule(BY_NETWORK, np.array([[2, 1, 2, 2, 0]]), np.array([1, 2, 3, 4, 100], np.float32))
    state = np.array([9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8], np.float32)
    found = logits(slide, state, 4)
    assert found.tolist() == [100 + 1 + 4 + 15 + 24, 100 + 3 + 8 + 21 + 32]


def test_a_network_draws_among_the_entries_that_there_are():
    network = StartRule(BY_NETWORK, np.array([[500, SEEN, 0, 0, 0]]), np.zeros(501 * SEEN, np.float32))
    network.weights[-SEEN + 1] = 30.0  # the second start is far the best
    groups, taken = sequence(0, 1, 2, 3), np.zeros(4, np.bool_)
    shares = np.linspace(0.01, 0.999, 50)
    assert {choose_start(network, DOWN, groups, taken, 2, 0, 0, share, SIGHT) for share in shares} == {1}
    network.weights[:] = 0.0
    drawn = [choose_start(network, DOWN, groups, taken, 2, 0, 0, share, SIGHT) for share in shares]
    assert set(drawn) == {0, 1, 2, 3}
    assert drawn == sorted(drawn)


def test_best_starts_find_a_window_as_good_as_random_ones_in_a_tenth_of_the_moves():
    rng, best, at_random = np.random.default_rng(0), 0.0, 0.0
    down = np.array([10, 4, 25])
    for seed in range(20):
        hosts = np.sort(rng.choice(1000, 180, replace=False))
        groups, sizes = groups_of(down, hosts // 10), rng.integers(2, 41, 4)
        held = np.zeros((4, 40), np.int64)
        for steps, repair in ((60, AT_BEST), (600, AT_RANDOM)):
            search = Search(DYNAMIC, steps, True, 0, 2000.0, 2500.0, 2.5, repair)
            found = anneal(down, groups, 100, sizes, search, np.uint64(seed), held)
            best, at_random = best + found * (steps == 60), at_random + found * (steps == 600)
    assert best > at_random
