"""Gantt chart of hosts: which of them are free when, as a step function of time.

Each step has the set of its free hosts as a bitmap. A reservation begins where a step begins and adds at most one step,
where it ends. Steps are kept in order by their begin; their bitmaps stay in the rows in which they were made, so that
an insertion moves no bitmaps.
"""

import numpy as np

from decision.bundle import F8, I4, I8, U8, Bundle, U8x2
from decision.jit import kernel
from decision.model.errors import InternalError
from decision.state.bitmap import count_hosts, count_ones

from .profile import shift


class Gantt(Bundle):
    """Steps ``0 .. nb_steps[0] - 1``; room for S of them. W words are a set of hosts."""

    nb_steps: I8  # (1,)
    begin: F8  # (S,) seconds, ascending: step i ends where step i + 1 begins, the last one never
    row: I4  # (S,) the step's row in the two arrays below
    nb_free: I4  # (S,) hosts free in the step of this row
    free: U8x2  # (S, W) which
    hosts: U8  # (W,) hosts of the last reservation


def new_gantt(nb_steps: int, nb_words: int) -> Gantt:
    """An empty chart with room for so many steps of sets of hosts of so many words."""
    return Gantt(
        nb_steps=np.zeros(1, np.int64),
        begin=np.zeros(nb_steps),
        row=np.zeros(nb_steps, np.int32),
        nb_free=np.zeros(nb_steps, np.int32),
        free=np.zeros((nb_steps, nb_words), np.uint64),  # the system gives memory to the rows that are used
        hosts=np.zeros(nb_words, np.uint64),
    )


@kernel
def begin_gantt(gantt, now, free):
    """Forget everything: the hosts of the bitmap `free` (W,) are free from `now` (seconds) on."""
    gantt.nb_steps[0] = 1
    gantt.begin[0] = now
    gantt.row[0] = 0
    gantt.free[0, :] = free
    gantt.nb_free[0] = count_hosts(free)


@kernel
def release(gantt, time, hosts):
    """The hosts of a bitmap (W,) come free at `time` (seconds), which lies in the last step."""
    row = gantt.row[_cut(gantt, time)]
    for word in range(len(hosts)):
        gantt.free[row, word] |= hosts[word]
    gantt.nb_free[row] = count_hosts(gantt.free[row])


@kernel
def reserve(gantt, size, duration):
    """Take `size` hosts for `duration` seconds as early as possible, and of these the ones with the lowest ids.

    Returns:
        The begin in seconds; ``gantt.hosts`` says which. Inf and none if there will never be enough.
    """
    first = _find(gantt, size, duration)
    if first < 0:
        gantt.hosts[:] = 0
        return np.inf
    _keep_lowest(gantt.hosts, size)
    begin = gantt.begin[first]
    last = _cut(gantt, begin + duration)
    for i in range(first, max(last, 1)):  # who begins now has the hosts now, however short
        row = gantt.row[i]
        for word in range(len(gantt.hosts)):
            gantt.free[row, word] &= ~gantt.hosts[word]
        gantt.nb_free[row] -= size
    return begin


@kernel
def measure_first(gantt, until):
    """Put into ``until[n]`` (H + 1,) until when (seconds) some n hosts are free throughout from the first step on."""
    hosts = gantt.hosts
    hosts[:] = gantt.free[0]
    left = np.int64(gantt.nb_free[0])
    until[left + 1 :] = -np.inf
    for i in range(1, gantt.nb_steps[0]):
        if left == 0:
            break
        still = _narrow(hosts, gantt.free[gantt.row[i]])
        until[still + 1 : left + 1] = gantt.begin[i]
        left = still
    until[: left + 1] = np.inf


@kernel
def _find(gantt, size, duration):
    """The first step from which `size` hosts are free for so long, -1 for none; ``gantt.hosts`` are all of them."""
    first, end = -1, np.inf
    for at in range(gantt.nb_steps[0]):
        if gantt.begin[at] >= end:
            return first
        row = gantt.row[at]
        if gantt.nb_free[row] < size:
            first, end = -1, np.inf
        elif first < 0 or _narrow(gantt.hosts, gantt.free[row]) < size:
            first = _widest(gantt, at, size)
            end = gantt.begin[first] + duration
    return first


@kernel
def _widest(gantt, last, size):
    """The first step from which `size` hosts are free throughout until step `last` ends, in which so many are."""
    hosts, first = gantt.hosts, last
    hosts[:] = gantt.free[gantt.row[last]]
    while first > 0 and _count_common(hosts, gantt.free[gantt.row[first - 1]]) >= size:
        first -= 1
        _narrow(hosts, gantt.free[gantt.row[first]])
    return first


@kernel
def _count_common(hosts, others):
    total = 0
    for word in range(len(hosts)):
        total += np.int64(count_ones(hosts[word] & others[word]))
    return total


@kernel
def _narrow(hosts, others):
    """Keep the hosts that the others have too; returns how many."""
    total = 0
    for word in range(len(hosts)):
        hosts[word] &= others[word]
        total += np.int64(count_ones(hosts[word]))
    return total


@kernel
def _keep_lowest(hosts, size):
    """Keep the `size` lowest of the hosts."""
    for word in range(len(hosts)):
        here = np.int64(count_ones(hosts[word]))
        if here > size:
            rest = hosts[word]
            for _ in range(size):
                rest &= rest - np.uint64(1)
            hosts[word] ^= rest
            here = size
        size -= here


@kernel
def _cut(gantt, time):
    """The index of the step that begins at `time` (seconds), which is made where there is none; nb_steps for inf."""
    steps = gantt.nb_steps[0]
    at = np.searchsorted(gantt.begin[:steps], time)
    if time == np.inf or (at < steps and gantt.begin[at] == time):
        return at
    if steps >= len(gantt.begin):
        raise InternalError("the Gantt chart has no room for another step")
    shift(gantt.begin, at, steps, 1)
    shift(gantt.row, at, steps, 1)
    gantt.begin[at] = time
    gantt.row[at] = steps
    before = gantt.row[at - 1]
    gantt.free[steps, :] = gantt.free[before]
    gantt.nb_free[steps] = gantt.nb_free[before]
    gantt.nb_steps[0] = steps + 1
    return at
