"""Proximal policy optimisation with masked actions.

Schulman et al. 2017 (arXiv 1707.06347), with generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438)
and invalid actions masked (Huang and Ontanon 2022, arXiv 2006.14171). Read `update_ppo` from top to bottom.
"""

from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .algorithm_settings import PpoConfig
from .perceptrons import Network

_NEVER = -1e8  # logit of an action that is masked out


class Rollout(NamedTuple):
    """T steps of N environments, as the policy that collected them saw them."""

    features: Tensor  # (T, N, F) float32, what the network takes
    mask: Tensor  # (T, N, A) bool, valid actions
    action: Tensor  # (T, N) int64
    log_prob: Tensor  # (T, N) of the action
    value: Tensor  # (T, N) of the state
    reward: Tensor  # (T, N)
    next_value: Tensor  # (T, N) of the state after it: 0 where the episode terminated, the last state's where truncated
    ended: Tensor  # (T, N) bool, the episode ended with this step


class Losses(NamedTuple):
    """What an update did, averaged over its minibatches."""

    policy_loss: float
    value_loss: float
    entropy: float  # nats
    kl: float  # from the policy that collected, nats
    clipped: float  # share of steps whose ratio was clipped
    explained_variance: float  # of the returns, by the values of the rollout


def advantages(rollout: Rollout, discount: float, gae_lambda: float) -> Tensor:
    """(T, N) generalised advantage estimates: sums of (discount * lambda)^k * delta over the rest of the episode."""
    estimate = torch.empty_like(rollout.reward)
    delta = rollout.reward + discount * rollout.next_value - rollout.value
    carry = discount * gae_lambda * (~rollout.ended).float()
    last = torch.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        last = delta[t] + carry[t] * last
        estimate[t] = last
    return estimate


def log_probs(logits: Tensor, mask: Tensor) -> Tensor:
    """(n, A) log-probabilities of actions among those that the mask allows."""
    return torch.where(mask, logits.float(), _NEVER).log_softmax(1)


def update_ppo(
    network: Network,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    config: PpoConfig,
    generator: torch.Generator,
    autocast: AbstractContextManager[object],
) -> Losses:
    """Improve the network by a rollout.

    Args:
        network: is changed.
        optimizer: of its parameters, with the learning rate to use.
        rollout: on the network's device.
        config: how.
        generator: shuffles the steps.
        autocast: entered around each pass through the network.
    """
    advantage = advantages(rollout, config.discount, config.gae_lambda).flatten()
    features, mask, action, old_log_prob, old_value = (x.flatten(0, 1) for x in rollout[:5])
    returns = advantage + old_value
    sums = torch.zeros(5, device=returns.device)
    minibatches = 0

    for _ in range(config.epochs):
        order = torch.randperm(len(action), generator=generator).to(action.device)
        kl_before, minibatches_before = float(sums[3]), minibatches
        for rows in order.split(config.minibatch):
            with autocast:
                logits, value = network(features[rows], mask[rows])
            log_prob = log_probs(logits, mask[rows])
            chosen = log_prob.gather(1, action[rows].unsqueeze(1)).squeeze(1)

            log_ratio = chosen - old_log_prob[rows]
            ratio = log_ratio.exp()
            weight = advantage[rows]
            if config.normalise_advantages and len(rows) > 1:
                weight = (weight - weight.mean()) / (weight.std() + 1e-8)
            clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
            policy_term = -torch.minimum(weight * ratio, weight * clipped).mean()

            value_term = _value_loss(value.float(), old_value[rows], returns[rows], config.value_clip)
            spread = -(log_prob.exp() * log_prob).sum(1).mean()

            loss = policy_term + config.value_weight * value_term - config.entropy * spread
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), config.max_gradient)
            optimizer.step()

            with torch.no_grad():
                kl = (ratio - 1 - log_ratio).mean()  # Schulman's estimator k3: unbiased, and never negative
                outside = ((ratio - 1).abs() > config.clip).float().mean()
                sums += torch.stack([policy_term, value_term, spread, kl, outside])
            minibatches += 1
        epoch_kl = (float(sums[3]) - kl_before) / (minibatches - minibatches_before)
        if config.target_kl and epoch_kl > config.target_kl:
            break

    policy_loss, value_loss, entropy, kl, outside = (sums / minibatches).tolist()
    return Losses(policy_loss, value_loss, entropy, kl, outside, _explained(returns, old_value))


def _value_loss(value: Tensor, old: Tensor, returns: Tensor, clip: float) -> Tensor:
    loss = (value - returns).square()
    if clip:
        near = old + (value - old).clamp(-clip, clip)
        loss = torch.maximum(loss, (near - returns).square())
    return 0.5 * loss.mean()


def _explained(returns: Tensor, value: Tensor) -> float:
    spread = float(returns.var(unbiased=False))
    return 1 - float((returns - value).var(unbiased=False)) / spread if spread > 0 else 0.0
