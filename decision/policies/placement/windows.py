"""Windows: several jobs placed together on one sequence of free hosts, as Lan et al. place them.

The sequence has an entry for each free host, from left to right in the tree. By the paper's static strategy (SCAS) a
job takes as many consecutive entries of it as it needs hosts, from a chosen one on, with wrap-around from the last to
the first; by its dynamic one (DCAS) consecutive among those that jobs placed before have left; by ours any (FREE), the
best of the tree. All kernels maximise the sum over jobs of Q / n (see `cost`), which is what the text's and the
program's cost both ask for; a job's hosts are entries of the sequence.
"""

import importlib.util
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import InternalError, how_to_install
from decision.model.record import Floats, Ints

from .tree import count_lowest, place_best

if TYPE_CHECKING:
    import highspy

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


class _Below(NamedTuple):
    """Sums over the hosts below each of some switches, (n,); `FEATURES` has the last three as shares."""

    free: np.ndarray
    hosts: np.ndarray
    soon: np.ndarray
    apart: np.ndarray
    outlasted: np.ndarray


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
    # Mean seconds until busy hosts come free, of those of which it is known.
    total, known = 0.0, 0
    for host in range(len(left)):
        if 0.0 <= left[host] < np.inf:
            total += left[host]
            known += 1
    mean = total / known if known > 0 else 0.0
    sums = _sum_below(switches, switch, left, walltime, mean)
    long = walltime / (walltime + mean) if 0.0 < walltime < np.inf else 0.0
    count, on_level = 0, switches  # of all levels
    for level in range(1, len(down)):
        count += on_level
        on_level //= down[level]
    begin = np.zeros(count + 1, np.int64)
    worth = np.zeros((len(down) - 1) * (len(left) + switches), np.int64)
    at, unit = 0, _FINEST // (size * size)
    for level in range(1, len(down)):
        for row in range(len(sums.free)):
            count = min(int(sums.free[row]), size) + 1
            begin[at + 1] = begin[at] + count
            at += 1
            if sums.hosts[row] == 0:
                continue
            # What 0, 1, ... hosts below the switch are worth to it.
            free, hosts, factors = int(sums.free[row]), sums.hosts[row], weights[level - 1]
            same = (
                factors[4] * sums.soon[row] + factors[5] * sums.apart[row] + factors[6] * sums.outlasted[row]
            ) / hosts
            price = 0.0
            for taken in range(1, count):
                share = (free - taken) / hosts
                price += same + (factors[0] + factors[7] * long + factors[1] * share) * share
                price += factors[2] if taken == free else 0.0
                price += factors[3] if taken == 1 and free == hosts else 0.0
                worth[begin[at - 1] + taken] = unit * taken * taken - round(0.5 * size * unit * price)
        if level + 1 < len(down):
            above = _nothing_below(len(sums.free) // down[level])
            for row in range(len(sums.free)):
                at_above = row // down[level]
                above.free[at_above] += sums.free[row]
                above.hosts[at_above] += sums.hosts[row]
                above.soon[at_above] += sums.soon[row]
                above.apart[at_above] += sums.apart[row]
                above.outlasted[at_above] += sums.outlasted[row]
            sums = above
    return begin, worth[: begin[-1]]


@kernel
def _nothing_below(n):
    return _Below(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))


@kernel
def _sum_below(switches, switch, left, walltime, mean):
    """Over the hosts of each lowest switch."""
    sums = _nothing_below(switches)
    for host in range(len(left)):
        at, seconds = switch[host], left[host]
        sums.hosts[at] += 1
        if seconds < 0.0:
            sums.free[at] += 1
            continue
        if seconds < np.inf:
            sums.soon[at] += mean / (mean + seconds) if mean > 0.0 else 1.0
        if walltime < np.inf:
            gap = walltime - seconds if seconds < np.inf else -1.0
            both = walltime + seconds if seconds < np.inf else 1.0
            if both > 0.0:
                sums.apart[at] += abs(gap) / both
                sums.outlasted[at] += max(gap, 0.0) / both
    return sums


# The best window by the static strategy, exactly: which entry each job begins at, with wrap-around.
#
# A dynamic program from the last entry to the first: the most that a set of jobs can be worth on the entries from one
# on (positions x subsets; jobs of one size are interchangeable, so a subset is a number of jobs of each size). It keeps
# what begins at each position, a byte for each subset, and the worth of as many positions as the largest job has. That
# leaves out the one job that may wrap around from the last entry to the first. What remains for the others, if it wraps
# in a given way, is the same problem on the entries between; the program without the upper end bounds that from above,
# and nearly all ways are worth too little to be looked at.

MOST_JOBS = 12  # of different sizes
MOST_SUBSETS = 1 << MOST_JOBS
_NONE = -1
_CLOSE = 1e-9  # of Q / n: less is rounding


class Kinds(NamedTuple):
    """The jobs of a window by size: K sizes, and a number for each subset of them."""

    size: np.ndarray  # (K,) hosts
    number: np.ndarray  # (K,) jobs of that size
    step: np.ndarray  # (K + 1,) how much one job of that size adds to a subset's number; at last, how many subsets
    worth: np.ndarray  # (K, N) Q / n of a job of that size from each entry on


@kernel
def place_exactly(groups, switches, sizes, held):
    """Write the entries of each job in the best window, those of the lowest entries where several are.

    Args:
        groups: (L - 1, N) of the sequence.
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries; they have MOST_SUBSETS at most.
        held: (n, at least the largest size) receives the entries of each job.

    Returns:
        What it is worth: the sum of Q / n.
    """
    kinds = kinds_of(groups, switches, sizes)
    length, full = groups.shape[1], kinds.step[-1] - 1
    most, choice = _rows(kinds), np.empty((length + 1, full + 1), np.int8)
    _fill(kinds, 0, length, most, choice)
    best, begin, end, wrapped, rest = most[0, full], 0, length, _NONE, full
    room, unseen = most[:0], choice[:0]
    looked_at = np.zeros((len(kinds.size), kinds.size.max()), np.bool_)
    while True:
        # The best bound of the ways to wrap a job that were not looked at; its kind, and its entries at the head.
        bound, kind, head = -np.inf, 0, 0
        for k in range(len(kinds.size)):
            for entries in range(1, kinds.size[k]):
                start = length - (kinds.size[k] - entries)
                if start < entries or looked_at[k, entries]:
                    continue
                promise = kinds.worth[k, start] + most[entries, full - kinds.step[k]]
                if promise > bound:
                    bound, kind, head = promise, k, entries
        if bound <= best + _CLOSE:
            break
        looked_at[kind, head] = True
        if len(room) == 0:
            room = _rows(kinds)
        start = length - (kinds.size[kind] - head)
        _fill(kinds, head, start, room, unseen)
        total = kinds.worth[kind, start] + room[head, full - kinds.step[kind]]
        if total > best + _CLOSE:
            best, begin, end, wrapped, rest = total, head, start, kind, full - kinds.step[kind]
    if wrapped != _NONE:
        _fill(kinds, begin, end, most, choice)
    # The entries; jobs of one size get theirs in order.
    placed = np.zeros(len(sizes), np.bool_)
    if wrapped != _NONE:
        _place(placed, sizes, kinds.size[wrapped], end, length, held)
    while rest > 0:
        chosen = choice[begin, rest]
        if chosen == _NONE:
            begin += 1
            continue
        _place(placed, sizes, kinds.size[chosen], begin, length, held)
        begin += kinds.size[chosen]
        rest -= kinds.step[chosen]
    return best


@kernel
def nb_subsets(sizes):
    """Different subsets of the jobs, those of one size being interchangeable; MOST_SUBSETS + 1 for any more."""
    subsets = 1
    for size in np.unique(sizes):
        subsets *= (sizes == size).sum() + 1
        if subsets > MOST_SUBSETS:
            return MOST_SUBSETS + 1
    return subsets


@kernel
def kinds_of(groups, switches, sizes):
    """The jobs by size, with what each is worth from each entry on; arguments are those of `place_exactly`."""
    size = np.unique(sizes)
    number, step = np.zeros(len(size), np.int64), np.ones(len(size) + 1, np.int64)
    values = np.zeros((len(size), groups.shape[1]))
    for kind in range(len(size)):
        number[kind] = (sizes == size[kind]).sum()
        step[kind + 1] = step[kind] * (number[kind] + 1)
        for level in range(len(groups)):  # slide along the sequence, with wrap-around
            on, squares, group = np.zeros(switches, np.int64), 0, groups[level]
            for entry in range(size[kind]):
                squares += 2 * on[group[entry]] + 1
                on[group[entry]] += 1
            for entry in range(len(group)):
                values[kind, entry] += squares / size[kind]
                on[group[entry]] -= 1
                squares -= 2 * on[group[entry]] + 1
                after = entry + size[kind]
                after -= len(group) if after >= len(group) else 0
                squares += 2 * on[group[after]] + 1
                on[group[after]] += 1
    return Kinds(size, number, step, values)


@kernel
def _rows(kinds):
    """(largest size + 1, subsets) for what subsets can be worth: no job looks further back than it is large."""
    return np.empty((kinds.size.max() + 1, kinds.step[-1]))


@kernel
def _fill(kinds, begin, end, most, choice):
    """Fill the tables from entry `end`, where nothing fits any more, down to `begin`.

    Args:
        kinds: the jobs.
        begin, end: entries.
        most: (R, subsets) the most that a subset can be worth from an entry on, in row entry % R; the last R stay.
        choice: (N + 1, subsets) which kind begins at an entry, or no rows, where only the worth is asked for.
    """
    rows, notes = len(most), len(choice) > 0
    most[end % rows] = -np.inf
    most[end % rows, 0] = 0.0
    for entry in range(end - 1, begin - 1, -1):
        here = most[entry % rows]
        here[:] = most[(entry + 1) % rows]
        if notes:
            choice[entry] = _NONE
        for kind in range(len(kinds.size)):
            size, step, number = kinds.size[kind], kinds.step[kind], kinds.number[kind] + 1
            if entry + size > end:
                continue
            value, behind = kinds.worth[kind, entry], most[(entry + size) % rows]
            for subset in range(step, len(here)):
                if subset // step % number == 0:
                    continue
                total = value + behind[subset - step]
                if total > -np.inf and total >= here[subset]:
                    here[subset] = total
                    if notes:
                        choice[entry, subset] = kind


@kernel
def _place(placed, sizes, size, start, length, held):
    """Give the first job of a size that has no entries those from `start` on."""
    job = 0
    while job < len(placed) and (placed[job] or sizes[job] != size):
        job += 1
    if job == len(placed):
        raise InternalError("entries for more jobs of a size than there are")
    placed[job] = True
    for i in range(size):
        held[job, i] = (start + i) % length


# The best window by the static strategy where `exact` would need too many subsets: a program for HiGHS.
#
# The set packing of Lan et al. with what its printing leaves out: a binary for each size and each entry at which a job
# of that size may begin, a row for each entry, which no two jobs may have, and a row for each size, which says how many
# jobs have it. HiGHS (Huangfu and Hall) solves it on one thread, to the end: then the same window gives the same hosts.
# Where time ends first, the best that was found counts, and what none exceeds is known.

_CHOSEN = 0.5  # binaries above it are 1
_LEAST = 0.01  # seconds that HiGHS gets in any case


def need_of_highs() -> str:
    """What to install so that `place_by_highs` can be called; empty where it is there."""
    return "" if importlib.util.find_spec("highspy") else f"needs highspy: {how_to_install('exact')}"


class Packed(NamedTuple):
    """What a window is worth: sums of Q / n."""

    found: float
    bound: float  # that no window exceeds: `found` where it is the best


def place_by_highs(groups: Ints, switches: int, sizes: Ints, starts: Ints, limit: float = math.inf) -> Packed:
    """Write the entry at which each job begins in a best window, with wrap-around.

    Args:
        groups: (L - 1, N) of the sequence (`decision.policies.placement.windows.groups_of`).
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        starts: (n,) where jobs could begin; receives where they do. Of jobs of one size, the first has the lowest.
        limit: seconds, about.

    Raises:
        InternalError: if HiGHS ends without an optimum, and not for want of time.
    """
    kinds = kinds_of(groups, switches, sizes)
    at_first = np.zeros(kinds.worth.shape, bool)
    at_first[np.searchsorted(kinds.size, sizes), starts] = True
    began = time.monotonic()
    import highspy

    # A binary for each size and entry, (K * N,), a size after the other.
    nb_kinds, length = kinds.worth.shape
    rows = [
        np.append((start + np.arange(kinds.size[kind])) % length, length + kind)
        for kind in range(nb_kinds)
        for start in range(length)
    ]
    lower, upper = (np.concatenate([np.full(length, most), kinds.number]) for most in (-math.inf, 1.0))
    program = binary_program(kinds.worth.ravel(), lower, upper, rows, np.ones(sum(map(len, rows))), by_row=False)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    known = highspy.HighsSolution()
    known.col_value = at_first.ravel().astype(float).tolist()
    solver.setSolution(known)
    solver.setOptionValue("time_limit", max(limit - (time.monotonic() - began), _LEAST))
    solver.run()
    status = solver.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise InternalError(f"HiGHS found no best window: {solver.modelStatusToString(status)}")
    bound = solver.getInfo().mip_dual_bound if status == highspy.HighsModelStatus.kTimeLimit else -math.inf
    bound = min(bound, float((kinds.worth.max(1) * kinds.number).sum()))  # which is that of each job alone
    values = np.array(solver.getSolution().col_value)
    values = values if len(values) else np.zeros(nb_kinds * length)
    chosen = values.reshape(kinds.worth.shape) > _CHOSEN
    if kinds.worth[chosen].sum() < kinds.worth[at_first].sum():  # nothing was found in time
        chosen = at_first
    for kind, size in enumerate(kinds.size.tolist()):
        starts[sizes == size] = np.flatnonzero(chosen[kind])
    found = float(kinds.worth[chosen].sum())
    return Packed(found, max(bound, found))


def binary_program(
    worth: Floats, lower: Floats, upper: Floats, places: Sequence[Ints], values: Floats, by_row: bool
) -> "highspy.HighsLp":
    """A program whose binaries, (V,), are worth as much as possible, each row's sum being between its bounds, (R,).

    `places` are the binaries of each row or, not `by_row`, the rows of each binary; `values` the factors there.
    """
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(worth), len(lower)
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = worth
    program.col_lower_, program.col_upper_ = np.zeros(len(worth)), np.ones(len(worth))
    program.row_lower_, program.row_upper_ = lower, upper
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(worth)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise if by_row else highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(each) for each in places])])
    program.a_matrix_.index_ = np.concatenate(places)
    program.a_matrix_.value_ = values
    return program
