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
_KL = 3  # of `Losses`


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


class Minibatch(NamedTuple):
    """n steps of a rollout, as an update sees them."""

    mask: Tensor  # (n, A)
    action: Tensor  # (n,)
    log_prob: Tensor  # (n,) of the action by the policy that collected
    value: Tensor  # (n,) as it was then
    advantage: Tensor  # (n,)
    returns: Tensor  # (n,)


def ppo_loss(logits: Tensor, value: Tensor, batch: Minibatch, config: PpoConfig) -> tuple[Tensor, Tensor]:
    """What an update makes smaller, and (5,) the first of `Losses`, without gradients."""
    log_prob = log_probs(logits, batch.mask)
    chosen = log_prob.gather(1, batch.action.unsqueeze(1)).squeeze(1)

    log_ratio = chosen - batch.log_prob
    ratio = log_ratio.exp()
    weight = batch.advantage
    if config.normalise_advantages and len(weight) > 1:
        weight = (weight - weight.mean()) / (weight.std() + 1e-8)
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_term = -torch.minimum(weight * ratio, weight * clipped).mean()

    value_term = _value_loss(value.float(), batch.value, batch.returns, config.value_clip)
    spread = -(log_prob.exp() * log_prob).sum(1).mean()

    kl = (ratio - 1 - log_ratio).mean()  # Schulman's estimator k3: unbiased, and never negative
    outside = ((ratio - 1).abs() > config.clip).float().mean()
    loss = policy_term + config.value_weight * value_term - config.entropy * spread
    return loss, torch.stack([policy_term, value_term, spread, kl, outside]).detach()


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
    features, mask, action, log_prob, old_value = (x.flatten(0, 1) for x in rollout[:5])
    whole = Minibatch(mask, action, log_prob, old_value, advantage, advantage + old_value)
    sums = torch.zeros(5)
    minibatches = 0

    for _ in range(config.epochs):
        order = torch.randperm(len(advantage), generator=generator)
        before, minibatches_before = sums.clone(), minibatches
        for rows in order.split(config.minibatch):
            batch = Minibatch(*(column[rows] for column in whole))
            with autocast:
                logits, value = network(features[rows], batch.mask)
            loss, terms = ppo_loss(logits, value, batch, config)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), config.max_gradient)
            optimizer.step()
            sums += terms
            minibatches += 1
        if config.target_kl:
            kl = (float(sums[_KL]) - float(before[_KL])) / (minibatches - minibatches_before)
            if kl > config.target_kl:
                break

    return losses_of(sums / minibatches, whole.returns, whole.value)


def losses_of(means: Tensor, returns: Tensor, value: Tensor) -> Losses:
    """From the means of what `ppo_loss` gives, and the returns with the values of the rollout."""
    policy_loss, value_loss, entropy, kl, outside = means.tolist()
    return Losses(policy_loss, value_loss, entropy, kl, outside, _explained(returns, value))


def _value_loss(value: Tensor, old: Tensor, returns: Tensor, clip: float) -> Tensor:
    loss = (value - returns).square()
    if clip:
        near = old + (value - old).clamp(-clip, clip)
        loss = torch.maximum(loss, (near - returns).square())
    return 0.5 * loss.mean()


def _explained(returns: Tensor, value: Tensor) -> float:
    spread = float(returns.var(unbiased=False))
    return 1 - float((returns - value).var(unbiased=False)) / spread if spread > 0 else 0.0
