"""Where in the sequence a job that was removed from a window goes back: at random, at its best start, or by a network.

The repair operator of Lan et al.'s neural simulated annealing: by the dynamic strategy a job takes consecutive entries
of those that are left, from one of the first of them on, and a network says which. Ours is the best start: that on
which the job alone costs least. It needs no network, because the cost of every start follows from that of the one
before it.

The network's state is the paper's, with the feature that the published program adds: for each of the first entries that
are left, the number of its switch on each level but the highest (as a share of the last one's), that it is there, the
job's hosts, and those of the other removed jobs (as shares of WIDEST_JOB); zeros where there are fewer entries.

A network is a table of layers and one array of weights, which `decision.rl.learning` makes of what was trained: dense
layers have weights of shape (inputs, outputs), convolutions (outputs, inputs, width), and each has its biases behind
them. The loops go over outputs inside, so that the compiler makes vector instructions of them.
"""

import math
from typing import NamedTuple

import numpy as np

from decision.compiling.jit import kernel

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
        shown = see_entries(down, groups, open_, size, others, sight)
        return _draw(logits(repair, sight, SEEN), shown, share)
    return _best_start(groups, open_, size, most)


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
        values = _without_idle(state, repair.layers[0, INPUTS], q)
    for layer in range(len(repair.layers)):
        inputs, outputs, width = repair.layers[layer, 0], repair.layers[layer, 1], repair.layers[layer, 2]
        number = inputs * outputs * max(width, 1)
        weights, biases = repair.weights[at : at + number], repair.weights[at + number : at + number + outputs]
        at += number + outputs
        if width == 0:
            values = _dense(weights, biases, values)
        else:
            values = _convolve(weights, biases, values, length, width, repair.layers[layer, _STRIDE])
            length = len(values) // outputs
        if repair.layers[layer, BENT]:
            for i in range(len(values)):
                values[i] = math.tanh(values[i])
    return values


@kernel
def _without_idle(state, channels, q):
    """The state but the feature that says which entries there are: the printed convolutions have no input for it."""
    values = np.empty(channels * q, np.float32)
    idle = channels - 2  # the job's hosts and those of the others come after it
    values[: idle * q] = state[: idle * q]
    values[idle * q :] = state[(idle + 1) * q :]
    return values


@kernel
def _dense(weights, biases, values):
    outputs = len(biases)
    sums = biases.copy()
    for i in range(len(values)):
        value = values[i]
        if value != 0.0:  # most of a state is padding where few hosts are idle
            row = weights[i * outputs : (i + 1) * outputs]
            for k in range(outputs):
                sums[k] += value * row[k]
    return sums


@kernel
def _convolve(weights, biases, values, length, width, stride):
    outputs, inputs = len(biases), len(values) // length
    steps = (length - width) // stride + 1
    seen = np.empty((inputs * width, steps), np.float32)  # by each weight of an output, one after the other in memory
    for i in range(inputs):
        for j in range(width):
            for step in range(steps):
                seen[i * width + j, step] = values[i * length + j + step * stride]
    sums = np.empty((outputs, steps), np.float32)
    for k in range(outputs):
        sums[k] = biases[k]
        for i in range(len(seen)):
            weight = weights[k * len(seen) + i]
            for step in range(steps):
                sums[k, step] += weight * seen[i, step]
    return sums.ravel()


@kernel
def _draw(scores, shown, share):
    """One of the first `shown` actions, with the probability that the network gives it."""
    highest = scores[:shown].max()
    total = 0.0
    for action in range(shown):
        total += math.exp(scores[action] - highest)
    rest = share * total
    for action in range(shown):
        rest -= math.exp(scores[action] - highest)
        if rest < 0.0:
            return action
    return shown - 1


@kernel
def _best_start(groups, open_, size, most):
    """The first of the `most` first starts among the open entries on which a job is worth most (Q / n)."""
    left, values = len(open_), np.zeros(most, np.int64)
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
