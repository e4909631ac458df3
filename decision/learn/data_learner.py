"""Learning from recorded choices alone: batches are drawn from them again and again, and no environment is stepped."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from decision.envs import Setup
from decision.envs.demonstrations import Demonstrations
from decision.envs.evaluation import ChooseAll
from decision.learned.base import ChoosingScheduler, Draws, Scheduler
from decision.model.errors import ConfigError

from . import bc, crr
from .actor import NetworkActor
from .algorithm_settings import BcConfig, CrrConfig
from .config import TrainConfig
from .critics import Critics
from .devices import autocast, device_of
from .networks import ImageNetwork, untrained_network
from .perceptrons import Network
from .replay import RecordedChoices, Transitions, draw

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
        """The network's."""
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
        """All that updates change."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


class BcLearner(DataLearner):
    """Behaviour cloning."""

    losses = bc.BcLosses._fields

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations) -> None:
        super().__init__(config, scheduler, setup, data)
        self._optimizer = adam(self.network, config.learn.lr)  # type: ignore[union-attr]

    def _update(self, batch: Transitions) -> tuple[float, ...]:
        assert isinstance(self.config.learn, BcConfig)
        return bc.update_bc(self.network, self._optimizer, batch, self.config.learn)

    def _parts(self) -> dict[str, Any]:
        return {"network": self.network, "optimizer": self._optimizer}


class CrrLearner(DataLearner):
    """Critic-regularised regression."""

    losses = crr.CrrLosses._fields

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations) -> None:
        super().__init__(config, scheduler, setup, data)
        assert isinstance(config.learn, CrrConfig)
        self._critics = action_critics(config, scheduler, setup, self.network)
        self._optimizers = [adam(self.network, config.learn.lr), adam(self._critics.networks, config.learn.lr)]

    def _update(self, batch: Transitions) -> tuple[float, ...]:
        assert isinstance(self.config.learn, CrrConfig)
        return crr.update_crr(self.network, self._critics, self._optimizers, batch, self.config.learn)

    def _parts(self) -> dict[str, Any]:
        optimizers = {f"optimizer {k}": each for k, each in enumerate(self._optimizers)}
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


def adam(module: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
    """The optimiser of all algorithms here."""
    return torch.optim.Adam(module.parameters(), lr=lr, fused=True)
