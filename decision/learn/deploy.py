"""Learned policies where policies run: from a checkpoint to choices."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from decision.features import CyclePolicy, Encoder, read_encoder
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Platform
from decision.policies.ranking import SEES, WEIGHTS, RankingPolicy

from .checkpoint import Manifest, read_checkpoint
from .config import SCHEDULERS
from .networks import Layout, Network, make_network
from .weights import load, load_network


class Actor:
    """Chooses valid actions.

    Args:
        network: that has learned.
        draws: whether it is drawn, with the network's probability, if the last action (Fwd) is taken or one of the
            others, and then the best of them; else the best of all is taken. DBF draws: it looks at the same jobs cycle
            after cycle, and where Fwd is the best by little, taking it each time starves a job that would otherwise
            start soon (seen: mean waits of 102,576 s instead of 8,121 s).
    """

    def __init__(self, network: Network, draws: bool) -> None:
        self._network, self._draws = network.eval(), draws
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Begin the draws anew."""
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: NDArray[np.float32], mask: NDArray[np.int8]) -> int:
        """(D,) observation and (A,) mask to an action; nothing is drawn where only one is valid."""
        valid = np.flatnonzero(mask)
        return int(valid[0] if len(valid) == 1 else self.together(observation[None], mask[None])[0])

    @torch.inference_mode()
    def together(self, observations: NDArray[np.float32], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """(n, D) observations and (n, A) masks to (n,) actions.

        Draws are others than one by one; and sums are rounded otherwise, so that of two actions as good as equal it
        may choose the other.
        """
        features = torch.from_numpy(self._network.prepare(observations))
        logits = self._network.actor(features).masked_fill(torch.from_numpy(masks == 0), -torch.inf)
        if not self._draws:
            return np.asarray(logits.argmax(1).numpy())
        odds = (logits[:, :-1].logsumexp(1) - logits[:, -1]).numpy()  # logarithm of those of not going forward
        goes_on = odds > self._rng.logistic(size=len(odds))
        return np.where(goes_on, logits[:, :-1].argmax(1).numpy(), logits.shape[1] - 1)


class LearnedPolicy(CyclePolicy):
    """A checkpoint's choices; the run's seed is that of its draws."""

    def __init__(self, encoder: Encoder, actor: Actor, name: str) -> None:
        super().__init__(encoder, actor, name)
        self.actor = actor

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins. Raises ConfigError if the platform is of another size than the encoder."""
        super().reset(platform, seed)
        self.actor.reset(seed)


def learned_policy(path: Path) -> LearnedPolicy | RankingPolicy:
    """The policy of a checkpoint; torch computes in one thread from now on.

    Raises:
        InputError: if the file is no checkpoint, or damaged.
        ConfigError: if its encoder is of another version than ours.
    """
    manifest, weights = read_checkpoint(path)
    if manifest.config.scheduler == "ranking":
        return _ranking(path, manifest, weights)
    torch.set_num_threads(1)  # there is too little work to share, and threads that wait keep cores busy
    encoder = read_encoder(manifest.encoder)
    network = make_network(manifest.config.network, encoder.shape[0], encoder.actions, layout_of(encoder))
    load_network(str(path), network, weights)
    return LearnedPolicy(encoder, Actor(network, SCHEDULERS[manifest.config.scheduler].draws), path.name)


def _ranking(path: Path, manifest: Manifest, data: bytes) -> RankingPolicy:
    if manifest.encoder != SEES:
        raise ConfigError(f"{path}: it sees {manifest.encoder}, this package's ranking {SEES}; train again")
    weights = load(str(path), data).get("weights")
    if not isinstance(weights, torch.Tensor) or weights.shape != WEIGHTS:
        raise InputError(f"{path}: there must be weights of shape {WEIGHTS}; the file is damaged")
    return RankingPolicy(weights.double().numpy(), path.name)


def layout_of(encoder: Encoder) -> Layout:
    """Where in an encoder's observations the cluster and the jobs are."""
    return Layout(encoder.cluster, encoder.window, by_core=encoder.cores > 0)
