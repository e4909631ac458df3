"""Windows: several jobs placed together on one sequence of free hosts, as Lan et al. place them.

The sequence has an entry for each free host, from left to right in the tree. By the paper's static strategy (SCAS) a
job takes as many consecutive entries of it as it needs hosts, from a chosen one on, with wrap-around from the last to
the first; by its dynamic one (DCAS) consecutive among those that jobs placed before have left; by ours any (FREE), the
best of the tree. All kernels maximise the sum over jobs of Q / n (see `cost`), which is what the text's and the
program's cost both ask for; a job's hosts are entries of the sequence.
"""

import numpy as np

from decision.compiling.jit import kernel

from .tree import count_lowest, place_best

STATIC, DYNAMIC, FREE = range(3)


@kernel
def groups_of(down, switches):
    """The switches above each entry.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        switches: (N,) the lowest switch of each entry, ascending.

    Returns:
        (L - 1, N): of each level but the highest, from the lowest on; numbered from left to right.
    """
    groups = np.empty((len(down) - 1, len(switches)), np.int64)
    width = 1
    for level in range(1, len(down)):
        for entry in range(len(switches)):
            groups[level - 1, entry] = switches[entry] // width
        width *= down[level]
    return groups


@kernel
def worth(groups, on, entries):
    """Q / n of a job on these entries; `on` are zeros for each lowest switch, and is given back as such."""
    squares = 0
    for level in range(len(groups)):
        for i in range(len(entries)):
            group = groups[level, entries[i]]
            squares += 2 * on[group] + 1
            on[group] += 1
        for i in range(len(entries)):
            on[groups[level, entries[i]]] = 0
    return squares / len(entries)


@kernel
def place_in_turn(down, groups, sizes, strategy, held):
    """Place one job after the other: on the next entries, or with FREE the largest first, each on the best.

    Args:
        down, groups: the tree and the sequence.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        strategy: STATIC, DYNAMIC or FREE.
        held: (n, at least the largest size) receives the entries of each job.
    """
    if strategy != FREE:
        next_entry = 0
        for job in range(len(sizes)):
            for i in range(sizes[job]):
                held[job, i] = next_entry
                next_entry += 1
        return
    taken = np.zeros(groups.shape[1], np.bool_)
    for job in np.argsort(-sizes, kind="mergesort"):
        take_best(down, groups, taken, held[job, : sizes[job]])


@kernel
def take_best(down, groups, taken, entries):
    """Give a job the entries of least cost that are not taken, and mark them as taken."""
    switches = count_lowest(down)
    free, wanted = np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    for entry in range(len(taken)):
        if not taken[entry]:
            free[_lowest_switch(groups, entry)] += 1
    place_best(down, free, len(entries), wanted)
    i = 0
    for entry in range(len(taken)):
        switch = _lowest_switch(groups, entry)
        if not taken[entry] and wanted[switch] > 0:
            wanted[switch] -= 1
            taken[entry] = True
            entries[i] = entry
            i += 1


@kernel
def _lowest_switch(groups, entry):
    return groups[0, entry] if len(groups) > 0 else 0


# What free hosts are worth to the jobs that come later: prices by which a job is placed less short-sightedly.
#
# Of the hosts below a switch the one that is taken next has a price in hops, a weighted sum of FEATURES of the switch,
# of the hosts that it leaves free there, and of when the jobs on its other hosts end. Each level of the tree below the
# highest has weights of its own, and a host costs the sum of its prices on all levels. So what a number of hosts below
# a switch costs depends on nothing but that number, and the dynamic program of `decision.policies.placement.tree`
# minimises the hops of the job plus all prices exactly: it is given a table of what each number of hosts is worth to
# each switch.
#
# Times count relative to each other, as shares from 0 to 1, so that prices hold for jobs of any length: seconds that a
# job still runs against those of the job to be placed, or against the mean over busy hosts. Where there is no walltime,
# the features that need one are 0.
#
# Entries of the table are whole numbers: equal worth is equal exactly, whatever the order of additions.

FEATURES = (
    "left",  # share of the switch's hosts that are left free once this one is taken
    "left_squared",
    "last",  # 1 for the last of its free hosts
    "first",  # 1 for the first host that is taken from a switch that is idle
    "soon",  # over its busy hosts, as a share of all: how soon they come free, 1 for now and 1/2 for the mean
    "apart",  # likewise: how far the ends of their jobs are from this one's, 1 for farthest; without walltime 0
    "outlasted",  # likewise: how much longer this job runs, 1 for longest; without walltime 0
    "long_left",  # `left` times how long this job runs, 1/2 for the mean; without walltime 0
)
N_FEATURES = len(FEATURES)
LARGEST_WEIGHT = 100.0  # hops: with more, sums of prices might not fit into 64 bits
_FINEST = 2**48  # what one in Q is worth to a job on one host: for more hosts less, by their square

_FREE, _HOSTS, _SOON, _APART, _OUTLASTED, _N_SUMS = range(6)  # over the hosts below a switch


@kernel
def fill_worth(down, switch, left, size, walltime, weights):
    """What hosts are worth to each switch: their squares, minus their prices.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        switch: (H,) lowest switch of each host.
        left: (H,) seconds until each host comes free, inf where that is not known; below 0 for one that is free.
        size: hosts of the job.
        walltime: its seconds, inf where it has none.
        weights: (L - 1, N_FEATURES) hops, by level from the lowest on.

    Returns:
        (V + 1,) where each switch's row begins, and the rows, as `decision.policies.placement.tree.place_priced` takes
        them.
    """
    switches = count_lowest(down)
    mean = _mean_left(left)
    sums = _sum_below(switches, switch, left, walltime, mean)
    long = walltime / (walltime + mean) if 0.0 < walltime < np.inf else 0.0
    begin = np.zeros(_count_switches(down, switches) + 1, np.int64)
    worth = np.zeros((len(down) - 1) * (len(left) + switches), np.int64)
    at = 0
    for level in range(1, len(down)):
        for row in range(len(sums)):
            count = min(int(sums[row, _FREE]), size) + 1
            begin[at + 1] = begin[at] + count
            _fill_row(sums[row], size, long, weights[level - 1], worth[begin[at] : begin[at + 1]])
            at += 1
        if level + 1 < len(down):
            sums = _sum_groups(sums, down[level])
    return begin, worth[: begin[-1]]


@kernel
def _count_switches(down, switches):
    count = 0
    for level in range(1, len(down)):
        count += switches
        switches //= down[level]
    return count


@kernel
def _mean_left(left):
    """Mean seconds until busy hosts come free, of those of which it is known; 0 where there are none."""
    total, number = 0.0, 0
    for host in range(len(left)):
        if 0.0 <= left[host] < np.inf:
            total += left[host]
            number += 1
    return total / number if number > 0 else 0.0


@kernel
def _sum_below(switches, switch, left, walltime, mean):
    """(switches, _N_SUMS) over the hosts of each lowest switch."""
    sums = np.zeros((switches, _N_SUMS))
    for host in range(len(left)):
        own, seconds = sums[switch[host]], left[host]
        own[_HOSTS] += 1
        if seconds < 0.0:
            own[_FREE] += 1
            continue
        if seconds < np.inf:
            own[_SOON] += mean / (mean + seconds) if mean > 0.0 else 1.0
        if walltime < np.inf:
            gap = walltime - seconds if seconds < np.inf else -1.0
            both = walltime + seconds if seconds < np.inf else 1.0
            if both > 0.0:
                own[_APART] += abs(gap) / both
                own[_OUTLASTED] += max(gap, 0.0) / both
    return sums


@kernel
def _sum_groups(sums, group):
    """The same of the switches one level higher, each above so many."""
    above = np.zeros((len(sums) // group, _N_SUMS))
    for row in range(len(sums)):
        above[row // group] += sums[row]
    return above


@kernel
def _fill_row(sums, size, long, weights, worth):
    """Write what 0, 1, ... hosts below a switch are worth to it."""
    if sums[_HOSTS] == 0:
        return
    unit = _FINEST // (size * size)
    free, hosts = int(sums[_FREE]), sums[_HOSTS]
    same = (weights[4] * sums[_SOON] + weights[5] * sums[_APART] + weights[6] * sums[_OUTLASTED]) / hosts
    price = 0.0
    for taken in range(1, len(worth)):
        share = (free - taken) / hosts
        price += same + (weights[0] + weights[7] * long + weights[1] * share) * share
        price += weights[2] if taken == free else 0.0
        price += weights[3] if taken == 1 and free == hosts else 0.0
        worth[taken] = unit * taken * taken - round(0.5 * size * unit * price)
