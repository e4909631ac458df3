"""Composed policies whose jobs book hosts before they can start (`booking`).

The rules are those of `backfill`, but a host that sleeps counts as one that is free. With `patience` a job that has
waited for less wakes no server. The head's reservation under EASY is at the shadow time, when enough hosts will be
free, asleep or not; where it only waits for its patience to end, at that time.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host

from .backfill import add_release, find_shadow
from .booking import (
    book,
    count_available,
    forget_gone,
    is_booked,
    next_timeout,
    pick,
    ready_at,
    sleep_due,
    start_due,
    wake_booked,
)
from .capacity import TOLERANCE
from .config import Allocation, Backfill


@kernel
def decide_booked(state, facts, memory, plan, queue, length):
    """Fill the empty plan for this instant; returns when (seconds) to be asked again, inf for never."""
    forget_gone(state, memory)
    start_due(state, memory, plan)
    sleep_due(state, facts, memory, plan, memory.idle_timeout)
    call = _bind_jobs(state, facts, memory, plan, queue, length)
    wake_booked(state, facts, memory, plan)
    return min(call, next_timeout(state, facts, plan, memory.idle_timeout))


@kernel
def _bind_jobs(state, facts, memory, plan, queue, length):
    """Bind what the rule lets start, in order; returns when the patience of a job ends that could start then."""
    call, headless, available = np.inf, True, count_available(memory)
    for i in range(length):
        job = queue[i]
        if available == 0 or (not headless and memory.backfill == Backfill.NONE):
            break
        if is_booked(memory, job):
            continue
        size, patient = state.size[job], state.submit_time[job] + memory.patience
        if size <= available:
            picked = np.zeros(len(plan.free), np.uint64)
            wakes = patient <= state.now + TOLERANCE
            if pick(facts, memory, plan, size, memory.allocation == Allocation.PACK, wakes, picked):
                if headless or memory.backfill != Backfill.EASY or _harms_nobody(state, facts, memory, job, picked):
                    book(facts, memory, plan, job, picked)
                    available -= size
                continue
            call = min(call, patient)
        if headless and memory.backfill == Backfill.EASY:
            _reserve_booked_head(state, facts, memory, size, available, patient)
        headless = False
    return call


@kernel
def _harms_nobody(state, facts, memory, job, picked):
    """Whether a job on these hosts leaves the head's reservation alone; takes of the hosts that it leaves over."""
    begin = state.now
    for host in range(len(memory.rank)):
        if has_host(picked, host):
            begin = max(begin, ready_at(state, facts, memory, host))
    if begin + state.expected_runtime[job] <= memory.head_start:
        return True
    if state.size[job] > memory.extra:
        return False
    memory.extra -= state.size[job]
    return True


@kernel
def _reserve_booked_head(state, facts, memory, size, available, patient):
    """Set the shadow time and the extra hosts of the head, which needs `size` of the hosts that are available."""
    if size <= available:
        memory.head_start = patient
        memory.extra = available - size
        return
    released = 0
    for i in range(memory.nb_booked):
        job, begin = memory.booked[i], state.now
        for host in range(len(memory.booked_by)):
            if memory.booked_by[host] == job:
                begin = max(begin, ready_at(state, facts, memory, host))
        released = add_release(memory, released, begin + state.expected_runtime[job], state.size[job])
    find_shadow(state, memory, released, size, available)
