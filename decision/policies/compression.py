"""Compression of conservative backfilling's reservations.

In queue order each reservation is taken out and put back as early as it fits with all others in place. It is fast
because most jobs need not be looked at. A reservation was as early as possible when it was last examined; it can only
move to a spell of enough free hosts that touches, before its begin, a region of the profile where hosts came free
since. So these regions are kept in a short list, and each says

- the most hosts that are free in it;
- for 1, 2, 4, ... hosts the longest spell that touches it and the latest end of one, measured when first asked for.

Spells grow by freed regions only, which are listed in their turn, and otherwise shrink: what was measured remains an
upper bound, and a job that is longer than the longest spell and begins after the latest end cannot move.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import highest_bit, trailing_zeros

from .memory import FREED_ROOM
from .profile import add_free, earlier, most_free, step_at


@kernel
def compress(memory, queue, length, size, walltime):
    """Move each reservation, in queue order, to the earliest place that all others leave it."""
    seen, known = memory.nb_freed, memory.nb_known
    begin, most = _outline(memory)
    for i in range(length):
        job = queue[i]
        own = memory.reserved[job]
        # nothing that was freed is wide enough, or lies before it; new jobs have no reservation yet
        if size[job] > most or own <= begin or job >= known:
            continue
        new = _find_earlier(memory, job, own, size[job], walltime[job])
        memory.examined[job] = memory.serial
        if new < own:
            _move(memory, job, own, new, size[job], walltime[job])
            # what the job leaves is freed for the jobs behind it now, and for those before it in the next pass: so
            # this region, and all after it, are kept
            last = memory.nb_freed - 1
            begin = min(begin, memory.freed_begin[last])
            most = max(most, memory.freed_most[last])
            seen = min(seen, last)
    _forget_freed(memory, seen)


@kernel
def _outline(memory):
    """The earliest begin of the freed regions and the most hosts free in any."""
    begin, most = np.inf, 0
    for i in range(memory.nb_freed):
        begin = min(begin, memory.freed_begin[i])
        most = max(most, memory.freed_most[i])
    return begin, most


@kernel
def _find_earlier(memory, job, own, size, walltime):
    """The earliest begin for a reservation, of those that regions freed since it was last examined allow."""
    best, level = own, highest_bit(size)  # spells of 2 ** level hosts bound those of `size` hosts, which are no fewer
    regions = _regions_for(memory, memory.examined[job], own, size)
    while regions != 0:
        i = np.int64(trailing_zeros(regions))
        regions &= regions - np.uint64(1)
        if memory.spell_end[i, level] < 0:
            _measure_spells(memory, i, level)
        # a spell that reaches `own` goes on through the reservation's own hosts, so its length says nothing
        if walltime <= memory.spell_length[i, level] or own <= memory.spell_end[i, level]:
            end = min(memory.freed_end[i], best)  # only what is earlier than the best so far counts
            best = min(best, earlier(memory, size, walltime, own, memory.freed_begin[i], end))
    return best


@kernel
def _regions_for(memory, examined, own, size):
    """The freed regions that matter to a reservation, as bits; there are no more than a word has."""
    found = np.uint64(0)
    begin, most, serial = memory.freed_begin, memory.freed_most, memory.freed_serial
    for i in range(memory.nb_freed):
        matters = (begin[i] < own) & (most[i] >= size) & (serial[i] > examined)
        found |= np.uint64(matters) << np.uint64(i)
    return found


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
def _move(memory, job, own, begin, size, walltime):
    """Move a reservation from `own` to the earlier `begin`; what it leaves is a freed region."""
    left, end = max(own, begin + walltime), own + walltime
    add_free(memory, left, end, size)
    add_free(memory, begin, min(own, begin + walltime), -size)
    memory.reserved[job] = begin
    memory.next_start = min(memory.next_start, begin)
    if left < end:
        note_freed(memory, left, end)


@kernel
def note_freed(memory, begin, end):
    """Remember that hosts came free from `begin` to `end`; a full list becomes one region around all."""
    memory.serial += 1
    at = memory.nb_freed
    if at == FREED_ROOM:  # one bit of a word for each region: `_regions_for`
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
def _forget_freed(memory, seen):
    """Drop the first `seen` regions, for which every reservation has been examined."""
    left = memory.nb_freed - seen
    if seen > 0:
        for i in range(left):
            memory.freed_begin[i] = memory.freed_begin[i + seen]
            memory.freed_end[i] = memory.freed_end[i + seen]
            memory.freed_most[i] = memory.freed_most[i + seen]
            memory.freed_serial[i] = memory.freed_serial[i + seen]
            memory.spell_length[i, :] = memory.spell_length[i + seen, :]
            memory.spell_end[i, :] = memory.spell_end[i + seen, :]
    memory.nb_freed = left
