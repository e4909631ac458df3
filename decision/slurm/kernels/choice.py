"""Which nodes a job gets: runs of neighbours, the lowest weight, then the tightest run that is enough."""

from decision.jit import kernel
from decision.state.bitmap import has_host

from .world import HAS_MEMORY, LINEAR, LLN


@kernel
def measure(w, job, mask, cores, memory, gres, busy):
    """Fill ``w.capacity`` with the cores that the job can have on each node of the bitmap; returns their sum.

    Args:
        w: the world.
        job: its number.
        mask: (W,) nodes that may be used.
        cores: (N,) free cores.
        memory: (N,) free megabytes.
        gres: (N, G) free generic resources.
        busy: (N,) jobs that hold a part of a node.
    """
    total = 0
    whole = w.parameters[LINEAR] != 0 or w.exclusive[job] != 0
    for node in range(len(cores)):
        room = 0
        if has_host(mask, node) and not (whole and busy[node] != 0):
            room = _room(w, job, node, cores, memory, gres)
        w.capacity[node] = room
        total += room
    return total


@kernel
def _room(w, job, node, cores, memory, gres):
    if w.parameters[LINEAR] != 0:
        return 1
    room = min(cores[node], w.per_node[job])
    if w.parameters[HAS_MEMORY] != 0 and w.memory[job] > 0:
        if w.memory_per_core[job] != 0:
            room = min(room, memory[node] // w.memory[job])
        elif memory[node] < w.memory[job]:
            room = 0
    for kind in range(gres.shape[1]):
        if gres[node, kind] < w.gres[job, kind]:
            room = 0
    return room // w.per_task[job] * w.per_task[job]


@kernel
def choose(w, job, part):
    """Choose nodes by ``w.capacity``: into ``w.chosen`` and ``w.chosen_cores``; returns how many, 0 where none fit.

    Nodes of the lowest weights are tried by themselves first.
    """
    capacity = w.capacity
    if len(w.weight_steps) == 1:
        return _choose_enough(w, job, part, capacity)
    for weight in w.weight_steps:
        room = capacity.copy()
        for node in range(len(room)):
            if w.node_weight[node] > weight:
                room[node] = 0
        found = _choose_enough(w, job, part, room)
        if found:
            return found
    return 0


@kernel
def _choose_enough(w, job, part, capacity):
    """As `choose`; where it fails, the nodes with the least room are left out step by step."""
    cores, total, nodes, largest = w.cores[job], 0, 0, 0
    for space in capacity:
        total += space
        nodes += space > 0
        largest = max(largest, space)
    needed = w.nodes_min[job] if w.parameters[LINEAR] != 0 else cores
    if min(total, largest * w.nodes_max[job]) < needed or nodes < w.nodes_min[job]:
        return 0
    room = capacity.copy()
    while True:
        found = _choose(w, job, part, room.copy())
        if found or w.parameters[LINEAR] != 0:
            return found
        least = 0
        for node in range(len(room)):
            if room[node] > 0 and (least == 0 or room[node] < least):
                least = room[node]
        if least == 0:
            return 0
        for node in range(len(room)):
            if room[node] == least:
                total -= least
                room[node] = 0
        if total < needed:
            return 0


@kernel
def _choose(w, job, part, room):
    """Choose nodes run by run; `room` is used up."""
    linear = w.parameters[LINEAR] != 0
    cores = w.nodes_min[job] if linear else w.cores[job]
    nodes, most, count = w.nodes_min[job], w.nodes_max[job], 0
    by_load = w.parameters[LLN] != 0 or w.part_lln[part] != 0
    while (cores > 0 or nodes > 0) and count < most:
        first, last = _roomiest(w, room) if by_load else _best_run(w, room, cores, nodes, linear)
        if first < 0:
            return 0
        if nodes <= 1 and not linear:
            single = _tightest(room, first, last, cores)
            if single >= 0:
                first = last = single
        node = first
        while node <= last and (cores > 0 or nodes > 0) and count < most:
            if room[node] > 0:
                kept_back = max(0, nodes - 1) * w.per_task[job]  # for the nodes that must follow
                taken = min(room[node], max(w.per_task[job], cores - kept_back))
                w.chosen[count], w.chosen_cores[count] = node, taken
                count += 1
                cores -= taken
                nodes -= 1
            room[node] = 0
            node += 1
    if cores > 0 or nodes > 0:
        return 0
    _take_whole(w, job, count)
    return count


@kernel
def _best_run(w, room, cores, nodes, linear):
    """The first and last node of the run to take from; (-1, -1) where there is none."""
    best_first, best_last, best_size, best_enough, best_weight = -1, -1, 0, False, 0
    node, end = 0, len(room)
    while node < end:
        if room[node] <= 0:
            node += 1
            continue
        first, weight, size, length = node, w.node_weight[node], 0, 0
        while node < end and room[node] > 0 and (linear or w.node_weight[node] == weight):
            size += room[node]
            length += 1
            node += 1
        enough = size >= cores and length >= nodes
        better = best_first < 0 or (not linear and weight < best_weight)
        if not better and (linear or weight == best_weight):
            if enough:
                better = not best_enough or size < best_size
            else:
                better = not best_enough and size > best_size
        if better:
            best_first, best_last, best_size, best_enough, best_weight = first, node - 1, size, enough, weight
    return best_first, best_last


@kernel
def _roomiest(w, room):
    """The node with the most free cores, of the lowest weight."""
    best = -1
    for node in range(len(room)):
        if room[node] > 0:
            heavier = best >= 0 and w.node_weight[node] > w.node_weight[best]
            if best < 0 or (not heavier and room[node] > room[best]) or w.node_weight[node] < w.node_weight[best]:
                best = node
    return best, best


@kernel
def _tightest(room, first, last, cores):
    """The node of the run that holds the job with the least room to spare; -1 where none holds it."""
    best = -1
    for node in range(first, last + 1):
        if room[node] >= cores and (best < 0 or room[node] < room[best]):
            best = node
    return best


@kernel
def _take_whole(w, job, count):
    """An exclusive job has all cores of its nodes."""
    if w.exclusive[job] != 0 and w.parameters[LINEAR] == 0:
        for i in range(count):
            w.chosen_cores[i] = w.node_cores[w.chosen[i]]
