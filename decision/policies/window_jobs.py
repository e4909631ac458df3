"""Which jobs a window takes and in which order, and which hosts they take of a sequence of free ones."""

import math

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import remove_interval, trailing_zeros
from decision.state.plan_arrays import add_interval

from .capacity import TOLERANCE


@kernel
def is_due(now, period, index, last, called):
    """Whether the window of this number is to be decided.

    Args:
        now: seconds.
        period: seconds.
        index: number of the last window that could be, at this time.
        last: number of the window that was decided last.
        called: whether one was called for that is due; the call may come a moment late, over the network.
    """
    return index > last and (called or now <= index * period + TOLERANCE)


@kernel
def _rank(state, period, index, job):
    """What a job is sorted by, ascending: the periods that it has waited, most first, and then its hosts."""
    waited = index - math.ceil((state.submit_time[job] - TOLERANCE) / period)
    return state.size[job] - waited * (len(state.host_state) + 1.0)


@kernel
def in_order(state, queue, period, index):
    """The waiting jobs of `queue` in the order in which the window of this number takes them."""
    ranks = np.empty(len(queue))
    for i in range(len(queue)):
        ranks[i] = _rank(state, period, index, queue[i])
    return queue[np.argsort(ranks, kind="mergesort")]


@kernel
def first_of(state, queue, period, index):
    """The waiting job of `queue` that the window of this number takes first."""
    best, lowest = queue[0], np.inf
    for job in queue:
        rank = _rank(state, period, index, job)
        if rank < lowest:
            best, lowest = job, rank
    return best


@kernel
def taken_from(state, order, free, limit):
    """How many jobs a window takes from the front of `order`, and how many of them are on more than one host.

    Args:
        order: as `in_order` returns it.
        free: hosts.
        limit: jobs on more than one host, at most; 0 for all.
    """
    taken, wide = 0, 0
    for job in order:
        size = state.size[job]
        if size > free or (size > 1 and wide == limit and limit > 0):
            break
        wide += size > 1
        free -= size
        taken += 1
    return taken, wide


@kernel
def take_hosts(plan, action, hosts):
    """Give the action these free hosts (n,), which most often ascend."""
    ascends = True
    for i in range(1, len(hosts)):
        ascends &= hosts[i] > hosts[i - 1]
    ascending, first = hosts if ascends else np.sort(hosts), 0
    for i in range(len(ascending)):
        if i + 1 == len(ascending) or ascending[i + 1] != ascending[i] + 1:
            add_interval(plan, action, ascending[first], ascending[i])
            remove_interval(plan.free, ascending[first], ascending[i])
            first = i + 1


@kernel
def write_sequence(facts, free, hosts):
    """Write the free hosts from left to right in the tree, those of one switch by id; returns how many they are."""
    count, last, ascends = 0, 0, True
    for word in range(len(free)):
        bits = free[word]
        while bits != 0:
            host = (word << 6) + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            ascends &= facts.switch[host] >= last
            last = facts.switch[host]
            hosts[count] = host
            count += 1
    if not ascends:
        hosts[:count] = hosts[:count][np.argsort(facts.switch[hosts[:count]], kind="mergesort")]
    return count
