"""Actors and critics: the kinds that a config names.

`JobsNetwork` sees DBF's observation as what it is, a set of jobs next to a cluster: one small network is shared by all
jobs of the window, so that what is learned about a job holds at each place of the window, and its size does not
grow with the window's. `PriorityNetwork` is RLScheduler's: it shares one network, too, but a job's is all that it
sees. `Mlp` takes any observation as one vector: DBF's paper has it, SchedInspector's, and with tanh that of neural
annealing, whose `Convolutions` slide along the hosts of a sequence. `RecurrentNetwork` reads the three sequences of
DeepScheduling, of which `MinutesNetwork` sees the jobs as `JobsNetwork` does. So does `PoolNetwork` those of Launchpad,
whose image is for `ImageNetwork`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from decision.model.errors import ConfigError
from decision.policies.placement.search import BY_NETWORK, StartRule
from decision.rl.schedulers.base import Image, Layout, Layouts, Pool, Sequences
from decision.rl.schedulers.window import JOB_FEATURES

from .config import NetworkConfig

Floats = NDArray[np.float32]


class Network(nn.Module):
    """Observations to the logits of actions and to values.

    `prepare` is computed once per observation, outside of what is learned.
    """

    rows_at_once = 0  # of a minibatch, whose values stay in a core's cache; 0: all
    apart = False  # whether `actor` and `value` have nothing in common, so that one can be had without the other's work

    def prepare(self, observation: Floats) -> Floats:
        """(n, D) observations to the (n, F) features that `forward` takes."""
        return observation

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, F) features and the (n, A) mask of valid actions to (n, A) logits, any where masked, and (n,) values."""
        raise NotImplementedError

    def actor(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n, A) logits alone."""
        raise NotImplementedError

    def value(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n,) values alone."""
        raise NotImplementedError

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """Those whose outputs are the logits of `actor`."""
        raise NotImplementedError


class Mlp(Network):
    """Two perceptrons with the same hidden layers, orthogonally initialised.

    Args:
        inputs: numbers in an observation.
        actions: how many there are.
        hidden: widths of the layers.
        bend: what comes between them.
    """

    apart = True

    def __init__(
        self, inputs: int, actions: int, hidden: tuple[int, ...], bend: Callable[[], nn.Module] = nn.ReLU
    ) -> None:
        super().__init__()
        self.policy = perceptron((inputs, *hidden, actions), last_gain=0.01, bend=bend)
        self.critic = perceptron((inputs, *hidden, 1), last_gain=1.0, bend=bend)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, A) logits, of all actions, and (n,) values."""
        return self.policy(features), self.value(features)

    def actor(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n, A) logits alone."""
        return self.policy(features)

    def value(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n,) values alone."""
        return self.critic(features).squeeze(-1)

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """The last layer of the policy's perceptron."""
        return (cast(nn.Linear, self.policy[-1]),)


def perceptron(widths: tuple[int, ...], last_gain: float, bend: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths[:-1]):
        layers += [linear(inputs, outputs), bend()]
    return nn.Sequential(*layers, linear(widths[-2], widths[-1], last_gain))


def linear(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)  # with a gain of 0.01 in the last layer a policy begins nearly even
    nn.init.zeros_(layer.bias)
    return layer


# --- Networks that see jobs one by one -----------------------------------------------------------------------------

_QUANTILES = 16  # remaining times of cores, in order, that stand for all: so the width does not grow with the cores
_JOB = 8  # features of a job
_ROUNDING = 1e-6  # shares of cores are whole numbers of cores to within this
_SHARPNESS = np.float32(1000.0)  # a time of a thousandth of the longest differs from none
_LOG_UNIT = 1 / np.log1p(_SHARPNESS)
_BACK = (1, 2, 4, 8, 16)  # snapshots, counted from the last
_STATES = 3  # where cores by state begin in a snapshot


class JobsNetwork(Network):
    """One network shared by the window's jobs, with a summary of the cluster and of all jobs.

    Args:
        layout: of the observation.
        width: of every layer.
    """

    def __init__(self, layout: Layout, width: int) -> None:
        super().__init__()
        self.layout = layout
        self._share(layout.window, _JOB, (_QUANTILES if layout.by_core else layout.cluster) + 2, 1, width)

    def _share(self, jobs: int, features: int, cluster: int, more: int, width: int) -> None:
        """Make the layers: for so many jobs with so many features each, next to a cluster, and `more` other actions."""
        self.nb_jobs, self.nb_features, self.nb_cluster = jobs, features, cluster
        self.cluster = linear(cluster, width)
        self.job = linear(features, width)
        self.context = linear(3 * width, width)
        self.job_again = linear(width, width)
        self.context_again = linear(width, width)
        self.score = linear(width, 1, gain=0.01)
        self.forward_score = linear(width, more, gain=0.01)
        self.critic = perceptron((width, width, 1), last_gain=1.0)

    def prepare(self, observation: Floats) -> Floats:
        """Times on a logarithmic scale; when as many cores as a job needs will be free, if no other job starts."""
        n, (cluster, window, by_core, endless) = len(observation), self.layout
        jobs = observation[:, cluster:].reshape(n, window, JOB_FEATURES)
        size, run = jobs[..., 0], jobs[..., 1]
        summarise = _by_core if by_core else _by_pool
        times, free, ready = summarise(observation[:, :cluster], size)
        out = np.empty((n, self.nb_cluster + window * _JOB), np.float32)
        out[:, : self.nb_cluster - 2] = times
        out[:, self.nb_cluster - 2] = free
        out[:, self.nb_cluster - 1] = _log_scale(ready[:, 0])
        features = out[:, self.nb_cluster :].reshape(n, window, _JOB)
        features[..., 0] = size
        features[..., 1:3] = _log_scale(jobs[..., :2])
        waited = jobs[..., 2]
        if endless:  # w / (w + 1) back to w
            waited = np.asarray(waited / np.maximum(1 - waited, np.float32(1e-7)), np.float32)
        features[..., 3] = _log_scale(waited)
        features[..., 4] = jobs[..., 3]
        features[..., 5] = size <= free[:, None] + _ROUNDING
        features[..., 6] = _log_scale(ready)
        features[..., 7] = run <= ready[:, :1]  # it ends before the first of the queue could start
        return out

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, A) logits, of all actions, and (n,) values."""
        jobs, context = self._look(features)
        return self._logits(jobs, context, mask), self.critic(context).squeeze(-1)

    def actor(self, features: Tensor) -> Tensor:
        """The logits alone; for one row, picking the valid ones out would take longer than scoring all."""
        jobs, context = self._look(features)
        again = torch.relu(self.job_again(jobs) + self.context_again(context).unsqueeze(1))
        return torch.cat([self.score(again).squeeze(-1), self.forward_score(context)], 1)

    def value(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n,) values alone."""
        return self.critic(self._look(features)[1]).squeeze(-1)

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """Those of jobs, and of the other actions."""
        return self.score, self.forward_score

    def _look(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """What is thought of each job, (n, M, width), and of all, (n, width)."""
        cluster = torch.relu(self.cluster(features[:, : self.nb_cluster]))
        jobs = features[:, self.nb_cluster :].unflatten(1, (self.nb_jobs, self.nb_features))
        jobs = torch.relu(self.job(jobs) + cluster.unsqueeze(1))
        # a mean and a maximum do not depend on the order of jobs, nor on how many there are
        context = torch.cat([cluster, jobs.mean(1), jobs.amax(1)], 1)
        return jobs, torch.relu(self.context(context))

    def _logits(self, jobs: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Scores of the jobs that can start: in a busy cluster they are few, and the rest need not be computed."""
        row, slot = mask[:, : self.nb_jobs].nonzero(as_tuple=True)
        place = row * self.nb_jobs + slot
        startable = self.job_again(jobs.flatten(0, 1).index_select(0, place))
        again = torch.relu(startable + self.context_again(context).index_select(0, row))
        # others get 0: what a masked action's logit is makes no difference
        scores = context.new_zeros(jobs.shape[0] * jobs.shape[1])
        scores = scores.index_copy(0, place, self.score(again).squeeze(-1).to(scores.dtype))
        return torch.cat([scores.view(jobs.shape[:2]), self.forward_score(context)], 1)


class PoolNetwork(JobsNetwork):
    """`JobsNetwork` for observations that need no preparation, with more actions than one besides the jobs.

    Args:
        pool: the layout of the observation.
        width: of every layer.
    """

    def __init__(self, pool: Pool, width: int) -> None:
        Network.__init__(self)
        self._share(pool.jobs, pool.features, pool.cluster, pool.more, width)

    def prepare(self, observation: Floats) -> Floats:
        """The observation as it is: its numbers are scaled already."""
        return observation


class MinutesNetwork(JobsNetwork):
    """`JobsNetwork` for sequences: jobs next to jobs that run, and the cluster as it is and was.

    Args:
        sequences: of the observation.
        width: of every layer.
    """

    def __init__(self, sequences: Sequences, width: int) -> None:
        self.sequences = sequences
        context = int(np.prod(sequences.running)) + len(_BACK) * sequences.snapshots[1]
        super().__init__(Layout(context - 2, sequences.jobs[0], by_core=False, endless=False), width)

    def prepare(self, observation: Floats) -> Floats:
        """What each job needs next to what there is, after the context."""
        n, (count, numbers) = len(observation), self.sequences.jobs
        at = int(np.prod(self.sequences.running)) + count * numbers
        jobs = observation[:, : count * numbers].reshape(n, count, numbers)
        seen = observation[:, at:].reshape(n, *self.sequences.snapshots)
        present = np.count_nonzero(seen[..., _STATES:].sum(2), axis=1)
        shots = [seen[np.arange(n), np.maximum(present - back, 0)] for back in _BACK]
        now, out = shots[0], np.empty((n, self.nb_cluster + count * _JOB), np.float32)
        out[:, : self.nb_cluster] = np.concatenate([observation[:, count * numbers : at], *shots], axis=1)
        features = out[:, self.nb_cluster :].reshape(n, count, _JOB)
        size, awake, left = jobs[..., 0], now[:, [-2]] + _ROUNDING, 1 - now[:, [0]] + _ROUNDING
        features[..., :numbers] = jobs
        features[..., 3] = size > 0
        features[..., 4] = size <= awake  # idle
        features[..., 5] = size <= awake + now[:, [_STATES + 1]]  # or awake soon
        features[..., 6] = size <= left  # not bound
        features[..., 7] = np.arange(count) / count
        return out

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values; void comes first."""
        logits, value = super().forward(features, mask.roll(-1, 1))
        return logits.roll(1, 1), value

    def actor(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n, A) logits alone."""
        return super().actor(features).roll(1, 1)


class PriorityNetwork(Network):
    """A job's priority from its own four numbers, by a perceptron that all jobs share (Zhang et al., SC 2020).

    The critic is a perceptron with the same hidden layers over the whole window.

    Args:
        window: jobs in an observation, and actions.
        hidden: widths of the layers.
    """

    def __init__(self, window: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.priority = perceptron((JOB_FEATURES, *hidden, 1), last_gain=0.01)
        self.critic = perceptron((JOB_FEATURES * window, *hidden, 1), last_gain=1.0)

    def prepare(self, observation: Floats) -> Floats:
        """All numbers on a logarithmic scale: most runtimes are small shares of the longest."""
        return _log_scale(observation)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, computed of the jobs that there are, and values."""
        priorities = self.priority(features.view(*mask.shape, JOB_FEATURES)[mask]).squeeze(-1)
        logits = priorities.new_zeros(mask.shape).masked_scatter(mask, priorities)
        return logits, self.value(features)

    def actor(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n, A) logits alone."""
        return self.priority(features.unflatten(1, (-1, JOB_FEATURES))).squeeze(-1)

    def value(self, features: Tensor) -> Tensor:
        """(n, F) features to the (n,) values alone."""
        return self.critic(features).squeeze(-1)

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """The last layer of the perceptron that jobs share."""
        return (cast(nn.Linear, self.priority[-1]),)


def _by_core(remaining: Floats, size: Floats) -> tuple[Floats, Floats, Floats]:
    """From the (n, cores) remaining times: some of them, in order, the share that is free, when jobs could start."""
    cores = remaining.shape[1]
    ordered = np.sort(remaining, axis=1)
    needed = np.maximum(np.rint(size * cores).astype(np.int64) - 1, 0)
    some = np.arange(_QUANTILES) * (cores - 1) // (_QUANTILES - 1)
    free = np.count_nonzero(ordered <= 0, axis=1).astype(np.float32) / np.float32(cores)
    return _log_scale(ordered[:, some]), free, ordered[np.arange(len(ordered))[:, None], needed]


def _by_pool(pools: Floats, size: Floats) -> tuple[Floats, Floats, Floats]:
    """The same from shares: of free cores, and of cores that are free within 2, 4, 8 ... times the shortest time."""
    last = pools.shape[1] - 1
    within = pools.cumsum(axis=1)
    pool = (within[:, None, :] < size[..., None] - _ROUNDING).sum(axis=2)
    ready = np.where(pool == 0, 0.0, 2.0 ** (np.minimum(pool, last) - last))
    return pools, pools[:, 0], ready.astype(np.float32)


def _log_scale(share: Floats) -> Floats:
    """[0, 1] to [0, 1]; more than 1 goes on slowly."""
    return np.log1p(_SHARPNESS * share) * _LOG_UNIT


class Convolutions(Mlp):
    """CNN-1 to CNN-3 of Lan et al., over the entries of a sequence (`decision.policies.placement.search`).

    As printed: convolutions of widths 10 and 5, the second one with stride 2, tanh between them, and 256 units. The
    layer from these to the actions, and tanh before it, are ours. The printed ones have no input for the feature that
    says which entries there are.

    Args:
        inputs: numbers in an observation: features, one after the other, each of all entries.
        entries: q, and actions.
        channels: of the two convolutions.
    """

    def __init__(self, inputs: int, entries: int, channels: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.features, self.entries = inputs // entries, entries
        self.policy = self._sequence(channels, entries, last_gain=0.01)
        self.critic = self._sequence(channels, 1, last_gain=1.0)

    def _sequence(self, channels: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        steps = ((self.entries - 9) - 5) // 2 + 1
        return nn.Sequential(
            nn.Unflatten(1, (self.features - 1, self.entries)),
            nn.Conv1d(self.features - 1, channels[0], 10),
            nn.Tanh(),
            nn.Conv1d(channels[0], channels[1], 5, stride=2),
            nn.Flatten(),
            linear(channels[1] * steps, 256),
            nn.Tanh(),
            linear(256, outputs, last_gain),
        )

    def prepare(self, observation: Floats) -> Floats:
        """All but the feature that says which entries there are."""
        idle = (self.features - 3) * self.entries
        return np.delete(observation, slice(idle, idle + self.entries), axis=1)


class ImageNetwork(Mlp):
    """Launchpad's three networks: two convolutions and a layer next to one for the other numbers, and 256 units twice.

    The paper names them and no sizes. Ours: 3 x 3 with strides 1 and 2, 128 + 128 units, merged into 256; the critic is
    another of the same shape. One network's encoder may be another one's, too.

    Args:
        image: the layout of the observation.
        actions: how many there are.
        channels: of the two convolutions.
    """

    def __init__(self, image: Image, actions: int, channels: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.policy = self._sequence(image, channels, actions, last_gain=0.01)
        self.critic = self._sequence(image, channels, 1, last_gain=1.0)

    def share_encoder(self, other: "ImageNetwork") -> None:
        """Read observations for the logits with the layers of another network, from now on its own, too."""
        self.policy[0] = other.policy[0]

    @property
    def reader(self) -> nn.Module:
        """The layers that read observations for the logits."""
        return self.policy[0]

    def read(self, features: Tensor) -> Tensor:
        """What `reader` makes of (n, F) features."""
        return self.reader(features)

    def actor_of(self, read: Tensor) -> Tensor:
        """The logits, of what `reader` has read."""
        return self.policy[1:](read)

    def _sequence(self, image: Image, channels: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        merge = (nn.ReLU(), linear(256, 256), nn.ReLU(), linear(256, 256), nn.ReLU())
        return nn.Sequential(_ImageReader(image, channels), *merge, linear(256, outputs, last_gain))


class _ImageReader(nn.Module):
    """What is thought of the image, and of the other numbers: (n, 256)."""

    def __init__(self, image: Image, channels: tuple[int, int]) -> None:
        super().__init__()
        (layers, rows, columns), self.image = image.shape, image
        cells = channels[1] * ((rows + 1) // 2) * ((columns + 1) // 2)
        self.convolutions = nn.Sequential(
            nn.Conv2d(layers, channels[0], 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels[0], channels[1], 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            linear(cells, 128),
        )
        self.numbers = linear(image.more, 128)

    def forward(self, features: Tensor) -> Tensor:
        cells = features[:, : -self.image.more].unflatten(1, self.image.shape)
        return torch.cat([self.convolutions(cells), self.numbers(features[:, -self.image.more :])], 1)


class RecurrentNetwork(Mlp):
    """Three GRUs, one for each sequence, then a layer; the critic is another of the same shape (Casagrande et al.).

    Args:
        sequences: of the observation.
        actions: how many there are.
        hidden: units of each GRU, and of the layer.
    """

    def __init__(self, sequences: Sequences, actions: int, hidden: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.policy = self._reader(sequences, hidden, actions, last_gain=0.01)
        self.critic = self._reader(sequences, hidden, 1, last_gain=1.0)

    def _reader(self, sequences: Sequences, hidden: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        read, bend = _SequenceReader(sequences, hidden[0]), nn.LeakyReLU()
        return nn.Sequential(read, linear(3 * hidden[0], hidden[1]), bend, linear(hidden[1], outputs, last_gain))


class _SequenceReader(nn.Module):
    """The last states of the GRUs, (n, 3 units)."""

    def __init__(self, sequences: Sequences, units: int) -> None:
        super().__init__()
        self.sequences = sequences
        self.cells = nn.ModuleList(nn.GRU(numbers, units, batch_first=True) for _, numbers in sequences)

    def forward(self, features: Tensor) -> Tensor:
        parts = features.split([length * numbers for length, numbers in self.sequences], 1)
        shaped = (part.unflatten(1, shape) for part, shape in zip(parts, self.sequences, strict=True))
        return torch.cat([cell(part)[1][0] for cell, part in zip(self.cells, shaped, strict=True)], 1)


def untrained_network(config: NetworkConfig, inputs: int, actions: int, layout: Layouts | None, seed: int) -> Network:
    """As `make_network`, with weights drawn from a seed; torch's only generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_network(config, inputs, actions, layout)


def make_network(config: NetworkConfig, inputs: int, actions: int, layout: Layouts | None) -> Network:
    """The network of a config, with weights from torch's generator.

    Raises:
        ConfigError: if the network needs a layout and the environment has none.
    """
    if config.kind == "mlp":
        return Mlp(inputs, actions, config.hidden)
    if config.kind == "fcn":
        return Mlp(inputs, actions, config.hidden, nn.Tanh)
    if config.kind == "cnn":
        return Convolutions(inputs, actions, (config.hidden[0], config.hidden[1]))
    if config.kind == "priority":
        return PriorityNetwork(actions, config.hidden)
    if isinstance(layout, Sequences):
        if config.kind == "gru":
            return RecurrentNetwork(layout, actions, (config.hidden[0], config.hidden[1]))
        return MinutesNetwork(layout, config.hidden[0])
    if isinstance(layout, Image) and config.kind == "image":
        return ImageNetwork(layout, actions, (config.hidden[0], config.hidden[1]))
    if isinstance(layout, Pool) and config.kind == "jobs":
        return PoolNetwork(layout, config.hidden[0])
    if config.kind == "image":
        raise ConfigError("network.kind is image: that needs an image; choose env.observation=image")
    if not isinstance(layout, Layout):
        raise ConfigError(
            "network.kind is jobs: that needs a cluster and then jobs one by one; choose env.cluster=pools or another"
        )
    return JobsNetwork(layout, config.hidden[0])


def as_repair(policy: nn.Sequential) -> StartRule:
    """The layers of a policy of `Mlp` with tanh, or of `Convolutions`, for kernels."""
    layers: list[tuple[int, int, int, int, bool]] = []
    weights: list[Tensor] = []
    for layer in policy:
        if isinstance(layer, nn.Linear):
            layers.append((layer.in_features, layer.out_features, 0, 0, False))
            weights += [layer.weight.T, layer.bias]
        elif isinstance(layer, nn.Conv1d):
            shape = layer.in_channels, layer.out_channels, layer.kernel_size[0], layer.stride[0]
            layers.append((*shape, False))
            assert layer.bias is not None
            weights += [layer.weight, layer.bias]
        elif isinstance(layer, nn.Tanh):
            layers[-1] = (*layers[-1][:4], True)
    flat = torch.cat([each.detach().reshape(-1) for each in weights])
    return StartRule(BY_NETWORK, np.array(layers, np.int64), flat.numpy().copy())
