"""Simulated annealing over windows: Algorithm 1 of Lan et al., and the walk that their program takes.

A move removes one or two jobs, all where there are no more, and puts them back: by the dynamic strategy from an entry
among those that the others leave, by the static one on the first place that is free from a random entry on, and with
FREE in random order on the best entries. The dynamic strategy's entry is a random one, or in neural annealing one that
`decision.placement.repair` chooses. A move that makes the window worth more is taken, another one with
probability exp(-loss / temperature); temperatures fall from `hot` to `cold` as a geometric series. What is searched
ends after so many moves, never by the clock.

In the published program a move that is rejected is not undone: its search is a random walk that remembers the best
window that it has seen. `undo` says which of the two is meant. Words of random numbers are the caller's, so that the
same word gives the same window.
"""

import math
from typing import NamedTuple

import numpy as np

from decision.compiling.draws import next_word, uniform
from decision.compiling.jit import kernel

from .repair import AT_RANDOM, SEEN, StartRule, choose_start, nb_features, take_from
from .windows import DYNAMIC, FREE, place_in_turn, take_best, worth

_CLOSE = 1e-9  # of Q / n: less is rounding
PROGRAM_FIRST = 100  # entries among which the published program lets a job begin


class Search(NamedTuple):
    """How it is searched."""

    strategy: int  # STATIC, DYNAMIC or FREE
    steps: int  # moves
    undo: bool  # whether rejected moves are undone
    first: int  # with DYNAMIC: entries, of those that are left, among which a job may begin; 0 for all
    scale: float  # what a window loses, for a temperature, where it is worth one less
    hot: float  # temperature at first
    cold: float  # and at last
    repair: StartRule = AT_RANDOM  # with DYNAMIC: how the entry is chosen where a job begins


@kernel
def anneal(down, groups, switches, sizes, search, word, held):
    """Search for a window, beginning with jobs placed in turn.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        groups: (L - 1, N) of the sequence.
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        search: how.
        word: of the generator of random numbers.
        held: (n, at least the largest size) receives the entries of each job in the best window that was seen.

    Returns:
        What it is worth: the sum of Q / n.
    """
    return anneal_along(down, groups, switches, sizes, search, word, held, np.empty(search.steps))


@kernel
def anneal_along(down, groups, switches, sizes, search, word, held, along):
    """As `anneal`; `along` (steps,) receives what the best window is worth after each move."""
    place_in_turn(down, groups, sizes, search.strategy, held)
    now, on = held.copy(), np.zeros(switches, np.int64)
    taken, values = np.zeros(groups.shape[1], np.bool_), np.zeros(len(sizes))
    for job in range(len(sizes)):
        _mark(taken, now[job, : sizes[job]], True)
        values[job] = worth(groups, on, now[job, : sizes[job]])
    total = best = values.sum()
    removed, before, old = np.zeros(2, np.int64), now.copy(), values.copy()
    sight = np.zeros(nb_features(down) * SEEN, np.float32)
    cooling = math.log(search.hot / search.cold) / max(search.steps, 1)
    for step in range(1, search.steps + 1):
        word, number = _choose(word, sizes, search, removed)
        for job in removed[:number]:
            before[job, : sizes[job]] = now[job, : sizes[job]]
            old[job] = values[job]
            _mark(taken, now[job, : sizes[job]], False)
        fits, gain = True, 0.0
        others = sizes[removed[:number]].sum()
        for job in removed[:number]:
            word = next_word(word)
            entries = now[job, : sizes[job]]
            others -= sizes[job]
            fits = fits and _put_back(down, groups, taken, search, others, uniform(word), entries, sight)
            if fits:
                values[job] = worth(groups, on, entries)
                gain += values[job] - old[job]
        word = next_word(word)
        chance = math.exp(min(search.scale * gain / (search.hot * math.exp(-cooling * step)), 0.0))
        if not fits or (search.undo and uniform(word) >= chance):
            for job in removed[:number]:
                _mark(taken, now[job, : sizes[job]], False)
            for job in removed[:number]:
                now[job, : sizes[job]] = before[job, : sizes[job]]
                values[job] = old[job]
                _mark(taken, now[job, : sizes[job]], True)
        else:
            total += gain
        if total > best + _CLOSE:
            best = total
            held[:] = now
        along[step - 1] = best
    return best


@kernel
def _mark(taken, entries, value):
    for i in range(len(entries)):
        taken[entries[i]] = value


@kernel
def _choose(word, sizes, search, removed):
    """Write one or two different jobs, in the order in which they go back; the last word used, and how many they are.

    That with more hosts goes back first; in the published program, that which is first in the queue; with FREE, any.
    """
    jobs = len(sizes)
    word = next_word(word)
    first = int(uniform(word) * jobs)
    removed[0] = first
    word = next_word(word)
    if jobs == 1 or uniform(word) < 0.5:
        return word, 1
    word = next_word(word)
    second = int(uniform(word) * (jobs - 1))
    second += second >= first
    turned = sizes[second] > sizes[first] if search.undo else second < first
    if turned and search.strategy != FREE:
        first, second = second, first
    removed[0], removed[1] = first, second
    return word, 2


@kernel
def _put_back(down, groups, taken, search, others, share, entries, sight):
    """Give a job entries that are not taken, and mark them as taken; False where the strategy finds none.

    `share` in [0, 1) says where to begin, and `others` is as `decision.placement.repair.choose_start` has it.
    """
    if search.strategy == FREE:
        take_best(down, groups, taken, entries)
        return True
    if search.strategy == DYNAMIC:
        size = len(entries)
        start = choose_start(search.repair, down, groups, taken, size, others, search.first, share, sight)
        take_from(taken, start, entries)
        return True
    return _take_run(taken, share, entries)


@kernel
def _take_run(taken, share, entries):
    """The first run of entries that are all left, from a random one on, with wrap-around."""
    length, run = len(taken), 0
    begin = int(share * length)
    for offset in range(length + len(entries) - 1):
        run = 0 if taken[(begin + offset) % length] else run + 1
        if run == len(entries):
            for i in range(run):
                entries[i] = (begin + offset + 1 - run + i) % length
            _mark(taken, entries, True)
            return True
    return False
