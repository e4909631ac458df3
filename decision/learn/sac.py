"""Soft actor-critic (SAC) for discrete, masked actions.

Haarnoja et al. 2018 (arXiv 1812.05905) as Christodoulou 2019 (arXiv 1910.07207) has it for discrete actions: means over
actions are exact sums. The weight of entropy is tuned so that the policy's entropy is a share of the most that the
valid actions of a state allow, times 0.98.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .algorithm_settings import SacConfig
from .critics import Critics
from .crr import improve_critics
from .perceptrons import Network
from .ppo import log_probs
from .replay import Transitions

_SHARE = 0.98  # of the greatest entropy, which is what can be tuned to


class SacLosses(NamedTuple):
    """What an update did."""

    policy_loss: float
    value_loss: float  # of normalised values
    entropy: float  # nats
    temperature: float


def update_sac(
    network: Network,
    critics: Critics,
    log_temperature: Tensor,
    optimizers: Sequence[torch.optim.Optimizer],
    batch: Transitions,
    config: SacConfig,
) -> SacLosses:
    """Improve critics, policy and temperature by a batch.

    Args:
        network: the policy; is changed.
        critics: are changed.
        log_temperature: logarithm of the weight of entropy; is changed, unless the config says what it is.
        optimizers: of the policy's parameters, of the critics', and of the temperature.
        batch: transitions of any policy.
        config: how.
    """
    temperature = log_temperature.detach().exp() if config.temperature == 0 else torch.tensor(config.temperature)
    with torch.no_grad():
        next_log = log_probs(network.actor(batch.next_features), batch.next_mask)
        soft = critics.target_values(batch.next_features) - temperature * next_log
        following = _mean(next_log, soft, batch.next_mask)
        target = batch.reward * config.reward_scale + config.discount * batch.goes_on * following
    value_loss, values = improve_critics(critics, optimizers[1], batch, target, config.max_gradient)
    critics.follow(config.target_rate)

    log = log_probs(network.actor(batch.features), batch.mask)
    policy_loss = _mean(log, temperature * log - values, batch.mask).mean()
    optimizers[0].zero_grad()
    policy_loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), config.max_gradient)
    optimizers[0].step()

    entropy = -_mean(log, log, batch.mask).detach()
    if config.temperature == 0:
        wanted = config.entropy * _SHARE * batch.mask.sum(1).log()
        optimizers[2].zero_grad()
        (log_temperature * (entropy - wanted).mean()).backward()
        optimizers[2].step()
    return SacLosses(policy_loss.item(), value_loss, float(entropy.mean()), float(temperature))


def _mean(log: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """(n,) mean of (n, A) values over the valid actions, by the policy's logarithms of their probabilities."""
    return torch.where(mask, log.exp() * values, 0.0).sum(1)
