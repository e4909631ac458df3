"""Values of actions by an ensemble of networks whose outputs are normalised.

PopArt (van Hasselt et al. 2016, arXiv 1602.07714): the networks learn targets of mean 0 and deviation 1, and where mean
and deviation of the targets move, the last layers are changed so that the values stay as they were.
"""

import copy
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from .networks import ImageNetwork
from .perceptrons import Network

_LEAST, _MOST = 1e-4, 1e6  # of the deviation


class Critics(nn.Module):
    """K networks of action values, and as many that follow them slowly and give the targets.

    Args:
        networks: what gives a logit to each action gives its normalised value here.
        rate: by which mean and deviation of the targets follow; 0: they stay 0 and 1.
    """

    mean: Tensor
    square: Tensor
    weight: Tensor

    def __init__(self, networks: Sequence[Network], rate: float) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.targets = copy.deepcopy(self.networks).requires_grad_(False)
        self._rate = rate
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("square", torch.ones(()))  # mean square of the targets
        self.register_buffer("weight", torch.zeros(()))  # how much the targets so far count; 1 after many

    @property
    def deviation(self) -> Tensor:
        """Of the targets, within limits."""
        return (self.square - self.mean.square()).clamp(_LEAST**2, _MOST**2).sqrt()

    def normalised(self, features: Tensor) -> Tensor:
        """(n, F) features to (K, n, A) outputs of the networks."""
        return _outputs(self.networks, features)

    def normalise(self, values: Tensor) -> Tensor:
        """Values as the networks learn them."""
        return (values - self.mean) / self.deviation

    def values(self, features: Tensor) -> Tensor:
        """(n, A): the lowest of the networks' values."""
        return self.lowest(self.normalised(features))

    def lowest(self, normalised: Tensor) -> Tensor:
        """(K, n, A) outputs of the networks to the lowest values."""
        return self.mean + self.deviation * normalised.amin(0)

    def target_values(self, features: Tensor) -> Tensor:
        """(n, A): the same of the networks that follow."""
        return self.lowest(_outputs(self.targets, features))

    @torch.no_grad()
    def rescale(self, targets: Tensor) -> None:
        """Let mean and deviation follow these targets; values of the networks stay as they are."""
        if self._rate == 0:
            return
        mean, deviation = self.mean.clone(), self.deviation
        self.weight += self._rate * (1 - self.weight)
        share = self._rate / self.weight  # the first targets count in full
        self.mean += share * (targets.mean() - self.mean)
        self.square += share * (targets.square().mean() - self.square)
        ratio = deviation / self.deviation
        shift = (mean - self.mean) / self.deviation
        for network in (*self.networks, *self.targets):
            for layer in cast(Network, network).last_layers:
                layer.weight.mul_(ratio)
                layer.bias.mul_(ratio).add_(shift)

    @torch.no_grad()
    def follow(self, rate: float) -> None:
        """Move the networks of the targets by a share of the difference."""
        torch._foreach_lerp_(list(self.targets.parameters()), list(self.networks.parameters()), rate)


def _outputs(networks: nn.ModuleList, features: Tensor) -> Tensor:
    """(K, n, A) outputs of K networks; an encoder that they share reads the features once."""
    first = networks[0]
    if isinstance(first, ImageNetwork) and all(cast(ImageNetwork, each).reader is first.reader for each in networks):
        read = first.reader(features)
        return torch.stack([cast(ImageNetwork, each).actor_of(read).float() for each in networks])
    return torch.stack([cast(Network, network).actor(features).float() for network in networks])
