"""Which nodes a job gets that names some and needs more: those, then neighbours in runs, also of the named ones."""

from decision.compiling.jit import kernel

from .taking import CORES, MOST, NO_WEIGHT, NODES, TAKEN, is_enough, is_named, take_named, take_node
from .world import LINEAR


@kernel
def choose_with_named(w, job, nb_spots):
    """Choose nodes of the first spots, whose ``w.room_left`` is used up; how many, 0 where they are not enough."""
    if not take_named(w, job, nb_spots):
        return 0
    while not is_enough(w) and w.wanted[MOST] > 0:
        first, last, named = _best_run(w, job, nb_spots)
        if first < 0:
            return 0
        if named < 0 and w.wanted[NODES] <= 1 and w.parameters[LINEAR] == 0:
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
    best = (-1, -1, -1)
    best_weight, best_size, best_enough = NO_WEIGHT, 0, False
    linear = w.parameters[LINEAR] != 0
    first, named, nodes, size, weight, begun_by_weight = -1, -1, 0, 0, -1, False
    for i in range(nb_spots + 1):
        node = w.spots[i] if i < nb_spots else -1
        mine = node >= 0 and is_named(w, job, node)
        joins = i > 0 and node == w.spots[i - 1] + 1 and (mine or w.room_left[node] > 0)
        other_weight = joins and not linear and weight >= 0 and w.node_weight[node] != weight
        if not joins or other_weight:
            enough = size >= w.wanted[CORES] and nodes >= w.wanted[NODES]
            joined = best[2] < 0 <= named
            if nodes > 0 and (joined or _is_better(weight, size, enough, best_weight, best_size, best_enough)):
                best = (first, i - 1, named)
                best_weight, best_size, best_enough = weight, size, enough
            named, nodes, size, weight, begun_by_weight = -1, 0, 0, -1, other_weight
        if mine:
            named = i if named < 0 else named
        elif node >= 0 and w.room_left[node] > 0:
            if nodes == 0:
                first, weight = i, 0 if linear else w.node_weight[node]
                named = -1 if begun_by_weight else named  # as Slurm forgets it
            nodes += 1
            size += w.room_left[node]
    return best


@kernel
def _is_better(weight, size, enough, best_weight, best_size, best_enough):
    """Whether a run goes before the best: of less weight, or else the smallest that is enough, else any larger one."""
    if weight != best_weight:
        return weight < best_weight
    if enough:
        return not best_enough or size < best_size
    return size > best_size


@kernel
def _tightest(w, first, last):
    """The spot of the run that holds all that is wanted with the least room to spare; -1 where none does."""
    best = -1
    for i in range(first, last + 1):
        room = w.room_left[w.spots[i]]
        if room >= w.wanted[CORES] and (best < 0 or room < w.room_left[w.spots[best]]):
            best = i
    return best
