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
