"""Soft actor-critic (SAC) for discrete, masked actions.

Haarnoja et al. 2018 (arXiv 1812.05905) as Christodoulou 2019 (arXiv 1910.07207) has it for discrete actions: means over
actions are exact sums. The weight of entropy is tuned so that the policy's entropy is a share of the most that the
valid actions of a state allow, times 0.98.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from decision.model.computer import check_memory
from decision.model.errors import ConfigError
from decision.rl.envs import SchedulerVectorEnv, Setup
from decision.rl.envs.demonstrations import Demonstrations
from decision.rl.schedulers.base import ChoosingScheduler, Scheduler

from . import offline as crr
from .acting import Finished, as_array, as_tensor, log_probs
from .config import CrrConfig, SacConfig, TrainConfig
from .networks import Network
from .offline import (
    Critics,
    NetworkLearner,
    Recent,
    RecordedChoices,
    Seen,
    Transitions,
    action_critics,
    adam,
    critics_loss,
    draw,
    learn_both,
    policy_network,
)
from .products import quick
from .weights import autocast, device_of

_SHARE = 0.98  # of the greatest entropy, which is what can be tuned to


class SacLosses(NamedTuple):
    """What an update of `update_sac` did, means over the batch."""

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

    # critics: towards the reward and the soft value of the next state, its mean over what the policy would choose of
    # the lower of the target networks' values, plus the entropy that it has there
    with torch.no_grad():
        next_log = log_probs(network.actor(batch.next_features), batch.next_mask)
        soft = critics.target_values(batch.next_features) - temperature * next_log
        following = _mean(next_log, soft, batch.next_mask)
        target = batch.reward * config.reward_scale + config.discount * batch.goes_on * following
    seen = Seen((network, *critics.quick), batch.features)
    value_loss, values = critics_loss(critics, seen, batch, target)

    # policy: towards the softmax of the values; no sampled action, for the mean over all of them is exact
    log = log_probs(seen.logits(network), batch.mask)
    policy_loss = _mean(log, temperature * log - values, batch.mask).mean()
    learn_both(critics, optimizers, (policy_loss, value_loss), seen, config)

    # temperature: up where entropy is less than wanted. What is wanted depends on how many actions are valid
    entropy = -_mean(log, log, batch.mask).detach()
    if config.temperature == 0:
        wanted = config.entropy * _SHARE * batch.mask.sum(1).log()
        optimizers[2].zero_grad()
        (log_temperature * (entropy - wanted).mean()).backward()
        optimizers[2].step()
    return SacLosses(policy_loss.item(), value_loss.item(), float(entropy.mean()), float(temperature))


def _mean(log: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """(n,) mean of (n, A) values over the valid actions, by the policy's logarithms of their probabilities."""
    return torch.where(mask, log.exp() * values, 0.0).sum(1)


# --- The learner ---------------------------------------------------------------------------------------------------
#
# It acts in environments, and learns from what it saw there and from recorded choices. First, if so configured, comes a
# phase of critic-regularised regression on the recorded choices alone. At the switch all optimisers start again;
# networks and recorded choices stay.

_STEPS = 32  # of each environment in an iteration
_UPDATES = 100  # of an iteration of the phase before
_TEMPERATURE = 0.1  # at first


class SacLearner(NetworkLearner):
    """Networks, environments and transitions of a run.

    Args:
        config: how it learns.
        scheduler: what learns.
        setup: of the environments.
        data: recorded choices, which stay among what is learned from; None where there are none.
    """

    def __init__(
        self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup, data: Demonstrations | None
    ) -> None:
        assert isinstance(config.learn, SacConfig)
        self.config, self._sac, self._draws = config, config.learn, scheduler.draws_of(config.env)
        self.device = device_of(config.learn)
        self.network = policy_network(config, scheduler, setup).to(self.device)
        self._quick = quick(self.network)
        self._critics = action_critics(config, scheduler, setup, self.network)
        self._log_temperature = torch.tensor(math.log(_TEMPERATURE), device=self.device, requires_grad=True)
        self._new_optimizers()
        self._recorded = None if data is None else RecordedChoices(data, self.network)
        self._recent = Recent(self._sac.buffer)
        self._envs = SchedulerVectorEnv(self._sac.envs, setup=setup, threads=1)
        self._rng = np.random.default_rng([config.seed, 2])
        observation, info = self._envs.reset(seed=config.seed)
        self._see(observation, info)
        self.columns = ("episodes", "reward", *scheduler.curves, *scheduler.metrics, "updates", *_COLUMNS)
        self.iteration = self.updates = 0

    @classmethod
    def make(cls, config: TrainConfig, scheduler: Scheduler, setup: Setup, data: Demonstrations | None) -> "SacLearner":
        """The learner of a scheduler in its environments. Raises ConfigError if recorded choices are missing."""
        assert isinstance(scheduler, ChoosingScheduler)
        assert isinstance(config.learn, SacConfig)
        if config.learn.offline and data is None:
            raise ConfigError("learn.offline: that phase learns from recorded choices: name some", field="data")
        check_memory("environments with a buffer", config.learn.buffer, 8 * setup.encoder.shape[0])
        return cls(config, scheduler, setup, data)

    def _new_optimizers(self) -> None:
        lr = self._sac.lr
        temperature = torch.optim.Adam([self._log_temperature], lr=lr)
        of_policy = adam(self.network, lr, self._critics)
        self._optimizers = [of_policy, adam(self._critics.networks, lr), temperature]

    @property
    def _before(self) -> int:
        """Iterations of the phase before."""
        return -(-self._sac.offline // _UPDATES)

    @property
    def steps(self) -> int:
        """Environment steps so far; updates of the phase before are none."""
        return max(self.iteration - self._before, 0) * self.act_steps

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self._sac.steps

    def iterate(self) -> dict[str, float]:
        """Steps in the environments and the updates that belong to them; or updates of the phase before."""
        if self.iteration < self._before:
            row = self._learn_offline()
            self.iteration += 1
            if self.iteration == self._before:
                self._new_optimizers()
            return row
        row = self.act()
        self.iteration += 1
        # as many updates as belong to the steps so far, whatever part of them the warm-up was
        if self.steps >= self._sac.warmup:
            due = int(self.steps * self._sac.updates) + self._sac.offline
            row |= self.learn(due - self.updates)
        return {**row, "updates": self.updates}

    def _learn_offline(self) -> dict[str, float]:
        config, recorded = self._sac, self._recorded
        assert recorded is not None
        shared = {name: getattr(config, name) for name in CrrConfig.__struct_fields__ if hasattr(config, name)}
        settings = CrrConfig(**{**shared, "steps": config.offline})
        count = min(_UPDATES, config.offline - self.updates)
        parts = self._quick, self._critics, self._optimizers
        with autocast(config, self.device):
            losses = [
                crr.update_crr(*parts, draw((recorded,), config.batch, self._rng).to(self.device), settings)
                for _ in range(count)
            ]
        self.updates += count
        means = np.mean(losses, axis=0).tolist()
        return {"policy_loss": means[0], "value_loss": means[1], "updates": self.updates}

    @property
    def act_steps(self) -> int:
        """Environment steps of an iteration."""
        return _STEPS * self._sac.envs

    def act(self) -> dict[str, float]:
        """Step the environments; what happened is kept."""
        finished, rewards = Finished(), []
        for k in range(_STEPS):
            action = self._choose(self.steps + k * self._sac.envs)
            features, mask = self._features, self._mask
            observation, reward, terminated, truncated, info = self._envs.step(action)
            self._see(observation, info)
            following, next_mask = self._features, self._mask
            # environments reset in the step that ends an episode: its last observation is in `info`
            if (over := terminated | truncated).any():
                following = following.clone()
                last = np.asarray(info["final_obs"], np.float32)[over]
                following[torch.from_numpy(over)] = torch.from_numpy(self.network.prepare(last))
                last_mask = torch.from_numpy(info["final_info"]["action_mask"] != 0)
                next_mask = torch.where(torch.from_numpy(over)[:, None], last_mask, next_mask)
            # an episode that was cut off goes on, for what is learned: only where it terminated nothing follows
            goes_on = torch.from_numpy(~terminated).float()
            paid = torch.from_numpy(np.array(reward, np.float32))
            self._recent.add(Transitions(features, mask, torch.from_numpy(action), paid, following, next_mask, goes_on))
            finished.add(info)
            rewards.append(float(reward.mean()))
        return {"episodes": finished.count, "reward": float(np.mean(rewards)), **finished.means()}

    def _see(self, observation: Any, info: Mapping[str, Any]) -> None:
        self._observation = np.array(observation)
        self._features = torch.from_numpy(self.network.prepare(self._observation))
        self._mask = torch.from_numpy(info["action_mask"].astype(bool))

    @torch.inference_mode()
    def _choose(self, step: int) -> np.ndarray:
        """(N,) draws from the policy, or any valid action."""
        with autocast(self._sac, self.device):
            scores = self._quick.actor(self._features.to(self.device)).float().cpu()
        logits = log_probs(scores, self._mask).numpy()
        anything = self._rng.random(len(logits)) < self._sac.epsilon_at(step)
        even = np.where(self._mask.numpy(), 0.0, -1e8)
        noise = self._rng.gumbel(size=logits.shape)  # Gumbel's trick
        return np.asarray((np.where(anything[:, None], even, logits) + noise).argmax(1), np.int64)

    def learn(self, updates: int) -> dict[str, float]:
        """Make so many updates; the means of what they did."""
        config = self._sac
        recorded = () if self._recorded is None else (self._recorded,)
        losses = []
        for _ in range(updates):
            batch = draw((*recorded, self._recent), config.batch, self._rng).to(self.device)
            parts = self._log_temperature, self._optimizers, batch, config
            with autocast(config, self.device):
                losses.append(update_sac(self._quick, self._critics, *parts))
            self.updates += 1
        return dict(zip(_COLUMNS, np.mean(losses, axis=0).tolist(), strict=True)) if losses else {}

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        return {
            "iteration": self.iteration,
            "updates": self.updates,
            "network": self.network.state_dict(),
            "critics": self._critics.state_dict(),
            "log_temperature": self._log_temperature.detach().clone(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "recent": self._recent.state(),
            "envs": {name: as_tensor(value) for name, value in self._envs.get_state().items()},
            "observation": torch.from_numpy(self._observation.copy()),
            "mask": self._mask.clone(),
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration, self.updates = state["iteration"], state["updates"]
        self.network.load_state_dict(state["network"])
        self._critics.load_state_dict(state["critics"])
        with torch.no_grad():
            self._log_temperature.copy_(state["log_temperature"])
        for optimizer, then in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(then)
        self._recent.restore(state["recent"])
        self._envs.set_state({name: as_array(value) for name, value in state["envs"].items()})
        self._see(state["observation"].numpy(), {"action_mask": state["mask"].numpy()})
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        """Close the environments that it acts in."""
        self._envs.close()


_COLUMNS = SacLosses._fields
