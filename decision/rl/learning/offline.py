"""Learning from recorded choices alone: behaviour cloning (BC) and critic-regularised regression (CRR).

Batches are drawn from the choices again and again, and no environment is stepped. Read `update_bc` and `update_crr`
from top to bottom; transitions and the critics' values are what SAC learns with, too.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from decision.model.errors import ConfigError
from decision.rl.envs import Setup
from decision.rl.envs.batch import ChooseAll
from decision.rl.envs.demonstrations import Demonstrations
from decision.rl.schedulers.base import ChoosingScheduler, Draws, Scheduler

from .acting import NetworkActor, log_probs
from .config import BcConfig, CrrConfig, SacConfig, TrainConfig
from .networks import ImageNetwork, Network, untrained_network
from .products import quick
from .weights import autocast, device_of

_CHUNK = 8192  # observations that are prepared at once


class Transitions(NamedTuple):
    """n transitions, as algorithms learn from them again and again."""

    features: Tensor  # (n, F) what the network takes
    mask: Tensor  # (n, A) bool, valid actions
    action: Tensor  # (n,) int64
    reward: Tensor  # (n,)
    next_features: Tensor  # (n, F) of the state after it
    next_mask: Tensor  # (n, A)
    goes_on: Tensor  # (n,) 0 where the episode terminated, else 1: what comes after a state that was cut off counts

    def to(self, device: torch.device) -> "Transitions":
        """The same on a device."""
        return Transitions(*(column.to(device) for column in self))


class Batches(Protocol):
    """What transitions are drawn from: recorded ones, or the newest of environments."""

    def __len__(self) -> int:
        """How many transitions there are."""

    def take(self, index: NDArray[np.int64]) -> Transitions:
        """The transitions of an (n,) index."""


class RecordedChoices:
    """The choices of demonstrations.

    Args:
        demonstrations: of one environment.
        network: prepares their observations: once, or each time where they are packed.
    """

    def __init__(self, demonstrations: Demonstrations, network: Network) -> None:
        self._seen, self._network = demonstrations.observation, network
        self.rows = demonstrations.choices
        self._prepared: Tensor | None = None
        if not demonstrations.observation.packed:  # in parts: what is prepared may be larger than what was seen
            chunks = range(0, len(self._seen), _CHUNK)
            prepared = [network.prepare(self._seen[at : at + _CHUNK]) for at in chunks]
            self._prepared = torch.from_numpy(np.concatenate(prepared))
        columns = demonstrations.mask, demonstrations.action, demonstrations.reward, ~demonstrations.terminated
        self._mask, self._action, self._reward, self._goes_on = map(torch.from_numpy, columns)

    def __len__(self) -> int:
        """How many valid choices there are."""
        return len(self.rows)

    def take(self, index: NDArray[np.int64]) -> Transitions:
        """These of the valid choices."""
        return self.at(self.rows[index])

    def at(self, rows: NDArray[np.int64]) -> Transitions:
        """What was chosen in these rows of the demonstrations."""
        row = torch.from_numpy(rows)
        return Transitions(
            self._features(rows),
            self._mask[row],
            self._action[row],
            self._reward[row],
            self._features(rows + 1),
            self._mask[row + 1],
            self._goes_on[row].float(),
        )

    def _features(self, rows: NDArray[np.int64]) -> Tensor:
        if self._prepared is not None:
            return self._prepared[torch.from_numpy(rows)]
        return torch.from_numpy(self._network.prepare(self._seen[rows]))


class Recent:
    """The newest transitions of environments, up to a number.

    Args:
        size: how many are kept.
    """

    def __init__(self, size: int) -> None:
        self._size, self._next, self._full = size, 0, False
        self._columns: list[Tensor] = []

    def __len__(self) -> int:
        """How many transitions are kept."""
        return self._size if self._full else self._next

    def add(self, batch: Transitions) -> None:
        """Keep these, in place of the oldest where there is no more room."""
        n = len(batch.action)
        if not self._columns:
            self._columns = [torch.zeros((self._size, *c.shape[1:]), dtype=c.dtype) for c in batch]
        at = (self._next + torch.arange(n)) % self._size
        for column, new in zip(self._columns, batch, strict=True):
            column[at] = new
        self._full |= self._next + n >= self._size
        self._next = (self._next + n) % self._size

    def take(self, index: NDArray[np.int64]) -> Transitions:
        """The transitions of an (n,) index."""
        rows = torch.from_numpy(index)
        return Transitions(*(column[rows] for column in self._columns))

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on."""
        return {"columns": [column[: len(self)].clone() for column in self._columns], "next": self._next}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        kept = [column[:0] for column in state["columns"]]
        self._columns = [torch.zeros((self._size, *c.shape[1:]), dtype=c.dtype) for c in kept]
        for column, then in zip(self._columns, state["columns"], strict=True):
            column[: len(then)] = then
        self._next = state["next"]
        self._full = bool(self._columns) and len(state["columns"][0]) == self._size


def draw(replays: tuple[Batches, ...], n: int, rng: np.random.Generator) -> Transitions:
    """n transitions, each as probable as any other of all replays together."""
    sizes = [len(replay) for replay in replays]
    index = rng.integers(sum(sizes), size=n)
    parts = []
    for replay, size in zip(replays, sizes, strict=True):
        of_replay = index[(index >= 0) & (index < size)]
        if len(of_replay):
            parts.append(replay.take(of_replay))
        index = index - size
    return parts[0] if len(parts) == 1 else Transitions(*map(torch.cat, zip(*parts, strict=True)))


# --- Behaviour cloning: the network learns to choose as was recorded -----------------------------------------------


class BcLosses(NamedTuple):
    """What an update of `update_bc` did, a mean over the batch."""

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


# --- Values of actions, by an ensemble of networks whose outputs are normalised ------------------------------------
#
# PopArt (van Hasselt et al. 2016, arXiv 1602.07714): the networks learn targets of mean 0 and deviation 1, and where
# mean and deviation of the targets move, the last layers are changed so that the values stay as they were.

_LEAST, _MOST = 1e-4, 1e6  # of the deviation, so that rewards that are all equal divide by something


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
        # what computes with them, in a tuple: their parameters are here once
        self.quick = tuple(quick(network) for network in networks)
        self._quick_targets = tuple(quick(cast(Network, network)) for network in self.targets)
        self._rate = rate
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("square", torch.ones(()))  # mean square of the targets
        self.register_buffer("weight", torch.zeros(()))  # how much the targets so far count; 1 after many

    @property
    def deviation(self) -> Tensor:
        """Of the targets, within limits."""
        return (self.square - self.mean.square()).clamp(_LEAST**2, _MOST**2).sqrt()

    def normalised(self, seen: "Seen") -> Tensor:
        """(K, n, A) outputs of the networks."""
        return torch.stack([seen.logits(network).float() for network in self.quick])

    def normalise(self, values: Tensor) -> Tensor:
        """Values as the networks learn them."""
        return (values - self.mean) / self.deviation

    def values(self, features: Tensor) -> Tensor:
        """(n, A): the lowest of the networks' values of (n, F) features."""
        return self.lowest(self.normalised(Seen(self.quick, features)))

    def lowest(self, normalised: Tensor) -> Tensor:
        """(K, n, A) outputs of the networks to the lowest values."""
        return self.mean + self.deviation * normalised.amin(0)

    def target_values(self, features: Tensor) -> Tensor:
        """(n, A): the same of the networks that follow."""
        seen = Seen(self._quick_targets, features)
        return self.lowest(torch.stack([seen.logits(network).float() for network in self._quick_targets]))

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
        # the last layers take the change up: deviation * (w x + b) + mean stays what it was
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


class Seen:
    """What networks see of (n, F) features; an encoder that all of them share reads them once.

    Then its gradient is that of all that was made of what it read: they are `backward` last, and once.
    """

    def __init__(self, networks: Sequence[Network], features: Tensor) -> None:
        self._features, self._read = features, None
        first: Any = networks[0]
        if {getattr(network, "reader", None) for network in networks} <= {getattr(first, "reader", first)}:
            self._read = first.read(features)
            self._features = self._read.detach().requires_grad_(torch.is_grad_enabled())

    def logits(self, network: Any) -> Tensor:
        """(n, A) of one of the networks."""
        return network.actor(self._features) if self._read is None else network.actor_of(self._features)

    def backward(self) -> None:
        """The gradients of the encoder, where there is one, from those of what was made of its readings."""
        if self._read is not None:
            self._read.backward(self._features.grad)


# --- CRR: of the recorded choices, those are cloned that are better than the policy --------------------------------
#
# Wang et al., NeurIPS 2020 (arXiv 2006.15134), for discrete actions: the policy's mean over values is the exact sum
# over all valid actions, and not one over a few draws. The filter is the binary one, 1 where the advantage is above 0.


class CrrLosses(NamedTuple):
    """What an update of `update_crr` did, means over the batch."""

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
    # critics: towards the reward and the value of the next state, the mean over what the policy would choose there
    with torch.no_grad():
        next_probs = log_probs(network.actor(batch.next_features), batch.next_mask).exp()
        following = (next_probs * critics.target_values(batch.next_features)).sum(1)
        target = batch.reward * config.reward_scale + config.discount * batch.goes_on * following
    seen = Seen((network, *critics.quick), batch.features)
    value_loss, values = critics_loss(critics, seen, batch, target)

    # policy: clone the choices that pass the filter; without one this is behaviour cloning beside critics
    logits = seen.logits(network)
    with torch.no_grad():
        weight = _passes(logits, values, batch) if config.filter == "binary" else 1.0
    policy_loss = (weight * clone_loss(logits, batch)).mean()

    learn_both(critics, optimizers, (policy_loss, value_loss), seen, config)
    return CrrLosses(policy_loss.item(), value_loss.item(), float(torch.as_tensor(weight).mean()))


def critics_loss(critics: Critics, seen: Seen, batch: Transitions, target: Tensor) -> tuple[Tensor, Tensor]:
    """How far the values of the batch's choices are from the (n,) target, and (n, A) values."""
    # first the scale, then the outputs: they are compared with targets on the scale of now
    critics.rescale(target)
    chosen = batch.action.expand(len(critics.networks), -1).unsqueeze(2)
    normalised = critics.normalised(seen)
    predicted = normalised.gather(2, chosen).squeeze(2)
    loss = 0.5 * (predicted - critics.normalise(target)).square().mean(1).sum()
    return loss, critics.lowest(normalised.detach())


def learn_both(
    critics: Critics,
    optimizers: Sequence[torch.optim.Optimizer],
    losses: tuple[Tensor, Tensor],
    seen: Seen,
    config: CrrConfig | SacConfig,
) -> None:
    """Make the losses of policy and critics smaller; an encoder that they share moves with the critics', once."""
    of_policy, of_critics = optimizers[:2]
    for optimizer, loss in zip((of_policy, of_critics), losses, strict=True):
        optimizer.zero_grad()
        loss.backward()
    seen.backward()
    for optimizer in (of_critics, of_policy):
        learned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        nn.utils.clip_grad_norm_(learned, config.max_gradient)
        optimizer.step()
    critics.follow(config.target_rate)


def _passes(logits: Tensor, values: Tensor, batch: Transitions) -> Tensor:
    """(n,) 1 where the choice has a higher value than what the policy would choose on average."""
    mean = (log_probs(logits, batch.mask).exp() * values).sum(1)
    chosen = values.gather(1, batch.action.unsqueeze(1)).squeeze(1)
    return (chosen > mean).float()


# --- The learners --------------------------------------------------------------------------------------------------

_UPDATES = 100  # of an iteration
_KEPT_ASIDE = 20  # every so many choices: agreement is measured on them
_MOST_MEASURED = 10_000  # choices
_AT_A_TIME = 1024  # of these: an image's network needs much room


class NetworkLearner:
    """What learners of one network share."""

    network: Network
    device: torch.device
    _draws: Draws

    def policy(self) -> ChooseAll:
        """The network's choices, as a deployed policy makes them."""
        return NetworkActor(copy.deepcopy(self.network).cpu(), self._draws).together

    def weights(self) -> Mapping[str, torch.Tensor]:
        """The weights of the network, by name."""
        return self.network.state_dict()


class DataLearner(NetworkLearner):
    """Network, optimisers and recorded choices of a run; what an update does is up to subclasses.

    Args:
        config: how it learns.
        scheduler: what learns.
        setup: of the environment that the choices were made in.
        data: the choices.
    """

    losses: tuple[str, ...]  # of an update

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations) -> None:
        self.config, self._draws = config, scheduler.draws_of(config.env)
        self.device = device_of(config.learn)  # type: ignore[arg-type]
        self.network = policy_network(config, scheduler, setup)
        recorded = RecordedChoices(data, self.network)
        aside = np.arange(len(recorded)) % _KEPT_ASIDE == 0
        if aside.all():
            raise ConfigError(f"{len(recorded)} recorded choices are too few to learn from; collect more transitions")
        self._aside = recorded.rows[aside][:_MOST_MEASURED]
        recorded.rows = recorded.rows[~aside]
        self.network.to(self.device)
        self._quick = quick(self.network)
        self._recorded = recorded
        self._rng = np.random.default_rng([config.seed, 2])
        self.columns: tuple[str, ...] = ("agreement", "agreement_of_choices", *self.losses)
        self.iteration = self.steps = 0  # steps: updates that are done

    @classmethod
    def make(cls, config: TrainConfig, scheduler: Scheduler, setup: Setup, data: Demonstrations | None) -> Any:
        """For a scheduler's recorded choices. Raises ConfigError if there are none."""
        assert isinstance(scheduler, ChoosingScheduler)
        if data is None:
            raise ConfigError(f"{config.algorithm} learns from recorded choices: make some and name them", field="data")
        return cls(config, scheduler, setup, data)

    @property
    def finished(self) -> bool:
        """Whether all updates are done."""
        return self.steps >= self.config.steps

    def iterate(self) -> dict[str, float]:
        """Some updates, and how often the network now chooses as was recorded."""
        updates = min(_UPDATES, self.config.steps - self.steps)
        batch = self.config.learn.batch  # type: ignore[union-attr]
        with autocast(self.config.learn, self.device):  # type: ignore[arg-type]
            rows = [self._update(draw((self._recorded,), batch, self._rng).to(self.device)) for _ in range(updates)]
        self.iteration, self.steps = self.iteration + 1, self.steps + updates
        return {**self._agreement(), **dict(zip(self.losses, np.mean(rows, axis=0).tolist(), strict=True))}

    def _update(self, batch: Transitions) -> tuple[float, ...]:
        raise NotImplementedError

    @torch.inference_mode()
    def _agreement(self) -> dict[str, float]:
        """Share of equal choices on those kept aside, of all and of those with more than one valid action."""
        same, free = [], []
        for at in range(0, len(self._aside), _AT_A_TIME):
            batch = self._recorded.at(self._aside[at : at + _AT_A_TIME]).to(self.device)
            logits = self.network.actor(batch.features).masked_fill(~batch.mask, -torch.inf)
            same.append((logits.argmax(1) == batch.action).float())
            free.append(batch.mask.sum(1) > 1)
        agreed = torch.cat(same)
        return {"agreement": float(agreed.mean()), "agreement_of_choices": float(agreed[torch.cat(free)].mean())}

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        return {
            "iteration": self.iteration,
            "updates": self.steps,
            "rng": self._rng.bit_generator.state,
            **{name: part.state_dict() for name, part in self._parts().items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration = state["iteration"]
        self.steps = state.get("updates", self.iteration * _UPDATES)  # earlier versions kept none
        self._rng.bit_generator.state = state["rng"]
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        """All that updates change: what a state of the training holds."""
        raise NotImplementedError

    def close(self) -> None:
        """There is nothing to end: no environment is stepped."""


class BcLearner(DataLearner):
    """A learner whose updates are `update_bc`."""

    losses = BcLosses._fields

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations) -> None:
        super().__init__(config, scheduler, setup, data)
        self._optimizer = adam(self.network, config.learn.lr)  # type: ignore[union-attr]

    def _update(self, batch: Transitions) -> tuple[float, ...]:
        assert isinstance(self.config.learn, BcConfig)
        return update_bc(self._quick, self._optimizer, batch, self.config.learn)

    def _parts(self) -> dict[str, Any]:
        return {"network": self.network, "optimizer": self._optimizer}


class CrrLearner(DataLearner):
    """A learner whose updates are `update_crr`."""

    losses = CrrLosses._fields

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations) -> None:
        super().__init__(config, scheduler, setup, data)
        assert isinstance(config.learn, CrrConfig)
        self._critics = action_critics(config, scheduler, setup, self.network)
        lr = config.learn.lr
        self._optimizers = [adam(self.network, lr, self._critics), adam(self._critics.networks, lr)]

    def _update(self, batch: Transitions) -> tuple[float, ...]:
        assert isinstance(self.config.learn, CrrConfig)
        return update_crr(self._quick, self._critics, self._optimizers, batch, self.config.learn)

    def _parts(self) -> dict[str, Any]:
        optimizers = {f"optimizer {k}": optimizer for k, optimizer in enumerate(self._optimizers)}
        return {"network": self.network, "critics": self._critics, **optimizers}


def policy_network(config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, which: int = 0) -> Network:
    """A network for the observations of an environment, untrained; `which`: others are others."""
    assert config.network is not None
    encoder, seed = setup.encoder, config.seed + (which << 32)
    return untrained_network(config.network, encoder.shape[0], encoder.actions, scheduler.layout(encoder), seed)


def action_critics(config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, policy: Network) -> Critics:
    """Values of actions, by as many networks as the config says, where the policy is; they may share its encoder.

    Then both the policy's updates and the critics' move it, as Launchpad has one encoder for actor and critics.
    """
    learn = config.learn
    count, rate = learn.critics, learn.popart  # type: ignore[union-attr]
    networks = [policy_network(config, scheduler, setup, 1 + k) for k in range(count)]
    if config.network is not None and config.network.encoder == "shared":
        for network in networks:
            assert isinstance(network, ImageNetwork)
            assert isinstance(policy, ImageNetwork)
            network.share_encoder(policy)
    return Critics(networks, rate).to(next(policy.parameters()).device)


def adam(module: torch.nn.Module, lr: float, critics: Critics | None = None) -> torch.optim.Optimizer:
    """The optimiser of all algorithms here; parameters that a policy shares with critics move with theirs."""
    shared = set() if critics is None else {id(parameter) for parameter in critics.networks.parameters()}
    learned = [parameter for parameter in module.parameters() if id(parameter) not in shared]
    return torch.optim.Adam(learned, lr=lr, fused=True)
