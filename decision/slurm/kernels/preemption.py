"""Jobs that give way: by tier of their partition or by QOS."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host

from .allocate import end_job, join_queue
from .select_nodes import choose_nodes
from .world import CANCELLED_JOB, FAR

# Nodes as a test of one job sees them: what ends in it is free, and how much of a job each takes.


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


_REQUEUE_DELAY = 121  # seconds after its nodes are back in which a requeued job is not eligible
_REQUEUED = 1  # SlurmWorld.part_gives_way
_CHECKED = 30  # seconds from one look at the ends of running jobs to the next


@kernel
def way_of(w, job):
    """How a running job gives way: 0: never, 1: it is requeued, 2: cancelled."""
    if w.preempts_by == 1:
        return w.part_gives_way[w.part_of[job]]
    return w.quality_gives_way[w.quality[job]] if w.preempts_by != 0 and w.quality[job] >= 0 else 0


@kernel
def gives_way(w, job, to):
    """Whether a running job gives way to an entry."""
    if way_of(w, job) == 0 or w.now < w.start[job] + w.exempt[job]:
        return False
    if w.preempts_by == 1:
        return w.part_tier[w.part_of[job]] < w.part_tier[w.entry_part[to]]
    mine, other = w.quality[job], w.quality[w.entry_job[to]]
    return mine >= 0 and other >= 0 and w.quality_preempts[other, mine] != 0


@kernel
def find_candidates(w, entry):
    """The running jobs that may give way into ``w.candidates``, those that go first in front; returns how many."""
    count = 0
    for i in range(w.nb_running):
        job = w.running[i]
        if gives_way(w, job, entry) and _overlaps(w, job, w.usable):
            w.candidates[count] = job
            count += 1
    keys = np.empty(count, np.int64)
    for i in range(count):
        job = w.candidates[i]
        rank = w.part_tier[w.part_of[job]] if w.preempts_by == 1 else w.quality_order[w.quality[job]]
        keys[i] = -w.start[job] if w.preempt_youngest_first != 0 else (rank << 16) + min(w.alloc_count[job], 65535)
    order = np.argsort(keys, kind="mergesort")
    w.candidates[:count] = w.candidates[:count][order]
    return count


@kernel
def _overlaps(w, job, mask):
    return _common(w, job, mask) > 0


@kernel
def _common(w, job, mask):
    count, at = 0, w.alloc_begin[job]
    for i in range(at, at + w.alloc_count[job]):
        count += has_host(mask, w.alloc_node[i])
    return count


@kernel
def _free_until_fits(w, entry, count):
    """Take candidates away in order until the job fits; how many it took, 0 where all are not enough."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    begin_trial(w)
    for i in range(count):
        end_in_trial(w, w.candidates[i])
        measure_nodes(w, job, w.usable)
        if choose_nodes(w, job, part) > 0:
            return i + 1
    return 0


@kernel
def make_room(w, entry, now):
    """Preempt so that an entry fits on ``w.usable`` when the nodes are back; whether that is possible."""
    count = find_candidates(w, entry)
    if count == 0:
        return False
    taken = _free_until_fits(w, entry, count)
    if taken == 0:
        return False
    taken = _fewest(w, entry, taken)
    chosen = np.zeros(len(w.usable), np.uint64)
    _mark_chosen(w, entry, chosen)
    victims = w.candidates[:taken].copy()
    for victim in victims:
        if _overlaps(w, victim, chosen):
            _preempt(w, victim, now)
    return True


@kernel
def _mark_chosen(w, entry, chosen):
    job = w.entry_job[entry]
    count = choose_nodes(w, job, w.entry_part[entry])
    for i in range(count):
        node = w.chosen[i]
        chosen[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@kernel
def _fewest(w, entry, taken):
    """Order candidates by how many of the chosen nodes they have, and try again; how many it takes."""
    chosen = np.zeros(len(w.usable), np.uint64)
    _mark_chosen(w, entry, chosen)
    keys = np.empty(taken, np.int64)
    for i in range(taken):
        keys[i] = -_common(w, w.candidates[i], chosen)
    order = np.argsort(keys, kind="mergesort")
    w.candidates[:taken] = w.candidates[:taken][order]
    return max(1, _free_until_fits(w, entry, taken))


@kernel
def _preempt(w, job, now):
    """A running job gives way: it is requeued or cancelled, when the time of grace that it has is over."""
    if w.grace_end[job] == FAR:
        grace = w.part_grace[w.part_of[job]] if w.preempts_by == 1 else w.quality_grace[w.quality[job]]
        w.grace_end[job] = w.expected_end[job] = min(w.expected_end[job], now + grace)
        w.changed = 1
        if grace > 0:
            return
    if now < w.grace_end[job]:
        return
    w.grace_end[job] = FAR
    again = way_of(w, job) == _REQUEUED and w.runs_once[job] == 0
    w.killed[w.nb_killed] = job
    w.nb_killed += 1
    end_job(w, job, now)
    if not again:
        w.status[job] = CANCELLED_JOB
        return
    w.requeues[job] += 1
    w.recorded[job] = -1
    w.eligible[job] = FAR
    w.submit[job] = now


@kernel
def next_check(w, at):
    """When slurmctld next looks at the ends of running jobs, from a time on."""
    return at + (w.last_full - at) % _CHECKED


@kernel
def end_grace(w, now):
    """End jobs whose time of grace is over, when slurmctld looks at the ends of jobs."""
    i = 0
    while i < w.nb_running:
        job = w.running[i]
        if w.grace_end[job] < FAR and next_check(w, w.grace_end[job]) <= now:
            _preempt(w, job, now)
        else:
            i += 1


@kernel
def requeue(w, job, now):
    """The nodes of a preempted job are back: it waits again, not eligible for a while."""
    w.submit[job], w.begin[job], w.eligible[job] = now, now + _REQUEUE_DELAY, FAR
    join_queue(w, job)
