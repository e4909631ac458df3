"""Collecting rollouts: a policy acts in many environments side by side."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .perceptrons import Network
from .ppo import Rollout, log_probs


class MaskedVectorEnv(Protocol):
    """What a rollout needs of environments: Gymnasium's, resetting in the step that ends an episode, with masks.

    ``info["action_mask"]`` is (N, A) int8, ``info["metrics"]`` has metrics of finished episodes, arrays (N,), valid
    where ``info["_metrics"]``; ``info["final_obs"]`` has the last observations of ended episodes.
    """

    num_envs: int
    single_observation_space: Any
    single_action_space: Any

    def reset(self, *, seed: int | None = None) -> tuple[Any, Mapping[str, Any]]:
        """Begin an episode everywhere: (N, D) observations and info."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
        """Observations, rewards, terminated, truncated, info."""

    def get_state(self) -> Mapping[str, Any]:
        """Arrays from which the environments go on exactly as from here."""

    def set_state(self, state: dict[str, Any]) -> Any:
        """Go on from there."""

    def close(self) -> Any:
        """They are not needed any more."""


class Collected(NamedTuple):
    """A rollout, and what happened in it."""

    rollout: Rollout
    episodes: int  # that ended
    metrics: dict[str, float]  # means over the episodes that ended


class Collector:
    """Acts in environments and remembers where they stand.

    Args:
        envs: the environments.
        steps: of each environment in a rollout.
        reward_scale: rewards are multiplied by it.
        seed: of the environments and of the actions' draws.
    """

    def __init__(self, envs: MaskedVectorEnv, steps: int, reward_scale: float, seed: int) -> None:
        self._envs, self._steps, self._scale = envs, steps, reward_scale
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        observation, info = envs.reset(seed=seed)
        self.observation, self.mask = np.array(observation), info["action_mask"].astype(bool)

    @torch.inference_mode()
    def collect(self, network: Network) -> Collected:
        """Let the network's policy act for a rollout."""
        noise = gumbel(torch.from_numpy(self.uniform()))
        rollout, finished = _Buffers(self._steps), Finished()
        for t in range(self._steps):
            features, mask = torch.from_numpy(network.prepare(self.observation)), torch.from_numpy(self.mask)
            logits, value = (x.float() for x in network(features, mask))
            action, chosen = draw_actions(logits, mask, noise[t])
            moved = self.step(action.numpy(), partial(values_of, network), finished)
            rollout.write(t, (features, mask, action, chosen, value, *map(torch.from_numpy, moved[:2])), moved[2])
        value_after = torch.from_numpy(values_of(network, self.observation))
        return Collected(rollout.finish(value_after), finished.count, finished.means())

    def uniform(self) -> NDArray[np.float32]:
        """(T, N, A) numbers between 0 and 1, for the draws of a rollout."""
        return self._rng.random((self._steps, *self.mask.shape), dtype=np.float32)

    def step(
        self,
        action: NDArray[np.int64],
        values: Callable[[NDArray[np.float32]], NDArray[np.float32]],
        finished: "Finished",
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Step the environments: rewards, ended, and values of the last states (nan where the episode goes on).

        Args:
            action: (N,) choices.
            values: of (n, D) observations.
            finished: gets the metrics of episodes that end.
        """
        observation, reward, terminated, truncated, info = self._envs.step(action)
        self.observation, self.mask = np.array(observation), info["action_mask"].astype(bool)
        last = np.full(len(action), np.nan, np.float32)
        last[terminated] = 0.0
        cut = np.flatnonzero(truncated & ~terminated)
        if len(cut):
            last[cut] = values(info["final_obs"][cut])
        finished.add(info)
        scaled = np.asarray(reward, np.float32) * np.float32(self._scale)
        return scaled, terminated | truncated, last

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here: tensors, numbers and texts."""
        return {
            "envs": {name: as_tensor(value) for name, value in self._envs.get_state().items()},
            "observation": torch.from_numpy(self.observation.copy()),
            "mask": torch.from_numpy(self.mask.copy()),
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._envs.set_state({name: as_array(value) for name, value in state["envs"].items()})
        self.observation, self.mask = state["observation"].numpy().copy(), state["mask"].numpy().copy()
        self._rng.bit_generator.state = state["rng"]


class _Buffers:
    """A rollout as it is written, step by step; made at the first step, which knows the shapes."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._columns: tuple[Tensor, ...] = ()
        self._last = torch.empty(0)

    def write(self, t: int, columns: tuple[Tensor, ...], last_value: NDArray[np.float32]) -> None:
        if not self._columns:
            self._columns = tuple(torch.empty((self._steps, *c.shape), dtype=c.dtype) for c in columns)
            self._last = torch.empty((self._steps, *last_value.shape))
        for buffer, column in zip(self._columns, columns, strict=True):
            buffer[t] = column
        self._last[t] = torch.from_numpy(last_value)

    def finish(self, value_after: Tensor) -> Rollout:
        features, mask, action, log_prob, value, reward, ended = self._columns
        following = torch.cat([value[1:], value_after.unsqueeze(0)])
        next_value = torch.where(ended, self._last, following)
        return Rollout(features, mask, action, log_prob, value, reward, next_value, ended)


class Finished:
    """Sums of the metrics of episodes that ended."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, float] = {}

    def add(self, info: Mapping[str, Any]) -> None:
        if "metrics" not in info or not (ended := np.asarray(info["_metrics"], bool)).any():
            return
        self.count += int(ended.sum())
        for name, values in info["metrics"].items():
            self._sums[name] = self._sums.get(name, 0.0) + float(np.asarray(values)[ended].sum())

    def means(self) -> dict[str, float]:
        return {name: total / self.count for name, total in self._sums.items()}


def gumbel(uniform: Tensor) -> Tensor:
    """Noise for `draw_actions`; on the CPU numpy computes it, whose logarithms earlier versions took."""
    if uniform.device.type == "cpu":
        return torch.from_numpy(-np.log(-np.log(np.clip(uniform.numpy(), 1e-20, 1 - 1e-7))))
    return uniform.clamp_(1e-20, 1 - 1e-7).log_().neg_().log_().neg_()


def draw_actions(logits: Tensor, mask: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) draws from the policy of (n, A) logits by Gumbel's trick, and the logarithms of their probabilities."""
    log_prob = log_probs(logits, mask)
    action = (log_prob + noise).argmax(1)
    return action, log_prob.gather(1, action.unsqueeze(1)).squeeze(1)


def values_of(network: Network, observation: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) of (n, D) observations."""
    features = torch.from_numpy(network.prepare(observation)).to(next(network.parameters()).device)
    return network.value(features).float().cpu().numpy()


def as_tensor(value: Any) -> Any:
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def as_array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value
