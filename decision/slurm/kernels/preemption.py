"""Jobs that give way: by tier of their partition or by QOS."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host

from .choice import begin_trial, choose, end_in_trial, measure
from .holding import end_job, join_queue
from .world import CANCELLED, FAR, NB_KILLED, NB_RUNNING, PREEMPTS, YOUNGEST

_REQUEUE_DELAY = 121  # seconds after its nodes are back in which a requeued job is not eligible
_REQUEUED = 1  # World.part_gives_way


@kernel
def gives_way(w, job, to):
    """Whether a running job gives way to an entry."""
    part = w.part_of[job]
    if w.part_gives_way[part] == 0:
        return False
    if w.parameters[PREEMPTS] == 1:
        return w.part_tier[part] < w.part_tier[w.entry_part[to]]
    mine, other = w.quality[job], w.quality[w.entry_job[to]]
    return mine >= 0 and other >= 0 and w.quality_preempts[other, mine] != 0


@kernel
def find_candidates(w, entry):
    """The running jobs that may give way into ``w.candidates``, those that go first in front; returns how many."""
    count = 0
    for i in range(w.timers[NB_RUNNING]):
        job = w.running[i]
        if gives_way(w, job, entry) and _overlaps(w, job, w.usable):
            w.candidates[count] = job
            count += 1
    keys = np.empty(count, np.int64)
    for i in range(count):
        job = w.candidates[i]
        rank = w.part_tier[w.part_of[job]] if w.parameters[PREEMPTS] == 1 else w.quality_order[w.quality[job]]
        keys[i] = -w.start[job] if w.parameters[YOUNGEST] != 0 else (rank << 16) + min(w.alloc_count[job], 65535)
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
        measure(w, job, w.usable)
        if choose(w, job, part) > 0:
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
    count = choose(w, job, w.entry_part[entry])
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
    """A running job gives way: it is requeued or cancelled."""
    again = w.part_gives_way[w.part_of[job]] == _REQUEUED
    w.killed[w.timers[NB_KILLED]] = job
    w.timers[NB_KILLED] += 1
    end_job(w, job, now)
    if not again:
        w.status[job] = CANCELLED
        return
    w.requeues[job] += 1
    w.recorded[job] = -1
    w.eligible[job] = FAR
    w.submit[job] = now


@kernel
def requeue(w, job, now):
    """The nodes of a preempted job are back: it waits again, not eligible for a while."""
    w.submit[job], w.begin[job], w.eligible[job] = now, now + _REQUEUE_DELAY, FAR
    join_queue(w, job)
