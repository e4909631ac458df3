"""Which nodes a job gets that names some and needs more: those, then neighbours in runs, also of the named ones."""

from decision.compiling.jit import kernel

from .taking import CORES, MOST, NO_WEIGHT, NODES, TAKEN, is_enough, is_named, take_named, take_node


@kernel
def choose_with_named(w, job, nb_spots):
    """Choose nodes of the first spots, whose ``w.room_left`` is used up; how many, 0 where they are not enough."""
    if not take_named(w, job, nb_spots):
        return 0
    while not is_enough(w) and w.wanted[MOST] > 0:
        first, last, named = _best_run(w, job, nb_spots)
        if first < 0:
            return 0
        if named < 0 and w.wanted[NODES] <= 1 and w.linear == 0:
            single = _tightest(w, first, last)
            if single >= 0:
                first = last = single
        begin = first if named < 0 else named
        for i in range(begin, last + 1):
            _take(w, job, i)
        for i in range(begin - 1, first - 1, -1):
            _take(w, job, i)
        for i in range(first, last + 1):
            w.room_left[w.spots[i]] = 0
    return w.wanted[TAKEN] if is_enough(w) else 0


@kernel
def _take(w, job, i):
    if w.room_left[w.spots[i]] > 0 and not is_enough(w) and w.wanted[MOST] > 0:
        take_node(w, job, w.spots[i])


@kernel
def _best_run(w, job, nb_spots):
    """The run to take from: first and last spot, and the first one that the job names (-1); (-1, -1, -1) for none.

    Named nodes join their neighbours to one run. On shared nodes a run has one weight.
    """
    best = (-1, -1, -1, NO_WEIGHT, 0, 0)
    linear = w.linear != 0
    first, named, weight, size, nodes, begun_by_weight = -1, -1, -1, 0, 0, False
    for i in range(nb_spots + 1):
        node = w.spots[i] if i < nb_spots else -1
        mine = node >= 0 and is_named(w, job, node)
        joins = _joins(w, i, node, mine)
        other_weight = joins and not linear and weight >= 0 and w.node_weight[node] != weight
        if not joins or other_weight:
            best = _better(w, (first, i - 1, named, weight, size, nodes), best)
            named, weight, size, nodes, begun_by_weight = -1, -1, 0, 0, other_weight
        if mine:
            named = i if named < 0 else named
        elif node >= 0 and w.room_left[node] > 0:
            if nodes == 0:
                first, weight = i, 0 if linear else w.node_weight[node]
                named = -1 if begun_by_weight else named  # as Slurm forgets it
            nodes += 1
            size += w.room_left[node]
    return best[:3]


@kernel
def _joins(w, i, node, mine):
    """Whether the node of a spot goes on the run of the spot before."""
    return i > 0 and node == w.spots[i - 1] + 1 and (mine or w.room_left[node] > 0)


@kernel
def _better(w, run, best):
    """Which of two runs to take from: one with named nodes, of less weight, the smallest that is enough, or the larger.

    A run is its first and last spot and the first that is named, its weight, its room, and on how many nodes that is.
    """
    _, _, named, weight, size, nodes = run
    _, _, best_named, best_weight, best_size, best_nodes = best
    if nodes == 0:
        return best
    if best_named < 0 <= named:
        return run
    if weight != best_weight:
        return run if weight < best_weight else best
    if _has_all(w, size, nodes) and _has_all(w, best_size, best_nodes):
        return run if size < best_size else best
    return run if _has_all(w, size, nodes) or size > best_size else best


@kernel
def _has_all(w, size, nodes):
    """Whether a run has as much room, on as many nodes, as is wanted."""
    return size >= w.wanted[CORES] and nodes >= w.wanted[NODES]


@kernel
def _tightest(w, first, last):
    """The spot of the run that holds all that is wanted with the least room to spare; -1 where none does."""
    best = -1
    for i in range(first, last + 1):
        room = w.room_left[w.spots[i]]
        if room >= w.wanted[CORES] and (best < 0 or room < w.room_left[w.spots[best]]):
            best = i
    return best
