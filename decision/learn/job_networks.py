"""Networks that see jobs one by one, with layers that all jobs of the window share."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from decision.learned.encoder import Layout, Pool, Sequences
from decision.learned.window import JOB_FEATURES

from .perceptrons import Floats, Network, linear, perceptron

_QUANTILES = 16
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
        features[..., 3] = _log_scale(_ratio(jobs[..., 2]) if endless else jobs[..., 2])
        features[..., 4] = jobs[..., 3]
        features[..., 5] = size <= free[:, None] + _ROUNDING
        features[..., 6] = _log_scale(ready)
        features[..., 7] = run <= ready[:, :1]  # it ends before the first of the queue could start
        return out

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values."""
        jobs, context = self._look(features)
        return self._logits(jobs, context, mask), self.critic(context).squeeze(-1)

    def actor(self, features: Tensor) -> Tensor:
        """The logits alone; for one row, picking the valid ones out would take longer than scoring all."""
        jobs, context = self._look(features)
        again = torch.relu(self.job_again(jobs) + self.context_again(context).unsqueeze(1))
        return torch.cat([self.score(again).squeeze(-1), self.forward_score(context)], 1)

    def value(self, features: Tensor) -> Tensor:
        """The values alone."""
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
        context = torch.cat([cluster, jobs.mean(1), jobs.amax(1)], 1)
        return jobs, torch.relu(self.context(context))

    def _logits(self, jobs: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Scores of the jobs that can start: in a busy cluster they are few, and the rest need not be computed."""
        row, slot = mask[:, : self.nb_jobs].nonzero(as_tuple=True)
        place = row * self.nb_jobs + slot
        startable = self.job_again(jobs.flatten(0, 1).index_select(0, place))
        again = torch.relu(startable + self.context_again(context).index_select(0, row))
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
        """As it is."""
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
        """The logits alone."""
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
        """The logits alone."""
        return self.priority(features.unflatten(1, (-1, JOB_FEATURES))).squeeze(-1)

    def value(self, features: Tensor) -> Tensor:
        """The values alone."""
        return self.critic(features).squeeze(-1)

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """The priority's."""
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


def _ratio(share: Floats) -> Floats:
    """x / (x + 1) to x."""
    return np.asarray(share / np.maximum(1 - share, np.float32(1e-7)), np.float32)


def _log_scale(share: Floats) -> Floats:
    """[0, 1] to [0, 1]; more than 1 goes on slowly."""
    return np.log1p(_SHARPNESS * share) * _LOG_UNIT
