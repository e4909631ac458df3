"""Gantt chart of hosts: which of them are free when, as a step function of time.

Each step has the set of its free hosts as a bitmap. A reservation begins where a step begins and adds at most one step,
where it ends. Steps are kept in order by their begin; their bitmaps stay in the rows in which they were made, so that
an insertion moves no bitmaps.

Reservations only take hosts away. So what found no place before a moment leaves none there for what is wider and
longer: such moments are kept by width and duration, in classes, and no search begins before them.
"""

import math

import numpy as np

from decision.compiling.bundle import F8, I4, I8, U8, Bundle, F8x2, U8x2
from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.state.bitmap import count_hosts, count_ones, highest_bit

from .profile import shift

_CLASSES = 128  # of durations: four for each power of two, from 1 s on


class Gantt(Bundle):
    """Steps ``0 .. nb_steps[0] - 1``; room for S of them. W words are a set of hosts."""

    nb_steps: I8  # (1,)
    begin: F8  # (S,) seconds, ascending: step i ends where step i + 1 begins, the last one never
    row: I4  # (S,) the step's row in the two arrays below
    nb_free: I4  # (S,) hosts free in the step of this row
    free: U8x2  # (S, W) which
    hosts: U8  # (W,) hosts of the last reservation
    earliest: F8x2  # (highest bit of 64 W + 1, _CLASSES) seconds: no place before for jobs of this class or beyond


def new_gantt(nb_steps: int, nb_words: int) -> Gantt:
    """An empty chart with room for so many steps of sets of hosts of so many words."""
    return Gantt(
        nb_steps=np.zeros(1, np.int64),
        begin=np.zeros(nb_steps),
        row=np.zeros(nb_steps, np.int32),
        nb_free=np.zeros(nb_steps, np.int32),
        free=np.zeros((nb_steps, nb_words), np.uint64),  # the system gives memory to the rows that are used
        hosts=np.zeros(nb_words, np.uint64),
        earliest=np.zeros(((64 * nb_words).bit_length(), _CLASSES)),
    )


@kernel
def begin_gantt(gantt, now, free):
    """Forget everything: the hosts of the bitmap `free` (W,) are free from `now` (seconds) on."""
    gantt.nb_steps[0] = 1
    gantt.begin[0] = now
    gantt.row[0] = 0
    gantt.free[0, :] = free
    gantt.nb_free[0] = count_hosts(free)
    gantt.earliest[:] = now


@kernel
def release(gantt, time, hosts):
    """The hosts of a bitmap (W,) come free at `time` (seconds), in the last step; nothing is reserved yet."""
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
    level, share = _class_of(duration)
    first = _find(gantt, size, duration, _first_possible(gantt, highest_bit(size), level))
    begin = gantt.begin[first] if first >= 0 else np.inf
    _note_earliest(gantt, highest_bit(2 * size - 1), level + (share > 0), begin)
    if first < 0:
        gantt.hosts[:] = 0
        return np.inf
    _keep_lowest(gantt.hosts, size)
    last = _cut(gantt, begin + duration)
    _take(gantt, first, max(last, 1), size)  # who begins now has the hosts now, however short
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
def _class_of(duration):
    """The class of a duration (seconds), and how much longer it is than the shortest of that class."""
    if duration == np.inf:
        return _CLASSES, 0.0
    mantissa, exponent = math.frexp(duration)
    quarters = 8 * mantissa - 4
    return 4 * (exponent - 1) + int(quarters), quarters - int(quarters)


@kernel
def _first_possible(gantt, width, duration):
    """The first step in which what is of these classes may begin."""
    if duration < 0:
        return 0
    begin = gantt.earliest[min(width, len(gantt.earliest) - 1), min(duration, _CLASSES - 1)]
    return np.searchsorted(gantt.begin[: gantt.nb_steps[0]], begin)


@kernel
def _note_earliest(gantt, width, duration, begin):
    """Note that nothing of these classes or beyond can begin before `begin` (seconds)."""
    for i in range(width, len(gantt.earliest)):
        for j in range(max(duration, 0), _CLASSES):
            if gantt.earliest[i, j] >= begin:  # and so are those beyond
                break
            gantt.earliest[i, j] = begin


@kernel
def _find(gantt, size, duration, low):
    """The first step from `low` on from which `size` hosts are free for so long, -1 for none.

    ``gantt.hosts`` are all hosts that are.
    """
    first, end = -1, np.inf
    for at in range(low, gantt.nb_steps[0]):
        if gantt.begin[at] >= end:
            return first
        row = gantt.row[at]
        if gantt.nb_free[row] < size:
            first, end = -1, np.inf
        elif first < 0 or _narrow(gantt.hosts, gantt.free[row]) < size:
            first = _widest(gantt, low, at, size)
            end = gantt.begin[first] + duration
    return first


@kernel
def _widest(gantt, low, last, size):
    """The first step from `low` on from which `size` hosts, as many as `last` has, are free until the end of `last`."""
    hosts, first = gantt.hosts, last
    hosts[:] = gantt.free[gantt.row[last]]
    while first > low and _count_common(hosts, gantt.free[gantt.row[first - 1]]) >= size:
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
def _take(gantt, first, last, size):
    """Take ``gantt.hosts``, so many, out of the steps from `first` to before `last`."""
    for word in range(len(gantt.hosts)):
        taken = gantt.hosts[word]
        if taken != 0:
            for i in range(first, last):
                gantt.free[gantt.row[i], word] &= ~taken
    for i in range(first, last):
        gantt.nb_free[gantt.row[i]] -= size


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
