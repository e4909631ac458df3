"""Which nodes a job gets: runs of neighbours, the lowest weight, then the tightest run that is enough.

So does select/linear, and so does _eval_nodes of select/cons_tres; where switches count, `topology_tree` chooses. What
a job can have of each node is measured in a trial, from which running jobs can be taken away.
"""

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host

from .allocate import (
    CORES,
    MOST,
    NO_WEIGHT,
    NODES,
    TAKEN,
    cores_to_take,
    is_enough,
    is_named,
    memory_on,
    spare_nodes,
    take_named,
    take_node,
    will_do,
)
from .topology_tree import NO_SWITCH, TOO_FAR_APART, TOO_LITTLE, by_switches, choose_on_switches
from .world import ALL_OF_NODE


@kernel
def choose_nodes(w, job, part):
    """Choose nodes by ``w.capacity``: into ``w.chosen`` and ``w.chosen_cores``; returns how many, 0 where none fit.

    Nodes of the lowest weights are tried by themselves first, with select/linear line by line of slurm.conf.
    `TOO_FAR_APART` says that they fit on more switches than the job wants.
    """
    capacity, found = w.capacity, 0
    at_once = w.linear == 0 and w.must_have[job] >= 0
    if w.last_step == 0 or at_once:
        return choose_at_once(w, job, part, capacity)
    # slurm.conf(5), Weight: _pick_best_nodes of node_scheduler.c offers sets of nodes in turn, each with those before
    for step in range(w.last_step + 1):
        room = capacity.copy()
        for node in range(len(room)):
            if w.node_step[node] > step and not is_named(w, job, node):
                room[node] = 0
        found = choose_at_once(w, job, part, room)
        if found > 0:
            break
    return found


@kernel
def choose_at_once(w, job, part, capacity):
    """As `choose_nodes`; where it fails, the nodes with the least room are left out step by step.

    Most steps fail, and most of those can be recognised by the run of neighbours that `_choose` would begin with.
    """
    linear, by_load = w.linear != 0, w.lln != 0 or w.part_lln[part] != 0
    needed, nodes, most = w.nodes_min[job] if linear else w.cores[job], w.nodes_min[job], w.nodes_max[job]
    room, above = needed if most == 1 else 1, 0  # nodes with less are no neighbours of a job on one node
    count, largest = 0, 0
    for node in range(len(capacity)):
        if capacity[node] >= room:
            w.spots[count] = node
            count += 1
            largest = max(largest, capacity[node])
    if count < nodes:
        return 0
    w.tree = w.part_tree[part]
    by_tree = not by_load and by_switches(w, job)
    # _get_one_res: a job that gets one node gets the first of the lowest weight on which it fits, also where the least
    # loaded one would come first
    if w.first_node != 0 and most == 1 and not linear:
        return _take_first(w, job, capacity, count, needed)
    in_runs = not linear and not by_load and not by_tree and w.must_have[job] < 0
    # select/cons_tres, between _select_nodes and _eval_nodes: a knapsack that is not solved, but thinned by the nodes
    # with the fewest cores, and tried again
    found = 0
    while True:
        first, count, total, least = _best_run_above(w, job, capacity, count, above)
        if min(total, largest * most) < needed:
            return 0
        # the first node of a run is one of the job's, and the others give no more than the largest
        if not in_runs or nodes <= 1 or capacity[w.spots[first]] + (most - 1) * largest >= needed:
            found = _choose_whole(w, job, part, capacity, count, by_tree)
            if found > 0 or found == TOO_FAR_APART:
                return found
            if linear or (w.drops_one != 0 and found == NO_SWITCH):
                return 0
        if w.drops_one != 0:
            capacity = capacity.copy()
            dropped = found != TOO_LITTLE and _drop_one(w, job, capacity, count)
            # all spots below the switch that was tried, but those that the job names
            for i in range(count if found == TOO_LITTLE else 0):
                node = w.spots[i]
                if w.room_left[node] > 0 and not is_named(w, job, node):
                    capacity[node], dropped = 0, True
            if not dropped:
                return 0
        elif least <= above:
            return 0
        else:
            above = least


@kernel
def _drop_one(w, job, capacity, nb_spots):
    """Leave out the first spot with the least room that the job does not name; whether there is one.

    Where switches choose, it is one of those that they chose.
    """
    least = -1
    hinted = by_switches(w, job) and w.lln == 0 and w.wanted[TAKEN] > 0
    for i in range(w.wanted[TAKEN] if hinted else nb_spots):
        node = w.chosen[i] if hinted else w.spots[i]
        if is_named(w, job, node):
            continue
        # of equal ones the first: chosen ones stand in another order
        less = least < 0 or capacity[node] < capacity[least] or (capacity[node] == capacity[least] and node < least)
        least = node if less else least
    if least >= 0:
        capacity[least] = 0
    return least >= 0


@kernel
def _take_first(w, job, capacity, nb_spots, cores):
    """Choose the first spot of the lowest weight that has the cores, and is named where the job names one; 1 or 0."""
    best = -1
    for i in range(nb_spots):
        node = w.spots[i]
        fits = capacity[node] >= cores and (w.must_have[job] < 0 or is_named(w, job, node))
        if fits and (best < 0 or w.order_weight[node] < w.order_weight[best]):
            best = node
    if best < 0:
        return 0
    w.chosen[0] = best
    w.chosen_cores[0] = w.node_cores[best] if w.exclusive[job] != 0 else cores
    return 1


@kernel
def _choose_whole(w, job, part, capacity, count, by_tree):
    """Choose nodes of the first spots, and on shared ones whole tasks, or all cores for an exclusive job; how many."""
    for i in range(count):
        w.room_left[w.spots[i]] = capacity[w.spots[i]]
    found = choose_on_switches(w, job, count) if by_tree else _choose(w, job, part, count)
    # afterwards, as dist_tasks of select/cons_tres: how many cores of each node the tasks really use
    if found > 0 and w.linear == 0:
        if spare_nodes(w, job) > 0:
            _share_out(w, job, found)
        # the cores of a node that are no whole task are left, but where a task has no other place
        per_task = w.per_task[job]
        missing = 0 if per_task == 1 or w.in_tasks[job] != 0 else -(-w.cores[job] // per_task)
        for i in range(found):
            missing -= w.chosen_cores[i] // per_task
        for i in range(found):
            rest = w.chosen_cores[i] % per_task
            w.chosen_cores[i] -= rest if missing <= 0 else 0
            missing -= rest > 0
        for i in range(found):
            unit = w.node_unit[w.chosen[i]]
            w.chosen_cores[i] += -w.chosen_cores[i] % unit
        # slurm.conf(5), OverSubscribe=EXCLUSIVE, and sbatch(1), --exclusive: all cores of its nodes
        for i in range(found if w.exclusive[job] != 0 else 0):
            w.chosen_cores[i] = w.node_cores[w.chosen[i]]
    return found


@kernel
def _best_run_above(w, job, capacity, nb_spots, above):
    """As `_best_run` on shared nodes, in one pass that leaves out for good the spots with no more room than `above`.

    Nodes that the job names are kept, and do not count for the least room.

    Returns:
        The first spot of the run, how many spots are kept, and the sum and the least of their room.
    """
    cores = w.nodes_min[job] if w.linear != 0 else w.cores[job]
    best, best_size, best_enough, best_weight = -1, 0, False, NO_WEIGHT
    kept, total, least = 0, 0, above
    first, last, weight, size = 0, -2, 0, 0  # of the run that goes on
    for i in range(nb_spots + 1):
        node = w.spots[i] if i < nb_spots else len(capacity) + 1  # which is nobody's neighbour
        room = capacity[node] if i < nb_spots else above + 1
        if room <= above and not is_named(w, job, node):
            continue
        if node != last + 1 or w.order_weight[node] != weight:
            if kept > first:
                enough = size >= cores and kept - first >= w.nodes_min[job]
                if _is_better(weight, size, enough, best_weight, best_size, best_enough):
                    best, best_size, best_enough, best_weight = first, size, enough, weight
            if i == nb_spots:
                break
            first, weight, size = kept, w.order_weight[node], 0
        w.spots[kept], last = node, node
        kept += 1
        total += room
        size += room
        if room > above:
            least = room if least == above else min(least, room)
    return best, kept, total, least


@kernel
def _choose(w, job, part, nb_spots):
    """Choose nodes run by run of the first spots; their ``w.room_left`` is used up."""
    linear = w.linear != 0
    cores = w.nodes_min[job] if linear else w.cores[job]
    nodes, most, count, spare = w.nodes_wanted[job], w.nodes_max[job], 0, spare_nodes(w, job)
    # slurm.conf(5), CR_LLN and LLN=YES: no runs, but the node with most left each time (_eval_nodes_lln)
    by_load = w.lln != 0 or w.part_lln[part] != 0
    if w.must_have[job] >= 0:
        if not by_load:
            return choose_with_named(w, job, nb_spots)
        if not take_named(w, job, nb_spots):
            return 0
        cores, nodes, count = w.wanted[CORES], w.wanted[NODES], w.wanted[TAKEN]
    while (cores > 0 or nodes > 0) and count < most:
        i, last = (-1, -1) if by_load else _best_run(w, nb_spots, cores, nodes - spare, linear)
        # the spot with the most free cores, of the lowest weight
        roomiest, lightest = 0, 0
        for k in range(nb_spots if by_load else 0):
            room, weight = w.room_left[w.spots[k]], w.order_weight[w.spots[k]]
            if room > 0 and (i < 0 or weight < lightest or (weight == lightest and room > roomiest)):
                i, last, roomiest, lightest = k, k, room, weight
        if i < 0:
            break
        if nodes <= 1 and not linear:
            single = _tightest(w, i, last, cores)
            if single >= 0:
                i = last = single
        while i <= last and (cores > 0 or nodes > 0) and count < most:
            node = w.spots[i]
            # _eval_nodes: a node that is too small to be the job's last one is passed over
            too_small = not linear and count + 1 == most and w.room_left[node] < cores
            if w.room_left[node] > 0 and not too_small:
                taken = cores_to_take(w.room_left[node], w.per_task[job], cores, nodes - spare)
                w.chosen[count], w.chosen_cores[count] = node, taken
                count += 1
                cores -= taken
                nodes -= 1
            w.room_left[node] = 0
            i += 1
    return 0 if cores > 0 or nodes > spare else count


@kernel
def _best_run(w, nb_spots, cores, nodes, linear):
    """The first and last spot of the run of neighbours to take from; (-1, -1) where there is none."""
    best_first, best_last, best_size, best_enough, best_weight = -1, -1, 0, False, NO_WEIGHT
    i = 0
    while i < nb_spots:
        node, first, size = w.spots[i], i, 0
        if w.room_left[node] <= 0:
            i += 1
            continue
        weight = 0 if linear else w.order_weight[node]
        while i < nb_spots and w.spots[i] == node + i - first and w.room_left[w.spots[i]] > 0:
            # in select/cons_tres a run ends where Weight changes, in select/linear it does not
            if not linear and w.order_weight[w.spots[i]] != weight:
                break
            size += w.room_left[w.spots[i]]
            i += 1
        enough = size >= cores and i - first >= nodes
        if _is_better(weight, size, enough, best_weight, best_size, best_enough):
            best_first, best_last, best_size, best_enough, best_weight = first, i - 1, size, enough, weight
    return best_first, best_last


@kernel
def _is_better(weight, size, enough, best_weight, best_size, best_enough):
    """Whether a run goes before the best: of less weight, or else the smallest that is enough, else the largest."""
    # _eval_nodes: weight, then the tightest run that is enough, else the largest. All of 704 jobs that 22.05.8 placed
    # went where this says; from 26.05 on a job of one node gets the first that fits, which this model does not know
    if weight != best_weight:
        return weight < best_weight
    if enough:
        return not best_enough or size < best_size
    return not best_enough and size > best_size


@kernel
def _tightest(w, first, last, cores):
    """The spot of the run that holds the job with the least room to spare; -1 where none holds it."""
    best, least = -1, 0
    for i in range(first, last + 1):
        room = w.room_left[w.spots[i]]
        if room >= cores and (best < 0 or room < least):
            best, least = i, room
    return best


@kernel
def _share_out(w, job, count):
    """Tasks in turn over the chosen nodes, up to what was taken of each: of a range of nodes that may be too much."""
    # _dist_tasks_compute_c_b of select/cons_tres: one for each node, then one more for each that has the cores
    per_task, left = w.per_task[job], max(count, w.cores[job] // w.per_task[job])
    for i in range(count):
        w.room_left[w.chosen[i]], w.chosen_cores[i] = w.chosen_cores[i], 0
    given = 1
    while left > 0 and given > 0:
        given = 0
        for i in range(count):
            free = w.room_left[w.chosen[i]] - w.chosen_cores[i]
            if left > 0 and free > 0 and free >= min(per_task, w.room_left[w.chosen[i]]):
                w.chosen_cores[i] += min(per_task, free)
                left -= 1
                given += 1


# A job that names some nodes and needs more: those, then neighbours in runs, also of the named ones.


@kernel
def choose_with_named(w, job, nb_spots):
    """Choose nodes of the first spots, whose ``w.room_left`` is used up; how many, 0 where they are not enough."""
    if not take_named(w, job, nb_spots):
        return 0
    while not is_enough(w) and w.wanted[MOST] > 0:
        first, last, named = _best_named_run(w, job, nb_spots)
        if first < 0:
            break
        # on shared nodes a job that fits on one node gets the tightest one of the run
        if named < 0 and w.wanted[NODES] <= 1 and w.linear == 0:
            single = _tightest(w, first, last, w.wanted[CORES])
            if single >= 0:
                first = last = single
        # from the named node to the right, then to the left of it
        begin = first if named < 0 else named
        for i in range(begin, last + 1):
            _take(w, job, i)
        for i in range(begin - 1, first - 1, -1):
            _take(w, job, i)
        for i in range(first, last + 1):
            w.room_left[w.spots[i]] = 0
    return w.wanted[TAKEN] if will_do(w, job) else 0


@kernel
def _take(w, job, i):
    if w.room_left[w.spots[i]] > 0 and not is_enough(w) and w.wanted[MOST] > 0:
        take_node(w, job, w.spots[i])


@kernel
def _best_named_run(w, job, nb_spots):
    """The run to take from: first and last spot, and the first one that the job names (-1); (-1, -1, -1) for none.

    Named nodes join their neighbours to one run. On shared nodes a run has one weight.
    """
    best = (-1, -1, -1, NO_WEIGHT, 0, 0)
    linear = w.linear != 0
    first, named, weight, size, nodes, begun_by_weight = -1, -1, -1, 0, 0, False
    for i in range(nb_spots + 1):
        node = w.spots[i] if i < nb_spots else -1
        mine = node >= 0 and is_named(w, job, node)
        joins = i > 0 and node == w.spots[i - 1] + 1 and (mine or w.room_left[node] > 0)
        other_weight = joins and not linear and weight >= 0 and w.order_weight[node] != weight
        if not joins or other_weight:
            best = _better(w, job, (first, i - 1, named, weight, size, nodes), best)
            named, weight, size, nodes, begun_by_weight = -1, -1, 0, 0, other_weight
        if mine:
            named = i if named < 0 else named
        elif node >= 0 and w.room_left[node] > 0:
            if nodes == 0:
                first, weight = i, 0 if linear else w.order_weight[node]
                named = -1 if begun_by_weight else named  # as Slurm forgets it
            nodes += 1
            size += w.room_left[node]
    return best[:3]


@kernel
def _better(w, job, run, best):
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
    if _has_all(w, job, size, nodes) and _has_all(w, job, best_size, best_nodes):
        return run if size < best_size else best
    return run if _has_all(w, job, size, nodes) or size > best_size else best


@kernel
def _has_all(w, job, size, nodes):
    """Whether a run has as much room, on as many nodes, as is wanted."""
    return size >= w.wanted[CORES] and nodes >= w.wanted[NODES] - spare_nodes(w, job)


# A trial: nodes as the test of one job sees them. What ends in it is free; then nodes are measured and chosen.


@kernel
def begin_trial(w):
    """Copy what is free, for a trial; where jobs get whole nodes, only who is on them counts."""
    w.trial_jobs[:] = w.nb_jobs
    w.order_weight[:] = w.node_weight
    if w.linear == 0:
        w.trial_cores[:] = w.free_cores
        w.trial_memory[:] = w.free_memory
        w.trial_gres[:] = w.free_gres


@kernel
def put_completing_last(w):
    """Let nodes on which a job completes weigh more than all others of the same weight, in this trial."""
    for node in range(len(w.order_weight)):
        w.order_weight[node] = 2 * w.node_weight[node] + (w.nb_completing[node] != 0)


@kernel
def end_in_trial(w, job):
    """Take a running job away in the trial."""
    at = w.alloc_begin[job]
    for i in range(at, at + w.alloc_count[job]):
        node, cores = w.alloc_node[i], w.alloc_cores[i]
        w.trial_jobs[node] -= 1
        w.trial_cores[node] += cores
        w.trial_memory[node] += memory_on(w, job, node, cores)
        for kind in range(w.gres.shape[1]):
            w.trial_gres[node, kind] += w.gres[job, kind]


@kernel
def measure_nodes(w, job, mask):
    """Fill ``w.capacity`` with the cores that the job can have on each node of the bitmap in the trial; their sum."""
    total, w.capacity[:] = 0, 0
    for node in range(len(w.capacity)):
        if has_host(mask, node):
            w.capacity[node] = room_on(w, job, node)
            total += w.capacity[node]
    return total


@kernel
def room_on(w, job, node):
    """The cores that a job can have on a node in the trial; it is asked so often that divisions show."""
    # by select/linear a node is one unit, and shared by nobody
    linear = w.linear != 0
    if w.trial_jobs[node] != 0 and (linear or w.exclusive[job] != 0):
        return 0
    if linear:
        return 1
    # fewer than none where a reservation takes cores on which jobs still run
    room = max(0, min(w.trial_cores[node], w.per_node[job]))
    # SelectTypeParameters=CR_*_Memory: --mem-per-cpu takes cores away, --mem the node
    if w.has_memory != 0 and w.memory[job] == ALL_OF_NODE and w.trial_memory[node] < w.node_memory[node]:
        room = 0
    if w.has_memory != 0 and w.memory[job] > 0:
        memory = w.trial_memory[node]
        if w.memory_per_core[job] == 0:
            room = room if memory >= w.memory[job] else 0
        elif memory < room * w.memory[job]:
            room = memory // w.memory[job]
    for kind in range(w.gres.shape[1]):
        if w.trial_gres[node, kind] < w.gres[job, kind]:
            room = 0
    if w.per_task[job] == 1:
        return room
    # a node counts in whole tasks where tasks per node or memory per core say so, else with what is left over, too
    whole = room // w.per_task[job] * w.per_task[job]
    return room if whole > 0 and w.in_tasks[job] == 0 else whole


@kernel
def begin_trial_without_completing(w):
    """Copy what is free, and what completing jobs still hold."""
    begin_trial(w)
    for i in range(w.nb_completing_jobs):
        end_in_trial(w, w.completing[i])


@kernel
def give_back(w, i, k):
    """Give back in the trial part `k` of all that is held, which the running job at place `i` holds."""
    node = w.held_node[k]
    w.trial_jobs[node] -= 1
    w.trial_cores[node] += w.held_cores[k]
    w.trial_memory[node] += w.held_memory[k]
    for kind in range(w.gres.shape[1]):
        w.trial_gres[node, kind] += w.gres[w.by_end[i], kind]
