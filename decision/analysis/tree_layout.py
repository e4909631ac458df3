"""Where the devices of a fat-tree are in a drawing: hosts in a row at the bottom, each level of switches above."""

from math import prod

import numpy as np

from decision.model.record import Floats
from decision.model.topology import FatTree


def tree_hosts(tree: FatTree) -> Floats:
    """The middle of each host by its place, (nb_hosts, 2), from 0 to 1 in both directions."""
    middle = (np.arange(tree.nb_hosts) + 0.5) / tree.nb_hosts
    return np.column_stack((middle, np.zeros_like(middle)))


def tree_switches(tree: FatTree) -> list[Floats]:
    """The middle of each switch, (switches, 2), for each level from the hosts up.

    The switches of a subtree are spread over its hosts; those of one subtree are neighbours.
    """
    levels = []
    for level in range(1, len(tree.down) + 1):
        number = prod(tree.down[level:]) * prod(tree.up[:level])
        middle = (np.arange(number) + 0.5) / number
        levels.append(np.column_stack((middle, np.full(number, level / len(tree.down)))))
    return levels


def tree_links(tree: FatTree) -> Floats:
    """The two ends of each pair of connected devices, (links, 2, 2)."""
    devices = [tree_hosts(tree), *tree_switches(tree)]
    links = []
    for level, (above, below) in enumerate(zip(tree.up, tree.down, strict=True)):
        in_subtree = prod(tree.up[:level])  # devices of this level that a subtree has
        device = np.arange(len(devices[level]))
        subtree, index = device // in_subtree, device % in_subtree
        first = subtree // below * (in_subtree * above) + index * above
        parents = first[:, None] + np.arange(above)
        lower = np.repeat(devices[level], above, axis=0)
        links.append(np.stack((lower, devices[level + 1][parents.ravel()]), axis=1))
    return np.concatenate(links)
