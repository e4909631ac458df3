"""A cycle of backfill: jobs in order, planned on whole nodes in a table of slots, started where the plan lets them.

A plan takes its nodes whole, also where jobs share nodes. Times are rounded down to bf_resolution. A start beyond
bf_window is no reservation, and a job without one keeps nobody back.
"""

import numpy as np

from decision.jit import kernel
from decision.state.bitmap import count_hosts, has_host, remove_interval

from .choice import choose, measure
from .holding import begin_job, is_eligible, within_limits
from .main_loop import leave_out_taken, set_free, sort_queue
from .preemption import begin_trial, end_in_trial, find_candidates, make_room, measure_trial
from .world import (
    BUSY_NODES,
    BY_BACKFILL,
    CONTINUE,
    CYCLE_LIMIT,
    LINEAR,
    MAX_ARRAY,
    MAX_ASSOC,
    MAX_PART,
    MAX_START,
    MAX_TEST,
    MAX_USER,
    MAX_USER_PART,
    MIN_AGE,
    MIN_PRIO,
    NB_COMPLETING,
    NB_RUNNING,
    NB_SLOTS,
    ONE_RESERVATION,
    PART_RESERVE,
    PENDING,
    PREEMPTS,
    RESOLUTION,
    TEST_COST,
    WINDOW,
    WINDOW_SCALE,
    YIELD_AFTER,
)

_END_WINDOW = 30  # seconds: running jobs that end together are taken away together; doubled each time
_MOST_TOGETHER = 200  # jobs

# what became of a job
NOTHING = 0
STARTED = 1
PLANNED = 2
NOT_TESTED = 3


@kernel
def backfill(w, now):
    """One cycle; returns how many jobs were tested."""
    length = sort_queue(w)
    if length == 0:
        return 0
    _begin_table(w, now)
    set_free(w)
    _sort_running(w)
    _forget_counts(w)
    tested, started, p = 0, 0, w.parameters
    last_planned = -1
    for i in range(length):
        if tested >= p[MAX_TEST] or _is_over(w, tested):
            break
        entry = w.queue[i]
        job, part = w.entry_job[entry], w.entry_part[entry]
        if w.status[job] != PENDING or not is_eligible(w, job, now) or w.reservation[job] >= 0:
            continue
        if job == last_planned or not within_limits(w, job) or not _counts_let(w, job, part):
            continue
        outcome = _place(w, entry, now)
        tested += outcome != NOT_TESTED
        if outcome == STARTED:
            started += 1
            if started == p[MAX_START]:
                break
        elif outcome == PLANNED and p[ONE_RESERVATION] != 0:
            last_planned = job
    return tested


@kernel
def _is_over(w, tested):
    """Whether the time of a cycle is over: what a test costs is known from the log, or 0."""
    passed = tested * w.weights[TEST_COST]
    limit = w.weights[CYCLE_LIMIT] if w.parameters[CONTINUE] != 0 else w.weights[YIELD_AFTER]
    return passed > 0 and passed >= min(limit, w.weights[CYCLE_LIMIT])


@kernel
def _forget_counts(w):
    w.seen_user[:] = 0
    w.seen_part[:] = 0
    w.seen_assoc[:] = 0
    w.seen_user_part[:] = 0
    w.seen_array[:] = 0
    w.kept_part[:] = 0


@kernel
def _counts_let(w, job, part):
    """Count a job for its user, partition and association; whether the limits of a cycle let it be tested."""
    p, user = w.parameters, w.user[job]
    w.seen_user[user] += 1
    w.seen_part[part] += 1
    w.seen_user_part[user, part] += 1
    if w.association[job] >= 0:
        w.seen_assoc[w.association[job]] += 1
        if p[MAX_ASSOC] > 0 and w.seen_assoc[w.association[job]] > p[MAX_ASSOC]:
            return False
    return not (
        (p[MAX_USER] > 0 and w.seen_user[user] > p[MAX_USER])
        or (p[MAX_PART] > 0 and w.seen_part[part] > p[MAX_PART])
        or (p[MAX_USER_PART] > 0 and w.seen_user_part[user, part] > p[MAX_USER_PART])
    )


@kernel
def _begin_table(w, now):
    """One slot from now to the end of the window in which all nodes are free, but for those that will be away."""
    step = w.parameters[RESOLUTION]
    w.slot_begin[0] = now // step * step
    w.slot_end[0] = (now + w.parameters[WINDOW]) // step * step
    w.slot_mask[0] = ~np.uint64(0)
    w.timers[NB_SLOTS] = 1
    mask = np.zeros(len(w.open), np.uint64)
    for i in range(len(w.window_times)):
        if w.window_step[i] > 0 and w.window_times[i] <= now + w.parameters[WINDOW]:
            end = _window_end(w, i)
            if end > now:
                node = w.window_node[i]
                mask[:] = 0
                mask[node >> 6] = np.uint64(1) << np.uint64(node & 63)
                _reserve(w, max(w.slot_begin[0], w.window_times[i]), end, mask)


@kernel
def _window_end(w, i):
    for k in range(i + 1, len(w.window_times)):
        same = w.window_node[k] == w.window_node[i] and w.window_reservation[k] == w.window_reservation[i]
        if same and w.window_step[k] < 0:
            return w.window_times[k]
    return w.window_times[i]


@kernel
def _sort_running(w):
    """Running jobs by expected end into ``w.by_end``."""
    count = w.timers[NB_RUNNING]
    keys = np.empty(count, np.int64)
    for i in range(count):
        keys[i] = w.expected_end[w.running[i]]
    order = np.argsort(keys, kind="mergesort")
    for i in range(count):
        w.by_end[i] = w.running[order[i]]


@kernel
def _place(w, entry, now):
    """Start a job, plan it, or leave it."""
    job = w.entry_job[entry]
    mask, least = w.masks[w.entry_mask[entry]], w.nodes_min[job]
    later, is_tested = now, False
    while True:
        begin, later = later, 0
        later = _usable_from(w, mask, begin, begin + w.limit[job])
        if count_hosts(w.usable) < least:
            if later > 0:
                continue
            break
        is_tested = True
        found, count = _earliest(w, entry, now)
        if found < 0:
            if later > 0:
                continue
            break
        found = max(found, begin)
        if found <= now:
            return _start_now(w, entry, count, now)
        if later > 0 and found > later:
            continue
        outcome, later = _plan(w, entry, found, count, now)
        if outcome != NOT_TESTED:
            return outcome
    return NOTHING if is_tested else NOT_TESTED


@kernel
def _usable_from(w, mask, begin, end):
    """Nodes of the mask free of plans from `begin` to `end` into ``w.usable``; when more come free, 0: never."""
    later, nb_slots = 0, w.timers[NB_SLOTS]
    w.usable[:] = mask
    for k in range(nb_slots):
        if later == 0 and w.slot_end[k] > begin and k + 1 < nb_slots:
            gains = np.uint64(0)
            for word in range(len(mask)):
                gains |= mask[word] & w.slot_mask[k + 1, word] & ~(w.usable[word] & w.slot_mask[k, word])
            if gains != 0:
                later = w.slot_end[k]
        if w.slot_end[k] <= begin:
            continue
        if w.slot_begin[k] > end:
            break
        for word in range(len(mask)):
            w.usable[word] &= w.slot_mask[k, word]
    return later


@kernel
def _earliest(w, entry, now):
    """When the job fits on ``w.usable`` and on how many nodes; (-1, 0) where it never does."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    free = w.usable & w.free_now
    if count_hosts(free) >= w.nodes_min[job]:
        _leave_out_completing(w, free)
        measure(w, job, free, w.free_cores, w.free_memory, w.free_gres, w.nb_jobs)
        count = choose(w, job, part)
        if count > 0:
            return now, count
    return _after_ends(w, entry, now)


@kernel
def _leave_out_completing(w, mask):
    """Nodes on which a job still completes start nothing."""
    if w.timers[NB_COMPLETING] == 0:
        return
    for node in range(len(w.nb_completing)):
        if w.nb_completing[node] != 0 and has_host(mask, node):
            remove_interval(mask, node, node)


@kernel
def _after_ends(w, entry, now):
    """Take running jobs away, in order of expected end, until the job fits."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    begin_trial(w)
    for i in range(w.timers[NB_COMPLETING]):
        end_in_trial(w, w.completing[i])
    if w.parameters[PREEMPTS] != 0:
        for i in range(find_candidates(w, entry)):
            end_in_trial(w, w.candidates[i])
    needed = w.nodes_min[job] if w.parameters[LINEAR] != 0 else w.cores[job]
    if measure_trial(w, job, w.usable) >= needed:
        count = _choose_planned(w, job, part)
        if count > 0:
            return now + 1, count
    at, window, length = 0, _END_WINDOW, w.timers[NB_RUNNING]
    while at < length:
        at, end = _end_together(w, entry, at, window)
        if end < 0:
            break
        if measure_trial(w, job, w.usable) >= needed:
            count = _choose_planned(w, job, part)
            if count > 0:
                return max(now + 1, end), count
        window = window + w.parameters[WINDOW_SCALE] if w.parameters[WINDOW_SCALE] > 0 else 2 * window
    return -1, 0


@kernel
def _choose_planned(w, job, part):
    """`choose` for a plan: where bf_busy_nodes says so, nodes in use first."""
    if w.parameters[BUSY_NODES] != 0:
        room = w.capacity.copy()
        for node in range(len(room)):
            if w.nb_jobs[node] == 0:
                w.capacity[node] = 0
        count = choose(w, job, part)
        if count > 0:
            return count
        w.capacity[:] = room
    return choose(w, job, part)


@kernel
def _end_together(w, entry, at, window):
    """Take away the next running job that has usable nodes; where nodes are shared, also those that end soon after.

    Soon is `window` seconds, from each to the next.

    Returns:
        Where to go on, and the expected end of the last one, -1 where there was none.
    """
    last, taken, linear = -1, 0, w.parameters[LINEAR] != 0
    while at < w.timers[NB_RUNNING] and taken <= _MOST_TOGETHER:
        job = w.by_end[at]
        end = w.expected_end[job]
        if last >= 0 and (linear or end > last + window):
            break
        at += 1
        if not _has_usable(w, job) or _gives_way_already(w, job, entry):
            continue
        end_in_trial(w, job)
        last = end
        taken += 1
    return at, last


@kernel
def _has_usable(w, job):
    at, found = w.alloc_begin[job], False
    for i in range(at, at + w.alloc_count[job]):
        found |= has_host(w.usable, w.alloc_node[i])
    return found


@kernel
def _gives_way_already(w, job, entry):
    """Whether the trial began without this job."""
    if w.parameters[PREEMPTS] == 0:
        return False
    part = w.part_of[job]
    if w.part_gives_way[part] == 0:
        return False
    if w.parameters[PREEMPTS] == 1:
        return w.part_tier[part] < w.part_tier[w.entry_part[entry]]
    mine, other = w.quality[job], w.quality[w.entry_job[entry]]
    return mine >= 0 and other >= 0 and w.quality_preempts[other, mine] != 0


@kernel
def _start_now(w, entry, count, now):
    job, part = w.entry_job[entry], w.entry_part[entry]
    begin_job(w, job, part, count, now, BY_BACKFILL)
    leave_out_taken(w, count)
    at = w.timers[NB_RUNNING] - 1
    while at > 0 and w.expected_end[w.by_end[at - 1]] > w.expected_end[job]:
        w.by_end[at] = w.by_end[at - 1]
        at -= 1
    w.by_end[at] = job
    return STARTED


@kernel
def _plan(w, entry, found, count, now):
    """Reserve the chosen nodes from `found` on; (NOT_TESTED, when to try again) where they are planned already."""
    job, part, p = w.entry_job[entry], w.entry_part[entry], w.parameters
    step = p[RESOLUTION]
    begin, end = found // step * step, (found + w.limit[job]) // step * step
    if found > now + p[WINDOW] or not _may_reserve(w, entry, now):
        return NOTHING, 0
    begin = max(begin, w.slot_begin[0])
    end = max(end, begin + step)
    mask = np.zeros(len(w.usable), np.uint64)
    for i in range(count):
        node = w.chosen[i]
        mask[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    if _is_planned(w, begin, end, mask):
        return NOT_TESTED, found
    if p[PREEMPTS] != 0 and found == now + 1:
        make_room(w, entry, now)
        _sort_running(w)
    _reserve(w, begin, end, mask)
    w.kept_part[part] += 1
    if w.array[job] >= 0:
        w.seen_array[w.array[job]] += 1
    return PLANNED, 0


@kernel
def _may_reserve(w, entry, now):
    """Whether the job is one that gets a reservation."""
    job, part, p = w.entry_job[entry], w.entry_part[entry], w.parameters
    return not (
        (p[PART_RESERVE] > 0 and w.kept_part[part] >= p[PART_RESERVE])
        or (p[MIN_AGE] > 0 and now - w.eligible[job] < p[MIN_AGE])
        or (p[MIN_PRIO] > 0 and w.priority[entry] < p[MIN_PRIO])
        or (w.array[job] >= 0 and w.seen_array[w.array[job]] >= p[MAX_ARRAY])
    )


@kernel
def _is_planned(w, begin, end, mask):
    """Whether a node of the mask is planned between."""
    for k in range(w.timers[NB_SLOTS]):
        if w.slot_end[k] > begin and w.slot_begin[k] < end:
            for word in range(len(mask)):
                if mask[word] & ~w.slot_mask[k, word] != 0:
                    return True
    return False


@kernel
def _reserve(w, begin, end, mask):
    """Take the nodes of the mask out of the slots between, splitting those that reach beyond."""
    _split(w, begin)
    _split(w, end)
    for k in range(w.timers[NB_SLOTS]):
        if w.slot_begin[k] >= begin and w.slot_end[k] <= end:
            w.slot_mask[k] &= ~mask


@kernel
def _split(w, time):
    """Split the slot that a time lies in."""
    count = w.timers[NB_SLOTS]
    for k in range(count):
        if w.slot_begin[k] < time < w.slot_end[k]:
            for i in range(count, k + 1, -1):
                w.slot_begin[i], w.slot_end[i] = w.slot_begin[i - 1], w.slot_end[i - 1]
                w.slot_mask[i] = w.slot_mask[i - 1]
            w.slot_begin[k + 1], w.slot_end[k + 1] = time, w.slot_end[k]
            w.slot_mask[k + 1] = w.slot_mask[k]
            w.slot_end[k] = time
            w.timers[NB_SLOTS] = count + 1
            return
