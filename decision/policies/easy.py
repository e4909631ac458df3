"""Strict order, first-fit and EASY: rules that count the hosts that are free now.

EASY is the rule of Mu'alem and Feitelson, Utilization, predictability, workloads, and user runtime estimates in
scheduling the IBM SP2 with backfilling (TPDS 2001): the first job that does not fit gets a reservation at the
shadow time, when enough hosts will be free; a later job may start now if it ends by then or uses only hosts that
the reservation leaves over. A running job without walltime never ends as far as anybody knows: a reservation that
depends on it lies at infinity, and what lies behind may start.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import InternalError

from .memory import ends_since, note_decision
from .options import Backfill, Order
from .order import sort_candidates
from .profile import awake_at, has_sleepers, hosts_given_back


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
