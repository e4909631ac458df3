"""The sets of jobs that rollouts compare: which jobs would start now."""

import numpy as np

from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order

_FIRST = 16  # of them come first in a set of their own
SETS = _FIRST + 3


@kernel
def mark_own(memory, width, chosen):
    """The policy's own set, of which so many are in the window: the order is that of the window."""
    inside = 0
    for at in range(width):
        starts = inside < chosen and memory.chosen[inside] == memory.sorted[at]
        memory.starts[0, at] = starts
        inside += starts
    return inside


@kernel
def make_sets(state, memory, width, running, guarded):
    """All different sets; returns how many."""
    sets = 1
    for keeps in range(2):
        _start(state, memory, sets, width, running, guarded, -1, keeps)
        sets += _is_new(memory, sets, width)
    tried = 0
    for at in range(guarded, width):
        if tried == _FIRST:
            break
        if memory.window_size[at] <= state.nb_free:
            tried += 1
            if not memory.starts[0, at]:
                _start(state, memory, sets, width, running, guarded, at, True)
                sets += _is_new(memory, sets, width)
    return sets


@kernel
def _start(state, memory, number, width, running, guarded, first, keeps):
    """Make a set: the job at `first`, if it is not -1, comes first; `keeps`: hosts for the first that does not fit."""
    now, free, begun = state.now, state.nb_free, 0
    kept, shadow, extra = False, np.inf, 0
    memory.starts[number, :width] = 0
    for i in range(width):
        at = i
        if first >= 0 and guarded <= i <= first:
            at = first if i == guarded else i - 1
        size, end = memory.window_size[at], now + memory.window_walltime[at]
        if size > free:
            if not kept and (keeps or at < guarded):
                kept = True
                shadow, extra = reserve_hosts(
                    memory, memory.release_time, memory.release_hosts, 0, running, 0, begun, free, size
                )
            continue
        if kept and end > shadow:
            if size > extra:
                continue
            extra -= size
        memory.starts[number, at] = 1
        insert_in_order(memory.begun_end, memory.begun_hosts, begun, end, size)
        begun += 1
        free -= size
        if free == 0:
            break


@kernel
def _is_new(memory, number, width):
    """Whether no set before is the same."""
    for other in range(number):
        if np.array_equal(memory.starts[other, :width], memory.starts[number, :width]):
            return False
    return True


@kernel
def reserve_hosts(memory, ends, hosts, first, running, first_begun, begun, free, size):
    """When so many hosts are free, and how many more are free then, by the ends of two lists of jobs."""
    time = np.inf
    while True:
        other = ends[first] if first < running else np.inf
        own = memory.begun_end[first_begun] if first_begun < begun else np.inf
        end = min(other, own)
        if end == np.inf or (free >= size and end > time):
            return time, free - size
        if other <= own:
            free += hosts[first]
            first += 1
        else:
            free += memory.begun_hosts[first_begun]
            first_begun += 1
        if free >= size and time == np.inf:
            time = end
