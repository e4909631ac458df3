"""How good a window can be on any hosts: a bound from prices of hosts, and a search that knows how far from it it is.

If each host has a price, and each job alone chooses the hosts on which its Q / n, less their prices, is the largest,
then these values and the prices of all free hosts are in all no less than the best window is worth, whatever the prices
are. That is the Lagrangian relaxation of the rule that no two jobs share a host. Prices are of lowest switches, because
the hosts of one are alike. They rise where jobs ask for more hosts than there are, and fall where for fewer, by
subgradients with Polyak's step. What a job chooses is found by a dynamic program over switches, from the hosts up, and
over siblings, from the left.
"""

import numpy as np

from decision.compiling.jit import kernel

from .anneal import anneal
from .cost import text_cost
from .windows import place_in_turn, worth

ROUNDS = 200  # of prices
_PATIENCE = 5  # rounds without a better bound, after which steps are halved
_CLOSE = 1e-9  # relative; less is rounding


@kernel
def search_with_bound(down, groups, switches, sizes, search, word, held):
    """Search for a window on any hosts, unless the first one is seen to be best.

    Arguments are those of `decision.placement.anneal.anneal`; the strategy of `search` is FREE.

    Returns:
        What the window is worth, and a bound that no window exceeds.
    """
    place_in_turn(down, groups, sizes, search.strategy, held)
    on, found = np.zeros(switches, np.int64), 0.0
    for job in range(len(sizes)):
        found += worth(groups, on, held[job, : sizes[job]])
    bound = bound_worth(down, groups, switches, sizes, found, 1)
    if bound > found * (1.0 + _CLOSE):
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
        down, groups, switches, sizes: as `decision.placement.anneal.anneal`.
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
            total += number * _choose(down, tables, prices, size)
            spare -= number * tables[2][:switches]
        since += 1
        if total < best * (1.0 - _CLOSE):
            best, since = total, 0
        if since == _PATIENCE:
            pace, since = 0.5 * pace, 0
        slope = np.where((prices > 0.0) | (spare < 0.0), spare, 0.0)
        steepness = (slope * slope).sum()
        if best <= found * (1.0 + _CLOSE) or steepness == 0.0:
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
def _choose(down, tables, prices, size):
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
