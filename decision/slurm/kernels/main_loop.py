"""The main loop: the queue in order, and what a job that does not fit closes to those behind it.

The counterparts in Slurm are _schedule and sort_job_queue2 of slurmctld/job_scheduler.c. Backfill takes the queue, and
the nodes that are free now, from here, too.
"""

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
    take_entry,
    within_amounts,
    within_counts,
)
from .preemption import make_room
from .select_nodes import begin_trial, choose_nodes, measure_nodes

_ABOVE_TIERS = 58  # bits
_MOST_RANKS = 7  # of qualities that preempt one another


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
    w.looked_part[:] = 0
    w.rejected[:] = 0
    looked, started = 0, 0
    for i in range(length):
        entry = w.queue[i]
        job, part = w.entry_job[entry], w.entry_part[entry]
        # dependencies, begin times and holds close nothing: such a job is not in build_job_queue's list
        if w.status[job] != at.PENDING_JOB or not is_eligible(w, job, now):
            continue
        if is_rejected(w, w.rejected, entry):
            continue
        take_entry(w, entry)
        # partition_job_depth counts what is looked at in each partition
        if w.partition_job_depth > 0:
            w.looked_part[part] += 1
            if w.looked_part[part] > w.partition_job_depth:
                continue
        # slurm.conf(5), default_queue_depth; _schedule tests one job more than it says (measured)
        if not full and looked > w.default_queue_depth:
            break
        looked += 1
        if w.bf_licenses != 0 and w.failed[part] == 0 and not has_licences(w, job):
            break  # backfill plans the licences
        reserved = w.reservation[job] >= 0
        if _look_in_reservation(w, entry, now) if reserved else w.failed[part] == 0 and _look(w, entry, now):
            started += 1
            clear_rejected(w, w.rejected, job)
            if started == w.sched_max_job_start:
                break


@kernel
def sort_pending(w):
    """Put waiting jobs in order, and return how many there are.

    Those whose QOS preempts others' go first, then those in a reservation, then by tier, priority, submission.
    """
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
        # slurm.conf(5), PriorityTier: it goes before all priorities; with sched/builtin and priority/basic 22.05 keeps
        # a plain list
        tier = 0 if w.fifo != 0 else w.part_tier[w.entry_part[entry]]
        above = np.int64(w.reservation[w.entry_job[entry]] >= 0)
        # sort_job_queue2 asks first whether one job may preempt the other (preempt/qos)
        # and then the job, not its record: it has the QOS of its last record, and where it has one partition only, the
        # priority of the record that was last looked at
        job = w.entry_job[entry]
        last = w.entry_begin[job + 1] - 1
        if w.preempts_by == 2 and w.entry_quality[last] >= 0:
            above += 2 * min(_MOST_RANKS, w.quality_rank[w.entry_quality[last]])
        one = w.entry_part[w.entry_begin[job]] == w.entry_part[last]
        place = w.placed_by[job] if one else entry
        keys[i] = -((above << _ABOVE_TIERS) + (tier << 40) + w.priority[place])
    # stable: equal priorities stay in order of submission, as the last criteria of sort_job_queue2
    order = np.argsort(keys, kind="mergesort")
    for i in range(count):
        entry = w.pending[order[i]]
        # what backfill found holds for those in front, whoever comes behind them
        if w.queue[i] != entry and i < w.nb_gone_through:
            w.holds_until = 0
        w.queue[i] = entry
    if count < w.nb_gone_through:
        w.holds_until = 0
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
        # select/linear: a node is one thing; select/cons_tres: what is left of it counts, but not while it completes
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
def is_rejected(w, rejected, entry):
    """Whether a task of the array was just left waiting in this partition and QOS; if not, this one counts as it."""
    array = w.array[w.entry_job[entry]]
    if array < 0:
        return False
    alike = 1 + w.entry_part[entry] * (len(w.quality_rank) + 1) + w.entry_quality[entry] + 1
    if rejected[array] == alike:
        return True
    rejected[array] = alike
    return False


@kernel
def clear_rejected(w, rejected, job):
    """A task of an array got what it wants: the next one is looked at."""
    if w.array[job] >= 0:
        rejected[w.array[job]] = 0


@kernel
def _look_in_reservation(w, entry, now):
    """Whether an entry starts on the nodes of its reservation; it closes nothing."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    mask = w.masks[w.entry_mask[entry]]
    w.usable[:] = 0
    for node in range(len(w.away)):
        # the one window that holds the node is the reservation's own
        idle = w.nb_jobs[node] == 0 if w.linear != 0 else w.nb_completing[node] == 0
        if has_host(mask, node) and idle and w.away[node] == 1 and w.reserved_by[node] == w.reservation[job]:
            insert_interval(w.usable, node, node)
    if not within_counts(w, job) or not has_licences(w, job) or not within_amounts(w, job):
        return False
    begin_trial(w)
    measure_nodes(w, job, w.usable)
    count = choose_nodes(w, job, part)
    if count > 0:
        begin_on_nodes(w, job, part, count, now, at.BY_MAIN)
    return count > 0


@kernel
def leave_out_owned(w, job, mask, begin, least):
    """Take out nodes that the job cannot share from `begin` on: it, or one that runs there, shares with its user only.

    Args:
        w: the world.
        job: its number.
        mask: nodes, from which those are taken, but not below `least`.
        begin: seconds.
        least: nodes.

    Returns:
        Whether fewer nodes than `least` would be left, and when another one can be shared again, seconds; 0 for never.
    """
    # filter_by_node_owner of slurmctld, _filter_exclusive_user_mcs_nodes of sched/backfill: those in use longest first
    last_end, is_kept = np.zeros(len(w.away), np.int64), np.zeros(len(w.away), np.int64)
    for i in range(w.nb_running + w.nb_completing_jobs):
        other = w.running[i] if i < w.nb_running else w.completing[i - w.nb_running]
        until = w.expected_end[other] if i < w.nb_running else w.free_at[other]
        for k in range(w.alloc_begin[other], w.alloc_begin[other] + w.alloc_count[other]):
            node = w.alloc_node[k]
            last_end[node] = max(last_end[node], until)
            if (w.own_user[job] != 0 or w.own_user[other] != 0) and w.user[other] != w.user[job]:
                is_kept[node] = 1
    left, later = count_hosts(mask), 0
    for node in np.argsort(-last_end, kind="mergesort"):
        if is_kept[node] != 0 and last_end[node] > begin and has_host(mask, node):
            later = last_end[node]
            if left <= least:
                return True, later
            remove_interval(mask, node, node)
            left -= 1
    return False, later


@kernel
def window_end(w, i):
    """When a window that begins as entry `i` ends."""
    for k in range(i + 1, len(w.window_times)):
        same = w.window_node[k] == w.window_node[i] and w.window_reservation[k] == w.window_reservation[i]
        if same and w.window_step[k] < 0:
            return w.window_times[k]
    return w.window_times[i]


@kernel
def _look(w, entry, now):
    """Whether an entry starts; if it does not fit, its partition closes, or the nodes that it names."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    w.usable[:] = w.part_mask[part] & w.open
    has_room = count_hosts(w.usable) >= w.nodes_min[job]
    # _schedule: who lacks licences closes nothing
    if not has_licences(w, job):
        return False
    # a job that a limit holds is passed over and closes nothing, unless assoc_limit_stop is set
    if not within_counts(w, job) or (has_room and not within_amounts(w, job)):
        if w.assoc_limit_stop != 0:
            _close(w, part)
        return False
    count = _try(w, entry, now) if has_room else 0
    if count > 0:
        begin_on_nodes(w, job, part, count, now, at.BY_MAIN)
        leave_out_taken(w, count)
        return True
    # a job that names all of its nodes keeps back only those
    if w.needs_named[job] != 0:
        w.open[:] = w.open & ~w.masks[w.must_have[job]]
    # not where it could never run there (-1): that is no reason for others to wait; nor where it gets no reservation
    elif count == 0 and not (
        (w.bf_min_age_reserve > 0 and now - w.eligible[job] < w.bf_min_age_reserve)
        or (w.bf_min_prio_reserve > 0 and w.priority[entry] < w.bf_min_prio_reserve)
    ):
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
    if w.nodes_owned != 0:
        leave_out_owned(w, job, w.usable, now, 0)
    # job_test_resv: nodes of a reservation that begins before the job's limit is over are not for it
    for i in range(len(w.window_times)):
        planned = w.window_step[i] > 0 and w.window_reservation[i] >= 0 and w.window_cores[i] == 0
        node = w.window_node[i]
        if planned and w.window_times[i] < now + w.limit[job] and has_host(w.usable, node) and window_end(w, i) > now:
            remove_interval(w.usable, node, node)
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
def _close(w, part):
    """Close a partition, and its nodes to all jobs that follow."""
    # _schedule takes the nodes out of avail_node_bitmap, so that overlapping partitions wait as well. Without this the
    # mean wait of three such partitions was 13 and 23 points lower in two recordings (measured with a prototype)
    w.failed[part] = 1
    w.open[:] = w.open & ~w.part_mask[part]
