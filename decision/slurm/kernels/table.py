"""The table of a cycle of backfill: slots of time, and in each the nodes that no plan takes.

A plan uses up to two records of the table, and when bf_node_space_size of them are used the cycle is over. A record
stays used when two neighbours that have become equal are joined.
"""

import numpy as np

from decision.compiling.jit import kernel


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
