"""Choices by a network: the best of the valid actions, or a draw."""

import numpy as np
import torch
from numpy.typing import NDArray

from decision.learned.base import Draws

from .perceptrons import Network


class NetworkActor:
    """Chooses valid actions.

    Args:
        network: that has learned.
        draws: with the network's probability: ``nothing``, the best of all is taken; ``last``, if the last action (Fwd)
            is taken or one of the others, and then the best of them; ``all``. DBF draws the last: it looks at the same
            jobs cycle after cycle, and where Fwd is the best by little, taking it each time starves a job that would
            otherwise start soon (seen: mean waits of 102,576 s instead of 8,121 s). Packing draws all: unmasked, the
            best could be a choice without effect, for ever.
    """

    def __init__(self, network: Network, draws: Draws) -> None:
        self.network, self._draws = network.eval(), draws
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Restart the draws."""
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
        features = torch.from_numpy(self.network.prepare(observations))
        logits = self.network.actor(features).masked_fill(torch.from_numpy(masks == 0), -torch.inf)
        if self._draws == "nothing":
            return np.asarray(logits.argmax(1).numpy())
        if self._draws == "all":  # Gumbel's trick
            noise = torch.from_numpy(self._rng.gumbel(size=logits.shape).astype(np.float32))
            return np.asarray((logits + noise).argmax(1).numpy())
        odds = (logits[:, :-1].logsumexp(1) - logits[:, -1]).numpy()  # logarithm of those of not going forward
        goes_on = odds > self._rng.logistic(size=len(odds))
        return np.where(goes_on, logits[:, :-1].argmax(1).numpy(), logits.shape[1] - 1)
