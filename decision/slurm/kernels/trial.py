"""Nodes as a test of one job sees them: what ends in it is free, and how much of a job each takes."""

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host


@kernel
def begin_trial(w):
    """Copy what is free, for a trial."""
    w.trial_cores[:] = w.free_cores
    w.trial_memory[:] = w.free_memory
    w.trial_gres[:] = w.free_gres
    w.trial_jobs[:] = w.nb_jobs


@kernel
def end_in_trial(w, job):
    """Take a running job away in the trial."""
    at = w.alloc_begin[job]
    for i in range(at, at + w.alloc_count[job]):
        node, cores = w.alloc_node[i], w.alloc_cores[i]
        w.trial_jobs[node] -= 1
        w.trial_cores[node] += cores
        w.trial_memory[node] += w.memory[job] * cores if w.memory_per_core[job] != 0 else w.memory[job]
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
    linear = w.linear != 0
    if w.trial_jobs[node] != 0 and (linear or w.exclusive[job] != 0):
        return 0
    if linear:
        return 1
    room = min(w.trial_cores[node], w.per_node[job])
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
