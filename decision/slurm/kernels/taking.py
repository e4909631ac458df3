"""Taking nodes for a job one by one, those that it names first."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host

# SlurmWorld.wanted: what is still to be taken
CORES = 0
NODES = 1
MOST = 2  # nodes
TAKEN = 3

NO_WEIGHT = 1 << 40  # more than any node has


@kernel
def is_named(w, job, node):
    """Whether the job asks for the node by name."""
    return w.must_have[job] >= 0 and has_host(w.masks[w.must_have[job]], node)


@kernel
def has_named(w, job, mask):
    """Whether all nodes that the job asks for by name are in a bitmap."""
    lacking = np.uint64(0)
    for word in range(len(mask) if w.must_have[job] >= 0 else 0):
        lacking |= w.masks[w.must_have[job], word] & ~mask[word]
    return lacking == 0


@kernel
def begin_taking(w, job):
    """Set what is wanted to all that the job needs."""
    w.wanted[CORES] = w.nodes_min[job] if w.linear != 0 else w.cores[job]
    w.wanted[NODES], w.wanted[MOST], w.wanted[TAKEN] = w.nodes_min[job], w.nodes_max[job], 0


@kernel
def cores_to_take(room, per_task, cores, nodes):
    """The cores of a node with so much room that a job gets, which still needs so many cores and nodes."""
    kept_back = max(0, nodes - 1) * per_task  # for the nodes that must follow
    return min(room, max(per_task, cores - kept_back))


@kernel
def take_node(w, job, node):
    """Take a node for the job, with as many of its cores as it still wants."""
    taken = cores_to_take(w.room_left[node], w.per_task[job], w.wanted[CORES], w.wanted[NODES])
    w.chosen[w.wanted[TAKEN]], w.chosen_cores[w.wanted[TAKEN]] = node, taken
    w.wanted[CORES] -= taken
    w.wanted[NODES] -= 1
    w.wanted[MOST] -= 1
    w.wanted[TAKEN] += 1
    w.room_left[node] = 0


@kernel
def is_enough(w):
    """Whether nothing is wanted any more."""
    return w.wanted[CORES] <= 0 and w.wanted[NODES] <= 0


@kernel
def take_named(w, job, nb_spots):
    """Take the nodes that the job names; whether all of them have room. What is still wanted stands in ``w.wanted``."""
    begin_taking(w, job)
    for i in range(nb_spots):
        if is_named(w, job, w.spots[i]) and w.room_left[w.spots[i]] > 0:
            take_node(w, job, w.spots[i])
    return w.wanted[TAKEN] == count_hosts(w.masks[w.must_have[job]])
