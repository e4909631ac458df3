"""Wide perceptrons, convolutions and GRUs as a training computes them on a CPU: by oneDNN's products.

Torch multiplies single precision by MKL, which on processors that are not Intel's takes half of their registers' width;
oneDNN, which torch has, too, takes all of it, and bends what it multiplied before it leaves the registers. Both round
sums otherwise, and neither knows of the other's: so a network learns here, and is deployed, compared and stacked as
torch has it. Six GRUs (three sequences, actor and critic) go from entry to entry together.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .networks import Convolutions, Floats, ImageNetwork, Mlp, Network, RecurrentNetwork

_WIDE = 128  # inputs or outputs of a layer, from which on its products take longer than calling them

_CONVOLVED = 512  # rows whose channels stay in a core's cache

_multiply: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
_convolve: Any = getattr(torch.ops.mkldnn, "_convolution_pointwise", None)


def quick(network: Network) -> Network:
    """The network to learn and act with on a CPU: it computes with the parameters of this one, to rounding the same."""
    known = _multiply is not None and _convolve is not None and torch.backends.mkldnn.is_available()
    if not known or not isinstance(network, Mlp):
        return network
    if isinstance(network, ImageNetwork):
        return _QuickImage(network)
    if isinstance(network, RecurrentNetwork):
        lengths = {length for length, _ in network.policy[0].sequences}  # type: ignore[union-attr]
        return _Together(network) if len(lengths) == 1 else network
    wide = any(
        isinstance(layer, nn.Linear) and max(layer.in_features, layer.out_features) >= _WIDE
        for layer in network.policy.modules()
    )
    return _Quick(network) if wide else network


class _Quick(Network):
    """A perceptron or convolutions, whose products are those of oneDNN."""

    def __init__(self, network: Mlp) -> None:
        super().__init__()
        self.network: Any = network
        self.apart = network.apart
        if isinstance(network, Convolutions):
            self.rows_at_once = _CONVOLVED

    def prepare(self, observation: Floats) -> Floats:
        return self.network.prepare(observation)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(features), self.value(features)

    def actor(self, features: Tensor) -> Tensor:
        return _through(self.network.policy, features)

    def value(self, features: Tensor) -> Tensor:
        return _through(self.network.critic, features).squeeze(-1)


class _QuickImage(_Quick):
    """Perceptrons after what reads an image."""

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(features), self.value(features)

    def actor(self, features: Tensor) -> Tensor:
        return self.actor_of(self.read(features))

    @property
    def reader(self) -> nn.Module:
        """The layers that read observations for the logits."""
        return self.network.policy[0]

    def read(self, features: Tensor) -> Tensor:
        """What `reader` makes of (n, F) features."""
        return _read(self.network.policy[0], features)

    def actor_of(self, read: Tensor) -> Tensor:
        """The logits, of what was read."""
        return _through(self.network.policy[1:], read)

    def value(self, features: Tensor) -> Tensor:
        return _through(self.network.critic[1:], _read(self.network.critic[0], features)).squeeze(-1)


class _Together(_Quick):
    """GRUs with entries of one length, of actor and critic or of one of these, go from entry to entry together."""

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if not _is_plain(features):
            return self.network(features, mask)
        policy, critic = self.network.policy, self.network.critic
        actor, valued = _last_units([policy[0], critic[0]], features)
        return _through(policy[1:], actor), _through(critic[1:], valued).squeeze(-1)

    def actor(self, features: Tensor) -> Tensor:
        return self._by(self.network.policy, features) if _is_plain(features) else self.network.actor(features)

    def value(self, features: Tensor) -> Tensor:
        if not _is_plain(features):
            return self.network.value(features)
        return self._by(self.network.critic, features).squeeze(-1)

    def _by(self, layers: Any, features: Tensor) -> Tensor:
        (read,) = _last_units([layers[0]], features)
        return _through(layers[1:], read)


def _last_units(readers: list[Any], features: Tensor) -> list[Tensor]:
    """(n, C units) of each reader's GRUs after their last entries."""
    entries = _entries(readers[0], features) * len(readers)
    cells = [cell for reader in readers for cell in reader.cells]
    read = _GatedUnits.apply(*entries, *(weights for cell in cells for weights in cell.parameters()))
    return [part.transpose(0, 1).flatten(1) for part in read.chunk(len(readers))]


def _read(reader: Any, features: Tensor) -> Tensor:
    """What a reader of images makes of (n, F) features."""
    image = reader.image
    cells = features[:, : -image.more].unflatten(1, image.shape)
    numbers = _through([reader.numbers], features[:, -image.more :])
    return torch.cat([_through(reader.convolutions, cells), numbers], 1)


def _through(layers: Iterable[nn.Module], values: Tensor) -> Tensor:
    """What a sequence of layers makes of (n, ...) values."""
    several = list(layers)
    ours = (nn.Linear, nn.Conv1d, nn.Conv2d) if _is_plain(values) else ()
    while several:
        layer: Any = several.pop(0)
        if not isinstance(layer, ours):
            values = layer(values)
            continue
        bend = {nn.ReLU: "relu", nn.Tanh: "tanh"}.get(type(several[0]), "none") if several else "none"
        if bend != "none":
            several.pop(0)
        weights = layer.weight, layer.bias
        if not isinstance(layer, nn.Linear):
            shape = layer.padding, layer.stride, layer.dilation
            values = _Convolution.apply(values, *weights, shape, bend)
        elif torch.is_grad_enabled():
            values = _Product.apply(values, *weights, bend)
        else:
            values = _multiply(values.contiguous(), *weights, bend, [], "")
    return values


def _is_plain(values: Tensor) -> bool:
    """Whether these are numbers that oneDNN multiplies, as they are: of single precision, on a CPU."""
    return values.is_cpu and values.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def _unbent(grad: Tensor, values: Tensor, bend: str) -> Tensor:
    """The gradient before bending, from that of what came of it."""
    if bend == "relu":
        return torch.ops.aten.threshold_backward(grad, values, 0)
    return torch.ops.aten.tanh_backward(grad, values) if bend == "tanh" else grad


class _Product(torch.autograd.Function):
    """(n, inputs) by a layer's weights, and bent."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, bend: str) -> Tensor:
        inputs = inputs.contiguous()  # oneDNN multiplies by part of a larger array hundreds of times more slowly
        outputs = _multiply(inputs, weight, bias, bend, [], "")
        ctx.save_for_backward(inputs, weight, outputs)
        ctx.bend = bend
        return outputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight, outputs = ctx.saved_tensors
        grad = _unbent(grad, outputs, ctx.bend)
        before = _multiply(grad, weight.T, None, "none", [], "") if ctx.needs_input_grad[0] else None
        return before, _multiply(grad.T, inputs.T, None, "none", [], ""), grad.sum(0), None


class _Convolution(torch.autograd.Function):
    """(n, channels, ...) by a layer's kernels, and bent; `shape`: its padding, stride and dilation."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, shape: Any, bend: str) -> Tensor:
        outputs = _convolve(inputs, weight, bias, *shape, 1, bend, [], "")
        ctx.save_for_backward(inputs, weight, outputs)
        ctx.bend, ctx.shape = bend, shape
        return outputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight, outputs = ctx.saved_tensors
        grad = _unbent(grad, outputs, ctx.bend)
        padding, stride, dilation = ctx.shape
        kernel = [len(weight)], stride, padding, dilation, False, [0] * len(stride), 1
        wanted = [ctx.needs_input_grad[0], True, True]
        return *torch.ops.aten.convolution_backward(grad, inputs, weight, *kernel, wanted), None, None


# --- GRUs, C of U units each, entry after entry --------------------------------------------------------------------
#
# With a, b, c what the weights make of an entry and u, v, w of the units h before it: r = sigmoid(a + u),
# z = sigmoid(b + v), n = tanh(c + r w), and h becomes n + z (h - n) (Cho et al. 2014, as torch's nn.GRU has it).


def _entries(reader: nn.Module, features: Tensor) -> list[Tensor]:
    """(T, n, numbers) of each sequence."""
    shapes: Any = reader.sequences
    parts = features.split([length * numbers for length, numbers in shapes], 1)
    shaped = zip(parts, shapes, strict=True)
    return [part.unflatten(1, shape).transpose(0, 1).contiguous() for part, shape in shaped]


class _GatedUnits(torch.autograd.Function):
    """(T, n, numbers) of each of C sequences and the four parameters of each GRU to (C, n, U) units after the last.

    What is computed is written where it is needed: what is kept for the gradients is larger than a core's cache.
    """

    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        entries, parameters = _of_cells(given)
        (steps, rows), units = entries[0].shape[:2], parameters[0][1].shape[1]
        cells, two = len(entries), 2 * units
        gates = torch.empty((cells, steps, rows, 3 * units))  # a and b, later r and z; w
        new = torch.empty((cells, steps, rows, units))  # c, later n
        for c, (entry, (weight, _, bias, other)) in enumerate(zip(entries, parameters, strict=True)):
            flat, gate, last = entry.flatten(0, 1), gates[c].flatten(0, 1), new[c].flatten(0, 1)
            torch.addmm((bias + other)[:two], flat, weight[:two].T, out=gate[:, :two])
            gate[:, two:] = other[two:]
            torch.addmm(bias[two:], flat, weight[two:].T, beta=2, alpha=2, out=last)  # twice c
        of_units = torch.stack([weight.T for _, weight, _, _ in parameters])
        states = torch.zeros((cells, steps + 1, rows, units))  # before each entry, and after the last
        split = gates.split(units, -1)
        parts = [each.unbind(1) for each in (gates, gates[..., :two], *split, new, states, states[:, 1:])]
        for gate, both, r, z, w, n, now, then in zip(*parts, strict=False):  # of each entry
            gate.baddbmm_(now, of_units)
            both.sigmoid_()
            # tanh(x) is 2 sigmoid(2 x) - 1, and its own kernel takes ten times as long
            n.addcmul_(r, w, value=2).sigmoid_().mul_(2).sub_(1)
            torch.lerp(n, now, z, out=then)
        ctx.save_for_backward(states, gates, new, *given)
        return states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, gates, new, *given = ctx.saved_tensors
        entries, parameters = _of_cells(given)
        of_units = torch.stack([weight for _, weight, _, _ in parameters])
        units = new.shape[-1]
        # gradients of a, b and w, and of c; those of u and v are those of a and b
        of_gates, of_last = torch.empty_like(gates), torch.empty_like(new)
        columns = (*gates.split(units, -1), new, states[:, :-1], of_gates, *of_gates.split(units, -1), of_last)
        parts = [each.unbind(1)[::-1] for each in columns]
        for r, z, w, n, before, of_gate, of_r, of_z, of_w, of_c in zip(*parts, strict=True):  # of each entry, backwards
            keeps = grad * z
            torch.ops.aten.tanh_backward.grad_input(grad - keeps, n, grad_input=of_c)
            torch.mul(of_c, r, out=of_w)
            torch.ops.aten.sigmoid_backward.grad_input(of_c * w, r, grad_input=of_r)
            torch.ops.aten.sigmoid_backward.grad_input((before - n).mul_(grad), z, grad_input=of_z)
            grad = keeps.baddbmm_(of_gate, of_units)
        learned: list[Tensor | None] = [None] * len(entries)
        two = 2 * units
        for c, entry in enumerate(entries):
            gate, last = of_gates[c].flatten(0, 1), of_last[c].flatten(0, 1)
            known = nn.functional.pad(entry.flatten(0, 1), (0, 1), value=1.0)  # for the biases
            of_entry = torch.cat([known.T @ gate[:, :two], known.T @ last], 1).T
            of_bias = of_entry[:, -1]
            of_state = _multiply(gate.T, states[c, :-1].flatten(0, 1).T, None, "none", [], "")
            learned += [of_entry[:, :-1], of_state, of_bias, torch.cat([of_bias[:two], gate[:, two:].sum(0)])]
        return tuple(learned)


def _of_cells(given: Sequence[Tensor]) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
    """The entries of each GRU; and its weights of entries and of units, and their two biases."""
    cells = len(given) // 5
    return given[:cells], [given[at : at + 4] for at in range(cells, len(given), 4)]
