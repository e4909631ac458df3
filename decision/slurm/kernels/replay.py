"""A log with its own run times, from its begin until all is over."""

from decision.compiling.jit import kernel

from .clock import begin_log, due, step_scheduler, submit_job
from .holding import begin_on_nodes, cancel_pending, end_job
from .world import BY_NOBODY, CANCELLED_JOB


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
        now = _next(w, nb_jobs)
        if now >= until:
            break
        _end_jobs(w, now)
        _cancel_jobs(w, now)
        while w.nb_submitted < nb_jobs and w.submit[w.nb_submitted] <= now:
            _arrive(w, w.nb_submitted, now)
            w.nb_submitted += 1
        step_scheduler(w, now)


@kernel
def _next(w, nb_jobs):
    at = due(w)
    if w.nb_submitted < nb_jobs:
        at = min(at, w.submit[w.nb_submitted])
    for i in range(w.nb_running):
        at = min(at, w.end[w.running[i]])
    for i in range(w.nb_pending):
        job = w.entry_job[w.pending[i]]
        at = min(at, w.cancel[job])
        if w.recorded[job] >= 0:
            at = min(at, w.recorded[job])
    return at


@kernel
def _end_jobs(w, now):
    i = 0
    while i < w.nb_running:
        job = w.running[i]
        if w.end[job] <= now:
            end_job(w, job, now)
        else:
            i += 1


@kernel
def _cancel_jobs(w, now):
    for i in range(w.nb_pending - 1, -1, -1):
        if i < w.nb_pending:
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
