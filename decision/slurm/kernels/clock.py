"""From event to event: ends, submissions, calculations of priorities, main loops, cycles of backfill."""

import numpy as np

from decision.compiling.jit import kernel

from . import world as at
from .allocate import begin_on_nodes, cancel_pending, end_jobs, has_licences, join_queue, release_completed
from .backfill import backfill
from .main_loop import main_loop
from .preemption import end_grace, next_check, requeue
from .priority import calculate, set_factors, set_priority
from .world import BY_NOBODY, CANCELLED_JOB


@kernel
def submit_job(w, job, now):
    """A job arrives: its entries join the queue, with priorities in which it has no age."""
    join_queue(w, job)
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
        set_priority(w, entry, now, False)


@kernel
def begin_log(w):
    """Shares before anything has run, as slurmctld knows them when it starts."""
    if w.ages != 0 and len(w.leaf):
        set_factors(w)


@kernel
def step_scheduler(w, now):
    """All that the scheduler does at an instant, after the ends and submissions of it."""
    # slurmctld's threads one after the other: background (ends of jobs), decay of priority/multifactor, main loop,
    # backfill
    w.now, w.nb_started, w.nb_killed = now, 0, 0
    if w.preempts_by != 0:
        end_grace(w, now)
    if w.nb_completing_jobs > 0:
        ready = w.completing[: w.nb_completing_jobs].copy()
        release_completed(w, now)
        # jobs that were preempted wait again
        for job in ready:
            early = w.end[job] < w.start[job] + w.runtime[job] and w.submit[job] == w.end[job]
            if w.status[job] == at.DONE_JOB and early:
                requeue(w, job, now)
    while w.next_window < len(w.window_times) and w.window_times[w.next_window] <= now:
        i = w.next_window
        node = w.window_node[i]
        if w.window_cores[i] > 0:
            w.free_cores[node] -= w.window_step[i] * w.window_cores[i]
        else:
            w.away[node] += w.window_step[i]
        # a reservation takes the node for its own jobs; a node that is down is there for nobody
        if w.window_reservation[i] >= 0 and w.window_cores[i] == 0:
            w.reserved_by[node] = w.window_reservation[i] if w.window_step[i] > 0 else -1
        w.next_window += 1
        w.changed, w.asked, w.moved, w.holds_until = 1, 1, 1, 0
    while w.multifactor != 0 and w.next_calc <= now:
        calculate(w, w.next_calc)
        w.next_calc += w.calc_period
    # slurm.conf(5), CompleteWait: how long a job that completes keeps both loops from looking at the queue;
    # recorded cycles were not kept
    waits = False
    for i in range(w.nb_completing_jobs):
        waits |= now - w.end[w.completing[i]] < w.complete_wait
    if not waits:
        _main(w, now)
    if w.builtin == 0 and (not waits or w.cycles_given != 0):
        _backfill(w, now)


@kernel
def _main(w, now):
    """The main loop: over the whole queue each sched_interval, whether or not jobs wait, else when it was asked for."""
    # (a) over the whole queue each sched_interval, counted from slurmctld's start
    passed = (now - w.last_full) // w.sched_interval
    w.last_full += max(0, passed) * w.sched_interval
    w.last_main = max(w.last_main, w.last_full)
    if passed > 0 and w.last_full == now:
        w.last_main, w.asked, w.goes = now, 0, 0
        main_loop(w, now, True)
    # (b) asked for: to default_queue_depth, batch_sched_delay after the last loop
    elif w.asked != 0 and now - w.last_main >= w.batch_sched_delay:
        w.last_main, w.asked, w.goes = now, 0, 0
        main_loop(w, now, False)
    # (c) at once, because nodes came back
    elif w.goes != 0:
        w.goes = 0
        main_loop(w, now, False)


@kernel
def _backfill(w, now):
    if w.cycles_given != 0:
        while w.next_cycle < len(w.cycles) and w.cycles[w.next_cycle] <= now:
            w.next_cycle += 1
            w.nb_tested += backfill(w, now)
            w.nb_cycles += 1
    # backfill_agent sleeps bf_interval between cycles, so a cycle's own time is added to the period
    elif now >= w.next_backfill and (w.changed != 0 or w.nb_pending > 0):
        w.changed = 0
        tested = backfill(w, now)
        w.nb_tested += tested
        w.nb_cycles += 1
        began = max(w.next_backfill, now - 1.0)
        # slurm.conf(5), bf_yield_sleep: the time for which a cycle lets others in is a part of it
        busy = tested * w.test_cost
        in_all = busy + np.floor(busy / max(1e-3, w.yield_after)) * w.yield_sleep
        w.next_backfill = began + w.bf_interval + w.cycle_cost + in_all


@kernel
def due(w):
    """When the scheduler acts next by itself, seconds; `FAR` where nothing but an event makes it."""
    time = at.FAR
    for i in range(w.nb_completing_jobs):
        time = min(time, w.free_at[w.completing[i]])
    if w.next_window < len(w.window_times):
        time = min(time, w.window_times[w.next_window])
    for i in range(w.nb_running if w.preempts_by != 0 else 0):
        time = min(time, next_check(w, w.grace_end[w.running[i]]))
    if w.asked != 0:
        time = min(time, w.last_main + w.batch_sched_delay)
    if w.nb_pending > 0:
        time = min(time, w.last_full + w.sched_interval)
        if w.multifactor != 0:
            time = min(time, w.next_calc)
    if w.builtin == 0:
        if w.cycles_given != 0:
            if w.next_cycle < len(w.cycles) and w.nb_pending > 0:
                time = min(time, w.cycles[w.next_cycle])
        elif w.changed != 0 or w.nb_pending > 0:
            time = min(time, np.int64(np.ceil(w.next_backfill)))
    # all of slurmctld's waits are in whole seconds
    return max(time, w.now + 1)


# A log with its own run times, from its begin until all is over.


@kernel
def run_log(w, until):
    """Run the log with its own run times, until all is over or nothing happens any more.

    Args:
        w: a fresh world.
        until: seconds at which it ends whatever is left.
    """
    nb_jobs = len(w.submit)
    begin_log(w)
    while True:
        # the next instant at which anything happens, in the log or in the scheduler
        now = due(w)
        if w.nb_submitted < nb_jobs:
            now = min(now, w.submit[w.nb_submitted])
        for i in range(w.nb_running):
            now = min(now, w.end[w.running[i]])
        for i in range(w.nb_pending):
            job = w.entry_job[w.pending[i]]
            now = min(now, w.cancel[job])
            if w.recorded[job] >= 0:
                now = min(now, w.recorded[job])
        if now >= until:
            break
        # ends, then cancellations and recorded starts, then submissions, as they stand in one second of the log
        end_jobs(w, now)
        for i in range(w.nb_pending - 1, -1, -1):
            if i < w.nb_pending:
                job = w.entry_job[w.pending[i]]
                if w.cancel[job] <= now:
                    cancel_pending(w, job, now)
                elif 0 <= w.recorded[job] <= now:
                    _begin_recorded(w, job, now)
        while w.nb_submitted < nb_jobs and w.submit[w.nb_submitted] <= now:
            job = w.nb_submitted
            if w.cancel[job] <= now:
                w.status[job], w.end[job], w.holds_until = CANCELLED_JOB, now, 0
            else:
                submit_job(w, job, now)
                if 0 <= w.recorded[job] <= now:
                    _begin_recorded(w, job, now)
            w.nb_submitted += 1
        step_scheduler(w, now)


@kernel
def _begin_recorded(w, job, now):
    """Start a job on the nodes that it had, because it ran when the log began."""
    count, at = w.alloc_count[job], w.alloc_begin[job]
    has_licences(w, job)  # those that it has, where any would do
    for i in range(count):
        w.chosen[i], w.chosen_cores[i] = w.alloc_node[at + i], w.alloc_cores[at + i]
    begin_on_nodes(w, job, w.entry_part[w.entry_begin[job]], count, now, BY_NOBODY)
