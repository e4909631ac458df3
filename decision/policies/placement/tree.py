"""Which free hosts of a tree a job gets: those of least cost, and those that Slurm would give it.

`place_best` finds the free hosts whose Q (see `cost`) is the largest there is. That is a dynamic program over switches
from the hosts up, and on each level over siblings from the right: the largest Q of k hosts below a switch and those to
the right of it. Of several best sets of hosts it takes the one that comes first if each is written down as its places,
ascending: from left to right, each switch gives as many hosts as it does in any best set that agrees so far.

`place_priced` does the same where a table says what hosts below a switch are worth
(`decision.policies.placement.windows`).

`place_as_slurm` does what Slurm's plugin topology/tree does (``_eval_nodes_topo``): of the lowest switches that have
enough free hosts the one that has the fewest; below it, leaf after leaf, the fullest leaf that still fits what is left,
or the emptiest where none does.

Both are given free hosts by lowest switch, because which hosts of one switch are taken makes no difference.
"""

from typing import NamedTuple

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import InternalError

_LEAST = -(2**63)  # no hosts are worth as little


class _Tables(NamedTuple):
    """Switches below the highest have numbers, level by level from the hosts up, from left to right. V switches."""

    down: np.ndarray  # (L,) devices below each switch of a level
    first: np.ndarray  # (L + 1,) number of the first switch of level 1, 2, ...; [0] is unused
    free: np.ndarray  # (V,) free hosts below each
    begin: np.ndarray  # (V + 1,) where each one's row of `most` begins
    most: np.ndarray  # a row for each: the most that 0, 1, ... hosts below it and its siblings to the right are worth
    worth_begin: np.ndarray  # (V + 1,) where each one's row of `worth` begins; empty where worth is
    worth: np.ndarray  # a row for each: what 0, 1, ... hosts below it are worth to it; empty where it is their square


@kernel
def count_lowest(down):
    """Lowest switches of a tree with `down` (L,) devices below each switch of a level, from the hosts up."""
    switches = 1
    for level in range(1, len(down)):
        switches *= down[level]
    return switches


@kernel
def place_best(down, free, size, taken):
    """Write how many hosts each lowest switch gives, for the least cost.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        free: (S,) free hosts of each lowest switch, from left to right.
        size: hosts of the job; there must be as many.
        taken: (S,) receives the numbers.
    """
    taken[:] = 0
    for switch in range(len(free)):
        if free[switch] >= size:
            taken[switch] = size
            return
    nothing = np.zeros(0, np.int64)
    place_priced(down, free, size, nothing, nothing, taken)


@kernel
def place_priced(down, free, size, worth_begin, worth, taken):
    """Write how many hosts each lowest switch gives, so that they are worth most.

    Args:
        down, free, size, taken: as of `place_best`, of two levels or more.
        worth_begin: (V + 1,) where each switch's row of `worth` begins. Switches below the highest are numbered level
            by level from the hosts up, from left to right.
        worth: a row for each: what 0, 1, ... hosts below it, up to `size` or all of its free ones, are worth to it.
            Both are empty where that is the square of their number.
    """
    taken[:] = 0
    tables = _new_tables(down, free, size, worth_begin, worth)
    for level in range(1, len(down)):
        for leftmost in range(tables.first[level], tables.first[level + 1], down[level]):
            # The rows of the siblings from there on, from the last of them.
            last = leftmost + down[level] - 1
            row = _row(tables, last)
            for hosts in range(len(row)):
                row[hosts] = _most_worth(tables, level, last, hosts)
            for switch in range(last - 1, leftmost - 1, -1):
                right, row = row, _row(tables, switch)
                row[: len(right)] = right
                row[len(right) :] = _LEAST
                for hosts in range(1, min(tables.free[switch], size) + 1):
                    squares = _most_worth(tables, level, switch, hosts)
                    for others in range(min(len(row) - hosts, len(right))):
                        row[hosts + others] = max(row[hosts + others], right[others] + squares)
    # The leftmost of the best ways to take the hosts: from left to right each lowest switch gives as many as it can.
    # How many the switches above it give in all need not be settled by then: every best way that agrees so far is kept,
    # a row of `left` for each. Its entries are, by level, the hosts that are still to be taken from the switch's
    # siblings, itself included.
    levels = len(down)
    left = np.zeros((1, levels), np.int64)
    left[0, levels - 1] = size
    for switch in range(len(taken)):
        for level in range(levels - 1, 1, -1):
            width = len(taken) // (tables.first[level + 1] - tables.first[level])
            if switch % width == 0:
                left = _split(tables, level, tables.first[level] + switch // width, left)
        # The most hosts that the switch gives in any of the ways; those in which it does are put in front.
        most, kept = 0, 0
        for i in range(len(left)):
            given = min(tables.free[switch], left[i, 1])
            while given > 0 and not _is_best(tables, 1, switch, left[i, 1], given):
                given -= 1
            if given > most:
                most, kept = given, 0
            if given == most:
                left[kept] = left[i]
                left[kept, 1] -= given
                kept += 1
        taken[switch], left, size = most, left[:kept], size - most
        if size == 0:
            return


@kernel
def _new_tables(down, free, size, worth_begin, worth):
    """Tables with rows of zeros, as long as they can be needed: there may be fewer free hosts than `size`."""
    levels, switches = len(down), len(free)
    first = np.zeros(levels + 1, np.int64)
    for level in range(1, levels):
        first[level + 1] = first[level] + switches
        switches //= down[level]
    below, begin = np.zeros(first[levels], np.int64), np.zeros(first[levels] + 1, np.int64)
    below[: len(free)] = free
    for level in range(1, levels):
        for leftmost in range(first[level], first[level + 1], down[level]):
            right = 0
            for switch in range(leftmost + down[level] - 1, leftmost - 1, -1):
                right += below[switch]
                begin[switch + 1] = min(right, size) + 1
            if level + 1 < levels:
                below[first[level + 1] + (leftmost - first[level]) // down[level]] = right
    for switch in range(len(below)):
        begin[switch + 1] += begin[switch]
    return _Tables(down, first, below, begin, np.zeros(begin[-1], np.int64), worth_begin, worth)


@kernel
def _row(tables, switch):
    return tables.most[tables.begin[switch] : tables.begin[switch + 1]]


@kernel
def _most_worth(tables, level, switch, hosts):
    """The most that so many hosts below a switch are worth: their largest Q."""
    squares = tables.worth[tables.worth_begin[switch] + hosts] if len(tables.worth) > 0 else hosts * hosts
    if level == 1:
        return squares
    leftmost_below = tables.first[level - 1] + (switch - tables.first[level]) * tables.down[level - 1]
    return squares + _row(tables, leftmost_below)[hosts]


@kernel
def _split(tables, level, switch, left):
    """The rows of `left` with every best number of hosts below a switch that is next of its level."""
    ways = 0
    for i in range(len(left)):
        for hosts in range(min(tables.free[switch], left[i, level]) + 1):
            ways += _is_best(tables, level, switch, left[i, level], hosts)
    split = np.zeros((ways, left.shape[1]), np.int64)
    for i in range(len(left) - 1, -1, -1):
        for hosts in range(min(tables.free[switch], left[i, level]) + 1):
            if _is_best(tables, level, switch, left[i, level], hosts):
                ways -= 1
                split[ways] = left[i]
                split[ways, level] -= hosts
                split[ways, level - 1] = hosts
    return split


@kernel
def _is_best(tables, level, switch, size, hosts):
    """Whether `hosts` below a switch, of `size` below it and its siblings to the right, are among the best."""
    if (switch + 1 - tables.first[level]) % tables.down[level] == 0:  # the last of its siblings
        return hosts == size
    right = _row(tables, switch + 1)
    if size - hosts >= len(right):
        return False
    return _most_worth(tables, level, switch, hosts) + right[size - hosts] == _row(tables, switch)[size]


@kernel
def place_as_slurm(down, free, size, taken):
    """Write how many hosts each lowest switch gives, as Slurm chooses; arguments are those of `place_best`."""
    taken[:] = 0
    # The lowest switches below the one that Slurm looks at: of those with enough free hosts the one with the fewest.
    begin, width, level = -1, 1, 1
    while begin < 0 and level < len(down):
        least = 0
        for first in range(0, len(free), width):
            below = free[first : first + width].sum()
            if below >= size and (begin < 0 or below < least):
                begin, least = first, below
        if begin < 0:
            width *= down[level]
            level += 1
    begin, end = (begin, begin + width) if begin >= 0 else (0, len(free))
    while size > 0:
        best = -1
        for switch in range(begin, end):
            left = free[switch] - taken[switch]
            than = free[best] - taken[best] if best >= 0 else 0
            # The fullest that still fits what is left, or the emptiest where none does.
            if left > 0 and (best < 0 or (than < size or left < than if left >= size else left > than)):
                best = switch
        if best < 0:
            raise InternalError("a job is to be placed on more hosts than are free")
        hosts = min(free[best] - taken[best], size)
        taken[best] += hosts
        size -= hosts


# What a job's hosts cost: the hops between all pairs of them, divided by their number, in closed form.
#
# Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
# Annealing", count 2, 4 and 6 hops between two hosts of one switch, of one pod, and of two pods, each pair in both
# directions. Their published program counts each pair once, and 1, 3 and 5.
#
# Let a tree have L levels, and let Q be the sum of the squares of the numbers of hosts below each switch of each level
# but the highest: of m hosts below a switch, m (m - 1) pairs are two hops nearer than they would be without it. Then n
# hosts cost 2 L n - 2 - 2 Q / n hops by the text, and (L - 1/2) n - 1/2 - Q / n by the program. So whatever maximises
# Q / n, summed over jobs, is best by both.


@kernel
def square_sum(down, hosts):
    """Q of a set of hosts.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        hosts: (S,) how many hosts of the set are on each lowest switch, from left to right.
    """
    total = 0
    width = 1  # lowest switches below a switch of the level
    for level in range(1, len(down)):
        for first in range(0, len(hosts), width):
            below = 0
            for switch in range(first, first + width):
                below += hosts[switch]
            total += below * below
        width *= down[level]
    return total


@kernel
def text_cost(levels, size, squares):
    """Hops of a job, by the text: 0 for one host.

    Args:
        levels: of the tree.
        size: hosts of the job.
        squares: their Q.
    """
    return 2.0 * levels * size - 2.0 - 2.0 * squares / size


@kernel
def program_cost(levels, size, squares):
    """Thousandths of a hop of a job, by the published program: whole, rounded down, and at least one.

    Arguments are those of `text_cost`.
    """
    pairs = ((2 * levels - 1) * size * size - size) // 2 - squares  # hops over all pairs
    return max(1000 * pairs // size, 1)


@kernel
def text_costs(down, places, begin, costs):
    """Write the hops of many sets of hosts, by the text, into `costs`.

    Args:
        down: (L,) as `square_sum`.
        places: (N,) places in the tree of the hosts of all sets, one set after the other.
        begin: (n + 1,) where each set begins in it.
        costs: (n,) hops.
    """
    levels = len(down)
    below = np.zeros(count_lowest(down), np.int64)
    for i in range(len(costs)):
        size = begin[i + 1] - begin[i]
        squares, width = 0, 1
        for level in range(levels - 1):
            width *= down[level]
            for at in range(begin[i], begin[i + 1]):
                below[places[at] // width] += 1
            for at in range(begin[i], begin[i + 1]):
                switch = places[at] // width
                squares += below[switch] * below[switch]
                below[switch] = 0
        costs[i] = text_cost(levels, size, squares) if size > 0 else 0.0
