"""From event to event: ends, submissions, calculations of priorities, main loops, cycles of backfill."""

import numpy as np

from decision.compiling.jit import kernel

from .backfill import backfill
from .holding import join_queue, release_completed
from .main_loop import main_loop
from .preemption import end_grace, next_check, requeue
from .priority import calculate, set_factors, set_priority
from .world import (
    AGES,
    ASKED,
    BF_INTERVAL,
    BUILTIN,
    CALC_PERIOD,
    CHANGED,
    COMPLETE_WAIT,
    CYCLE_COST,
    CYCLES_GIVEN,
    DONE_JOB,
    FAR,
    GO,
    LAST_FULL,
    LAST_MAIN,
    MULTIFACTOR,
    NB_COMPLETING,
    NB_CYCLES,
    NB_KILLED,
    NB_PENDING,
    NB_RUNNING,
    NB_STARTED,
    NB_TESTED,
    NEXT_CALC,
    NEXT_CYCLE,
    NEXT_WINDOW,
    NOW,
    PREEMPTS,
    SCHED_DELAY,
    SCHED_INTERVAL,
    TEST_COST,
    YIELD_AFTER,
    YIELD_SLEEP,
)


@kernel
def submit_job(w, job, now):
    """A job arrives."""
    join_queue(w, job)
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
        set_priority(w, entry, now, False)


@kernel
def begin_log(w):
    """Shares before anything has run, as slurmctld knows them when it starts."""
    if w.parameters[AGES] != 0 and len(w.leaf):
        set_factors(w)


@kernel
def step_scheduler(w, now):
    """All that the scheduler does at an instant, after the ends and submissions of it."""
    t, p = w.timers, w.parameters
    t[NOW], t[NB_STARTED], t[NB_KILLED] = now, 0, 0
    if p[PREEMPTS] != 0:
        end_grace(w, now)
    _requeue_completed(w, now)
    _move_windows(w, now)
    while p[MULTIFACTOR] != 0 and t[NEXT_CALC] <= now:
        calculate(w, t[NEXT_CALC])
        t[NEXT_CALC] += p[CALC_PERIOD]
    waits = _waits_for_completing(w, now)
    if not waits:
        _main(w, now)
    if p[BUILTIN] == 0 and (not waits or p[CYCLES_GIVEN] != 0):
        _backfill(w, now)


@kernel
def _waits_for_completing(w, now):
    """Whether CompleteWait keeps both loops from looking at the queue, because a job completes since less than that.

    Recorded cycles were not kept.
    """
    waits = False
    for i in range(w.timers[NB_COMPLETING]):
        waits |= now - w.end[w.completing[i]] < w.parameters[COMPLETE_WAIT]
    return waits


@kernel
def _requeue_completed(w, now):
    """Give nodes back; jobs that were preempted wait again."""
    nb_completing = w.timers[NB_COMPLETING]
    if nb_completing == 0:
        return
    ready = w.completing[:nb_completing].copy()
    release_completed(w, now)
    for job in ready:
        if w.status[job] == DONE_JOB and w.end[job] < w.start[job] + w.runtime[job] and w.submit[job] == w.end[job]:
            requeue(w, job, now)


@kernel
def _move_windows(w, now):
    t = w.timers
    while t[NEXT_WINDOW] < len(w.window_times) and w.window_times[t[NEXT_WINDOW]] <= now:
        i = t[NEXT_WINDOW]
        node = w.window_node[i]
        w.away[node] += w.window_step[i]
        if w.window_reservation[i] >= 0:
            w.reserved_by[node] = w.window_reservation[i] if w.window_step[i] > 0 else -1
        t[NEXT_WINDOW] += 1
        t[CHANGED], t[ASKED] = 1, 1


@kernel
def _main(w, now):
    """The main loop: over the whole queue each sched_interval, whether or not jobs wait, else when it was asked for."""
    t, p = w.timers, w.parameters
    passed = (now - t[LAST_FULL]) // p[SCHED_INTERVAL]
    t[LAST_FULL] += max(0, passed) * p[SCHED_INTERVAL]
    t[LAST_MAIN] = max(t[LAST_MAIN], t[LAST_FULL])
    if passed > 0 and t[LAST_FULL] == now:
        t[LAST_MAIN], t[ASKED], t[GO] = now, 0, 0
        main_loop(w, now, True)
    elif t[ASKED] != 0 and now - t[LAST_MAIN] >= p[SCHED_DELAY]:
        t[LAST_MAIN], t[ASKED], t[GO] = now, 0, 0
        main_loop(w, now, False)
    elif t[GO] != 0:
        t[GO] = 0
        main_loop(w, now, False)


@kernel
def _backfill(w, now):
    t = w.timers
    if w.parameters[CYCLES_GIVEN] != 0:
        while t[NEXT_CYCLE] < len(w.cycles) and w.cycles[t[NEXT_CYCLE]] <= now:
            t[NEXT_CYCLE] += 1
            t[NB_TESTED] += backfill(w, now)
            t[NB_CYCLES] += 1
    elif now >= w.next_backfill[0] and (t[CHANGED] != 0 or t[NB_PENDING] > 0):
        t[CHANGED] = 0
        tested = backfill(w, now)
        t[NB_TESTED] += tested
        t[NB_CYCLES] += 1
        began = max(w.next_backfill[0], now - 1.0)
        w.next_backfill[0] = began + w.parameters[BF_INTERVAL] + w.weights[CYCLE_COST] + _time_of(w, tested)


@kernel
def _time_of(w, tested):
    """Seconds that a cycle takes for its tests, and for letting others in."""
    busy = tested * w.weights[TEST_COST]
    return busy + np.floor(busy / max(1e-3, w.weights[YIELD_AFTER])) * w.weights[YIELD_SLEEP]


@kernel
def due(w):
    """When the scheduler acts next by itself, seconds; `FAR` where nothing but an event makes it."""
    t, p, at = w.timers, w.parameters, FAR
    for i in range(t[NB_COMPLETING]):
        at = min(at, w.free_at[w.completing[i]])
    if t[NEXT_WINDOW] < len(w.window_times):
        at = min(at, w.window_times[t[NEXT_WINDOW]])
    for i in range(t[NB_RUNNING] if p[PREEMPTS] != 0 else 0):
        at = min(at, next_check(w, w.grace_end[w.running[i]]))
    if t[ASKED] != 0:
        at = min(at, t[LAST_MAIN] + p[SCHED_DELAY])
    if t[NB_PENDING] > 0:
        at = min(at, t[LAST_FULL] + p[SCHED_INTERVAL])
        if p[MULTIFACTOR] != 0:
            at = min(at, t[NEXT_CALC])
    if p[BUILTIN] == 0:
        if p[CYCLES_GIVEN] != 0:
            if t[NEXT_CYCLE] < len(w.cycles) and t[NB_PENDING] > 0:
                at = min(at, w.cycles[t[NEXT_CYCLE]])
        elif t[CHANGED] != 0 or t[NB_PENDING] > 0:
            at = min(at, np.int64(np.ceil(w.next_backfill[0])))
    return max(at, t[NOW] + 1)
