"""What a job holds, from the queue to its end: its place in line, limits and licences, nodes, and usage.

The counterparts in Slurm are acct_policy.c (limits), build_job_queue (who is eligible), and deallocate_nodes.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host

from . import world as at


@kernel
def take_entry(w, entry):
    """Look at a job as one of its entries has it: in that one's QOS, with the limits of that one."""
    # build_job_queue makes a record for each QOS of a job, too (sbatch(1), --qos; 24.11)
    job = w.entry_job[entry]
    w.quality[job], w.placed_by[job] = w.entry_quality[entry], entry
    w.bucket_begin[job], w.bucket_end[job] = w.entry_bucket[entry]


@kernel
def count_limits(w, job, nodes, sign):
    """Count a job in (+1) or out (-1) of the limits that hold it."""
    # acct_policy_job_begin and acct_policy_job_fini: limits count what runs, from start to end, not what completes
    for i in range(w.bucket_begin[job], w.bucket_end[job]):
        used = w.bucket_used[w.job_bucket[i]]
        used[0] += sign
        used[1] += sign * nodes
        used[2] += sign * w.cores[job]
        used[3] += sign * _memory(w, job, nodes)
        used[4] += sign * (w.gres[job, 0] * nodes if w.gres.shape[1] else 0)


@kernel
def _memory(w, job, nodes):
    """The memory that limits count, megabytes; of a job that takes all of its nodes' memory, nothing."""
    return max(0, w.memory[job]) * (w.cores[job] if w.memory_per_core[job] != 0 else nodes)


@kernel
def memory_on(w, job, node, cores):
    """The memory that a job holds on a node of which it has so many cores, megabytes."""
    # slurm.conf(5), SelectTypeParameters=CR_*_Memory: --mem is of a node, --mem-per-cpu of each core
    if w.memory[job] == at.ALL_OF_NODE:
        return w.node_memory[node]
    return w.memory[job] * cores if w.memory_per_core[job] != 0 else w.memory[job]


@kernel
def within_counts(w, job):
    """Whether limits let a job run as far as they can tell without nodes for it.

    That is: one job more by all limits on the number of jobs (associations, QOS, arrays), and not more nodes than a
    limit allows at all.
    """
    for i in range(w.bucket_begin[job], w.bucket_end[job]):
        bucket, checks = w.job_bucket[i], w.bucket_checks[i]
        limit, most = w.bucket_limit[bucket, 0], w.bucket_limit[bucket, 1]
        if checks & 1 and limit >= 0 and w.bucket_used[bucket, 0] + 1 > limit:
            return False
        # acct_policy_job_runnable_pre_select: before nodes are looked for, only the numbers of jobs and nodes are known
        if checks & 2 and 0 <= most < w.nodes_min[job]:
            return False
    return True


@kernel
def has_licences(w, job):
    """Whether the licences that a job asks for are free."""
    nb_kinds, free = len(w.licence_total), np.zeros(len(w.licence_total), np.int64)
    if nb_kinds == 0 or w.licences_asked[job].sum() == 0:
        return True
    free[:] = w.licence_total
    for i in range(w.nb_running):
        for kind in range(nb_kinds):
            free[kind] -= w.job_licences[w.running[i], kind]
    return find_licences(w, job, free)


@kernel
def find_licences(w, job, free):
    """Whether there are licences enough for the job; if so, ``job_licences`` has those that it gets.

    Where any will do they are the first that are free, in the order in which it names them; else all that it asks for.
    """
    # license_job_test, license_job_get and slurm_bf_licenses_deduct of slurmctld/licenses.c (25.05)
    nb_kinds = len(free)
    any_will_do = w.status[job] == at.PENDING_JOB and nb_kinds > 0 and w.licence_order[job, 0] >= 0
    if not any_will_do:
        enough = True
        for kind in range(nb_kinds):
            enough &= free[kind] >= w.job_licences[job, kind]
        return enough
    for place in range(nb_kinds):  # where nothing plans licences, `free` is empty
        kind = w.licence_order[job, place]
        if kind >= 0 and free[kind] >= w.licences_asked[job, kind]:
            w.job_licences[job] = 0
            w.job_licences[job, kind] = w.licences_asked[job, kind]
            return True
    return False


@kernel
def within_amounts(w, job):
    """Whether a job's resources are within all limits on nodes, cores, memory and GPUs."""
    nodes = w.nodes_min[job]
    gpus = w.gres[job, 0] * nodes if w.gres.shape[1] else 0
    for i in range(w.bucket_begin[job], w.bucket_end[job]):
        limit, used, checks = w.bucket_limit[w.job_bucket[i]], w.bucket_used[w.job_bucket[i]], w.bucket_checks[i]
        # acct_policy_job_runnable_post_select: nodes, cores, memory and GPUs, when it is known what the job takes
        if (
            (checks & 2 and limit[1] >= 0 and used[1] + nodes > limit[1])
            or (checks & 4 and limit[2] >= 0 and used[2] + w.cores[job] > limit[2])
            or (checks & 8 and limit[3] >= 0 and used[3] + _memory(w, job, nodes) > limit[3])
            or (checks & 16 and limit[4] >= 0 and used[4] + gpus > limit[4])
        ):
            return False
    return True


@kernel
def begin_on_nodes(w, job, part, count, now, reason):
    """Start a job on the nodes chosen."""
    first = w.alloc_begin[job]
    w.alloc_count[job] = count
    for i in range(count):
        node, cores = w.chosen[i], w.chosen_cores[i]
        w.alloc_node[first + i], w.alloc_cores[first + i] = node, cores
        hold(w, job, node, cores, 1)
        w.nb_jobs[node] += 1
    w.status[job], w.start[job], w.reason[job], w.part_of[job] = at.RUNNING_JOB, now, reason, part
    if w.first_start[job] < 0:
        w.first_start[job] = now
    # Slurm plans by time limits alone: OverTimeLimit delays the kill, it does not move the end that others plan with
    w.expected_end[job] = min(at.FAR, now + w.limit[job])
    w.end[job] = min(at.FAR, now + w.runtime[job], w.cancel[job])
    w.charged[job] = now
    w.running[w.nb_running] = job
    w.nb_running += 1
    w.started[w.nb_started] = job
    w.nb_started += 1
    leave_queue(w, job)
    count_limits(w, job, count, 1)
    w.changed, w.moved, w.holds_until = 1, 1, 0


@kernel
def hold(w, job, node, cores, sign):
    """Take (+1) or give back (-1) a job's part of a node."""
    w.free_cores[node] -= sign * cores
    w.free_memory[node] -= sign * memory_on(w, job, node, cores)
    for kind in range(w.gres.shape[1]):
        w.free_gres[node, kind] -= sign * w.gres[job, kind]


@kernel
def leave_queue(w, job):
    """Take all entries of a job out of the queue."""
    kept = 0
    for i in range(w.nb_pending):
        if w.entry_job[w.pending[i]] != job:
            w.pending[kept] = w.pending[i]
            kept += 1
    w.nb_pending = kept


@kernel
def join_queue(w, job):
    """Put all entries of a job into the queue, in order of the log."""
    take_entry(w, w.entry_begin[job])
    # build_job_queue makes a record for each partition of a job, so that it stands in the queue several times
    for entry in range(w.entry_begin[job], w.entry_begin[job + 1]):
        place = w.nb_pending
        while place > 0 and w.pending[place - 1] > entry:
            w.pending[place] = w.pending[place - 1]
            place -= 1
        w.pending[place] = entry
        w.nb_pending += 1
    w.status[job] = at.PENDING_JOB
    # a batch job is not placed by its submission, which only asks for a main loop (queue_job_scheduler)
    w.unsorted, w.asked, w.changed = 1, 1, 1


@kernel
def end_job(w, job, now):
    """A job ended: its nodes complete for a while."""
    kept = 0
    for i in range(w.nb_running):
        if w.running[i] != job:
            w.running[kept] = w.running[i]
            kept += 1
    w.nb_running = kept
    w.status[job], w.end[job] = at.COMPLETING_JOB, now
    charge(w, job, now)
    # deallocate_nodes: nodes are COMPLETING until their epilog has ended, and take no job before that
    first = w.alloc_begin[job]
    for i in range(first, first + w.alloc_count[job]):
        w.nb_completing[w.alloc_node[i]] += 1
    count_limits(w, job, w.alloc_count[job], -1)
    w.completing[w.nb_completing_jobs] = job
    w.free_at[job] = now + w.completing_time
    w.nb_completing_jobs += 1
    w.asked, w.changed, w.moved, w.holds_until = 1, 1, 1, 0


@kernel
def end_jobs(w, now):
    """All jobs end that are due at `now`."""
    i = 0
    while i < w.nb_running:
        job = w.running[i]
        if w.end[job] <= now:
            end_job(w, job, now)  # those behind it in the list move up
        else:
            i += 1


@kernel
def release_completed(w, now):
    """Give back the nodes of jobs that have completed."""
    kept = 0
    for i in range(w.nb_completing_jobs):
        job = w.completing[i]
        if w.free_at[job] > now:
            w.completing[kept] = job
            kept += 1
            continue
        first = w.alloc_begin[job]
        for k in range(first, first + w.alloc_count[job]):
            node = w.alloc_node[k]
            hold(w, job, node, w.alloc_cores[k], -1)
            w.nb_jobs[node] -= 1
            w.nb_completing[node] -= 1
        if w.status[job] == at.COMPLETING_JOB:
            w.status[job] = at.DONE_JOB
        w.changed, w.moved, w.holds_until = 1, 1, 0
        # slurm.conf(5), defer; without it the message that an epilog is complete runs a loop at once
        if w.defer != 0:
            w.asked = 1
        else:
            w.goes = 1
    w.nb_completing_jobs = kept


@kernel
def is_eligible(w, job, now):
    """Whether a job may run: not held, its time has come, and the jobs that it waits for are where they must be."""
    # sbatch(1), --array=...%N: a task that the limit holds has no begin time yet, and so no age
    if w.array_limited[job] != 0:
        bucket = w.job_bucket[w.bucket_begin[job]]
        if w.bucket_used[bucket, 0] >= w.bucket_limit[bucket, 0]:
            return False
    if w.eligible[job] <= now:
        return True
    if w.held[job] != 0 or w.begin[job] > now or not _needs_met(w, job, now):
        return False
    # age counts from when a dependency was met, but from the submission where nothing but a time was waited for
    waits = w.need_begin[job] < w.need_begin[job + 1] or w.array_limited[job] != 0
    w.eligible[job] = now if waits else max(w.submit[job], w.begin[job])
    return True


@kernel
def let_arrays_age(w, now):
    """Tasks that their array's limit does not hold when a loop begins are eligible, also if it holds them in the loop.

    Those submitted in this second are not: a queue is built before their time is known.
    """
    for i in range(w.nb_pending):
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
        other, kind, by = w.need_job[i], w.need_kind[i], now - w.need_delay[i]
        status = w.status[other]
        over = status in (at.COMPLETING_JOB, at.DONE_JOB, at.CANCELLED_JOB) and w.end[other] <= by
        good = status != at.CANCELLED_JOB and w.succeeded[other] != 0
        # sbatch(1), --dependency: after is met by a start or a cancellation, the others by an end; afterok of a job
        # that failed never, and then the job waits for ever (DependencyNeverSatisfied)
        if kind == at.AFTER:
            met += (over or status == at.RUNNING_JOB) and (status == at.CANCELLED_JOB or w.start[other] <= by)
        elif kind == at.AFTER_ANY:
            met += over
        else:
            met += over and good == (kind == at.AFTER_OK)
    # sbatch(1), --dependency: "?" between jobs means any of them, "," all
    return met > 0 if w.need_any[job] != 0 else met == last - first


@kernel
def cancel_pending(w, job, now):
    """A waiting job is cancelled."""
    if w.status[job] == at.PENDING_JOB or w.status[job] == at.UNKNOWN:
        leave_queue(w, job)
        w.status[job], w.end[job] = at.CANCELLED_JOB, now
        w.changed, w.holds_until = 1, 0


@kernel
def charge(w, job, now):
    """Add to the usage of a job's association and of all above it what it used since it was last charged."""
    seconds = now - w.charged[job]
    w.charged[job] = now
    if w.ages == 0 or seconds <= 0:
        return
    account = w.association[job]
    # priority/multifactor: usage is billing x seconds, of the association and of all accounts above it
    while account >= 0:
        w.usage[account] += w.billing[job] * seconds
        account = w.share_parent[account]


# Nodes are taken one by one, those that a job names first: so does _eval_nodes of select/cons_tres with ReqNodeList,
# before it looks at runs.

# SlurmWorld.wanted: what is still to be taken
CORES = 0
NODES = 1
MOST = 2  # nodes
TAKEN = 3

NO_WEIGHT = 1 << 40  # more than any node has


@kernel
def is_named(w, job, node):
    """Whether the job asks for the node by name."""
    return w.must_have[job] >= 0 and has_host(w.masks[w.must_have[job]], node)


@kernel
def has_named(w, job, mask):
    """Whether all nodes that the job asks for by name are in a bitmap."""
    lacking = np.uint64(0)
    for word in range(len(mask) if w.must_have[job] >= 0 else 0):
        lacking |= w.masks[w.must_have[job], word] & ~mask[word]
    return lacking == 0


@kernel
def begin_taking(w, job):
    """Set what is wanted to all that the job needs."""
    w.wanted[CORES] = w.nodes_min[job] if w.linear != 0 else w.cores[job]
    w.wanted[NODES], w.wanted[MOST], w.wanted[TAKEN] = w.nodes_wanted[job], w.nodes_max[job], 0


@kernel
def cores_to_take(room, per_task, cores, nodes):
    """The cores of a node with so much room that a job gets, which still needs so many cores and nodes."""
    # as _cpus_to_use of select/cons_tres: the nodes of --nodes are all used, if with one task only
    kept_back = max(0, nodes - 1) * per_task  # for the nodes that must follow
    return min(room, max(per_task, cores - kept_back))


@kernel
def take_node(w, job, node):
    """Take a node for the job, with as many of its cores as it still wants."""
    needed = w.wanted[NODES] - spare_nodes(w, job)
    taken = cores_to_take(w.room_left[node], w.per_task[job], w.wanted[CORES], needed)
    w.chosen[w.wanted[TAKEN]], w.chosen_cores[w.wanted[TAKEN]] = node, taken
    w.wanted[CORES] -= taken
    w.wanted[NODES] -= 1
    w.wanted[MOST] -= 1
    w.wanted[TAKEN] += 1
    w.room_left[node] = 0


@kernel
def is_enough(w):
    """Whether nothing is wanted any more."""
    return w.wanted[CORES] <= 0 and w.wanted[NODES] <= 0


@kernel
def spare_nodes(w, job):
    """How many of the nodes that it wants a job can do without."""
    # get_node_cnts: of -N 2-4 as many as there are are looked for, and 2 are enough (eval_nodes_enough_nodes)
    return w.nodes_wanted[job] - w.nodes_min[job]


@kernel
def will_do(w, job):
    """Whether what is taken is enough for the job, if not as much as it wants."""
    return w.wanted[CORES] <= 0 and w.wanted[NODES] <= spare_nodes(w, job)


@kernel
def take_named(w, job, nb_spots):
    """Take the nodes that the job names; whether all of them have room. What is still wanted stands in ``w.wanted``."""
    begin_taking(w, job)
    for i in range(nb_spots):
        if is_named(w, job, w.spots[i]) and w.room_left[w.spots[i]] > 0:
            take_node(w, job, w.spots[i])
    return w.wanted[TAKEN] == count_hosts(w.masks[w.must_have[job]])
