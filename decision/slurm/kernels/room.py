"""From when on each node alone has room enough for a job, found once for all jobs that ask for the same."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host

from .trial import begin_trial_without_completing, give_back, room_on
from .world import FAR


@kernel
def sort_running(w):
    """Running jobs by expected end into ``w.by_end``, and what they hold in that order: it is read very often."""
    count, at = w.nb_running, 0
    w.running_stamp += 1
    order = np.argsort(w.expected_end[w.running[:count]], kind="mergesort")
    for i in range(count):
        job = w.running[order[i]]
        w.by_end[i], w.ends[i], w.held_begin[i] = job, w.expected_end[job], at
        for k in range(w.alloc_begin[job], w.alloc_begin[job] + w.alloc_count[job]):
            cores = w.alloc_cores[k]
            w.held_node[at], w.held_cores[at] = w.alloc_node[k], cores
            w.held_memory[at] = w.memory[job] * cores if w.memory_per_core[job] != 0 else w.memory[job]
            at += 1
    w.held_begin[count] = at


@kernel
def find_room(w, entry):
    """From when on each node has the room that a node of the job must have: a row of ``w.room_from``.

    Now is 0, later is the expected end of a running job, and never is beyond `FAR`. ``w.room_order`` has the nodes by
    time. What was found for an entry that asks for the same is kept until running jobs change.

    Returns:
        How many such nodes the job needs at least; 0 where nothing can be said, because running jobs may give way.
    """
    job = w.entry_job[entry]
    if w.preempts_by != 0:
        return 0
    linear = w.linear != 0
    needed = w.nodes_min[job] if linear else w.cores[job]
    largest = 1 if linear else min(w.per_node[job], w.largest_node)
    row = w.entry_kind[entry] % len(w.room_kind)
    if w.room_kind[row] != w.entry_kind[entry] or w.room_stamp[row] != w.running_stamp:
        w.room_kind[row], w.room_stamp[row] = w.entry_kind[entry], w.running_stamp
        # the other nodes of the job give as much as the largest node at most
        _fill_row(w, entry, row, max(1, needed - (w.nodes_max[job] - 1) * largest))
    w.room_row = row
    return max(w.nodes_min[job], (needed + largest - 1) // largest)


@kernel
def _fill_row(w, entry, row, least):
    """Find from when on each node has room for so many cores."""
    job, mask = w.entry_job[entry], w.masks[w.entry_mask[entry]]
    w.room_from[row] = FAR + 1
    w.nb_roomy[row] = 0
    begin_trial_without_completing(w)
    for node in range(len(w.capacity)):
        if has_host(mask, node) and room_on(w, job, node) >= least:
            _note_room(w, row, node, 0)
    possible = count_hosts(mask)
    for i in range(w.nb_running):
        if w.nb_roomy[row] == possible:
            break
        for k in range(w.held_begin[i], w.held_begin[i + 1]):
            node = w.held_node[k]
            give_back(w, i, k)
            if w.room_from[row, node] > FAR and has_host(mask, node) and room_on(w, job, node) >= least:
                _note_room(w, row, node, w.ends[i])


@kernel
def _note_room(w, row, node, at):
    w.room_from[row, node] = at
    w.room_order[row, w.nb_roomy[row]] = node
    w.nb_roomy[row] += 1
