"""Placement on fat-trees: one job, a window exactly, and moves of a search."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decision.policies.placement.search import AT_RANDOM, BY_NETWORK, SEEN, Search, StartRule, anneal
from decision.policies.placement.tree import place_best
from decision.policies.placement.windows import DYNAMIC, groups_of, place_exactly

DOWN = np.array([10, 4, 25])  # of the published program
FIRST, WINDOWS, REPEAT = 40, 50, 7  # the first windows find too much free


class _Window(NamedTuple):
    hosts: np.ndarray  # ids of the free ones
    sizes: np.ndarray  # of the jobs


def paper_windows(seed: int = 0) -> list[_Window]:
    """Windows like the paper's: some 160 of 1,000 hosts free, as jobs of 2 to 40 hosts in a row left them."""
    rng, windows = np.random.default_rng(seed), []
    busy = np.zeros(1000, np.int64)  # periods that a host is still busy
    while len(windows) < FIRST + WINDOWS:
        busy = np.maximum(busy - 1, 0)
        hosts, sizes = np.flatnonzero(busy == 0), rng.integers(2, 41, rng.integers(1, 6))
        sizes = sizes[np.cumsum(sizes) <= len(hosts)]
        if len(sizes) == 0:
            continue
        windows.append(_Window(hosts, sizes))
        for taken in np.split(hosts[: sizes.sum()], np.cumsum(sizes)[:-1]):
            busy[taken] = rng.integers(1, 31)
    return windows[FIRST:]


def place_tree(swf: Path | None) -> list[float]:
    """Microseconds to find the best hosts for a job of the paper's windows."""
    cases = [(np.bincount(w.hosts // 10, minlength=100), int(size)) for w in paper_windows() for size in w.sizes]
    return _seconds_each(lambda case: place_best(DOWN, *case, np.zeros(100, np.int64)), cases, 1e6)


def place_large_tree(swf: Path | None) -> list[float]:
    """Milliseconds for a job on 2 to 64 of 16,384 hosts, of which a fifth to nine tenths are free."""
    rng, down = np.random.default_rng(0), np.array([16, 32, 32])
    cases = [(rng.binomial(16, rng.uniform(0.2, 0.9), 1024), int(rng.integers(2, 65))) for _ in range(100)]
    return _seconds_each(lambda case: place_best(down, *case, np.zeros(1024, np.int64)), cases, 1e3)


def window_exact(swf: Path | None) -> list[float]:
    """Milliseconds of the exact solver, for each of the paper's windows: the best of some repetitions."""
    times = []
    for window in paper_windows():
        times.append(min(_seconds_each(_solve_exactly, [window], 1e3)))
    return times


def _solve_exactly(window: _Window) -> None:
    held = np.zeros((len(window.sizes), 40), np.int64)
    place_exactly(groups_of(DOWN, window.hosts // 10), 100, window.sizes, held)


def anneal_moves(swf: Path | None) -> list[float]:
    """Moves per second of annealing by the dynamic strategy, over the paper's windows."""
    return _moves_per_second(AT_RANDOM, 2000)


def neural_moves(swf: Path | None) -> list[float]:
    """Moves per second of neural annealing with CNN-3, whose weights are random."""
    layers = np.array([(4, 16, 10, 1, 1), (16, 8, 5, 2, 0), (352, 256, 0, 0, 1), (256, SEEN, 0, 0, 0)])
    weights = 0.05 * np.random.default_rng(0).standard_normal(117_372)
    return _moves_per_second(StartRule(BY_NETWORK, layers, weights.astype(np.float32)), 100)


def _moves_per_second(repair: StartRule, steps: int) -> list[float]:
    search = Search(DYNAMIC, steps, True, 0, 2000.0, 2500.0, 2.5, repair)

    def solve(window: _Window) -> None:
        groups, held = groups_of(DOWN, window.hosts // 10), np.zeros((len(window.sizes), 40), np.int64)
        anneal(DOWN, groups, 100, window.sizes, search, np.uint64(1), held)

    return [search.steps / seconds for seconds in _seconds_each(solve, paper_windows(), 1.0)]


def _seconds_each(work: Callable[[Any], None], cases: list[Any], unit: float) -> list[float]:
    """Mean time for a case, in parts of a second, one figure per repetition after one to warm up."""
    figures = []
    for _ in range(REPEAT + 1):
        began = time.perf_counter()
        for case in cases:
            work(case)
        figures.append((time.perf_counter() - began) / len(cases) * unit)
    return figures[1:]
