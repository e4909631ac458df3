"""The main loop: the queue in order, and what a job that does not fit closes to those behind it."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host, insert_interval, remove_interval

from . import world as at
from .allocate import (
    begin_on_nodes,
    has_licences,
    has_named,
    is_eligible,
    let_arrays_age,
    within_amounts,
    within_counts,
)
from .preemption import begin_trial, make_room, measure_nodes
from .select_nodes import choose_nodes

# The table of a cycle of backfill: slots of time, and in each the nodes that no plan takes.
#
# A plan uses up to two records of the table, and when bf_node_space_size of them are used the cycle is over. A record
# stays used when two neighbours that have become equal are joined.


@kernel
def begin_table(w, now):
    """One slot from now to the end of the window: all nodes are free, but those that are down or will be reserved."""
    step = w.bf_resolution
    w.slot_begin[0] = now // step * step
    w.slot_end[0] = (now + w.bf_window) // step * step
    w.slot_mask[0] = ~np.uint64(0)
    w.slot_licences[0] = w.licence_total
    w.nb_slots = 1
    mask = np.zeros(len(w.open), np.uint64)
    for node in range(len(w.away)):
        if w.away[node] > (w.reserved_by[node] >= 0):
            w.slot_mask[0, node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
    for i in range(len(w.window_times)):
        planned = w.window_step[i] > 0 and w.window_reservation[i] >= 0
        if planned and w.window_times[i] <= now + w.bf_window:
            end = window_end(w, i)
            if end > now:
                node = w.window_node[i]
                mask[:] = 0
                mask[node >> 6] = np.uint64(1) << np.uint64(node & 63)
                reserve_slots(w, w.window_times[i], end, mask, -1)
    w.nb_records = 1


@kernel
def window_end(w, i):
    """When a window that begins as entry `i` ends."""
    for k in range(i + 1, len(w.window_times)):
        same = w.window_node[k] == w.window_node[i] and w.window_reservation[k] == w.window_reservation[i]
        if same and w.window_step[k] < 0:
            return w.window_times[k]
    return w.window_times[i]


@kernel
def usable_from(w, job, mask, begin, end):
    """Nodes of the mask free of plans from `begin` to `end` into ``w.usable``.

    Returns:
        When more nodes or licences come free, 0: never; and whether there are licences enough for the job.
    """
    later, licensed, nb_slots = 0, True, w.nb_slots
    for word in range(len(mask)):
        w.usable[word] = mask[word]
    for k in range(np.searchsorted(w.slot_end[:nb_slots], begin, "right"), nb_slots):
        if later == 0 and k + 1 < nb_slots:
            gains = np.uint64(0)
            for word in range(len(mask)):
                gains |= mask[word] & w.slot_mask[k + 1, word] & ~(w.usable[word] & w.slot_mask[k, word])
            if gains != 0:
                later = w.slot_end[k]
        if w.slot_begin[k] > end:
            break
        left = np.uint64(0)
        for word in range(len(mask)):
            w.usable[word] &= w.slot_mask[k, word]
            left |= w.usable[word]
        if not _has_licences(w, k, job):
            licensed, later = False, w.slot_end[k]
        elif left == 0 and later > 0:
            break
    return later, licensed


@kernel
def _has_licences(w, slot, job):
    enough = True
    for kind in range(len(w.licence_total)):
        enough &= w.slot_licences[slot, kind] >= w.job_licences[job, kind]
    return enough


@kernel
def is_planned(w, job, begin, end, mask):
    """Whether a node of the mask, or a licence that the job needs, is planned between."""
    for k in range(w.nb_slots):
        if w.slot_end[k] > begin and w.slot_begin[k] < end:
            if not _has_licences(w, k, job):
                return True
            for word in range(len(mask)):
                if mask[word] & ~w.slot_mask[k, word] != 0:
                    return True
    return False


@kernel
def reserve_slots(w, begin, end, mask, job):
    """Take the nodes of the mask and a job's licences out of the slots between, for one bf_resolution at least."""
    begin = max(begin, w.slot_begin[0])
    end = max(end, begin + w.bf_resolution)
    at = 0
    while at < w.nb_slots and w.slot_end[at] < begin:
        at += 1
    if at == w.nb_slots:
        return
    first = max(0, at - 1)
    if w.slot_end[at] > begin:
        _split(w, at, begin)
    last = -1
    for k in range(at + 1, w.nb_slots):
        if end < w.slot_end[k]:
            _split(w, k, end)
        for word in range(len(mask)):
            w.slot_mask[k, word] &= ~mask[word]
        for kind in range(len(w.licence_total) if job >= 0 else 0):
            w.slot_licences[k, kind] = max(0, w.slot_licences[k, kind] - w.job_licences[job, kind])
        if w.slot_end[k] == end:
            last = k + 1
            break
    _join(w, first, last)


@kernel
def _split(w, at, time):
    """Split a slot in two at a time; the first one may become empty."""
    for i in range(w.nb_slots, at, -1):
        w.slot_begin[i], w.slot_end[i] = w.slot_begin[i - 1], w.slot_end[i - 1]
        for word in range(w.slot_mask.shape[1]):
            w.slot_mask[i, word] = w.slot_mask[i - 1, word]
        w.slot_licences[i] = w.slot_licences[i - 1]
    w.slot_end[at] = w.slot_begin[at + 1] = time
    w.nb_slots += 1
    w.nb_records += 1


@kernel
def _is_same(w, one, other):
    apart = np.uint64(0)
    for word in range(w.slot_mask.shape[1]):
        apart |= w.slot_mask[one, word] ^ w.slot_mask[other, word]
    for kind in range(len(w.licence_total)):
        apart |= np.uint64(w.slot_licences[one, kind] != w.slot_licences[other, kind])
    return apart == 0


@kernel
def _join(w, first, last):
    """Join the first two equal neighbours from one slot up to another."""
    i = first
    while i != last and i + 1 < w.nb_slots:
        if _is_same(w, i, i + 1):
            w.slot_end[i] = w.slot_end[i + 1]
            for k in range(i + 1, w.nb_slots - 1):
                w.slot_begin[k], w.slot_end[k] = w.slot_begin[k + 1], w.slot_end[k + 1]
                for word in range(w.slot_mask.shape[1]):
                    w.slot_mask[k, word] = w.slot_mask[k + 1, word]
                w.slot_licences[k] = w.slot_licences[k + 1]
            w.nb_slots -= 1
            return
        i += 1


_ABOVE_TIERS = 58  # bits


@kernel
def sort_pending(w):
    """Put waiting jobs in order: in a reservation or not, tier, priority, submission; returns how many there are."""
    count = w.nb_pending
    if w.unsorted == 0:
        kept = 0
        for i in range(len(w.queue)):
            entry = w.queue[i]
            if entry < 0:
                break
            if w.status[w.entry_job[entry]] == at.PENDING_JOB:
                w.queue[kept] = entry
                kept += 1
        if kept < len(w.queue):
            w.queue[kept] = -1
        return kept
    w.unsorted = 0
    keys = np.empty(count, np.int64)
    for i in range(count):
        entry = w.pending[i]
        tier = 0 if w.fifo != 0 else w.part_tier[w.entry_part[entry]]
        reserved = w.reservation[w.entry_job[entry]] >= 0
        keys[i] = -((reserved << _ABOVE_TIERS) + (tier << 40) + w.priority[entry])
    order = np.argsort(keys, kind="mergesort")
    for i in range(count):
        w.queue[i] = w.pending[order[i]]
    if count < len(w.queue):
        w.queue[count] = -1
    return count


@kernel
def set_free(w, with_completing):
    """The nodes on which a job could start: in service, and with something left.

    A node on which any part of a job completes starts nothing, but a plan counts on it.
    """
    linear = w.linear != 0
    w.free_now[:] = 0
    for node in range(len(w.node_cores)):
        completing = w.nb_completing[node]
        if linear:
            free = w.nb_jobs[node] == 0 or (with_completing and w.nb_jobs[node] == completing)
        else:
            free = with_completing or (w.free_cores[node] > 0 and completing == 0)
        if free and w.away[node] == 0:
            insert_interval(w.free_now, node, node)


@kernel
def leave_out_taken(w, count):
    """Nodes just chosen that have nothing left are no longer free."""
    linear = w.linear != 0
    for i in range(count):
        node = w.chosen[i]
        if linear or w.free_cores[node] <= 0:
            remove_interval(w.free_now, node, node)


@kernel
def main_loop(w, now, full):
    """Look at the queue once: all of it, or as deep as default_queue_depth says."""
    length = sort_pending(w)
    if length == 0:
        return
    set_free(w, False)
    let_arrays_age(w, now)
    w.open[:] = ~np.uint64(0)
    w.failed[:] = 0
    w.seen_part[:] = 0
    w.rejected[:] = 0
    looked, started = 0, 0
    for i in range(length):
        entry = w.queue[i]
        job, part = w.entry_job[entry], w.entry_part[entry]
        if w.status[job] != at.PENDING_JOB or not is_eligible(w, job, now):
            continue
        if is_rejected(w, job, part):
            continue
        if not _depth_lets(w, part):
            continue
        if not full and looked > w.default_queue_depth:
            break
        looked += 1
        if len(w.licence_total) and w.failed[part] == 0 and not has_licences(w, job):
            break  # backfill plans the licences
        reserved = w.reservation[job] >= 0
        if _look_in_reservation(w, entry, now) if reserved else w.failed[part] == 0 and _look(w, entry, now):
            started += 1
            clear_rejected(w, job)
            if started == w.sched_max_job_start:
                break


@kernel
def _depth_lets(w, part):
    """Whether fewer jobs of the partition than partition_job_depth were looked at; if so, one more is."""
    if w.partition_job_depth <= 0:
        return True
    w.seen_part[part] += 1
    return w.seen_part[part] <= w.partition_job_depth


@kernel
def is_rejected(w, job, part):
    """Whether a task of the same array was just left waiting in the partition; if not, this one counts as it."""
    array = w.array[job]
    if array < 0:
        return False
    if w.rejected[array] == part + 1:
        return True
    w.rejected[array] = part + 1
    return False


@kernel
def clear_rejected(w, job):
    """A task of an array got what it wants: the next one is looked at."""
    if w.array[job] >= 0:
        w.rejected[w.array[job]] = 0


@kernel
def _look_in_reservation(w, entry, now):
    """Whether an entry starts on the nodes of its reservation; it closes nothing."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    mask = w.masks[w.entry_mask[entry]]
    w.usable[:] = 0
    for node in range(len(w.away)):
        idle = w.nb_jobs[node] == 0 if w.linear != 0 else w.nb_completing[node] == 0
        if has_host(mask, node) and idle and w.away[node] == 1 and w.reserved_by[node] == w.reservation[job]:
            insert_interval(w.usable, node, node)
    if not within_counts(w, job) or not within_amounts(w, job):
        return False
    begin_trial(w)
    measure_nodes(w, job, w.usable)
    count = choose_nodes(w, job, part)
    if count > 0:
        begin_on_nodes(w, job, part, count, now, at.BY_MAIN)
    return count > 0


@kernel
def _leave_out_reserved(w, mask, now, end):
    """Nodes that a reservation will take before a job that starts now would end."""
    for i in range(len(w.window_times)):
        if w.window_step[i] > 0 and w.window_reservation[i] >= 0 and w.window_times[i] < end:
            node = w.window_node[i]
            if has_host(mask, node) and window_end(w, i) > now:
                remove_interval(mask, node, node)


@kernel
def _look(w, entry, now):
    """Whether an entry starts; if it does not fit, its partition closes, or the nodes that it names."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    w.usable[:] = w.part_mask[part] & w.open
    has_room = count_hosts(w.usable) >= w.nodes_min[job]
    if not within_counts(w, job) or (has_room and not within_amounts(w, job)):
        if w.assoc_limit_stop != 0:
            _close(w, part)
        return False
    count = _try(w, entry, now) if has_room else 0
    if count > 0:
        begin_on_nodes(w, job, part, count, now, at.BY_MAIN)
        leave_out_taken(w, count)
        return True
    if w.needs_named[job] != 0:
        w.open[:] = w.open & ~w.masks[w.must_have[job]]
    elif count == 0 and _keeps_others_back(w, entry, now):
        _close(w, part)
    return False


@kernel
def _try(w, entry, now):
    """Choose nodes for an entry; how many, 0 where it must wait, -1 where it can never have enough of them."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    mask = w.masks[w.entry_mask[entry]]
    w.usable[:] = mask & w.open
    if not has_named(w, job, mask):
        return -1
    if count_hosts(w.usable) < w.nodes_min[job]:
        return 0 if count_hosts(mask) >= w.nodes_min[job] else -1
    w.usable[:] = w.usable & w.free_now
    _leave_out_reserved(w, w.usable, now, now + w.limit[job])
    if count_hosts(w.usable) >= w.nodes_min[job]:
        begin_trial(w)
        measure_nodes(w, job, w.usable)
        count = choose_nodes(w, job, part)
        if count > 0:
            return count
    if w.preempts_by != 0:
        w.usable[:] = mask & w.open
        make_room(w, entry, now)
    return 0


@kernel
def _keeps_others_back(w, entry, now):
    """Whether a job that does not fit closes its partition: not if it is young or of low priority."""
    job = w.entry_job[entry]
    young = w.bf_min_age_reserve > 0 and now - w.eligible[job] < w.bf_min_age_reserve
    return not young and not (w.bf_min_prio_reserve > 0 and w.priority[entry] < w.bf_min_prio_reserve)


@kernel
def _close(w, part):
    """Close a partition, and its nodes to all jobs that follow."""
    w.failed[part] = 1
    w.open[:] = w.open & ~w.part_mask[part]
