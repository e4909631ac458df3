"""Learned policies where policies run: from a checkpoint to choices."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from decision.features import CyclePolicy, Encoder, read_encoder

from .checkpoint import read_checkpoint
from .networks import Layout, Network, make_network
from .weights import load_network


class Greedy:
    """Chooses the valid action that the network thinks best."""

    def __init__(self, network: Network) -> None:
        self._network = network.eval()

    @torch.inference_mode()
    def __call__(self, observation: NDArray[np.float32], mask: NDArray[np.int8]) -> int:
        """(D,) observation and (A,) mask to an action."""
        valid = np.flatnonzero(mask)
        if len(valid) == 1:
            return int(valid[0])
        features = torch.from_numpy(self._network.prepare(observation[None]))
        logits = self._network.actor(features).numpy()[0]
        return int(valid[logits[valid].argmax()])

    @torch.inference_mode()
    def together(self, observations: NDArray[np.float32], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """(n, D) observations and (n, A) masks to (n,) actions.

        Sums are rounded otherwise than one by one: of two actions as good as equal it may choose the other.
        """
        features = torch.from_numpy(self._network.prepare(observations))
        logits = self._network.actor(features).numpy()
        return np.where(masks, logits, -np.inf).argmax(axis=1)


def learned_policy(path: Path) -> CyclePolicy:
    """The policy of a checkpoint.

    Raises:
        InputError: if the file is no checkpoint, or damaged.
        ConfigError: if its encoder is of another version than ours.
    """
    encoder, network = learned_network(path)
    return CyclePolicy(encoder, Greedy(network), path.name)


def learned_network(path: Path) -> tuple[Encoder, Network]:
    """Encoder and network of a checkpoint; torch computes in one thread from now on. Raises as `learned_policy`."""
    torch.set_num_threads(1)  # there is too little work to share, and threads that wait keep cores busy
    manifest, weights = read_checkpoint(path)
    encoder = read_encoder(manifest.encoder)
    network = make_network(manifest.config.network, encoder.shape[0], encoder.actions, layout_of(encoder))
    load_network(str(path), network, weights)
    return encoder, network


def layout_of(encoder: Encoder) -> Layout:
    """Where in an encoder's observations the cluster and the jobs are."""
    return Layout(encoder.cluster, encoder.window, by_core=encoder.cores > 0)
