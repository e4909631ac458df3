"""Actors and critics: the kinds that a config names.

`JobsNetwork` sees DBF's observation as what it is, a set of jobs next to a cluster: one small network is shared by all
jobs of the window, so that what is learned about a job holds at each place of the window, and its size does not
grow with the window's. `PriorityNetwork` is RLScheduler's: it shares one network, too, but a job's is all that it
sees. `Mlp` takes any observation as one vector: DBF's paper has it, SchedInspector's, and with tanh that of neural
annealing, whose `Convolutions` slide along the hosts of a sequence. `RecurrentNetwork` reads the three sequences of
DeepScheduling, of which `MinutesNetwork` sees the jobs as `JobsNetwork` does. So does `PoolNetwork` those of Launchpad,
whose image is for `ImageNetwork`.
"""

import numpy as np
import torch
from torch import Tensor, nn

from decision.learned.encoder import Image, Layout, Layouts, Pool, Sequences
from decision.model.errors import ConfigError
from decision.placement.repair import BY_NETWORK, StartRule

from .algorithm_settings import NetworkConfig
from .job_networks import JobsNetwork, MinutesNetwork, PoolNetwork, PriorityNetwork
from .perceptrons import Floats, Mlp, Network, linear


class Convolutions(Mlp):
    """CNN-1 to CNN-3 of Lan et al., over the entries of a sequence (`decision.placement.repair`).

    As printed: convolutions of widths 10 and 5, the second one with stride 2, tanh between them, and 256 units. The
    layer from these to the actions, and tanh before it, are ours. The printed ones have no input for the feature that
    says which entries there are.

    Args:
        inputs: numbers in an observation: features, one after the other, each of all entries.
        entries: q, and actions.
        channels: of the two convolutions.
    """

    def __init__(self, inputs: int, entries: int, channels: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.features, self.entries = inputs // entries, entries
        self.policy = self._sequence(channels, entries, last_gain=0.01)
        self.critic = self._sequence(channels, 1, last_gain=1.0)

    def _sequence(self, channels: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        steps = ((self.entries - 9) - 5) // 2 + 1
        return nn.Sequential(
            nn.Unflatten(1, (self.features - 1, self.entries)),
            nn.Conv1d(self.features - 1, channels[0], 10),
            nn.Tanh(),
            nn.Conv1d(channels[0], channels[1], 5, stride=2),
            nn.Flatten(),
            linear(channels[1] * steps, 256),
            nn.Tanh(),
            linear(256, outputs, last_gain),
        )

    def prepare(self, observation: Floats) -> Floats:
        """All but the feature that says which entries there are."""
        idle = (self.features - 3) * self.entries
        return np.delete(observation, slice(idle, idle + self.entries), axis=1)


class ImageNetwork(Mlp):
    """Launchpad's three networks: two convolutions and a layer next to one for the other numbers, and 256 units twice.

    The paper names them and no sizes. Ours: 3 x 3 with strides 1 and 2, 128 + 128 units, merged into 256; the critic is
    another of the same shape. One network's encoder may be another one's, too.

    Args:
        image: the layout of the observation.
        actions: how many there are.
        channels: of the two convolutions.
    """

    def __init__(self, image: Image, actions: int, channels: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.policy = self._sequence(image, channels, actions, last_gain=0.01)
        self.critic = self._sequence(image, channels, 1, last_gain=1.0)

    def share_encoder(self, other: "ImageNetwork") -> None:
        """Read observations for the logits with the layers of another network, from now on its own, too."""
        self.policy[0] = other.policy[0]

    @property
    def reader(self) -> nn.Module:
        """The layers that read observations for the logits."""
        return self.policy[0]

    def actor_of(self, read: Tensor) -> Tensor:
        """The logits, of what `reader` has read."""
        return self.policy[1:](read)

    def _sequence(self, image: Image, channels: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        merge = (nn.ReLU(), linear(256, 256), nn.ReLU(), linear(256, 256), nn.ReLU())
        return nn.Sequential(_ImageReader(image, channels), *merge, linear(256, outputs, last_gain))


class _ImageReader(nn.Module):
    """What is thought of the image, and of the other numbers: (n, 256)."""

    def __init__(self, image: Image, channels: tuple[int, int]) -> None:
        super().__init__()
        (layers, rows, columns), self.image = image.shape, image
        cells = channels[1] * ((rows + 1) // 2) * ((columns + 1) // 2)
        self.convolutions = nn.Sequential(
            nn.Conv2d(layers, channels[0], 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels[0], channels[1], 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            linear(cells, 128),
        )
        self.numbers = linear(image.more, 128)

    def forward(self, features: Tensor) -> Tensor:
        cells = features[:, : -self.image.more].unflatten(1, self.image.shape)
        return torch.cat([self.convolutions(cells), self.numbers(features[:, -self.image.more :])], 1)


class RecurrentNetwork(Mlp):
    """Three GRUs, one for each sequence, then a layer; the critic is another of the same shape (Casagrande et al.).

    Args:
        sequences: of the observation.
        actions: how many there are.
        hidden: units of each GRU, and of the layer.
    """

    def __init__(self, sequences: Sequences, actions: int, hidden: tuple[int, int]) -> None:
        nn.Module.__init__(self)
        self.policy = self._reader(sequences, hidden, actions, last_gain=0.01)
        self.critic = self._reader(sequences, hidden, 1, last_gain=1.0)

    def _reader(self, sequences: Sequences, hidden: tuple[int, int], outputs: int, last_gain: float) -> nn.Sequential:
        read, bend = _SequenceReader(sequences, hidden[0]), nn.LeakyReLU()
        return nn.Sequential(read, linear(3 * hidden[0], hidden[1]), bend, linear(hidden[1], outputs, last_gain))


class _SequenceReader(nn.Module):
    """The last states of the GRUs, (n, 3 units)."""

    def __init__(self, sequences: Sequences, units: int) -> None:
        super().__init__()
        self.sequences = sequences
        self.cells = nn.ModuleList(nn.GRU(numbers, units, batch_first=True) for _, numbers in sequences)

    def forward(self, features: Tensor) -> Tensor:
        parts = features.split([length * numbers for length, numbers in self.sequences], 1)
        shaped = (part.unflatten(1, shape) for part, shape in zip(parts, self.sequences, strict=True))
        return torch.cat([cell(part)[1][0] for cell, part in zip(self.cells, shaped, strict=True)], 1)


def untrained_network(config: NetworkConfig, inputs: int, actions: int, layout: Layouts | None, seed: int) -> Network:
    """As `make_network`, with weights drawn from a seed; torch's only generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_network(config, inputs, actions, layout)


def make_network(config: NetworkConfig, inputs: int, actions: int, layout: Layouts | None) -> Network:
    """The network of a config, with weights from torch's generator.

    Raises:
        ConfigError: if the network needs a layout and the environment has none.
    """
    if config.kind == "mlp":
        return Mlp(inputs, actions, config.hidden)
    if config.kind == "fcn":
        return Mlp(inputs, actions, config.hidden, nn.Tanh)
    if config.kind == "cnn":
        return Convolutions(inputs, actions, (config.hidden[0], config.hidden[1]))
    if config.kind == "priority":
        return PriorityNetwork(actions, config.hidden)
    if isinstance(layout, Sequences):
        if config.kind == "gru":
            return RecurrentNetwork(layout, actions, (config.hidden[0], config.hidden[1]))
        return MinutesNetwork(layout, config.hidden[0])
    if isinstance(layout, Image) and config.kind == "image":
        return ImageNetwork(layout, actions, (config.hidden[0], config.hidden[1]))
    if isinstance(layout, Pool) and config.kind == "jobs":
        return PoolNetwork(layout, config.hidden[0])
    if config.kind == "image":
        raise ConfigError("network.kind is image: that needs an image; choose env.observation=image")
    if not isinstance(layout, Layout):
        raise ConfigError(
            "network.kind is jobs: that needs a cluster and then jobs one by one; choose env.cluster=pools or another"
        )
    return JobsNetwork(layout, config.hidden[0])


def as_repair(policy: nn.Sequential) -> StartRule:
    """The layers of a policy of `Mlp` with tanh, or of `Convolutions`, for kernels."""
    layers: list[tuple[int, int, int, int, bool]] = []
    weights: list[Tensor] = []
    for layer in policy:
        if isinstance(layer, nn.Linear):
            layers.append((layer.in_features, layer.out_features, 0, 0, False))
            weights += [layer.weight.T, layer.bias]
        elif isinstance(layer, nn.Conv1d):
            shape = layer.in_channels, layer.out_channels, layer.kernel_size[0], layer.stride[0]
            layers.append((*shape, False))
            assert layer.bias is not None
            weights += [layer.weight, layer.bias]
        elif isinstance(layer, nn.Tanh):
            layers[-1] = (*layers[-1][:4], True)
    flat = torch.cat([each.detach().reshape(-1) for each in weights])
    return StartRule(BY_NETWORK, np.array(layers, np.int64), flat.numpy().copy())
