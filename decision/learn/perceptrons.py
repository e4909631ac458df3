"""What a network is, and perceptrons, of which the others are made."""

from collections.abc import Callable
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float32]


class Network(nn.Module):
    """Observations to the logits of actions and to values.

    `prepare` is computed once per observation, outside of what is learned.
    """

    def prepare(self, observation: Floats) -> Floats:
        """(n, D) observations to the (n, F) features that `forward` takes."""
        return observation

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, F) features and the (n, A) mask of valid actions to (n, A) logits, any where masked, and (n,) values."""
        raise NotImplementedError

    def actor(self, features: Tensor) -> Tensor:
        """The logits alone."""
        raise NotImplementedError

    def value(self, features: Tensor) -> Tensor:
        """The values alone."""
        raise NotImplementedError

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """Those whose outputs are the logits of `actor`."""
        raise NotImplementedError


class Mlp(Network):
    """Two perceptrons with the same hidden layers, orthogonally initialised.

    Args:
        inputs: numbers in an observation.
        actions: how many there are.
        hidden: widths of the layers.
        bend: what comes between them.
    """

    def __init__(
        self, inputs: int, actions: int, hidden: tuple[int, ...], bend: Callable[[], nn.Module] = nn.ReLU
    ) -> None:
        super().__init__()
        self.policy = perceptron((inputs, *hidden, actions), last_gain=0.01, bend=bend)
        self.critic = perceptron((inputs, *hidden, 1), last_gain=1.0, bend=bend)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values."""
        return self.policy(features), self.value(features)

    def actor(self, features: Tensor) -> Tensor:
        """The logits alone."""
        return self.policy(features)

    def value(self, features: Tensor) -> Tensor:
        """The values alone."""
        return self.critic(features).squeeze(-1)

    @property
    def last_layers(self) -> tuple[nn.Linear, ...]:
        """The policy's."""
        return (cast(nn.Linear, self.policy[-1]),)


def perceptron(widths: tuple[int, ...], last_gain: float, bend: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths[:-1]):
        layers += [linear(inputs, outputs), bend()]
    return nn.Sequential(*layers, linear(widths[-2], widths[-1], last_gain))


def linear(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
