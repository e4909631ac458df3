"""From event to event: ends, submissions, calculations of priorities, main loops, cycles of backfill."""

import numpy as np

from decision.compiling.jit import kernel

from .backfill import backfill
from .holding import begin_on_nodes, cancel_pending, end_job, join_queue, release_completed
from .main_loop import main_loop
from .preemption import end_grace, next_check, requeue
from .priority import calculate, set_factors, set_priority
from .world import (
    AGES,
    ASKED,
    BF_INTERVAL,
    BUILTIN,
    BY_NOBODY,
    CALC_PERIOD,
    CANCELLED_JOB,
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
    NB_SUBMITTED,
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


@kernel
def run_log(w, until):
    """Run the log with its own run times, until all is over or nothing happens any more.

    Args:
        w: a fresh world.
        until: seconds at which it ends whatever is left.
    """
    t, nb_jobs = w.timers, len(w.submit)
    begin_log(w)
    while True:
        now = _next(w, nb_jobs)
        if now >= until:
            break
        _end_jobs(w, now)
        _cancel_jobs(w, now)
        while t[NB_SUBMITTED] < nb_jobs and w.submit[t[NB_SUBMITTED]] <= now:
            _arrive(w, t[NB_SUBMITTED], now)
            t[NB_SUBMITTED] += 1
        step_scheduler(w, now)


@kernel
def _next(w, nb_jobs):
    t = w.timers
    at = due(w)
    if t[NB_SUBMITTED] < nb_jobs:
        at = min(at, w.submit[t[NB_SUBMITTED]])
    for i in range(t[NB_RUNNING]):
        at = min(at, w.end[w.running[i]])
    for i in range(t[NB_PENDING]):
        job = w.entry_job[w.pending[i]]
        at = min(at, w.cancel[job])
        if w.recorded[job] >= 0:
            at = min(at, w.recorded[job])
    return at


@kernel
def _end_jobs(w, now):
    i = 0
    while i < w.timers[NB_RUNNING]:
        job = w.running[i]
        if w.end[job] <= now:
            end_job(w, job, now)
        else:
            i += 1


@kernel
def _cancel_jobs(w, now):
    for i in range(w.timers[NB_PENDING] - 1, -1, -1):
        if i < w.timers[NB_PENDING]:
            job = w.entry_job[w.pending[i]]
            if w.cancel[job] <= now:
                cancel_pending(w, job, now)
            elif 0 <= w.recorded[job] <= now:
                _begin_recorded(w, job, now)


@kernel
def _arrive(w, job, now):
    if w.cancel[job] <= now:
        w.status[job], w.end[job] = CANCELLED_JOB, now
        return
    submit_job(w, job, now)
    if 0 <= w.recorded[job] <= now:
        _begin_recorded(w, job, now)


@kernel
def _begin_recorded(w, job, now):
    """Start a job on the nodes that it had, because it ran when the log began."""
    count, at = w.alloc_count[job], w.alloc_begin[job]
    for i in range(count):
        w.chosen[i], w.chosen_cores[i] = w.alloc_node[at + i], w.alloc_cores[at + i]
    begin_on_nodes(w, job, w.entry_part[w.entry_begin[job]], count, now, BY_NOBODY)
