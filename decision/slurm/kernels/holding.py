"""Taking nodes for a job and giving them back; what it costs in shares."""

from decision.compiling.jit import kernel

from .counts import count_limits
from .world import (
    AFTER,
    AFTER_ANY,
    AFTER_OK,
    AGES,
    ASKED,
    CANCELLED_JOB,
    CHANGED,
    COMPLETING,
    COMPLETING_JOB,
    DEFER,
    DONE_JOB,
    FAR,
    GO,
    NB_COMPLETING,
    NB_PENDING,
    NB_RUNNING,
    NB_STARTED,
    PENDING_JOB,
    RUNNING_JOB,
    UNKNOWN,
    UNSORTED,
)


@kernel
def begin_on_nodes(w, job, part, count, now, reason):
    """Start a job on the nodes chosen."""
    t = w.timers
    at = w.alloc_begin[job]
    w.alloc_count[job] = count
    for i in range(count):
        node, cores = w.chosen[i], w.chosen_cores[i]
        w.alloc_node[at + i], w.alloc_cores[at + i] = node, cores
        hold(w, job, node, cores, 1)
        w.nb_jobs[node] += 1
    w.status[job], w.start[job], w.reason[job], w.part_of[job] = RUNNING_JOB, now, reason, part
    if w.first_start[job] < 0:
        w.first_start[job] = now
    w.expected_end[job] = min(FAR, now + w.limit[job])
    w.end[job] = min(FAR, now + w.runtime[job], w.cancel[job])
    w.charged[job] = now
    w.running[t[NB_RUNNING]] = job
    t[NB_RUNNING] += 1
    w.started[t[NB_STARTED]] = job
    t[NB_STARTED] += 1
    leave_queue(w, job)
    count_limits(w, job, count, 1)
    t[CHANGED] = 1


@kernel
def hold(w, job, node, cores, sign):
    """Take (+1) or give back (-1) a job's part of a node."""
    w.free_cores[node] -= sign * cores
    memory = w.memory[job] * cores if w.memory_per_core[job] != 0 else w.memory[job]
    w.free_memory[node] -= sign * memory
    for kind in range(w.gres.shape[1]):
        w.free_gres[node, kind] -= sign * w.gres[job, kind]


@kernel
def leave_queue(w, job):
    """Take all entries of a job out of the queue."""
    kept, t = 0, w.timers
    for i in range(t[NB_PENDING]):
        if w.entry_job[w.pending[i]] != job:
            w.pending[kept] = w.pending[i]
            kept += 1
    t[NB_PENDING] = kept


@kernel
def join_queue(w, job):
    """Put all entries of a job into the queue, in order of the log."""
    t = w.timers
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
        at = t[NB_PENDING]
        while at > 0 and w.pending[at - 1] > entry:
            w.pending[at] = w.pending[at - 1]
            at -= 1
        w.pending[at] = entry
        t[NB_PENDING] += 1
    w.status[job] = PENDING_JOB
    t[UNSORTED], t[ASKED], t[CHANGED] = 1, 1, 1


@kernel
def end_job(w, job, now):
    """A job ended: its nodes complete for a while."""
    t = w.timers
    kept = 0
    for i in range(t[NB_RUNNING]):
        if w.running[i] != job:
            w.running[kept] = w.running[i]
            kept += 1
    t[NB_RUNNING] = kept
    w.status[job], w.end[job] = COMPLETING_JOB, now
    charge(w, job, now)
    at = w.alloc_begin[job]
    for i in range(at, at + w.alloc_count[job]):
        w.nb_completing[w.alloc_node[i]] += 1
    count_limits(w, job, w.alloc_count[job], -1)
    w.completing[t[NB_COMPLETING]] = job
    w.free_at[job] = now + w.parameters[COMPLETING]
    t[NB_COMPLETING] += 1
    t[ASKED], t[CHANGED] = 1, 1


@kernel
def release_completed(w, now):
    """Give back the nodes of jobs that have completed."""
    t, kept = w.timers, 0
    for i in range(t[NB_COMPLETING]):
        job = w.completing[i]
        if w.free_at[job] > now:
            w.completing[kept] = job
            kept += 1
            continue
        at = w.alloc_begin[job]
        for k in range(at, at + w.alloc_count[job]):
            node = w.alloc_node[k]
            hold(w, job, node, w.alloc_cores[k], -1)
            w.nb_jobs[node] -= 1
            w.nb_completing[node] -= 1
        if w.status[job] == COMPLETING_JOB:
            w.status[job] = DONE_JOB
        t[CHANGED] = 1
        t[ASKED if w.parameters[DEFER] != 0 else GO] = 1
    t[NB_COMPLETING] = kept


@kernel
def is_eligible(w, job, now):
    """Whether a job may run: not held, its time has come, and the jobs that it waits for are where they must be."""
    if w.array_limited[job] != 0:
        bucket = w.job_bucket[w.bucket_begin[job]]
        if w.bucket_used[bucket, 0] >= w.bucket_limit[bucket, 0]:
            return False
    if w.eligible[job] <= now:
        return True
    if w.held[job] != 0 or w.begin[job] > now or not _needs_met(w, job, now):
        return False
    waits = w.need_begin[job] < w.need_begin[job + 1] or w.array_limited[job] != 0
    w.eligible[job] = now if waits else max(w.submit[job], w.begin[job])
    return True


@kernel
def let_arrays_age(w, now):
    """Tasks that their array's limit does not hold when a loop begins are eligible, also if it holds them in the loop.

    Those submitted in this second are not: a queue is built before their time is known.
    """
    for i in range(w.timers[NB_PENDING]):
        job = w.entry_job[w.pending[i]]
        if w.array_limited[job] != 0 and w.submit[job] < now:
            is_eligible(w, job, now)


@kernel
def _needs_met(w, job, now):
    first, last = w.need_begin[job], w.need_begin[job + 1]
    if first == last:
        return True
    met = 0
    for i in range(first, last):
        met += _is_met(w, w.need_job[i], w.need_kind[i], now - w.need_delay[i])
    return met > 0 if w.need_any[job] != 0 else met == last - first


@kernel
def _is_met(w, other, kind, by):
    status = w.status[other]
    over = status in (COMPLETING_JOB, DONE_JOB, CANCELLED_JOB) and w.end[other] <= by
    if kind == AFTER:
        return (over or status == RUNNING_JOB) and (status == CANCELLED_JOB or w.start[other] <= by)
    if kind == AFTER_ANY:
        return over
    good = status != CANCELLED_JOB and w.succeeded[other] != 0
    return over and (good if kind == AFTER_OK else not good)


@kernel
def cancel_pending(w, job, now):
    """A waiting job is cancelled."""
    if w.status[job] == PENDING_JOB or w.status[job] == UNKNOWN:
        leave_queue(w, job)
        w.status[job], w.end[job] = CANCELLED_JOB, now
        w.timers[CHANGED] = 1


@kernel
def charge(w, job, now):
    """Add to the usage of a job's association and of all above it what it used since it was last charged."""
    seconds = now - w.charged[job]
    w.charged[job] = now
    if w.parameters[AGES] == 0 or seconds <= 0:
        return
    account = w.association[job]
    while account >= 0:
        w.usage[account] += w.billing[job] * seconds
        account = w.share_parent[account]
