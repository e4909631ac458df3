"""Which nodes a job gets where switches count (topology/tree): those of few leaf switches below one switch.

With select/linear that is the lowest switch that suffices, and below it leaves with the fewest cores first. On shared
nodes it is the highest switch with nodes of the lowest weight, and below it the leaf that is nearest to those taken and
fits best.
"""

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts

from .allocate import CORES, MOST, NODES, TAKEN, begin_taking, is_enough, is_named, spare_nodes, take_node, will_do
from .world import FAR

# Counterparts: _job_test_topo of select/linear, _eval_nodes_topo of select/cons_tres; slurm.conf(5), TopologyParam
ALWAYS = 1  # SlurmWorld.by_switches
IF_ASKED = 2
TOO_FAR_APART = -1  # the job fits, but not on as few switches as it still waits for
NO_SWITCH = -2  # no switch has enough below it
TOO_LITTLE = -3  # all that is left below the switch chosen (in ``w.room_left``) is not enough


@kernel
def by_switches(w, job):
    """Whether switches decide which nodes a job gets."""
    asked = w.by_switches
    return w.tree >= 0 and (asked == ALWAYS or (asked == IF_ASKED and w.max_switches[job] > 0))


@kernel
def choose_on_switches(w, job, nb_spots):
    """Choose nodes of the first spots, whose ``w.room_left`` is used up.

    Returns:
        How many; 0 where those of ``w.wanted[TAKEN]`` that were chosen are not enough, or `TOO_FAR_APART`, `NO_SWITCH`,
        `TOO_LITTLE`.
    """
    linear = w.linear != 0
    begin_taking(w, job)
    _count(w, job, nb_spots)
    # 1. the switch below which all of the job is
    top = _lowest(w, job) if linear else _highest(w, job)
    if top < 0:
        return NO_SWITCH
    for i in range(nb_spots):
        switch = w.node_switch[w.tree, w.spots[i]]
        while switch >= 0 and switch != top:
            switch = w.switch_above[switch]
        if switch != top:
            w.room_left[w.spots[i]] = 0
    # 2. below it nodes up to the weight that is enough
    weight = 0 if linear else _largest_weight(w, job, nb_spots)
    if weight < 0:
        return TOO_LITTLE
    if not linear:
        for i in range(nb_spots):
            if w.order_weight[w.spots[i]] > weight and not is_named(w, job, w.spots[i]):
                w.room_left[w.spots[i]] = 0
    cores = w.switch_cores.copy()
    _count(w, job, nb_spots)
    if not linear:
        w.switch_cores[:] = cores  # which counts heavier nodes, too
    # 3. nodes that are taken in any case, then leaf by leaf
    _take_first(w, job, nb_spots, weight)
    leaves = _fill_smallest(w, job, nb_spots) if linear else _fill_nearest(w, job, nb_spots)
    if not will_do(w, job):
        return 0
    # sbatch(1), --switches=COUNT@TIME: after that time any number will do; max_switch_wait bounds it
    waited = w.now - w.submit[job]
    if 0 < w.max_switches[job] < leaves and waited < w.switch_wait[job]:
        return TOO_FAR_APART
    return w.wanted[TAKEN]


@kernel
def _count(w, job, nb_spots):
    """Count for each switch the nodes with room below it, their cores, weights, and those that the job names."""
    w.switch_nodes[:] = 0
    w.switch_cores[:] = 0
    w.switch_named[:] = 0
    w.switch_weight[:] = FAR
    linear = w.linear != 0
    for i in range(nb_spots):
        node = w.spots[i]
        if w.room_left[node] <= 0:
            continue
        switch = w.node_switch[w.tree, node]
        while switch >= 0:
            w.switch_nodes[switch] += 1
            w.switch_cores[switch] += w.node_cores[node] if linear else w.room_left[node]
            w.switch_weight[switch] = min(w.switch_weight[switch], w.order_weight[node])
            w.switch_named[switch] += is_named(w, job, node)
            switch = w.switch_above[switch]


@kernel
def _nb_named(w, job):
    return count_hosts(w.masks[w.must_have[job]]) if w.must_have[job] >= 0 else 0


@kernel
def _lowest(w, job):
    """The lowest switch with enough nodes, and of equal ones the first with the fewest; -1 for none."""
    best, least, named = -1, FAR, _nb_named(w, job)
    for switch in range(len(w.switch_level)):
        size = w.switch_level[switch] * (len(w.node_cores) + 1) + w.switch_nodes[switch]
        if size < least and w.switch_nodes[switch] >= w.nodes_min[job] and w.switch_named[switch] == named:
            best, least = switch, size
    return best


@kernel
def _highest(w, job):
    """The highest switch with enough nodes and one of the lowest weight, or with all nodes that the job names."""
    best, named = -1, _nb_named(w, job)
    for switch in range(len(w.switch_level)):
        if w.switch_nodes[switch] < max(1, w.nodes_min[job]) or (named > 0 and w.switch_named[switch] == 0):
            continue
        above = 0 if best < 0 else w.switch_level[switch] - w.switch_level[best]
        lighter = best < 0 or w.switch_weight[switch] <= w.switch_weight[best]
        if best < 0 or (above > 0 if named > 0 else above >= 0 and lighter):
            best = switch
    return best if best < 0 or w.switch_named[best] == named else -1


@kernel
def _largest_weight(w, job, nb_spots):
    """The weight of nodes up to which they are enough; -1 where all are not."""
    weight, enough = -1, False
    while True:
        # the next weight: in a trial they are not those of slurm.conf (`put_completing_last`)
        below, weight, nodes, cores = weight, FAR, 0, 0
        for i in range(nb_spots):
            if w.room_left[w.spots[i]] > 0 and w.order_weight[w.spots[i]] > below:
                weight = min(weight, w.order_weight[w.spots[i]])
        if weight == FAR:
            return below if enough else -1
        for i in range(nb_spots):
            node = w.spots[i]
            if w.room_left[node] > 0 and (w.order_weight[node] <= weight or is_named(w, job, node)):
                nodes += 1
                cores += w.room_left[node]
        enough = cores >= w.wanted[CORES] and nodes >= w.wanted[NODES] - spare_nodes(w, job)
        if nodes >= w.wanted[NODES] and cores >= w.wanted[CORES]:
            return weight


@kernel
def _take_first(w, job, nb_spots, weight):
    """Take the nodes that the job names, then those below the weight; mark their switches, and fill their leaves."""
    w.switch_used[:] = 0
    linear = w.linear != 0
    for by_weight in range(2):
        for i in range(nb_spots):
            node = w.spots[i]
            light = by_weight and not linear and w.order_weight[node] < weight
            first = light or (not by_weight and is_named(w, job, node))
            if first and w.room_left[node] > 0 and w.wanted[MOST] > 0:
                take_node(w, job, node)
                switch = w.node_switch[w.tree, node]
                while switch >= 0:
                    w.switch_used[switch] = 1
                    switch = w.switch_above[switch]
    for switch in range(len(w.switch_level)):
        if w.switch_level[switch] == 0 and w.switch_used[switch] != 0:
            before = w.wanted[TAKEN]
            _fill(w, job, switch, nb_spots)
            if w.near_leaf != 0 and not linear:
                _leave_out(w, switch, w.wanted[TAKEN] - before)


@kernel
def _leave_out(w, leaf, count):
    """Count so many nodes less below a leaf and the switches above it: they are taken."""
    switch = leaf
    while switch >= 0:
        w.switch_nodes[switch] = max(0, w.switch_nodes[switch] - count)
        switch = w.switch_above[switch]


@kernel
def _fill(w, job, leaf, nb_spots):
    """Take nodes of a leaf from the left."""
    for i in range(nb_spots):
        if w.wanted[MOST] <= 0 or is_enough(w):
            return
        node = w.spots[i]
        if w.node_switch[w.tree, node] == leaf and w.room_left[node] > 0:
            take_node(w, job, node)


@kernel
def _fill_smallest(w, job, nb_spots):
    """Fill leaves, those with the fewest cores first; returns how many it took."""
    leaves = 0
    while not is_enough(w):
        best = -1
        for switch in range(len(w.switch_level)):
            usable = w.switch_level[switch] == 0 and w.switch_nodes[switch] > 0 and w.switch_used[switch] == 0
            if usable and (best < 0 or w.switch_cores[switch] < w.switch_cores[best]):
                best = switch
        if best < 0:
            break
        _fill(w, job, best, nb_spots)
        w.switch_used[best] = 1
        leaves += 1
    return leaves


@kernel
def _fill_nearest(w, job, nb_spots):
    """Fill leaves, those near to what is taken, and that fit best, first; how many leaves are taken in all."""
    w.switch_far[:] = 0
    leaves = 0
    for switch in range(len(w.switch_level)):
        if w.switch_used[switch] != 0:
            w.switch_far[:] += w.switch_apart[switch]
            leaves += w.switch_level[switch] == 0
    # ends also where a leaf gave nothing, so that it cannot go on for ever
    before = w.wanted[NODES] + 1
    while not is_enough(w) and before != w.wanted[NODES]:
        before = w.wanted[NODES]
        # nearer and not worse than all leaves before it, or as near and better
        best = -1
        for switch in range(len(w.switch_level)):
            usable = w.switch_level[switch] == 0 and w.switch_used[switch] == 0 and w.switch_nodes[switch] > 0
            if not usable or w.switch_far[switch] >= FAR:
                continue
            rank, fits = (1, True) if best < 0 else _compare(w, switch, best)
            nearer = best < 0 or w.switch_far[switch] < w.switch_far[best]
            if (nearer and (fits if w.near_leaf != 0 else rank >= 0)) or (
                w.switch_far[switch] == w.switch_far[best] and rank > 0
            ):
                best = switch
        if best < 0:
            break
        _fill(w, job, best, nb_spots)
        w.switch_far[:] += w.switch_apart[best]
        if w.near_leaf != 0:
            _leave_out(w, best, w.switch_nodes[best])
        w.switch_nodes[best] = 0
        leaves += 1
    return leaves


@kernel
def _holds(w, switch):
    """Whether a switch has all that is still wanted; where Slurm's version does not ask for them, whatever cores."""
    return w.switch_nodes[switch] >= w.wanted[NODES] and (
        w.switch_cpus == 0 or w.switch_cores[switch] >= w.wanted[CORES]
    )


@kernel
def _compare(w, one, other):
    """Whether one leaf fits what is still wanted better than another (1), as well (0), or worse (-1).

    Of two that hold it the smaller one is better. Where neither does, the switches above them are looked at, and at
    last the larger one is better.

    Returns:
        That, and whether the first one, or at last the switch above it, holds what is wanted.
    """
    while not _holds(w, one) and not _holds(w, other):
        above, next_to = w.switch_above[one], w.switch_above[other]
        if above == next_to or above < 0 or next_to < 0:
            break
        one, other = above, next_to
    holds, second_holds = _holds(w, one), _holds(w, other)
    if holds != second_holds:
        return (1 if holds else -1), holds
    first, second = w.switch_nodes[one], w.switch_nodes[other]
    if holds:
        first, second = -first, -second
    if first != second:
        return (1 if first > second else -1), holds
    level, second_level = w.switch_level[one], w.switch_level[other]
    return (0 if level == second_level else 1 if level < second_level else -1), holds
