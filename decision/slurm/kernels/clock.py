"""From event to event: ends, submissions, calculations of priorities, main loops, cycles of backfill."""

import numpy as np

from decision.compiling.jit import kernel

from . import world as at
from .backfill import backfill
from .holding import join_queue, release_completed
from .main_loop import main_loop
from .preemption import end_grace, next_check, requeue
from .priority import calculate, set_factors, set_priority


@kernel
def submit_job(w, job, now):
    """A job arrives."""
    join_queue(w, job)
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
        set_priority(w, entry, now, False)


@kernel
def begin_log(w):
    """Shares before anything has run, as slurmctld knows them when it starts."""
    if w.parameters[at.AGES] != 0 and len(w.leaf):
        set_factors(w)


@kernel
def step_scheduler(w, now):
    """All that the scheduler does at an instant, after the ends and submissions of it."""
    t, p = w.timers, w.parameters
    t[at.NOW], t[at.NB_STARTED], t[at.NB_KILLED] = now, 0, 0
    if p[at.PREEMPTS] != 0:
        end_grace(w, now)
    _requeue_completed(w, now)
    _move_windows(w, now)
    while p[at.MULTIFACTOR] != 0 and t[at.NEXT_CALC] <= now:
        calculate(w, t[at.NEXT_CALC])
        t[at.NEXT_CALC] += p[at.CALC_PERIOD]
    waits = _waits_for_completing(w, now)
    if not waits:
        _main(w, now)
    if p[at.BUILTIN] == 0 and (not waits or p[at.CYCLES_GIVEN] != 0):
        _backfill(w, now)


@kernel
def _waits_for_completing(w, now):
    """Whether CompleteWait keeps both loops from looking at the queue, because a job completes since less than that.

    Recorded cycles were not kept.
    """
    waits = False
    for i in range(w.timers[at.NB_COMPLETING]):
        waits |= now - w.end[w.completing[i]] < w.parameters[at.COMPLETE_WAIT]
    return waits


@kernel
def _requeue_completed(w, now):
    """Give nodes back; jobs that were preempted wait again."""
    nb_completing = w.timers[at.NB_COMPLETING]
    if nb_completing == 0:
        return
    ready = w.completing[:nb_completing].copy()
    release_completed(w, now)
    for job in ready:
        if w.status[job] == at.DONE_JOB and w.end[job] < w.start[job] + w.runtime[job] and w.submit[job] == w.end[job]:
            requeue(w, job, now)


@kernel
def _move_windows(w, now):
    t = w.timers
    while t[at.NEXT_WINDOW] < len(w.window_times) and w.window_times[t[at.NEXT_WINDOW]] <= now:
        i = t[at.NEXT_WINDOW]
        node = w.window_node[i]
        w.away[node] += w.window_step[i]
        if w.window_reservation[i] >= 0:
            w.reserved_by[node] = w.window_reservation[i] if w.window_step[i] > 0 else -1
        t[at.NEXT_WINDOW] += 1
        t[at.CHANGED], t[at.ASKED] = 1, 1


@kernel
def _main(w, now):
    """The main loop: over the whole queue each sched_interval, whether or not jobs wait, else when it was asked for."""
    t, p = w.timers, w.parameters
    passed = (now - t[at.LAST_FULL]) // p[at.SCHED_INTERVAL]
    t[at.LAST_FULL] += max(0, passed) * p[at.SCHED_INTERVAL]
    t[at.LAST_MAIN] = max(t[at.LAST_MAIN], t[at.LAST_FULL])
    if passed > 0 and t[at.LAST_FULL] == now:
        t[at.LAST_MAIN], t[at.ASKED], t[at.GO] = now, 0, 0
        main_loop(w, now, True)
    elif t[at.ASKED] != 0 and now - t[at.LAST_MAIN] >= p[at.SCHED_DELAY]:
        t[at.LAST_MAIN], t[at.ASKED], t[at.GO] = now, 0, 0
        main_loop(w, now, False)
    elif t[at.GO] != 0:
        t[at.GO] = 0
        main_loop(w, now, False)


@kernel
def _backfill(w, now):
    t = w.timers
    if w.parameters[at.CYCLES_GIVEN] != 0:
        while t[at.NEXT_CYCLE] < len(w.cycles) and w.cycles[t[at.NEXT_CYCLE]] <= now:
            t[at.NEXT_CYCLE] += 1
            t[at.NB_TESTED] += backfill(w, now)
            t[at.NB_CYCLES] += 1
    elif now >= w.next_backfill[0] and (t[at.CHANGED] != 0 or t[at.NB_PENDING] > 0):
        t[at.CHANGED] = 0
        tested = backfill(w, now)
        t[at.NB_TESTED] += tested
        t[at.NB_CYCLES] += 1
        began = max(w.next_backfill[0], now - 1.0)
        w.next_backfill[0] = began + w.parameters[at.BF_INTERVAL] + w.weights[at.CYCLE_COST] + _time_of(w, tested)


@kernel
def _time_of(w, tested):
    """Seconds that a cycle takes for its tests, and for letting others in."""
    busy = tested * w.weights[at.TEST_COST]
    return busy + np.floor(busy / max(1e-3, w.weights[at.YIELD_AFTER])) * w.weights[at.YIELD_SLEEP]


@kernel
def due(w):
    """When the scheduler acts next by itself, seconds; `FAR` where nothing but an event makes it."""
    t, p, time = w.timers, w.parameters, at.FAR
    for i in range(t[at.NB_COMPLETING]):
        time = min(time, w.free_at[w.completing[i]])
    if t[at.NEXT_WINDOW] < len(w.window_times):
        time = min(time, w.window_times[t[at.NEXT_WINDOW]])
    for i in range(t[at.NB_RUNNING] if p[at.PREEMPTS] != 0 else 0):
        time = min(time, next_check(w, w.grace_end[w.running[i]]))
    if t[at.ASKED] != 0:
        time = min(time, t[at.LAST_MAIN] + p[at.SCHED_DELAY])
    if t[at.NB_PENDING] > 0:
        time = min(time, t[at.LAST_FULL] + p[at.SCHED_INTERVAL])
        if p[at.MULTIFACTOR] != 0:
            time = min(time, t[at.NEXT_CALC])
    if p[at.BUILTIN] == 0:
        if p[at.CYCLES_GIVEN] != 0:
            if t[at.NEXT_CYCLE] < len(w.cycles) and t[at.NB_PENDING] > 0:
                time = min(time, w.cycles[t[at.NEXT_CYCLE]])
        elif t[at.CHANGED] != 0 or t[at.NB_PENDING] > 0:
            time = min(time, np.int64(np.ceil(w.next_backfill[0])))
    return max(time, t[at.NOW] + 1)
