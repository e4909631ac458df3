"""What a job's hosts cost: the hops between all pairs of them, divided by their number, in closed form.

Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
Annealing", count 2, 4 and 6 hops between two hosts of one switch, of one pod, and of two pods, each pair in both
directions. Their published program counts each pair once, and 1, 3 and 5.

Let a tree have L levels, and let Q be the sum of the squares of the numbers of hosts below each switch of each level
but the highest: of m hosts below a switch, m (m - 1) pairs are two hops nearer than they would be without it. Then n
hosts cost 2 L n - 2 - 2 Q / n hops by the text, and (L - 1/2) n - 1/2 - Q / n by the program. So whatever maximises
Q / n, summed over jobs, is best by both.
"""

import numpy as np

from decision.compiling.jit import kernel

from .tree import count_lowest


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
