"""Backfilling: strict order, first-fit and EASY, which count the hosts that are free now, and conservative backfilling.

EASY is the rule of Mu'alem and Feitelson, Utilization, predictability, workloads, and user runtime estimates in
scheduling the IBM SP2 with backfilling (TPDS 2001): the first job that does not fit gets a reservation at the
shadow time, when enough hosts will be free; a later job may start now if it ends by then or uses only hosts that
the reservation leaves over. A running job without walltime never ends as far as anybody knows: a reservation that
depends on it lies at infinity, and what lies behind may start.

With conservative backfilling a job gets at arrival the earliest reservation that delays nobody's. When capacity comes
back that had been planned away (a job ended before its planned end, hosts returned or woke), the schedule is
compressed: in queue order each reservation is taken out and put back as early as it fits with all others in place, so
none ever gets later. Where the plan has become impossible (a job overran, hosts left) all reservations are made again,
in queue order. A job starts when its reservation begins; where nothing else happens then, the policy asks to be called.
After Mu'alem and Feitelson (TPDS 2001).

A start that comes late by no more than `TOLERANCE`, as a peer's clock has it, leaves the plan as it is.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.state.bitmap import highest_bit, trailing_zeros

from .memory import FREED_ROOM, ends_since, note_decision
from .options import Backfill, Order
from .order import sort_candidates
from .profile import (
    TOLERANCE,
    add_free,
    are_free,
    awake_at,
    booked_end,
    earlier,
    earliest,
    fill_capacity,
    forget_before,
    free_at,
    has_sleepers,
    hosts_given_back,
    most_free,
    step_at,
)


@kernel
def choose_starts(state, facts, memory, queue, length):
    """Put the jobs that start now into ``memory.chosen``; returns how many."""
    free = state.nb_free
    if free == 0:
        return 0
    # Exact short cut: while nothing has happened since the last plan but arrivals at the end of the queue, what could
    # not start still cannot, for no host came free, and the shadow time is nearer. Candidates in an order of their own
    # are sorted where there is more than one. On busy logs most decisions are such.
    if (
        memory.head >= 0
        and (memory.backfill_order < 0 or state.nb_jobs - memory.seen_jobs <= 1)
        and memory.order == Order.FCFS
        and free == memory.seen_free
        and ends_since(state, memory) == 0
        and not has_sleepers(state, memory)
    ):
        # The new jobs are the last of the queue, since FCFS is the order of submission.
        begin, end = state.nb_queued - (state.nb_jobs - memory.seen_jobs), state.nb_queued
        if memory.backfill == Backfill.FIRST_FIT:
            chosen, free = _take_fitting(memory.chosen, 0, state.queue, begin, end, state.size, free)
        else:
            chosen, free = _take_harmless(state, memory, 0, state.queue, begin, end, free)
    else:
        chosen, free = _look_at_all(state, facts, memory, queue, length, free)
    note_decision(state, memory, chosen)
    memory.seen_free = free
    return chosen


@kernel
def _look_at_all(state, facts, memory, queue, length, free):
    # Phase 1, for all rules: jobs from the front, as long as each fits.
    memory.head = -1
    chosen = 0
    while chosen < length and state.size[queue[chosen]] <= free:
        free -= state.size[queue[chosen]]
        chosen = take(memory.chosen, chosen, queue[chosen])
    if chosen == length or free == 0:
        return chosen, free
    # Phase 2: a job is blocked, and what lies behind it may start: anything that fits; or, with EASY, what leaves the
    # reservation of that head alone.
    if memory.backfill == Backfill.FIRST_FIT:
        memory.head = queue[chosen]
        return _take_fitting(memory.chosen, chosen, queue, chosen + 1, length, state.size, free)
    if memory.backfill == Backfill.EASY:
        # Besides the ends of running jobs, which the state keeps in order, hosts come back from the jobs that are about
        # to start and from sleep: a second list, merged with the first in `find_shadow`.
        released = 0
        for i in range(chosen):
            job = memory.chosen[i]
            released = add_release(memory, released, state.now + state.expected_runtime[job], state.size[job])
        if has_sleepers(state, memory):
            for host in range(len(state.host_state)):
                due = awake_at(state, facts, memory, host)
                if due < np.inf:
                    released = add_release(memory, released, due, 1)
        memory.head = queue[chosen]
        find_shadow(state, memory, released, state.size[memory.head], free)
        if memory.backfill_order >= 0:
            length = sort_candidates(state, memory)
            return _take_harmless(state, memory, chosen, memory.candidates, 0, length, free)
        return _take_harmless(state, memory, chosen, queue, chosen + 1, length, free)
    return chosen, free


@kernel
def take(chosen, taken, job):
    """Choose one more job; returns how many are chosen. Each has a host, so there are no more than hosts."""
    if taken >= len(chosen):
        raise InternalError("a policy chose more jobs than there are hosts")
    chosen[taken] = job
    return taken + 1


@kernel
def _take_fitting(chosen, taken, queue, begin, end, size, free):
    """Every job of queue[begin:end] that fits, in order."""
    for i in range(begin, end):
        hosts = size[queue[i]]
        if hosts <= free:
            taken = take(chosen, taken, queue[i])
            free -= hosts
            if free == 0:
                break
    return taken, free


@kernel
def _take_harmless(state, memory, taken, queue, begin, end, free):
    """The jobs of queue[begin:end] that fit and leave the head's reservation alone, in order.

    Candidates in an order of their own may be among those that are taken already, the first in ``memory.chosen``.
    """
    size, runtime, chosen = state.size, state.expected_runtime, memory.chosen
    heads = taken if memory.backfill_order >= 0 else 0
    time_left = memory.head_start
    now, extra = state.now, memory.extra
    for i in range(begin, end):
        job = queue[i]
        hosts = size[job]
        if hosts > free or (heads > 0 and is_in(chosen, heads, job)):
            continue
        # Mu'alem and Feitelson's two conditions: it ends by the shadow time, or it uses only extra hosts, which are
        # then fewer for the next one.
        if now + runtime[job] > time_left:
            if hosts > extra:
                continue
            extra -= hosts
        taken = take(chosen, taken, job)
        free -= hosts
        if free == 0:
            break
    memory.extra = extra
    return taken, free


@kernel
def is_in(jobs, length, job):
    """Whether a job is one of the first so many."""
    # Without an early return, which would keep the compiler from comparing several at once; the list is short.
    is_there = False
    for i in range(length):
        is_there |= jobs[i] == job
    return is_there


@kernel
def add_release(memory, released, time, hosts):
    """Put one more release into the list, ascending by time; returns the list's length."""
    at = released
    while at > 0 and memory.release_time[at - 1] > time:
        at -= 1
    # Equal times share an entry, so that sleeping hosts, which are due together, take one place and not one each.
    if at > 0 and memory.release_time[at - 1] == time:
        memory.release_hosts[at - 1] += hosts
        return released
    if released >= len(memory.release_time):
        raise InternalError("the policy's memory has no room for another release of hosts")
    for i in range(released, at, -1):
        memory.release_time[i] = memory.release_time[i - 1]
        memory.release_hosts[i] = memory.release_hosts[i - 1]
    memory.release_time[at] = time
    memory.release_hosts[at] = hosts
    return released + 1


@kernel
def find_shadow(state, memory, released, wanted, free):
    """Walk through the ends of running jobs and the other releases until `wanted` hosts are free."""
    shadow = np.inf
    i, j, running = 0, 0, state.nb_running
    while i < running or j < released:
        if j == released or (i < running and state.expected_end[i] <= memory.release_time[j]):
            time, hosts = state.expected_end[i], np.int64(hosts_given_back(state, state.running[i]))
            i += 1
        else:
            time, hosts = memory.release_time[j], np.int64(memory.release_hosts[j])
            j += 1
        # All that comes free at the shadow time itself still counts towards the extra hosts; what comes later does not.
        if time > shadow:
            break
        free += hosts
        if free >= wanted:
            shadow = time
    memory.head_start = shadow
    head = memory.head
    # Only the first promise is kept: it is what predictions are judged by.
    if memory.promises and head >= 0 and shadow < np.inf and np.isnan(memory.promised[head]):
        memory.promised[head] = shadow
    memory.extra = max(free - wanted, 0)


# --- Conservative backfilling: every job holds a reservation ---------------------------------------------------------

# Compression of conservative backfilling's reservations.
#
# In queue order each reservation is taken out and put back as early as it fits with all others in place. It is fast
# because most jobs need not be looked at. A reservation was as early as possible when it was last examined; it can only
# move to a spell of enough free hosts that touches, before its begin, a region of the profile where hosts came free
# since. So these regions are kept in a short list, and each says
#
# - the most hosts that are free in it;
# - for 1, 2, 4, ... hosts the longest spell that touches it and the latest end of one, measured when first asked for.
#
# Spells grow by freed regions only, which are listed in their turn, and otherwise shrink: what was measured remains an
# upper bound, and a job that is longer than the longest spell and begins after the latest end cannot move.


@kernel
def compress(memory, queue, length, size, walltime):
    """Move each reservation, in queue order, to the earliest place that all others leave it."""
    seen, known = memory.nb_freed, memory.nb_known
    begin, most = np.inf, 0  # of the freed regions: the earliest begin, and the most hosts free in any
    for i in range(memory.nb_freed):
        begin = min(begin, memory.freed_begin[i])
        most = max(most, memory.freed_most[i])
    for i in range(length):
        job = queue[i]
        present = memory.reserved[job]
        # nothing that was freed is wide enough, or lies before it; new jobs have no reservation yet
        if size[job] > most or present <= begin or job >= known:
            continue
        new = _find_earlier(memory, job, present, size[job], walltime[job])
        memory.examined[job] = memory.serial
        if new < present:
            left, end = max(present, new + walltime[job]), present + walltime[job]
            add_free(memory, left, end, size[job])
            add_free(memory, new, min(present, new + walltime[job]), -size[job])
            memory.reserved[job] = new
            memory.next_start = min(memory.next_start, new)
            if left < end:
                note_freed(memory, left, end)
            # what the job leaves is freed for the jobs behind it now, and for those before it in the next pass: so
            # this region, and all after it, are kept
            last = memory.nb_freed - 1
            begin = min(begin, memory.freed_begin[last])
            most = max(most, memory.freed_most[last])
            seen = min(seen, last)
    # For the first `seen` regions every reservation has been examined.
    kept = memory.nb_freed - seen
    if seen > 0:
        for i in range(kept):
            memory.freed_begin[i] = memory.freed_begin[i + seen]
            memory.freed_end[i] = memory.freed_end[i + seen]
            memory.freed_most[i] = memory.freed_most[i + seen]
            memory.freed_serial[i] = memory.freed_serial[i + seen]
            memory.spell_length[i, :] = memory.spell_length[i + seen, :]
            memory.spell_end[i, :] = memory.spell_end[i + seen, :]
    memory.nb_freed = kept


@kernel
def _find_earlier(memory, job, present, size, walltime):
    """The earliest begin for a reservation, of those that regions freed since it was last examined allow."""
    # spells of 2 ** level hosts bound those of `size` hosts, which are no fewer
    best, level = present, highest_bit(size)
    # the regions that matter, as bits: there are no more than a word has
    regions, examined = np.uint64(0), memory.examined[job]
    begin, most, serial = memory.freed_begin, memory.freed_most, memory.freed_serial
    for k in range(memory.nb_freed):
        matters = (begin[k] < present) & (most[k] >= size) & (serial[k] > examined)
        regions |= np.uint64(matters) << np.uint64(k)
    while regions != 0:
        i = np.int64(trailing_zeros(regions))
        regions &= regions - np.uint64(1)
        if memory.spell_end[i, level] < 0:
            _measure_spells(memory, i, level)
        # a spell that reaches `present` goes on through the reservation's own hosts, so its length says nothing
        if walltime <= memory.spell_length[i, level] or present <= memory.spell_end[i, level]:
            end = min(memory.freed_end[i], best)  # only what is earlier than the best so far counts
            best = min(best, earlier(memory, size, walltime, present, memory.freed_begin[i], end))
    return best


@kernel
def _measure_spells(memory, region, level):
    """Measure the spells of 2 ** level free hosts that touch the region."""
    time, free, last = memory.step_time, memory.step_free, memory.end_step
    hosts, longest, latest = 1 << level, 0.0, 0.0
    at = step_at(memory, memory.freed_begin[region])
    while at > memory.first_step and free[at] >= hosts and free[at - 1] >= hosts:
        at -= 1
    while at < last and time[at] < memory.freed_end[region]:
        if free[at] >= hosts:
            begin = time[at]
            while at < last and free[at] >= hosts:
                at += 1
            latest = time[at] if at < last else np.inf
            longest = max(longest, latest - begin + 1e-15 * latest)  # more than what rounding can take away
        at += 1
    memory.spell_length[region, level] = longest
    memory.spell_end[region, level] = latest


@kernel
def note_freed(memory, begin, end):
    """Remember that hosts came free from `begin` to `end`; a full list becomes one region around all."""
    memory.serial += 1
    at = memory.nb_freed
    if at == FREED_ROOM:  # one bit of a word for each region: `_find_earlier`
        begin = min(begin, memory.freed_begin.min())
        end = max(end, memory.freed_end.max())
        at = 0
    memory.freed_begin[at] = begin
    memory.freed_end[at] = end
    memory.freed_most[at] = most_free(memory, begin, end)
    memory.freed_serial[at] = memory.serial
    memory.spell_end[at, :] = -1.0  # to be measured when first asked for: most levels never are
    memory.nb_freed = at + 1


@kernel
def choose_reserved(state, facts, memory, queue, length):
    """Keep the reservations and put the jobs that start now into ``memory.chosen``; returns how many."""
    in_order = memory.order == Order.FCFS
    keep_reservations(state, facts, memory, queue, length, state.nb_jobs, in_order)
    chosen = take_due(state, memory, queue, length)
    note_decision(state, memory, chosen)
    return chosen


@kernel
def keep_reservations(state, facts, memory, queue, length, end, in_order):
    """Bring the profile and the reservations of the waiting jobs ``queue[:length]`` up to date.

    These are all that wait of the jobs numbered below `end`; `in_order` is whether they stand in order of submission.
    """
    now = state.now
    # 1. Is the plan still possible? It is in doubt throughout the instant of the last trouble, and where a start was
    # missed.
    compresses = memory.troubled == 1
    troubled = (compresses and now < memory.last_now + TOLERANCE) or memory.next_start < now - TOLERANCE
    # 2. The past goes, and what ended early is given back; the profile must then agree with the cluster, to the host.
    forget_before(memory, now)
    # nothing happened since the last plan but arrivals, its starts, and ends that are listed
    as_foreseen = ends_since(state, memory) == state.nb_ended and not has_sleepers(state, memory)
    if not troubled and as_foreseen:
        for i in range(state.nb_ended):
            job = state.ended[i]
            planned = booked_end(state, memory, job)
            if planned > now:
                add_free(memory, now, planned, state.size[job])
                note_freed(memory, now, planned)
                compresses = True
        due = 0  # hosts of the waiting jobs whose reservation has begun
        if memory.next_start <= now:
            for i in range(length):
                if memory.reserved[queue[i]] <= now:
                    due += state.size[queue[i]]
        troubled = free_at(memory, now) + due != state.nb_free
    else:
        troubled = True
    # 3. It does not: begin again from what runs, with the old reservations where they still fit.
    if troubled:
        compresses = _put_back_all(state, facts, memory, queue, length)
    # 4. Hosts came free: move reservations forward.
    if compresses:
        compress(memory, queue, length, state.size, state.expected_runtime)
    # 5. New jobs get the earliest place that is left. In order of submission they are the last ones; in another order
    # they may be anywhere.
    known = memory.nb_known
    for i in range(max(length - (end - known), 0) if in_order else 0, length):
        if queue[i] >= known:
            _reserve(memory, queue[i], state.size[queue[i]], state.expected_runtime[queue[i]])
    memory.nb_known = end
    memory.troubled = troubled
    memory.last_now = now


@kernel
def next_call(state, memory, chosen):
    """When (seconds) to be called for a start: when the next reservation begins before any job is expected to end."""
    first_end = state.expected_end[0] if state.nb_running > 0 else np.inf
    # No call where a job ends first: its end is an event, at which the policy is asked anyway.
    for i in range(chosen):
        first_end = min(first_end, state.now + state.expected_runtime[memory.chosen[i]])
    begin = memory.next_start
    return begin if state.now < begin < first_end else np.inf


@kernel
def take_due(state, memory, queue, length):
    """Choose the jobs whose reservation has begun, as far as the hosts are really free."""
    now, free, chosen = state.now, state.nb_free, 0
    # Most instants are no reservation's begin.
    if memory.next_start > now:
        return 0
    next_start = np.inf
    for i in range(length):
        job = queue[i]
        begin = memory.reserved[job]
        if begin <= now and state.size[job] <= free:
            chosen = take(memory.chosen, chosen, job)
            free -= state.size[job]
        elif begin < next_start:
            next_start = begin
    memory.next_start = next_start
    return chosen


@kernel
def _reserve(memory, job, size, walltime):
    """Give the job the earliest reservation that leaves all others alone; none (inf) where it fits nowhere."""
    begin = earliest(memory, size, walltime)
    memory.reserved[job] = begin
    memory.examined[job] = memory.serial
    memory.next_start = min(memory.next_start, begin)
    if begin < np.inf:
        add_free(memory, begin, begin + walltime, -size)


@kernel
def _put_back_all(state, facts, memory, queue, length):
    """Fill the profile again with the present capacity and put the reservations back.

    Returns whether they fit; where they do not, each was made again.
    """
    fill_capacity(state, facts, memory)
    memory.nb_freed = 0
    memory.next_start = np.inf
    now, known = state.now, memory.nb_known
    for i in range(length):
        job = queue[i]
        if job < known and memory.reserved[job] < np.inf:
            begin = memory.reserved[job]
            if begin < now - TOLERANCE:
                begin = now
            memory.reserved[job] = begin
            memory.next_start = min(memory.next_start, begin)
            add_free(memory, max(begin, now), begin + state.expected_runtime[job], -state.size[job])
    # Nobody is promised more than there is: all keep their reservations, and the next pass moves them forward.
    if are_free(memory, 0, now, np.inf):
        note_freed(memory, now, np.inf)
        return True
    fill_capacity(state, facts, memory)
    for i in range(length):
        if queue[i] < known:
            _reserve(memory, queue[i], state.size[queue[i]], state.expected_runtime[queue[i]])
    return False
