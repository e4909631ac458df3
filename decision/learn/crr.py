"""Critic-regularised regression (CRR): of the recorded choices, those are cloned that are better than the policy.

Wang et al., NeurIPS 2020 (arXiv 2006.15134), for discrete actions: the policy's mean over values is the exact sum over
all valid actions, and not one over a few draws. The filter is the binary one, 1 where the advantage is above 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .algorithm_settings import CrrConfig
from .bc import clone_loss
from .critics import Critics
from .perceptrons import Network
from .ppo import log_probs
from .replay import Transitions


class CrrLosses(NamedTuple):
    """What an update did."""

    policy_loss: float
    value_loss: float  # of normalised values
    cloned: float  # share of the choices that passed the filter


def update_crr(
    network: Network,
    critics: Critics,
    optimizers: Sequence[torch.optim.Optimizer],
    batch: Transitions,
    config: CrrConfig,
) -> CrrLosses:
    """Improve critics and policy by a batch.

    Args:
        network: the policy; is changed.
        critics: are changed.
        optimizers: of the policy's parameters and of the critics'.
        batch: recorded choices.
        config: how.
    """
    with torch.no_grad():
        next_probs = log_probs(network.actor(batch.next_features), batch.next_mask).exp()
        following = (next_probs * critics.target_values(batch.next_features)).sum(1)
        target = batch.reward * config.reward_scale + config.discount * batch.goes_on * following
    value_loss, values = improve_critics(critics, optimizers[1], batch, target, config.max_gradient)
    critics.follow(config.target_rate)

    logits = network.actor(batch.features)
    with torch.no_grad():
        weight = _passes(logits, values, batch) if config.filter == "binary" else 1.0
    policy_loss = (weight * clone_loss(logits, batch)).mean()
    optimizers[0].zero_grad()
    policy_loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), config.max_gradient)
    optimizers[0].step()
    return CrrLosses(policy_loss.item(), value_loss, float(torch.as_tensor(weight).mean()))


def improve_critics(
    critics: Critics, optimizer: torch.optim.Optimizer, batch: Transitions, target: Tensor, max_gradient: float
) -> tuple[float, Tensor]:
    """Move the values of the batch's choices towards the (n,) target; returns the loss, and (n, A) values of before."""
    critics.rescale(target)
    chosen = batch.action.expand(len(critics.networks), -1).unsqueeze(2)
    normalised = critics.normalised(batch.features)
    found = normalised.gather(2, chosen).squeeze(2)
    loss = 0.5 * (found - critics.normalise(target)).square().mean(1).sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(critics.networks.parameters(), max_gradient)
    optimizer.step()
    return loss.item(), critics.lowest(normalised.detach())


def _passes(logits: Tensor, values: Tensor, batch: Transitions) -> Tensor:
    """(n,) 1 where the choice is worth more than what the policy would choose on average."""
    mean = (log_probs(logits, batch.mask).exp() * values).sum(1)
    chosen = values.gather(1, batch.action.unsqueeze(1)).squeeze(1)
    return (chosen > mean).float()
