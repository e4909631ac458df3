"""Jobs that give way: by tier of their partition or by QOS."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host

from .allocate import end_job, join_queue
from .priority import set_priority
from .select_nodes import begin_trial, choose_nodes, end_in_trial, measure_nodes
from .world import CANCELLED_JOB, FAR

# slurm.conf(5), AuthInfo, cred_expire: 120 s for which a requeued job waits, and the second behind them
_REQUEUE_DELAY = 121  # seconds after its nodes are back in which a requeued job is not eligible
_REQUEUED = 1  # SlurmWorld.part_gives_way
# PERIODIC_TIMEOUT of slurmctld: how often job_time_limit looks
_CHECKED = 30  # seconds from one look at the ends of running jobs to the next


@kernel
def way_of(w, job):
    """How a running job gives way: 0: never, 1: it is requeued, 2: cancelled."""
    if w.preempts_by == 1:
        return w.part_gives_way[w.part_of[job]]
    return w.quality_gives_way[w.quality[job]] if w.preempts_by != 0 and w.quality[job] >= 0 else 0


@kernel
def gives_way(w, job, to):
    """Whether a running job gives way to an entry."""
    # slurm.conf(5), PreemptExemptTime
    if way_of(w, job) == 0 or w.now < w.start[job] + w.exempt[job]:
        return False
    # preempt/partition_prio goes by PriorityTier, preempt/qos by the list Preempt of a QOS (sacctmgr(1))
    if w.preempts_by == 1:
        return w.part_tier[w.part_of[job]] < w.part_tier[w.entry_part[to]]
    mine, other = w.quality[job], w.entry_quality[to]
    return mine >= 0 and other >= 0 and w.quality_preempts[other, mine] != 0


@kernel
def find_candidates(w, entry):
    """The running jobs that may give way into ``w.candidates``, those that go first in front; returns how many."""
    count = 0
    for i in range(w.nb_running):
        job = w.running[i]
        if gives_way(w, job, entry) and _overlaps(w, job, w.usable):
            w.candidates[count] = job
            count += 1
    # both plugins: of the lowest tier or QOS first, of these the smallest; or the youngest (preempt_youngest_first)
    keys = np.empty(count, np.int64)
    for i in range(count):
        job = w.candidates[i]
        rank = w.part_tier[w.part_of[job]] if w.preempts_by == 1 else w.quality_order[w.quality[job]]
        keys[i] = -w.start[job] if w.preempt_youngest_first != 0 else (rank << 16) + min(w.alloc_count[job], 65535)
    order = np.argsort(keys, kind="mergesort")
    w.candidates[:count] = w.candidates[:count][order]
    return count


@kernel
def _overlaps(w, job, mask):
    return _common(w, job, mask) > 0


@kernel
def _common(w, job, mask):
    count, at = 0, w.alloc_begin[job]
    for i in range(at, at + w.alloc_count[job]):
        count += has_host(mask, w.alloc_node[i])
    return count


@kernel
def _free_until_fits(w, entry, count):
    """Take candidates away in order until the job fits; how many it took, 0 where all are not enough."""
    job, part = w.entry_job[entry], w.entry_part[entry]
    begin_trial(w)
    for i in range(count):
        end_in_trial(w, w.candidates[i])
        measure_nodes(w, job, w.usable)
        if choose_nodes(w, job, part) > 0:
            return i + 1
    return 0


@kernel
def make_room(w, entry, now):
    """Preempt so that an entry fits on ``w.usable`` when the nodes are back; whether that is possible."""
    count = find_candidates(w, entry)
    if count == 0:
        return False
    taken = _free_until_fits(w, entry, count)
    if taken == 0:
        return False
    # slurm.conf(5), preempt_reorder_count: one more try, with the jobs that have most of the chosen nodes first
    chosen = np.zeros(len(w.usable), np.uint64)
    _mark_chosen(w, entry, chosen)
    keys = np.empty(taken, np.int64)
    for i in range(taken):
        keys[i] = -_common(w, w.candidates[i], chosen)
    order = np.argsort(keys, kind="mergesort")
    w.candidates[:taken] = w.candidates[:taken][order]
    taken = max(1, _free_until_fits(w, entry, taken))
    chosen[:] = 0
    _mark_chosen(w, entry, chosen)
    victims = w.candidates[:taken].copy()
    # select_nodes: those that a job has preempted may still be ending
    job = w.entry_job[entry]
    if now < w.preempting_until[job]:
        return True
    w.preempting_until[job] = now + w.preempt_pause
    # candidates that hold none of the chosen nodes are spared
    for victim in victims:
        if _overlaps(w, victim, chosen):
            _preempt(w, victim, now)
    return True


@kernel
def _mark_chosen(w, entry, chosen):
    job = w.entry_job[entry]
    count = choose_nodes(w, job, w.entry_part[entry])
    for i in range(count):
        node = w.chosen[i]
        chosen[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@kernel
def _preempt(w, job, now):
    """A running job gives way: it is requeued or cancelled, when the time of grace that it has is over."""
    if w.grace_end[job] == FAR:
        grace = w.part_grace[w.part_of[job]] if w.preempts_by == 1 else w.quality_grace[w.quality[job]]
        w.grace_end[job] = w.expected_end[job] = min(w.expected_end[job], now + grace)
        w.changed, w.moved = 1, 1
        # slurm.conf(5), GraceTime: the job is told to end, and runs on until then
        if grace > 0:
            return
    if now < w.grace_end[job]:
        return
    w.grace_end[job] = FAR
    again = way_of(w, job) == _REQUEUED and w.runs_once[job] == 0
    w.killed[w.nb_killed] = job
    w.nb_killed += 1
    end_job(w, job, now)
    if not again:
        w.status[job] = CANCELLED_JOB
        return
    # sacct shows the time of the requeue as the submission of the next run
    w.requeues[job] += 1
    w.recorded[job] = -1
    w.eligible[job] = FAR
    w.submit[job] = now


@kernel
def next_check(w, at):
    """When slurmctld next looks at the ends of running jobs, from a time on."""
    return at + (w.last_full - at) % _CHECKED


@kernel
def end_grace(w, now):
    """End jobs whose time of grace is over, when slurmctld looks at the ends of jobs."""
    i = 0
    while i < w.nb_running:
        job = w.running[i]
        if w.grace_end[job] < FAR and next_check(w, w.grace_end[job]) <= now:
            _preempt(w, job, now)
        else:
            i += 1


@kernel
def requeue(w, job, now):
    """The nodes of a preempted job are back: it waits again, not eligible for a while."""
    w.submit[job], w.begin[job], w.eligible[job] = now, now + _REQUEUE_DELAY, FAR
    w.job_licences[job] = w.licences_asked[job]
    join_queue(w, job)
    # batch_requeue_fini: its priority is that of a new job; before, it kept its place
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1] if w.requeued_anew != 0 else 0):
        set_priority(w, entry, now, False)
