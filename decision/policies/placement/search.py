"""Simulated annealing over windows: Algorithm 1 of Lan et al., and the walk that their program takes.

A move removes one or two jobs, all where there are no more, and puts them back: by the dynamic strategy from an entry
among those that the others leave, by the static one on the first place that is free from a random entry on, and with
FREE in random order on the best entries. The dynamic strategy's entry is a random one, or in neural annealing one that
`decision.policies.placement.repair` chooses. A move that makes the window worth more is taken, another one with
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
from .tree import text_cost
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

    `share` in [0, 1) says where to begin, and `others` is as `decision.policies.placement.repair.choose_start` has it.
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


# How good a window can be on any hosts: a bound from prices of hosts, and a search that knows how far from it it is.
#
# If each host has a price, and each job alone chooses the hosts on which its Q / n, less their prices, is the largest,
# then these values and the prices of all free hosts are in all no less than the best window is worth, whatever the
# prices are. That is the Lagrangian relaxation of the rule that no two jobs share a host. Prices are of lowest
# switches, because the hosts of one are alike. They rise where jobs ask for more hosts than there are, and fall where
# for fewer, by subgradients with Polyak's step. What a job chooses is found by a dynamic program over switches, from
# the hosts up, and over siblings, from the left.

ROUNDS = 200  # of prices
_PATIENCE = 5  # rounds without a better bound, after which steps are halved
_CLOSE_BOUND = 1e-9  # relative; less is rounding


@kernel
def search_with_bound(down, groups, switches, sizes, search, word, held):
    """Search for a window on any hosts, unless the first one is seen to be best.

    Arguments are those of `decision.policies.placement.search.anneal`; the strategy of `search` is FREE.

    Returns:
        What the window is worth, and a bound that no window exceeds.
    """
    place_in_turn(down, groups, sizes, search.strategy, held)
    on, found = np.zeros(switches, np.int64), 0.0
    for job in range(len(sizes)):
        found += worth(groups, on, held[job, : sizes[job]])
    bound = bound_worth(down, groups, switches, sizes, found, 1)
    if bound > found * (1.0 + _CLOSE_BOUND):
        found = anneal(down, groups, switches, sizes, search, word, held)
        bound = min(bound, bound_worth(down, groups, switches, sizes, found, ROUNDS))
    return found, max(bound, found)


@kernel
def gap(levels, sizes, found, bound):
    """How much more hops a window costs than it must, at most, as a share of these.

    Args:
        levels: of the tree.
        sizes: (n,) hosts of each job, above one.
        found: what the window is worth.
        bound: what none exceeds.
    """
    hops = 0.0
    for size in sizes:
        hops += text_cost(levels, size, 0)
    return 2.0 * (bound - found) / (hops - 2.0 * bound)


@kernel
def bound_worth(down, groups, switches, sizes, found, rounds):
    """A bound of what a window is worth on any hosts.

    Args:
        down, groups, switches, sizes: as `decision.policies.placement.search.anneal`.
        found: what some window is worth; where that is reached, prices are not improved further.
        rounds: of prices, at most; the first are zero.
    """
    if len(groups) == 0:
        return 0.0
    free, prices = np.zeros(switches), np.zeros(switches)
    for switch in groups[0]:
        free[switch] += 1.0
    different = np.unique(sizes)
    tables = _new_tables(down, free, different[-1])
    best, pace, since = np.inf, 1.0, 0
    for _ in range(rounds):
        total, spare = (prices * free).sum(), free.copy()
        for size in different:
            number = (sizes == size).sum()
            total += number * _choose_prices(down, tables, prices, size)
            spare -= number * tables[2][:switches]
        since += 1
        if total < best * (1.0 - _CLOSE_BOUND):
            best, since = total, 0
        if since == _PATIENCE:
            pace, since = 0.5 * pace, 0
        slope = np.where((prices > 0.0) | (spare < 0.0), spare, 0.0)
        steepness = (slope * slope).sum()
        if best <= found * (1.0 + _CLOSE_BOUND) or steepness == 0.0:
            break
        prices = np.maximum(prices - pace * (total - found) / steepness * slope, 0.0)
    return best


@kernel
def _new_tables(down, free, size):
    """Of V switches, level by level from the lowest, and one above them all: room for `_choose`.

    Returns:
        (V + 1,) free hosts; (V + 1, size + 1) the most that 0, 1, ... of them are worth; (V + 1,) hosts chosen;
        (V + 1, size + 1) how many of 0, 1, ... hosts of the siblings up to here are this switch's.
    """
    levels, count, switches = len(down), 0, len(free)
    for level in range(1, levels + 1):
        count += switches
        switches //= down[min(level, levels - 1)]
    below = np.zeros(count, np.int64)
    for switch in range(len(free)):
        below[switch] = int(free[switch])
    first, width = 0, len(free)
    for level in range(1, levels):
        for switch in range(width):
            below[first + width + switch // down[level]] += below[first + switch]
        first, width = first + width, width // down[level]
    most, wanted = np.zeros((count, size + 1)), np.zeros(count, np.int64)
    return below, most, wanted, np.zeros((count, size + 1), np.int64)


@kernel
def _choose_prices(down, tables, prices, size):
    """Choose hosts for a job, their number below each switch into the tables; Q / n less their prices."""
    free, most, wanted, share = tables
    for switch in range(len(prices)):
        for hosts in range(min(free[switch], size) + 1):
            most[switch, hosts] = hosts * (hosts / size - prices[switch])
    first, width = 0, len(prices)
    for level in range(1, len(down)):
        above = first + width
        for parent in range(width // down[level]):
            children = first + parent * down[level]
            _join(tables, children, children + down[level], above + parent, size)
            if level + 1 < len(down):
                for hosts in range(min(free[above + parent], size) + 1):
                    most[above + parent, hosts] += hosts * hosts / size
        first, width = above, width // down[level]
    wanted[first] = size
    for level in range(len(down) - 1, 0, -1):
        width *= down[level]
        first -= width
        for child in range(first + width - 1, first - 1, -1):
            parent = first + width + (child - first) // down[level]
            wanted[child] = share[child, wanted[parent]]
            wanted[parent] -= wanted[child]
    return most[len(most) - 1, size]


@kernel
def _join(tables, begin, end, parent, size):
    """The most that hosts below a switch are worth, from what they are below its children."""
    free, most, _, share = tables
    row, room = most[parent], 0
    row[0] = 0.0
    for child in range(begin, end):
        own, before = min(free[child], size), room
        room = min(room + own, size)
        for hosts in range(room, -1, -1):
            best, best_own = -np.inf, 0
            for given in range(max(0, hosts - before), min(own, hosts) + 1):
                value = row[hosts - given] + most[child, given]
                if value > best:
                    best, best_own = value, given
            row[hosts] = best
            share[child, hosts] = best_own
