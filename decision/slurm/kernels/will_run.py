"""When a job fits, and on which nodes: now, or after running jobs have ended.

A job is tried at each change of the plan, with the ends of running jobs before it. Most of these trials fail. So trials
without enough nodes that alone have room (`room`) are not made.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host

from .allocate import memory_on
from .preemption import find_candidates, gives_way
from .select_nodes import (
    begin_trial_without_completing,
    choose_at_once,
    choose_nodes,
    end_in_trial,
    give_back,
    measure_nodes,
    put_completing_last,
    room_on,
)
from .topology_tree import TOO_FAR_APART
from .world import FAR

# both numbers are those of _will_run_test of select/cons_tres
_END_WINDOW = 30  # seconds: running jobs that end together are taken away together; doubled each time
_MOST_TOGETHER = 200  # jobs

# how a job would begin
NOW_FREE = 0
LATER = 1
BY_PREEMPTION = 2
FROM_NOW = 3  # as soon as nodes have completed


@kernel
def room_time(w, mask, fewest):
    """From when on at least so many nodes of the bitmap have room, as `find_room` found it; beyond `FAR`: never."""
    found, row = 0, w.room_row
    if fewest == 0:
        return 0
    for i in range(w.nb_roomy[row]):
        node = w.room_order[row, i]
        found += has_host(mask, node)
        if found == fewest:
            return w.room_from[row, node]
    return FAR + 1


@kernel
def earliest_start(w, entry, now, begin, later, fewest, when):
    """When the job fits on ``w.usable``, on how many nodes, and how; (-1, 0, LATER) where it never does.

    It is looked for from `begin` on, where Slurm's version does so, and not after `later`, when more nodes come free: 0
    for never. `fewest` is what `find_room` said, and `when` what `room_time` says of ``w.usable``.
    """
    job, part = w.entry_job[entry], w.entry_part[entry]
    # 24.11: a trial for a later begin leaves out what is free now
    if w.tests_from_plan != 0 and begin > now and w.linear == 0:
        return _after_ends(w, entry, now, begin, later, when)
    free = w.usable & w.free_now
    if when == 0 and count_hosts(free) >= w.nodes_min[job] and room_time(w, free, fewest) == 0:
        _begin_trial(w, True)
        measure_nodes(w, job, free)
        count = choose_nodes(w, job, part)
        if count > 0:
            return now, count, NOW_FREE
        if count == TOO_FAR_APART and w.linear != 0:
            return -1, 0, LATER
    return _after_ends(w, entry, now, now, later, when)


@kernel
def _after_ends(w, entry, now, begin, later, when):
    """As `earliest_start`, when running jobs are gone: first those that give way, then in order of expected end.

    Before `when` the job has no room. All that end by `begin` are gone at once, if that is not now.
    """
    job, part = w.entry_job[entry], w.entry_part[entry]
    needed = w.nodes_min[job] if w.linear != 0 else w.cores[job]
    # first without all that may be preempted, as _will_run_test does
    at = 0 if begin <= now else np.searchsorted(w.ends[: w.nb_running], begin, "right")
    if w.preempts_by != 0 or (begin > now and when <= begin):
        _begin_trial(w, begin <= now and not (w.first_node != 0 and w.nodes_max[job] == 1))
        for i in range(find_candidates(w, entry) if w.preempts_by != 0 else 0):
            end_in_trial(w, w.candidates[i])
        _end_up_to(w, entry, 0, at)
        if measure_nodes(w, job, w.usable) >= needed:
            count = choose_nodes(w, job, part)
            if count > 0:
                return now, count, BY_PREEMPTION if w.preempts_by != 0 else LATER
    # then jobs in order of expected end: select/linear one by one, select/cons_tres in windows
    window, until, length, ended = _END_WINDOW, 0, w.nb_running, 0
    if w.tests_from_plan != 0 and w.linear == 0 and later > 0:
        length = np.searchsorted(w.ends[:length], later, "right")
    if begin > now and (w.preempts_by != 0 or when <= begin):
        ended = at
    while at < length:
        at, end, until = _end_together(w, entry, at, length, until, window)
        if end < 0 or (later > 0 and end > later):
            break
        # slurm.conf(5), bf_window_linear: 30 s at first, doubled with each look at running jobs, or longer by so much,
        # until the next job ends in it
        window = window + w.bf_window_linear if w.bf_window_linear > 0 else 2 * window
        while at < w.nb_running and w.ends[at] > until + window:
            window = window + w.bf_window_linear if w.bf_window_linear > 0 else 2 * window
        if end >= when:
            if ended == 0 and w.preempts_by == 0:
                _begin_trial(w, begin <= now and not (w.first_node != 0 and w.nodes_max[job] == 1))
            ended = _end_up_to(w, entry, ended, at)
            count = _choose_planned(w, job, part) if measure_nodes(w, job, w.usable) >= needed else 0
            if count > 0:
                if w.ends_on_chosen != 0 and w.linear == 0:
                    end = _last_end(w, entry, at, count)
                if end <= now:  # it runs longer than it may
                    w.holds_until = 0
                return max(now + 1, end), count, LATER
            if count == TOO_FAR_APART and w.linear != 0:
                break
    return -1, 0, LATER


@kernel
def _begin_trial(w, is_now):
    """Begin a trial without what completing jobs hold; where it is for now, their nodes may come last."""
    begin_trial_without_completing(w)
    # _will_run_test of select/cons_tres sets weights so, and they stay for all later trials that begin now, too
    if is_now and w.completing_last != 0 and w.linear == 0:
        put_completing_last(w)


@kernel
def _last_end(w, entry, ended, count):
    """The expected end of the last of the first `ended` running jobs that is on a chosen node."""
    for i in range(ended - 1, -1, -1):
        for k in range(w.held_begin[i], w.held_begin[i + 1]):
            for n in range(count):
                if w.held_node[k] == w.chosen[n] and not _gives_way_already(w, i, entry):
                    return w.ends[i]
    return 0


@kernel
def _choose_planned(w, job, part):
    """`choose_nodes` for a plan: where bf_busy_nodes says so, nodes in use first; with select/linear without steps."""
    if w.linear != 0:
        return choose_at_once(w, job, part, w.capacity)
    if w.bf_busy_nodes != 0:
        room = w.capacity.copy()
        # slurm.conf(5), bf_busy_nodes: nodes that run something come first, so that others stay whole
        for node in range(len(room)):
            if w.nb_jobs[node] == 0:
                w.capacity[node] = 0
        count = choose_nodes(w, job, part)
        if count > 0:
            return count
        w.capacity[:] = room
    return choose_nodes(w, job, part)


@kernel
def _end_together(w, entry, at, length, until, window):
    """The next running job that has usable nodes; where nodes are shared, also those that end soon after.

    Soon is `window` seconds after `until`, which is the first end of all, up to the next half minute. Only the first
    and the last of them are looked for, unless they may be more than are taken together.

    Returns:
        Where to go on, the expected end of the last one (-1 where there was none), and `until`.
    """
    while at < length and not _frees_nodes(w, at, entry):
        at += 1
    if at == length:
        return at, -1, until
    end = w.ends[at]
    if until == 0:
        until = end + _END_WINDOW - end % _END_WINDOW
    first, at = at, at + 1
    if w.linear == 0:
        at = max(at, np.searchsorted(w.ends[:length], until + window, "right"))
        # the loop that takes them away looks at the window only behind a job that frees a node
        if at < length and not _frees_nodes(w, at - 1, entry):
            while at < length and not _frees_nodes(w, at, entry):
                at += 1
            at = min(at + 1, length)
    if at - first > _MOST_TOGETHER:
        most, taken, at = at, 0, first
        while at < most and taken <= _MOST_TOGETHER:
            taken += _frees_nodes(w, at, entry)
            at += 1
    last = at - 1
    while not _frees_nodes(w, last, entry):
        last -= 1
    return at, w.ends[last], until


@kernel
def _end_up_to(w, entry, begin, end):
    """Take away in the trial the running jobs at places from `begin` up to `end`; returns `end`."""
    for i in range(begin, end):
        if not _gives_way_already(w, i, entry):
            for k in range(w.held_begin[i], w.held_begin[i + 1]):
                give_back(w, i, k)
    return end


@kernel
def _gives_way_already(w, i, entry):
    """Whether the trial began without the running job at place `i`."""
    return w.preempts_by != 0 and gives_way(w, w.by_end[i], entry)


@kernel
def _frees_nodes(w, i, entry):
    """Whether the running job at place `i` holds a usable node, and has not given way already."""
    found = False
    for k in range(w.held_begin[i], w.held_begin[i + 1]):
        found |= has_host(w.usable, w.held_node[k])
    return found and not _gives_way_already(w, i, entry)


# From when on each node alone has room enough for a job, found once for all jobs that ask for the same.


@kernel
def sort_running(w):
    """Running jobs by expected end into ``w.by_end``, and what they hold in that order: it is read very often."""
    if w.moved == 0:
        return
    count, at = w.nb_running, 0
    w.running_stamp, w.moved = w.running_stamp + 1, 0
    order = np.argsort(w.expected_end[w.running[:count]], kind="mergesort")
    for i in range(count):
        job = w.running[order[i]]
        w.by_end[i], w.ends[i], w.held_begin[i] = job, w.expected_end[job], at
        for k in range(w.alloc_begin[job], w.alloc_begin[job] + w.alloc_count[job]):
            cores = w.alloc_cores[k]
            w.held_node[at], w.held_cores[at] = w.alloc_node[k], cores
            w.held_memory[at] = memory_on(w, job, w.alloc_node[k], cores)
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
        least = max(1, needed - (w.nodes_max[job] - 1) * largest)
        mask = w.masks[w.entry_mask[entry]]
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
    w.room_row = row
    return max(w.nodes_min[job], (needed + largest - 1) // largest)


@kernel
def _note_room(w, row, node, at):
    w.room_from[row, node] = at
    w.room_order[row, w.nb_roomy[row]] = node
    w.nb_roomy[row] += 1
