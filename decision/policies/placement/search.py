"""Simulated annealing over windows: Algorithm 1 of Lan et al., and the walk that their program takes.

A move removes one or two jobs, all where there are no more, and puts them back: by the dynamic strategy from an entry
among those that the others leave, by the static one on the first place that is free from a random entry on, and with
FREE in random order on the best entries. The dynamic strategy's entry is a random one, or in neural annealing one that
a network chooses (`choose_start`). A move that makes the window worth more is taken, another one with probability
exp(-loss / temperature); temperatures fall from `hot` to `cold` as a geometric series. What is searched ends after so
many moves, never by the clock.

In the published program a move that is rejected is not undone: its search is a random walk that remembers the best
window that it has seen. `undo` says which of the two is meant. Words of random numbers are the caller's, so that the
same word gives the same window.
"""

import math
from typing import NamedTuple

import numpy as np

from decision.compiling.jit import kernel
from decision.compiling.small_kernels import next_word, uniform

from .tree import text_cost
from .windows import DYNAMIC, FREE, place_in_turn, take_best, worth

_CLOSE = 1e-9  # of Q / n: less is rounding
PROGRAM_FIRST = 100  # entries among which the published program lets a job begin
SEEN = 100  # entries that a network of the paper sees (q)
WIDEST_JOB = 40.0  # of a job in the paper's workload
START_AT_RANDOM, START_AT_BEST, BY_NETWORK = range(3)
INPUTS, OUTPUTS, _WIDTH, _STRIDE, BENT = range(5)  # columns of `Repair.layers`


class StartRule(NamedTuple):
    """How a start is chosen."""

    kind: int  # START_AT_RANDOM, START_AT_BEST or BY_NETWORK
    layers: np.ndarray  # (n, 5) inputs, outputs, width (0: dense), stride, and whether tanh follows
    weights: np.ndarray  # (P,) float32


def without_network(kind: int) -> StartRule:
    """A way that needs none."""
    return StartRule(kind, np.zeros((0, 5), np.int64), np.zeros(0, np.float32))


AT_RANDOM, AT_BEST = without_network(START_AT_RANDOM), without_network(START_AT_BEST)


class Search(NamedTuple):
    """How a window is searched: the moves, and how many."""

    strategy: int  # STATIC, DYNAMIC or FREE
    steps: int  # moves
    undo: bool  # whether rejected moves are undone
    first: int  # with DYNAMIC: entries, of those that are left, among which a job may begin; 0 for all
    scale: float  # what a window loses, for a temperature, where it is worth one less
    hot: float  # temperature at first
    cold: float  # and at last
    repair: StartRule = AT_RANDOM  # with DYNAMIC: how the entry is chosen where a job begins


@kernel
def anneal(down, groups, switches, sizes, search, word, held):
    """Search for a window, beginning with jobs placed in turn.

    Args:
        down: (L,) devices below each switch of a level, from the hosts up.
        groups: (L - 1, N) of the sequence.
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        search: how.
        word: of the generator of random numbers.
        held: (n, at least the largest size) receives the entries of each job in the best window that was seen.

    Returns:
        What it is worth: the sum of Q / n.
    """
    return anneal_along(down, groups, switches, sizes, search, word, held, np.empty(search.steps))


@kernel
def anneal_along(down, groups, switches, sizes, search, word, held, along):
    """As `anneal`; `along` (steps,) receives what the best window is worth after each move."""
    place_in_turn(down, groups, sizes, search.strategy, held)
    now, on = held.copy(), np.zeros(switches, np.int64)
    taken, values = np.zeros(groups.shape[1], np.bool_), np.zeros(len(sizes))
    for job in range(len(sizes)):
        _mark(taken, now[job, : sizes[job]], True)
        values[job] = worth(groups, on, now[job, : sizes[job]])
    total = best = values.sum()
    removed, before, old = np.zeros(2, np.int64), now.copy(), values.copy()
    sight = np.zeros(nb_features(down) * SEEN, np.float32)
    cooling = math.log(search.hot / search.cold) / max(search.steps, 1)
    for step in range(1, search.steps + 1):
        word, number = _choose(word, sizes, search, removed)
        for job in removed[:number]:
            before[job, : sizes[job]] = now[job, : sizes[job]]
            old[job] = values[job]
            _mark(taken, now[job, : sizes[job]], False)
        fits, gain = True, 0.0
        others = sizes[removed[:number]].sum()
        for job in removed[:number]:
            word = next_word(word)
            entries = now[job, : sizes[job]]
            others -= sizes[job]
            fits = fits and _put_back(down, groups, taken, search, others, uniform(word), entries, sight)
            if fits:
                values[job] = worth(groups, on, entries)
                gain += values[job] - old[job]
        word = next_word(word)
        chance = math.exp(min(search.scale * gain / (search.hot * math.exp(-cooling * step)), 0.0))
        if not fits or (search.undo and uniform(word) >= chance):
            for job in removed[:number]:
                _mark(taken, now[job, : sizes[job]], False)
            for job in removed[:number]:
                now[job, : sizes[job]] = before[job, : sizes[job]]
                values[job] = old[job]
                _mark(taken, now[job, : sizes[job]], True)
        else:
            total += gain
        if total > best + _CLOSE:
            best = total
            held[:] = now
        along[step - 1] = best
    return best


@kernel
def _mark(taken, entries, value):
    for i in range(len(entries)):
        taken[entries[i]] = value


@kernel
def _choose(word, sizes, search, removed):
    """Write one or two different jobs, in the order in which they go back; the last word used, and how many they are.

    That with more hosts goes back first; in the published program, that which is first in the queue; with FREE, any.
    """
    jobs = len(sizes)
    word = next_word(word)
    first = int(uniform(word) * jobs)
    removed[0] = first
    word = next_word(word)
    if jobs == 1 or uniform(word) < 0.5:
        return word, 1
    word = next_word(word)
    second = int(uniform(word) * (jobs - 1))
    second += second >= first
    turned = sizes[second] > sizes[first] if search.undo else second < first
    if turned and search.strategy != FREE:
        first, second = second, first
    removed[0], removed[1] = first, second
    return word, 2


@kernel
def _put_back(down, groups, taken, search, others, share, entries, sight):
    """Give a job entries that are not taken, and mark them as taken; False where the strategy finds none.

    `share` in [0, 1) says where to begin, and `others` is as `decision.policies.placement.search.choose_start` has it.
    """
    if search.strategy == FREE:
        take_best(down, groups, taken, entries)
        return True
    if search.strategy == DYNAMIC:
        size = len(entries)
        start = choose_start(search.repair, down, groups, taken, size, others, search.first, share, sight)
        take_from(taken, start, entries)
        return True
    # The first run of entries that are all left, from a random one on, with wrap-around.
    length, run = len(taken), 0
    begin = int(share * length)
    for offset in range(length + len(entries) - 1):
        run = 0 if taken[(begin + offset) % length] else run + 1
        if run == len(entries):
            for i in range(run):
                entries[i] = (begin + offset + 1 - run + i) % length
            _mark(taken, entries, True)
            return True
    return False


# Where in the sequence a job that was removed from a window goes back: at random, at its best start, or by a network.
#
# The repair operator of Lan et al.'s neural simulated annealing: by the dynamic strategy a job takes consecutive
# entries of those that are left, from one of the first of them on, and a network says which. Ours is the best start:
# that on which the job alone costs least. It needs no network, because the cost of every start follows from that of the
# one before it.
#
# The network's state is the paper's, with the feature that the published program adds: for each of the first entries
# that are left, the number of its switch on each level but the highest (as a share of the last one's), that it is
# there, the job's hosts, and those of the other removed jobs (as shares of WIDEST_JOB); zeros where there are fewer
# entries.
#
# A network is a table of layers and one array of weights, which `decision.rl.learning` makes of what was trained: dense
# layers have weights of shape (inputs, outputs), convolutions (outputs, inputs, width), and each has its biases behind
# them. The loops go over outputs inside, so that the compiler makes vector instructions of them.


@kernel
def nb_features(down):
    """Numbers of a state for each entry."""
    return len(down) + 2


@kernel
def choose_start(repair, down, groups, taken, size, others, first, share, sight):
    """Where among the entries that are not taken a job begins: their number from the left.

    Args:
        repair: how.
        down, groups: the tree and the sequence (`decision.policies.placement.windows`).
        taken: (N,) entries that other jobs have; enough are left for this one.
        size: hosts of the job.
        others: hosts of the other removed jobs that are still to be put back.
        first: entries, of those that are left, among which a job may begin; 0 for all. A network has its own.
        share: in [0, 1), the random number to draw with.
        sight: (features * SEEN,) float32, scratch.
    """
    left = 0
    for entry in range(len(taken)):
        left += not taken[entry]
    most = min(first, left) if first > 0 else left
    if repair.kind == START_AT_RANDOM:
        return int(share * most)
    open_ = np.empty(left, np.int64)
    i = 0
    for entry in range(len(taken)):
        if not taken[entry]:
            open_[i] = entry
            i += 1
    if repair.kind == BY_NETWORK:
        # One of the entries that the network sees, with the probability that it gives it.
        shown = see_entries(down, groups, open_, size, others, sight)
        scores = logits(repair, sight, SEEN)
        highest, total = scores[:shown].max(), 0.0
        for action in range(shown):
            total += math.exp(scores[action] - highest)
        rest = share * total
        for action in range(shown):
            rest -= math.exp(scores[action] - highest)
            if rest < 0.0:
                return action
        return shown - 1
    # The first of the starts on which the job is worth most (Q / n).
    values = np.zeros(most, np.int64)
    for level in range(len(groups)):
        on, squares = np.zeros(groups[level, open_[left - 1]] + 1, np.int64), 0
        for i in range(size):
            squares += 2 * on[groups[level, open_[i]]] + 1
            on[groups[level, open_[i]]] += 1
        for start in range(most):
            values[start] += squares
            group = groups[level, open_[start]]
            on[group] -= 1
            squares -= 2 * on[group] + 1
            group = groups[level, open_[(start + size) % left]]
            squares += 2 * on[group] + 1
            on[group] += 1
    return int(np.argmax(values))


@kernel
def see_entries(down, groups, left, size, others, out):
    """Write the state, feature by feature (features * q,), of the first q entries that are left; returns how many.

    Args:
        down, groups: the tree and the sequence.
        left: (n,) the entries that are left, ascending.
        size, others: as `choose_start` has them.
        out: (features * q,) float32.
    """
    levels, q, switches = len(groups), len(out) // nb_features(down), 1
    shown = min(len(left), q)
    for level in range(levels - 1, -1, -1):
        switches *= down[level + 1]
        share = np.float32(1.0 / max(switches - 1, 1))
        for i in range(shown):
            out[level * q + i] = groups[level, left[i]] * share
        out[level * q + shown : (level + 1) * q] = 0.0
    for feature, value in enumerate((1.0, size / WIDEST_JOB, others / WIDEST_JOB)):
        begin = (levels + feature) * q
        out[begin : begin + shown] = np.float32(value)
        out[begin + shown : begin + q] = 0.0
    return shown


@kernel
def take_from(taken, start, entries):
    """Give a job consecutive ones of the entries that are left, from number `start` of them on, with wrap-around."""
    entry = -1
    while start >= 0:
        entry += 1
        start -= not taken[entry]
    for i in range(len(entries)):
        while taken[entry]:
            entry = entry + 1 if entry + 1 < len(taken) else 0
        entries[i] = entry
        taken[entry] = True


@kernel
def logits(repair, state, q):
    """(q,) float32: what the network thinks of each start, in a state of q entries."""
    values, at, length = state, 0, q
    if len(repair.layers) > 0 and repair.layers[0, _WIDTH] > 0:
        # Without the feature that says which entries there are, for which the printed convolutions have no input: the
        # third from the end, before the job's hosts and those of the others.
        channels = repair.layers[0, INPUTS]
        values = np.empty(channels * q, np.float32)
        values[: (channels - 2) * q] = state[: (channels - 2) * q]
        values[(channels - 2) * q :] = state[(channels - 1) * q :]
    for layer in range(len(repair.layers)):
        inputs, outputs, width = repair.layers[layer, 0], repair.layers[layer, 1], repair.layers[layer, 2]
        number = inputs * outputs * max(width, 1)
        weights, biases = repair.weights[at : at + number], repair.weights[at + number : at + number + outputs]
        at += number + outputs
        if width == 0:
            sums = biases.copy()
            for i in range(len(values)):
                if values[i] != 0.0:  # most of a state is padding where few hosts are idle
                    value, row = values[i], weights[i * outputs : (i + 1) * outputs]
                    for k in range(outputs):
                        sums[k] += value * row[k]
            values = sums
        else:
            stride = repair.layers[layer, _STRIDE]
            steps = (length - width) // stride + 1
            seen = np.empty((inputs * width, steps), np.float32)  # by each weight of an output, one after the other
            for i in range(inputs):
                for j in range(width):
                    for step in range(steps):
                        seen[i * width + j, step] = values[i * length + j + step * stride]
            convolved = np.empty((outputs, steps), np.float32)
            for k in range(outputs):
                convolved[k] = biases[k]
                for i in range(len(seen)):
                    weight = weights[k * len(seen) + i]
                    for step in range(steps):
                        convolved[k, step] += weight * seen[i, step]
            values, length = convolved.ravel(), steps
        if repair.layers[layer, BENT]:
            for i in range(len(values)):
                values[i] = math.tanh(values[i])
    return values


# How good a window can be on any hosts: a bound from prices of hosts, and a search that knows how far from it it is.
#
# If each host has a price, and each job alone chooses the hosts on which its Q / n, less their prices, is the largest,
# then these values and the prices of all free hosts are in all no less than the best window is worth, whatever the
# prices are. That is the Lagrangian relaxation of the rule that no two jobs share a host. Prices are of lowest
# switches, because the hosts of one are alike. They rise where jobs ask for more hosts than there are, and fall where
# for fewer, by subgradients with Polyak's step. What a job chooses is found by a dynamic program over switches, from
# the hosts up, and over siblings, from the left.

ROUNDS = 200  # of prices
_PATIENCE = 5  # rounds without a better bound, after which steps are halved
_CLOSE_BOUND = 1e-9  # relative; less is rounding


@kernel
def search_with_bound(down, groups, switches, sizes, search, word, held):
    """Search for a window on any hosts, unless the first one is seen to be best.

    Arguments are those of `decision.policies.placement.search.anneal`; the strategy of `search` is FREE.

    Returns:
        What the window is worth, and a bound that no window exceeds.
    """
    place_in_turn(down, groups, sizes, search.strategy, held)
    on, found = np.zeros(switches, np.int64), 0.0
    for job in range(len(sizes)):
        found += worth(groups, on, held[job, : sizes[job]])
    bound = bound_worth(down, groups, switches, sizes, found, 1)
    if bound > found * (1.0 + _CLOSE_BOUND):
        found = anneal(down, groups, switches, sizes, search, word, held)
        bound = min(bound, bound_worth(down, groups, switches, sizes, found, ROUNDS))
    return found, max(bound, found)


@kernel
def gap(levels, sizes, found, bound):
    """How much more hops a window costs than it must, at most, as a share of these.

    Args:
        levels: of the tree.
        sizes: (n,) hosts of each job, above one.
        found: what the window is worth.
        bound: what none exceeds.
    """
    hops = 0.0
    for size in sizes:
        hops += text_cost(levels, size, 0)
    return 2.0 * (bound - found) / (hops - 2.0 * bound)


@kernel
def bound_worth(down, groups, switches, sizes, found, rounds):
    """A bound of what a window is worth on any hosts.

    Args:
        down, groups, switches, sizes: as `decision.policies.placement.search.anneal`.
        found: what some window is worth; where that is reached, prices are not improved further.
        rounds: of prices, at most; the first are zero.
    """
    if len(groups) == 0:
        return 0.0
    free, prices = np.zeros(switches), np.zeros(switches)
    for switch in groups[0]:
        free[switch] += 1.0
    different = np.unique(sizes)
    tables = _new_tables(down, free, different[-1])
    best, pace, since = np.inf, 1.0, 0
    for _ in range(rounds):
        total, spare = (prices * free).sum(), free.copy()
        for size in different:
            number = (sizes == size).sum()
            total += number * _choose_prices(down, tables, prices, size)
            spare -= number * tables[2][:switches]
        since += 1
        if total < best * (1.0 - _CLOSE_BOUND):
            best, since = total, 0
        if since == _PATIENCE:
            pace, since = 0.5 * pace, 0
        slope = np.where((prices > 0.0) | (spare < 0.0), spare, 0.0)
        steepness = (slope * slope).sum()
        if best <= found * (1.0 + _CLOSE_BOUND) or steepness == 0.0:
            break
        prices = np.maximum(prices - pace * (total - found) / steepness * slope, 0.0)
    return best


@kernel
def _new_tables(down, free, size):
    """Of V switches, level by level from the lowest, and one above them all: room for `_choose_prices`.

    Returns:
        (V + 1,) free hosts; (V + 1, size + 1) the most that 0, 1, ... of them are worth; (V + 1,) hosts chosen;
        (V + 1, size + 1) how many of 0, 1, ... hosts of the siblings up to here are this switch's.
    """
    levels, count, switches = len(down), 0, len(free)
    for level in range(1, levels + 1):
        count += switches
        switches //= down[min(level, levels - 1)]
    below = np.zeros(count, np.int64)
    for switch in range(len(free)):
        below[switch] = int(free[switch])
    first, width = 0, len(free)
    for level in range(1, levels):
        for switch in range(width):
            below[first + width + switch // down[level]] += below[first + switch]
        first, width = first + width, width // down[level]
    most, wanted = np.zeros((count, size + 1)), np.zeros(count, np.int64)
    return below, most, wanted, np.zeros((count, size + 1), np.int64)


@kernel
def _choose_prices(down, tables, prices, size):
    """Choose hosts for a job, their number below each switch into the tables; Q / n less their prices."""
    free, most, wanted, share = tables
    for switch in range(len(prices)):
        for hosts in range(min(free[switch], size) + 1):
            most[switch, hosts] = hosts * (hosts / size - prices[switch])
    first, width = 0, len(prices)
    for level in range(1, len(down)):
        above = first + width
        for parent in range(width // down[level]):
            children = first + parent * down[level]
            # The most that hosts below the parent are worth, from what they are below its children.
            row, room = most[above + parent], 0
            row[0] = 0.0
            for child in range(children, children + down[level]):
                own, before = min(free[child], size), room
                room = min(room + own, size)
                for hosts in range(room, -1, -1):
                    best, best_own = -np.inf, 0
                    for given in range(max(0, hosts - before), min(own, hosts) + 1):
                        value = row[hosts - given] + most[child, given]
                        if value > best:
                            best, best_own = value, given
                    row[hosts] = best
                    share[child, hosts] = best_own
            if level + 1 < len(down):
                for hosts in range(min(free[above + parent], size) + 1):
                    most[above + parent, hosts] += hosts * hosts / size
        first, width = above, width // down[level]
    wanted[first] = size
    for level in range(len(down) - 1, 0, -1):
        width *= down[level]
        first -= width
        for child in range(first + width - 1, first - 1, -1):
            parent = first + width + (child - first) // down[level]
            wanted[child] = share[child, wanted[parent]]
            wanted[parent] -= wanted[child]
    return most[len(most) - 1, size]
