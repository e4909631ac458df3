"""A cycle of backfill: jobs in order, planned on whole nodes in a table of slots, started where the plan lets them.

A plan takes its nodes whole, also where jobs share nodes. Times are rounded down to bf_resolution. A start beyond
bf_window is no reservation, and a job without one keeps nobody back.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts

from . import world as at
from .allocate import begin_on_nodes, has_named, is_eligible, let_arrays_age, within_amounts, within_counts
from .main_loop import (
    begin_table,
    clear_rejected,
    is_planned,
    is_rejected,
    leave_out_taken,
    reserve_slots,
    set_free,
    sort_pending,
    usable_from,
)
from .preemption import make_room, way_of
from .will_run import BY_PREEMPTION, LATER, NOW_FREE, earliest_start, find_room, sort_running

# what became of a job
_NOTHING = 0
STARTED = 1
PLANNED = 2
NOT_TESTED = 3
TABLE_FULL = 4


@kernel
def backfill(w, now):
    """One cycle; returns how many jobs were tested."""
    length = sort_pending(w)
    if length == 0:
        return 0
    let_arrays_age(w, now)
    begin_table(w, now)
    set_free(w, True)
    sort_running(w)
    _forget_counts(w)
    if w.bf_running_job_reserve != 0:
        for i in range(w.nb_running):
            _keep_running(w, w.running[i])
    tested, started = 0, 0
    for i in range(length):
        if tested >= w.bf_max_job_test or _is_over(w, tested):
            break
        entry = w.queue[i]
        if not _is_next(w, entry, now):
            continue
        outcome = _place(w, entry, now)
        tested += outcome != NOT_TESTED
        if outcome == TABLE_FULL:
            break
        if outcome in (STARTED, PLANNED):
            clear_rejected(w, w.entry_job[entry])
        if outcome == STARTED:
            started += 1
            if started == w.bf_max_job_start:
                break
    return tested


@kernel
def _is_next(w, entry, now):
    """Whether a job waits for backfill and the limits of jobs and of a cycle let it be tested; if so, it counts."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    if w.status[job] != at.PENDING_JOB or not is_eligible(w, job, now) or w.reservation[job] >= 0:
        return False
    if not within_counts(w, job, len(w.licence_total) == 0) or is_rejected(w, job, part) or not _array_lets(w, job):
        return False
    return _counts_let(w, job, part)


@kernel
def _is_over(w, tested):
    """Whether the time of a cycle is over: what a test costs is known from the log, or 0."""
    passed = tested * w.test_cost
    limit = w.cycle_limit if w.bf_continue != 0 else w.yield_after
    return passed > 0 and passed >= min(limit, w.cycle_limit)


@kernel
def _forget_counts(w):
    w.seen_user[:] = 0
    w.seen_part[:] = 0
    w.seen_assoc[:] = 0
    w.seen_user_part[:] = 0
    w.seen_array[:] = 0
    w.rejected[:] = 0
    w.estimated[:] = 0
    w.kept_part[:] = 0


@kernel
def _array_lets(w, job):
    """Whether fewer tasks of a job's array than bf_max_job_array_resv have got a reservation."""
    return w.array[job] < 0 or w.seen_array[w.array[job]] < max(1, w.bf_max_job_array_resv)


@kernel
def _counts_let(w, job, part):
    """Whether the limits of a cycle let a job be tested; if so, it counts for its user, partition and association."""
    user, leaf = w.user[job], w.association[job]
    if (
        (w.bf_max_job_user > 0 and w.seen_user[user] >= w.bf_max_job_user)
        or (w.bf_max_job_part > 0 and w.seen_part[part] >= w.bf_max_job_part)
        or (w.bf_max_job_user_part > 0 and w.seen_user_part[user, part] >= w.bf_max_job_user_part)
        or (w.bf_max_job_assoc > 0 and leaf >= 0 and w.seen_assoc[leaf] >= w.bf_max_job_assoc)
    ):
        return False
    w.seen_user[user] += 1
    w.seen_part[part] += 1
    w.seen_user_part[user, part] += 1
    if leaf >= 0:
        w.seen_assoc[leaf] += 1
    return True


@kernel
def _place(w, entry, now):
    """Start a job, plan it, or leave it."""
    later, is_tested = now, False
    may_wait, fewest = _may_reserve(w, entry, now), find_room(w, entry)
    while True:
        found, count, how, later, tested = _start_from(w, entry, now, later, fewest)
        is_tested |= tested
        if found < 0:
            if later > 0 and may_wait:
                continue
            break
        if how == NOW_FREE:
            return _start_now(w, entry, count, now)
        if not may_wait and found > now:
            break
        if later > 0 and found > later:
            continue
        if how == BY_PREEMPTION:
            make_room(w, entry, now)
            sort_running(w)
        outcome, later = _plan(w, entry, found, count, now)
        if outcome != NOT_TESTED:
            return outcome
    return _NOTHING if is_tested else NOT_TESTED


@kernel
def _start_from(w, entry, now, begin, fewest):
    """The start of a job on the nodes that the table leaves to it from `begin` on.

    Returns:
        When it starts, -1 where it cannot; on how many nodes, and how; when the table leaves other nodes, 0 for never;
        whether nodes were tested.
    """
    job = w.entry_job[entry]
    later, licensed = usable_from(w, job, w.masks[w.entry_mask[entry]], begin, begin + w.limit[job])
    if not licensed or count_hosts(w.usable) < w.nodes_min[job] or not has_named(w, job, w.usable):
        return -1, 0, LATER, later, False
    found, count, how = earliest_start(w, entry, now, later, fewest)
    if found < 0:
        return -1, 0, LATER, later, True
    if found <= now and begin > now:
        how = LATER
    found = max(found, begin)
    if found <= now and _has_completing(w, count):
        found, how, later = now + 1, LATER, 0
    return found, count, how, later, True


@kernel
def _has_completing(w, count):
    """Whether a job still completes on one of the nodes chosen."""
    found = False
    for i in range(count):
        found |= w.nb_completing[w.chosen[i]] != 0
    return found


@kernel
def _start_now(w, entry, count, now):
    job, part = w.entry_job[entry], w.entry_part[entry]
    if not within_amounts(w, job) or not within_counts(w, job):
        return _NOTHING
    begin_on_nodes(w, job, part, count, now, at.BY_BACKFILL)
    leave_out_taken(w, count)
    _keep_running(w, job)
    sort_running(w)
    return STARTED


@kernel
def _keep_running(w, job):
    """The nodes of an exclusive job on shared nodes, and licences, stand in the table until the job's expected end."""
    whole = w.linear == 0 and w.exclusive[job] != 0 and way_of(w, job) == 0
    if (not whole and w.job_licences[job].sum() == 0) or w.nb_records >= w.table_size:
        return
    mask = np.zeros(len(w.usable), np.uint64)
    for i in range(w.alloc_begin[job], w.alloc_begin[job] + whole * w.alloc_count[job]):
        node = w.alloc_node[i]
        mask[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    reserve_slots(w, 0, w.expected_end[job] // w.bf_resolution * w.bf_resolution, mask, job)


@kernel
def _plan(w, entry, found, count, now):
    """Reserve the chosen nodes from `found` on; (NOT_TESTED, when to try again) where they are planned already."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    step = w.bf_resolution
    begin, end = found // step * step, (found + w.limit[job]) // step * step
    if found > now + w.bf_window:
        w.estimated[job] = 1
        return _NOTHING, 0
    mask = np.zeros(len(w.usable), np.uint64)
    for i in range(count):
        node = w.chosen[i]
        mask[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    if found > now and is_planned(w, job, begin, end, mask):
        return NOT_TESTED, found
    if not within_amounts(w, job):
        return _NOTHING, 0
    if w.bf_one_resv_per_job == 0 or w.estimated[job] == 0:
        if w.nb_records >= w.table_size:
            return TABLE_FULL, 0
        reserve_slots(w, begin, end, mask, job)
    w.estimated[job] = 1
    w.kept_part[part] += 1
    if w.array[job] >= 0:
        w.seen_array[w.array[job]] += 1
    return PLANNED, 0


@kernel
def _may_reserve(w, entry, now):
    """Whether the job is one that gets a reservation; if not, it is only tested for a start now."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    return not (
        (w.bf_job_part_count_reserve > 0 and w.kept_part[part] >= w.bf_job_part_count_reserve)
        or (w.bf_min_age_reserve > 0 and now - w.eligible[job] < w.bf_min_age_reserve)
        or (w.bf_min_prio_reserve > 0 and w.priority[entry] < w.bf_min_prio_reserve)
        or (w.bf_one_resv_per_job != 0 and w.estimated[job] != 0)
    )
