"""Behaviour cloning: the network learns to choose as was recorded."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .algorithm_settings import BcConfig
from .perceptrons import Network
from .ppo import log_probs
from .replay import Transitions


class BcLosses(NamedTuple):
    """What an update did."""

    policy_loss: float  # minus the mean logarithm of the recorded choices' probabilities


def clone_loss(logits: Tensor, batch: Transitions) -> Tensor:
    """(n,) minus the logarithm of each recorded choice's probability among the valid ones."""
    return -log_probs(logits, batch.mask).gather(1, batch.action.unsqueeze(1)).squeeze(1)


def update_bc(network: Network, optimizer: torch.optim.Optimizer, batch: Transitions, config: BcConfig) -> BcLosses:
    """Improve the network by a batch.

    Args:
        network: is changed.
        optimizer: of its parameters.
        batch: recorded choices.
        config: how.
    """
    loss = clone_loss(network.actor(batch.features), batch).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), config.max_gradient)
    optimizer.step()
    return BcLosses(loss.item())
