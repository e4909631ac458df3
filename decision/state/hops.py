"""Hops between hosts of any known network, in kernels; and free hosts that are few hops apart.

`choose_near` is the heuristic of Krumke, Marathe, Noltemeier, Radhakrishnan, Ravi and Rosenkrantz, "Compact location
problems" (Theoretical Computer Science 181, 1997), which Bender et al. use on grids ("Communication-aware processor
allocation for supercomputers", Algorithmica 50, 2008): for each free host the nearest free ones are tried, and those
win whose hops to it are fewest in sum. Hops are a metric, so all pairs of n such hosts are at most 2 - 2 / n times as
many hops apart as those of the best n.

On trees `decision.policies.placement.tree` has the best hosts exactly. On a torus and on a dragonfly nobody knows how
to find them in a reasonable time.
"""

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.model.platform import Dragonfly, FatTree, Flat, Topology, Torus

_TREE, _TORUS, _DRAGONFLY = range(3)


def network_codes(topology: Topology | None) -> NDArray[np.int64]:
    """What kernels know of a network: its kind, then its sizes; empty where the network is unknown."""
    match topology:
        case FatTree(down=down):
            return np.array([_TREE, *down])
        case Flat(nb_hosts=hosts):
            return np.array([_TREE, hosts])
        case Torus(dims=dims):
            return np.array([_TORUS, *dims])
        case Dragonfly(chassis=chassis, routers=routers, nodes=nodes):
            return np.array([_DRAGONFLY, chassis, routers, nodes])
    return np.zeros(0, np.int64)


@kernel
def count_hops(network, a, b):
    """Hops between two places of a network (`network_codes`), as `Topology.distance`; a backbone counts for nothing."""
    if network[0] == _DRAGONFLY:
        return _across_groups(network[1], network[2], network[3], a, b)
    hops = 0
    for level in range(1, len(network)):
        size = network[level]
        if network[0] == _TREE:
            if a == b:
                return hops
            hops += 2
        else:
            offset = abs(a % size - b % size)
            hops += min(offset, size - offset)
        a, b = a // size, b // size
    return hops


@kernel
def _across_groups(chassis, routers, nodes, a, b):
    if a == b:
        return 0
    a, b = a // nodes, b // nodes
    # As SimGrid's dragonfly: to another group leads one router, that of the group's own number, in the first chassis.
    router, to_router = a % routers, b % routers
    at, to = a // routers % chassis, b // routers % chassis
    group, to_group = a // routers // chassis, b // routers // chassis
    if group == to_group:
        return 2 + (router != to_router) + (at != to)
    return 3 + (router != to_group) + (at != 0) + (to_router != group) + (to != 0)


@kernel
def choose_near(network, places, size, chosen):
    """Write which of the free hosts a job gets.

    Args:
        network: `network_codes` the platform.
        places: (F,) of the free hosts; ties go to those that come first.
        size: hosts of the job, at most F.
        chosen: (F,) bool, receives the choice.
    """
    # Hops by how many hosts are so far: counting takes one pass for a centre, sorting would take more.
    longest = 0  # hops: no way is longer than twice that from the first one
    for place in places:
        longest = max(longest, 2 * count_hops(network, places[0], place))
    number = np.zeros(longest + 1, np.int64)  # of free hosts, by hops
    if size > len(places):
        raise InternalError("a job is to be placed on more hosts than are free")
    best, least, radius, at_radius = 0, np.int64(2**62), 0, 0
    for centre in range(len(places)):
        number[:] = 0
        for place in places:
            number[count_hops(network, places[centre], place)] += 1
        # The nearest `size` hosts of this centre, ring by ring.
        hops, left, total = 0, size - number[0], 0
        while left > 0:
            hops += 1
            total += hops * min(number[hops], left)
            left -= number[hops]
        if total < least:
            best, least, radius, at_radius = centre, total, hops, left + number[hops]
    # All within the radius, and of those at its edge as many as are needed, the first ones.
    for i in range(len(places)):
        hops = count_hops(network, places[best], places[i])
        chosen[i] = hops < radius or (hops == radius and at_radius > 0)
        at_radius -= hops == radius
