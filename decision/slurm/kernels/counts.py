"""What jobs hold of limits and licences, and whether one more is within them."""

from decision.compiling.jit import kernel

_LICENCE = 32  # SlurmWorld.bucket_checks


@kernel
def count_limits(w, job, nodes, sign):
    """Count a job in (+1) or out (-1) of the limits that hold it."""
    for i in range(w.bucket_begin[job], w.bucket_begin[job + 1]):
        used = w.bucket_used[w.job_bucket[i]]
        used[0] += sign * w.bucket_amount[i]
        used[1] += sign * nodes
        used[2] += sign * w.cores[job]
        used[3] += sign * _memory(w, job, nodes)
        used[4] += sign * (w.gres[job, 0] * nodes if w.gres.shape[1] else 0)


@kernel
def _memory(w, job, nodes):
    return w.memory[job] * (w.cores[job] if w.memory_per_core[job] != 0 else nodes)


@kernel
def within_counts(w, job, with_licences=True):
    """Whether limits let a job run as far as they can tell without nodes for it.

    That is: one job more by all limits on the number of jobs (associations, QOS, arrays, licences), and not more nodes
    than a limit allows at all.
    """
    for i in range(w.bucket_begin[job], w.bucket_begin[job + 1]):
        bucket, checks = w.job_bucket[i], w.bucket_checks[i]
        if checks & _LICENCE and not with_licences:
            continue
        limit, most = w.bucket_limit[bucket, 0], w.bucket_limit[bucket, 1]
        if checks & 1 and limit >= 0 and w.bucket_used[bucket, 0] + w.bucket_amount[i] > limit:
            return False
        if checks & 2 and 0 <= most < w.nodes_min[job]:
            return False
    return True


@kernel
def has_licences(w, job):
    """Whether the licences that a job asks for are free."""
    free = True
    for kind in range(len(w.licence_total)):
        used = w.job_licences[job, kind]
        for i in range(w.nb_running if used else 0):
            used += w.job_licences[w.running[i], kind]
        free &= used <= w.licence_total[kind]
    return free


@kernel
def within_amounts(w, job):
    """Whether a job's resources are within all limits on nodes, cores, memory and GPUs."""
    nodes = w.nodes_min[job]
    gpus = w.gres[job, 0] * nodes if w.gres.shape[1] else 0
    for i in range(w.bucket_begin[job], w.bucket_begin[job + 1]):
        limit, used, checks = w.bucket_limit[w.job_bucket[i]], w.bucket_used[w.job_bucket[i]], w.bucket_checks[i]
        if (
            (checks & 2 and limit[1] >= 0 and used[1] + nodes > limit[1])
            or (checks & 4 and limit[2] >= 0 and used[2] + w.cores[job] > limit[2])
            or (checks & 8 and limit[3] >= 0 and used[3] + _memory(w, job, nodes) > limit[3])
            or (checks & 16 and limit[4] >= 0 and used[4] + gpus > limit[4])
        ):
            return False
    return True
