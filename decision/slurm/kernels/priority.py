"""Priorities: age and fair share, computed each PriorityCalcPeriod and cut to integers."""

import numpy as np

from decision.compiling.jit import kernel

from . import world as at
from .allocate import charge, is_eligible

_PLACES = 1024  # of jobs that come back in the same second


@kernel
def set_priority(w, entry, now, aged):
    """The priority of an entry; at its submission a job has no age."""
    job, total, place = w.entry_job[entry], w.entry_base[entry], 0
    if w.multifactor == 0:
        # of jobs that come back in the same second the first is whose epilog ends first, which nobody knows
        if w.requeues[job] != 0 and w.requeue_order != 0:
            place = (job + 1) * (2 * w.requeue_order + 1) * 2_654_435_761 % (1 << 32) * _PLACES >> 32
        # priority/basic counts down with each job that arrives
        w.priority[entry] = -now * _PLACES - place if w.requeued_anew != 0 else 0
        return
    # slurm.conf(5), PriorityType: the weighted sum of priority/multifactor; `entry_base` has what does not change
    # _job_test of select/cons_tres sets total_cpus, by which the size counts from then on: of an exclusive job all cpus
    if w.found_cpus[job] > 0:
        total += w.per_cpu[job] * (w.found_cpus[job] - w.cpus[job])
    if w.ages != 0:
        # slurm.conf(5), PriorityFlags=ACCRUE_ALWAYS: also while a hold, a dependency or a begin time keeps it
        since = w.submit[job] if w.accrue_always != 0 else w.eligible[job]
        if aged and since < at.FAR and w.max_age > 0:
            total += w.age_weight * min(1.0, max(0, now - since) / w.max_age)
        if w.association[job] >= 0:
            total += w.share_weight * w.factor[w.association[job]]
    # cut to an integer, which makes ties where weights are small (measured: 1 point was 7 s of age); 0 would be a hold
    found = max(1, np.int64(total))
    w.priority[entry] = max(found, w.priority[entry]) if w.increase_only != 0 else found


@kernel
def calculate(w, now):
    """The periodic calculation: usage decays and grows, then shares, then all waiting jobs."""
    if w.multifactor == 0:
        return
    if w.ages != 0 and w.share_weight > 0 and len(w.leaf):
        # PriorityDecayHalfLife, applied each PriorityCalcPeriod as the decay thread does, not with each job
        factor = w.decay**w.calc_period
        for account in range(len(w.usage)):
            w.usage[account] *= factor
        for i in range(w.nb_running):
            charge(w, w.running[i], now)
        set_factors(w)
    for i in range(w.nb_pending):
        entry = w.pending[i]
        if w.submit[w.entry_job[entry]] <= now:  # it may be late, where nothing waited
            is_eligible(w, w.entry_job[entry], now)
            set_priority(w, entry, now, True)
            w.placed_by[w.entry_job[entry]] = entry  # at last, its last one
    if w.nb_pending:
        w.unsorted = 1
        w.changed = 1


@kernel
def set_factors(w):
    """The fair-share factor of each leaf, from usage."""
    if w.fair_tree != 0:
        _fair_tree(w)
        return
    # classic: two to the power of minus usage over shares; a leaf's usage is partly that of its account
    nb_leaves, depth = w.share_path.shape
    total = w.usage[0]
    for i in range(nb_leaves):
        effective, shares = 1.0, 1.0
        for level in range(depth):
            account = w.share_path[i, level]
            # effective usage of classic fair-share: own + (that of the account above - own) x shares among siblings
            if account >= 0:
                own = w.usage[account] / total if total > 0 else 0.0
                above = effective if level else own
                effective = own + (above - own) * w.share_norm[account]
                shares *= w.share_norm[account]
        w.factor[w.leaf[i]] = 2.0 ** (-effective / (shares * w.dampening)) if shares > 0 else 0.0


@kernel
def _fair_tree(w):
    """Rank of the leaves, of which those with larger shares than usage among their siblings come first.

    Ranks compare level by level from the root. Equal ones share the best of their ranks.
    """
    # PriorityFlags, default FAIR_TREE: level fair share = shares / usage, both among siblings
    for account in range(len(w.usage)):
        above = w.share_parent[account]
        used = w.usage[account] / w.usage[above] if above >= 0 and w.usage[above] > 0 else 0.0
        w.level_share[account] = w.share_norm[account] / used if used > 0 else np.inf
    nb_leaves, depth = w.share_path.shape
    order = np.arange(nb_leaves)
    keys = np.empty(nb_leaves)
    # stable sorts from the lowest level to the highest one leave the order that a walk depth first gives
    for level in range(depth - 1, -1, -1):
        for i in range(nb_leaves):
            account = w.share_path[order[i], level]
            keys[i] = -w.level_share[account] if account >= 0 else -np.inf
        order = order[np.argsort(keys, kind="mergesort")]
    rank = nb_leaves
    for i in range(nb_leaves):
        for level in range(depth if i else 0):
            first, second = w.share_path[order[i - 1], level], w.share_path[order[i], level]
            share = w.level_share[first] if first >= 0 else np.inf
            if share != (w.level_share[second] if second >= 0 else np.inf):
                rank = nb_leaves - i
                break
        w.factor[w.leaf[order[i]]] = rank / nb_leaves
