"""A cycle of backfill: jobs in order, planned on whole nodes in a table of slots, started where the plan lets them.

A plan takes its nodes whole, also where jobs share nodes. Times are rounded down to bf_resolution. A start beyond
bf_window is no reservation, and a job without one keeps nobody back. The counterpart in Slurm is _attempt_backfill of
plugins/sched/backfill/backfill.c; its options are documented in slurm.conf(5), SchedulerParameters, bf_*.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts

from . import world as at
from .allocate import (
    begin_on_nodes,
    find_licences,
    has_licences,
    has_named,
    is_eligible,
    let_arrays_age,
    take_entry,
    within_amounts,
    within_counts,
)
from .main_loop import clear_rejected, is_rejected, leave_out_owned, leave_out_taken, set_free, sort_pending, window_end
from .preemption import make_room, way_of
from .will_run import BY_PREEMPTION, FROM_NOW, LATER, NOW_FREE, earliest_start, find_room, room_time, sort_running

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
    first, tested, started = 0, 0, 0
    # 1. where the last cycle holds, only those that came behind the others are looked at
    if now < w.holds_until:
        first, tested = w.nb_gone_through, w.nb_tested_last
        if w.ended_early != 0 or first == length:
            return tested
        set_free(w, True)
        w.slot_begin[0] = now // w.bf_resolution * w.bf_resolution
        w.slot_end[w.nb_slots - 1] = (now + w.bf_window) // w.bf_resolution * w.bf_resolution
    else:
        _begin_cycle(w, now)
    # 2. jobs in the order of the queue, until a limit of the cycle ends it
    w.ended_early, w.nb_gone_through = 0, length
    for i in range(first, length):
        if tested >= w.bf_max_job_test or _is_over(w, tested):
            w.ended_early, w.nb_gone_through = 1, i
            break
        entry = w.queue[i]
        if not _is_next(w, entry, now):
            continue
        outcome = _place(w, entry, now)
        # bf_max_job_test counts jobs that reach the test of nodes: those that bf_max_job_user leaves out cost nothing
        tested += outcome != NOT_TESTED
        if outcome == TABLE_FULL:
            w.ended_early, w.nb_gone_through = 1, i + 1
            break
        if outcome in (STARTED, PLANNED):
            clear_rejected(w, w.left, w.entry_job[entry])
        if outcome == STARTED:
            started += 1
            if started == w.bf_max_job_start:
                break
    w.nb_tested_last = tested
    return tested


@kernel
def _begin_cycle(w, now):
    """Begin with the table as it is before any plan: reservations, and what running jobs hold for sure."""
    # where nothing starts, ends, or moves up in the queue, a later cycle finds the same plans, until the time passes
    # one that the cycle compared with: each is noted by `_holds`. With ages, priorities, licences, and jobs that give
    # way, it is compared in too many places
    by_time = w.preempts_by != 0 or w.bf_min_age_reserve > 0 or w.bf_min_prio_reserve > 0 or w.leaves_out != 0
    by_time = by_time or w.bf_licenses != 0 or w.bf_running_job_reserve != 0
    w.holds_until = 0 if by_time else at.FAR
    _begin_table(w, now)
    set_free(w, True)
    sort_running(w)
    due = np.searchsorted(w.ends[: w.nb_running], now, "right")
    if due < w.nb_running:
        _holds(w, w.ends[due])
    w.seen_user[:] = 0
    w.seen_part[:] = 0
    w.seen_assoc[:] = 0
    w.seen_user_part[:] = 0
    w.seen_array[:] = 0
    w.left[:] = 0
    w.estimated[:] = 0
    w.kept_part[:] = 0
    if w.bf_running_job_reserve != 0:
        for i in range(w.nb_running):
            _keep_running(w, w.running[i])


@kernel
def _holds(w, until):
    """Note that what the cycle finds may be otherwise from a time on."""
    w.holds_until = min(w.holds_until, until)


@kernel
def _is_next(w, entry, now):
    """Whether a job waits for backfill and the limits of jobs and of a cycle let it be tested; if so, it counts."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    # jobs of reservations are the main loop's
    if w.status[job] != at.PENDING_JOB:
        return False
    if not is_eligible(w, job, now):
        _holds(w, _next_eligible(w, job, now))
        return False
    if w.reservation[job] >= 0:
        return False
    take_entry(w, entry)
    if not within_counts(w, job) or is_rejected(w, w.left, entry) or (w.bf_licenses == 0 and not has_licences(w, job)):
        return False
    # no more tasks of an array than bf_max_job_array_resv have reservations at a time, nor than may run besides others
    planned = w.seen_array[w.array[job]] if w.array[job] >= 0 else 0
    if planned > 0 and planned >= w.bf_max_job_array_resv:
        return False
    if planned > 0 and w.array_limited[job] != 0:
        bucket = w.job_bucket[w.bucket_begin[job]]
        if w.bucket_used[bucket, 0] + planned >= w.bucket_limit[bucket, 0]:
            return False
    return _counts_let(w, job, part)


@kernel
def _next_eligible(w, job, now):
    """Until when a job that is not eligible stays so, if nothing happens, seconds."""
    if w.held[job] != 0:
        return at.FAR
    if w.begin[job] > now:
        return w.begin[job]
    delay = 0
    for i in range(w.need_begin[job], w.need_begin[job + 1]):
        delay = max(delay, w.need_delay[i])
    return 0 if delay > 0 else at.FAR


@kernel
def _is_over(w, tested):
    """Whether the time of a cycle is over: what a test costs is known from the log, or 0."""
    # bf_max_time ends a cycle. bf_yield_interval lets others take the locks, and as something has nearly always changed
    # then, the cycle ends there, too, unless bf_continue is set
    passed = tested * w.test_cost
    limit = w.cycle_limit if w.bf_continue != 0 else w.yield_after
    return passed > 0 and passed >= min(limit, w.cycle_limit)


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
    job, later, is_tested = w.entry_job[entry], now, False
    w.sees_more = at.FAR
    may_wait = _may_reserve(w, entry, now)
    if w.leaves_out != 0 and not may_wait and count_hosts(w.free_now & w.masks[w.entry_mask[entry]]) < w.nodes_min[job]:
        return _NOTHING
    fewest = find_room(w, entry)
    skipped = 0  # the first time at which a trial was left out
    # _attempt_backfill goes back to TRY_LATER: the same job again from when the table next leaves it other nodes
    while True:
        begin = later
        found, count, how, later, tested = _start_from(w, entry, now, begin, fewest, may_wait)
        is_tested |= tested
        if found < 0:
            if later > 0 and may_wait:
                chance = _next_chance(w, entry, later, fewest)
                skipped, later = later if skipped == 0 and chance > later else skipped, chance
                continue
            break
        # a job that fits now is started at once, whatever is planned behind it
        if how == NOW_FREE:
            return _start_now(w, entry, count, now)
        # where trials begin with the plan: a start that another plan overlaps is tried again from there, and a step on
        # where the trial began there already
        if w.tests_from_plan != 0 and found > now and how != FROM_NOW and _overlaps(w, job, found, count):
            later = found + w.bf_resolution * (found == begin)
            continue
        if not may_wait and found > now:
            break
        # the selection plugin found a later start than the next change of the table: more nodes may be free then
        if later > 0 and found > later:
            continue
        # victims leave now, and the job is planned: their nodes complete first
        if how == BY_PREEMPTION:
            planned = w.chosen[:count].copy()
            make_room(w, entry, now)
            w.chosen[:count] = planned
            sort_running(w)
        outcome, later = _plan(w, entry, found, count, now)
        # the plan overlaps another one: again from its begin
        if outcome != NOT_TESTED:
            return outcome
    # whether it was tested may hang on the first trial alone, or on those that were left out
    _holds(w, w.sees_more)
    while skipped > 0 and not is_tested:
        skipped, _, _ = _usable_from(w, job, w.masks[w.entry_mask[entry]], skipped, now)
        is_tested = count_hosts(w.usable) >= w.nodes_min[job] and has_named(w, job, w.usable)
    return _NOTHING if is_tested else NOT_TESTED


@kernel
def _next_chance(w, entry, begin, fewest):
    """The first time from `begin` on at which a trial may succeed, of those when the table leaves the job more nodes.

    At the others it has too few nodes in the table, or too few that have room before the table leaves more again.
    """
    job, mask = w.entry_job[entry], w.masks[w.entry_mask[entry]]
    if w.nodes_owned != 0 or w.bf_licenses != 0:
        return begin
    room = room_time(w, mask, fewest) if w.linear == 0 or w.tests_from_plan == 0 else 0
    first = np.searchsorted(w.slot_end[: w.nb_slots], begin, "right")
    while True:
        gain = first
        while gain + 1 < w.nb_slots and not _gains(w, gain, mask):
            gain += 1
        # where no more nodes come free, or only behind the job's end, the trial itself says what follows
        if gain + 1 >= w.nb_slots or (gain > first and w.slot_begin[gain - 1] > begin + w.limit[job]):
            return begin
        if room <= w.slot_end[gain] and _leaves(w, first, begin + w.limit[job], mask) >= w.nodes_min[job]:
            return begin
        begin, first = w.slot_end[gain], gain + 1


@kernel
def _gains(w, slot, mask):
    """Whether the slot behind has nodes of the mask that this one lacks."""
    gains = np.uint64(0)
    for word in range(len(mask)):
        gains |= mask[word] & w.slot_mask[slot + 1, word] & ~w.slot_mask[slot, word]
    return gains != 0


@kernel
def _leaves(w, first, end, mask):
    """How many nodes of the mask the slots from one on leave until `end`, at most."""
    for word in range(len(mask)):
        common, slot = mask[word], first
        while slot < w.nb_slots and common != 0 and w.slot_begin[slot] <= end:
            common &= w.slot_mask[slot, word]
            slot += 1
        w.usable[word] = common
    return count_hosts(w.usable)


@kernel
def _start_from(w, entry, now, begin, fewest, may_wait):
    """The start of a job on the nodes that the table leaves to it from `begin` on.

    Returns:
        When it starts, -1 where it cannot; on how many nodes, and how; when the table leaves other nodes, 0 for never;
        whether nodes were tested.
    """
    job = w.entry_job[entry]
    later, licensed, behind = _usable_from(w, job, w.masks[w.entry_mask[entry]], begin, now)
    if begin == now and behind < w.nb_slots:
        w.sees_more = w.slot_begin[behind] - w.limit[job]
    if w.nodes_owned != 0:
        shared = w.masks[w.entry_mask[entry]].copy()
        is_owned, later_shared = leave_out_owned(w, job, shared, begin, w.nodes_min[job])
        if is_owned:
            return -1, 0, LATER, later_shared, False
        later = later_shared if later == 0 else later
        w.usable[:] = w.usable & shared
    if not licensed or count_hosts(w.usable) < w.nodes_min[job] or not has_named(w, job, w.usable):
        return -1, 0, LATER, later, False
    # select/linear has no bound, and where a plan is asked first whether another one overlaps, that shows
    bound = 0 if w.linear != 0 and w.tests_from_plan != 0 else later
    # who gets no plan needs no later start; only what is found for its processors counts in its priority
    if not may_wait and (w.linear != 0 or w.per_cpu[job] == 0):
        bound = now
    # a bound, for speed only: with fewer nodes that alone have room no choice can succeed
    when = room_time(w, w.usable, fewest)
    if when > (bound if bound > 0 else at.FAR):
        return -1, 0, LATER, later, True
    if begin == now and behind < w.nb_slots:
        _holds(w, _takes_more(w, behind, w.limit[job]))
    found, count, how = earliest_start(w, entry, now, begin, bound, fewest, when)
    if found < 0:
        return -1, 0, LATER, later, True
    if w.linear == 0:
        w.found_cpus[job] = w.chosen_cores[:count].sum() * w.threads
    if found <= now and begin > now:
        how = LATER
    found = max(found, begin)
    # _attempt_backfill waits for epilogs: where nodes complete, the plan begins in the next second
    completing = False
    for i in range(count):
        completing |= w.nb_completing[w.chosen[i]] != 0
    if found <= now and completing:
        found, how, later = now + 1, FROM_NOW, 0
        _holds(w, 0)
    return found, count, how, later, True


@kernel
def _start_now(w, entry, count, now):
    job, part = w.entry_job[entry], w.entry_part[entry]
    if not within_amounts(w, job) or not within_counts(w, job) or not has_licences(w, job):
        return _NOTHING
    # sacct shows this start with Flags=SchedBackfill
    begin_on_nodes(w, job, part, count, now, at.BY_BACKFILL)
    leave_out_taken(w, count)
    _keep_running(w, job)
    sort_running(w)
    return STARTED


@kernel
def _keep_running(w, job):
    """The nodes of an exclusive job on shared nodes, and licences, stand in the table until the job's expected end."""
    whole = w.linear == 0 and w.exclusive[job] != 0 and way_of(w, job) == 0
    # slurm.conf(5), bf_running_job_reserve: only jobs that have their nodes whole; licences with bf_licenses
    licensed = w.bf_licenses != 0 and w.job_licences[job].sum() > 0
    if (not whole and not licensed) or w.nb_records >= w.table_size:
        return
    mask = np.zeros(len(w.usable), np.uint64)
    for i in range(w.alloc_begin[job], w.alloc_begin[job] + whole * w.alloc_count[job]):
        node = w.alloc_node[i]
        mask[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    _reserve_slots(w, 0, _slot_end(w, w.expected_end[job]), mask, job)


@kernel
def _slot_end(w, time):
    """The end of a plan in the table."""
    step = w.bf_resolution
    return (time + step - 1) // step * step if w.ends_up != 0 else time // step * step


@kernel
def _plan(w, entry, found, count, now):
    """Reserve the chosen nodes from `found` on; (NOT_TESTED, when to try again) where they are planned already."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    step = w.bf_resolution
    begin, end = found // step * step, _slot_end(w, found + w.limit[job])
    # slurm.conf(5), bf_window: beyond it nothing is planned, so the job keeps nobody back
    if found > now + w.bf_window:
        _holds(w, found - w.bf_window)
        w.estimated[job] = 1
        w.kept_part[part] += w.leaves_out
        return _NOTHING, 0
    _holds(w, begin if begin > now else found)
    mask = _mask_of_chosen(w, count)
    # _test_resv_overlap
    if found > now and _is_planned(w, job, begin, end, mask):
        return NOT_TESTED, found
    if not within_amounts(w, job):
        return _NOTHING, 0
    # _add_reservation; with bf_one_resv_per_job a job of several partitions blocks nodes of the first that fits only
    if w.bf_one_resv_per_job == 0 or w.estimated[job] == 0:
        if w.nb_records >= w.table_size:
            return TABLE_FULL, 0
        _reserve_slots(w, begin, end, mask, job)
    w.estimated[job] = 1
    w.kept_part[part] += 1
    if w.array[job] >= 0:
        w.seen_array[w.array[job]] += 1
    return PLANNED, 0


@kernel
def _mask_of_chosen(w, count):
    mask = np.zeros(len(w.usable), np.uint64)
    for i in range(count):
        node = w.chosen[i]
        mask[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    return mask


@kernel
def _overlaps(w, job, found, count):
    """Whether a start on the chosen nodes overlaps what is planned."""
    begin = found // w.bf_resolution * w.bf_resolution
    return _is_planned(w, job, begin, _slot_end(w, found + w.limit[job]), _mask_of_chosen(w, count))


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


# The table of a cycle: slots of time, and in each the nodes that no plan takes (node_space_map_t of sched/backfill).
#
# A plan uses up to two records of the table, and when bf_node_space_size of them are used the cycle is over. A record
# stays used when two neighbours that have become equal are joined.


@kernel
def _begin_table(w, now):
    """One slot from now to the end of the window: all nodes are free, but those that are down or will be reserved."""
    step = w.bf_resolution
    # slots are of one bitmap of whole nodes: so a plan takes its nodes whole, also where jobs share them
    w.slot_begin[0] = now // step * step
    w.slot_end[0] = (now + w.bf_window) // step * step
    w.slot_mask[0] = ~np.uint64(0)
    nb_kinds = w.slot_licences.shape[1]
    w.slot_licences[0] = w.licence_total[:nb_kinds]
    w.nb_slots = 1
    mask = np.zeros(len(w.open), np.uint64)
    for node in range(len(w.away)):
        if w.away[node] > (w.reserved_by[node] >= 0):
            w.slot_mask[0, node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
    for i in range(len(w.window_times)):
        # only reservations are known ahead: when a node fails, or is back, Slurm does not know
        planned = w.window_step[i] > 0 and w.window_reservation[i] >= 0 and w.window_cores[i] == 0
        if planned and w.window_times[i] > now + w.bf_window:
            _holds(w, w.window_times[i] - w.bf_window)
        if planned and w.window_times[i] <= now + w.bf_window:
            end = window_end(w, i)
            if end > now:
                _holds(w, 0)
                node = w.window_node[i]
                mask[:] = 0
                mask[node >> 6] = np.uint64(1) << np.uint64(node & 63)
                _reserve_slots(w, w.window_times[i], end, mask, -1)
    w.nb_records = 1


@kernel
def _usable_from(w, job, mask, begin, now):
    """Nodes of the mask free of plans from `begin` until the job's limit is over into ``w.usable``.

    Returns:
        When more nodes or licences come free, 0: never; whether there are licences enough for the job; and the first
        slot that begins behind the end, or was not looked at because it takes nothing more away.
    """
    later, licensed, nb_slots = 0, True, w.nb_slots
    end, behind = begin + w.limit[job], nb_slots
    enough = w.nodes_min[job] if len(w.licence_total) == 0 else 1
    if begin >= w.slot_end[nb_slots - 1]:
        _holds(w, begin - w.bf_window)
    for word in range(len(mask)):
        w.usable[word] = mask[word]
    for k in range(np.searchsorted(w.slot_end[:nb_slots], begin, "right"), nb_slots):
        # nodes that the next slot has and this one lacks: from then on the job has other chances
        if later == 0 and k + 1 < nb_slots:
            gains = np.uint64(0)
            for word in range(len(mask)):
                gains |= mask[word] & w.slot_mask[k + 1, word] & ~(w.usable[word] & w.slot_mask[k, word])
            if gains != 0:
                later = w.slot_end[k]
        if w.slot_begin[k] > end:
            # later, a trial for now sees this slot too: no matter, where it takes nodes from what is not enough
            if later == 0 and begin == now:
                _holds(w, w.slot_begin[k] - w.limit[job])
            if later == 0 and w.tests_from_plan != 0 and k + 2 < nb_slots:
                later = w.slot_end[k + 1]
            behind = k
            break
        for word in range(len(mask)):
            w.usable[word] &= w.slot_mask[k, word]
        if not find_licences(w, job, w.slot_licences[k]):
            licensed, later = False, w.slot_end[k]
        elif later > 0 and count_hosts(w.usable) < enough:
            break
    return later, licensed, behind


@kernel
def _takes_more(w, behind, limit):
    """When a job of this limit that is tried at that time ends in a slot that takes some of ``w.usable`` away."""
    for k in range(behind, w.nb_slots):
        taken = np.uint64(0)
        for word in range(len(w.usable)):
            taken |= w.usable[word] & ~w.slot_mask[k, word]
        if taken != 0:
            return w.slot_begin[k] - limit
    return at.FAR


@kernel
def _is_planned(w, job, begin, end, mask):
    """Whether a node of the mask, or a licence that the job needs, is planned between."""
    if begin >= w.slot_end[w.nb_slots - 1]:
        _holds(w, begin - w.bf_window)
    for k in range(np.searchsorted(w.slot_end[: w.nb_slots], begin, "right"), w.nb_slots):
        if w.slot_begin[k] >= end:
            break
        if not find_licences(w, job, w.slot_licences[k]):
            return True
        for word in range(len(mask)):
            if mask[word] & ~w.slot_mask[k, word] != 0:
                return True
    return False


@kernel
def _reserve_slots(w, begin, end, mask, job):
    """Take the nodes of the mask and a job's licences out of the slots between, for one bf_resolution at least."""
    last_end = w.slot_end[w.nb_slots - 1]
    begin = max(begin, w.slot_begin[0])
    # a job of less than bf_resolution would be nowhere in the table
    end = max(end, begin + w.bf_resolution)
    if end >= last_end:
        _holds(w, (begin if begin >= last_end else end) - w.bf_window)
    place = 0
    while place < w.nb_slots and w.slot_end[place] < begin:
        place += 1
    if place == w.nb_slots:
        return
    first = max(0, place - 1)
    if w.slot_end[place] > begin:
        _split(w, place, begin)
    last = -1
    for k in range(place + 1, w.nb_slots):
        if end < w.slot_end[k]:
            _split(w, k, end)
        for word in range(len(mask)):
            w.slot_mask[k, word] &= ~mask[word]
        if job >= 0 and w.bf_licenses != 0:
            find_licences(w, job, w.slot_licences[k])
            w.slot_licences[k] = np.maximum(0, w.slot_licences[k] - w.job_licences[job])
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


@kernel
def _is_same(w, one, other):
    apart = np.uint64(0)
    for word in range(w.slot_mask.shape[1]):
        apart |= w.slot_mask[one, word] ^ w.slot_mask[other, word]
    for kind in range(w.slot_licences.shape[1]):
        apart |= np.uint64(w.slot_licences[one, kind] != w.slot_licences[other, kind])
    return apart == 0
