"""A network acts: it collects rollouts in many environments side by side, and chooses as a deployed policy does."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from decision.rl.schedulers.base import Draws

from .networks import Network

_VALUED = 512  # states whose values are computed at once: what layers make of them stays in a core's cache
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


def log_probs(logits: Tensor, mask: Tensor) -> Tensor:
    """(n, A) log-probabilities of actions among those that the mask allows."""
    return torch.where(mask, logits.float(), _NEVER).log_softmax(1)


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
        """Go on from a `get_state`, exactly."""

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
    def collect(self, network: Network, beside: Executor | None = None) -> Collected:
        """Let the network's policy act for a rollout; values of what it saw may be computed in a thread beside it."""
        noise = gumbel(torch.from_numpy(self.uniform()))
        rollout, finished = _Buffers(self._steps), Finished()
        for t in range(self._steps):
            features, mask = torch.from_numpy(network.prepare(self.observation)), torch.from_numpy(self.mask)
            # values that are not had with the logits are computed later, many at once
            logits, *value = [network.actor(features)] if network.apart else network(features, mask)
            action, chosen = draw_actions(logits.float(), mask, noise[t])
            moved = self.step(action.numpy(), partial(values_of, network), finished)
            known = features, mask, action, chosen, *map(torch.from_numpy, moved[:2])
            rollout.write(t, (*known, *(each.float() for each in value)), moved[2])
        value_after = torch.from_numpy(values_of(network, self.observation))
        return Collected(rollout.finish(network, value_after, beside), finished.count, finished.means())

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
        # an episode that was cut off could have gone on: the value of its last state stands for what would have come
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

    def finish(self, network: Network, value_after: Tensor, beside: Executor | None) -> Rollout:
        features, mask, action, log_prob, reward, ended, *known = self._columns
        value = known[0] if known else _values_apart(network, features, beside)
        following = torch.cat([value[1:], value_after.unsqueeze(0)])
        next_value = torch.where(ended, self._last, following)
        return Rollout(features, mask, action, log_prob, value, reward, next_value, ended)


def _values_apart(network: Network, features: Tensor, beside: Executor | None) -> Tensor:
    """(T, N) of (T, N, F) features."""
    parts = features.flatten(0, 1).split(_VALUED)

    @torch.inference_mode()
    def values(some: Sequence[Tensor]) -> list[Tensor]:
        return [network.value(part).float() for part in some]

    other = beside.submit(values, parts[len(parts) // 2 :]) if beside else None
    here = values(parts[: len(parts) // 2] if other else parts)
    return torch.cat(here + (other.result() if other else [])).view(features.shape[:2])


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


# --- Choices by a network: the best of the valid actions, or a draw ------------------------------------------------


class NetworkActor:
    """Chooses valid actions.

    Args:
        network: that has learned.
        draws: with the network's probability: ``nothing``, the best of all is taken; ``last``, if the last action (Fwd)
            is taken or one of the others, and then the best of them; ``all``. DBF draws the last: it looks at the same
            jobs cycle after cycle, and where Fwd is the best by little, taking it each time starves a job that would
            otherwise start soon (seen: mean waits of 102,576 s instead of 8,121 s). Packing draws all: unmasked, the
            best could be a choice without effect, for ever.
    """

    def __init__(self, network: Network, draws: Draws) -> None:
        self.network, self._draws = network.eval(), draws
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Restart the draws, from a seed."""
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: NDArray[np.float32], mask: NDArray[np.int8]) -> int:
        """(D,) observation and (A,) mask to an action; nothing is drawn where only one is valid."""
        valid = np.flatnonzero(mask)
        return int(valid[0] if len(valid) == 1 else self.together(observation[None], mask[None])[0])

    @torch.inference_mode()
    def together(self, observations: NDArray[np.float32], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """(n, D) observations and (n, A) masks to (n,) actions.

        Draws are others than one by one; and sums are rounded otherwise, so that of two actions as good as equal it
        may choose the other.
        """
        features = torch.from_numpy(self.network.prepare(observations))
        logits = self.network.actor(features).masked_fill(torch.from_numpy(masks == 0), -torch.inf)
        if self._draws == "nothing":
            return np.asarray(logits.argmax(1).numpy())
        if self._draws == "all":  # Gumbel's trick
            noise = torch.from_numpy(self._rng.gumbel(size=logits.shape).astype(np.float32))
            return np.asarray((logits + noise).argmax(1).numpy())
        odds = (logits[:, :-1].logsumexp(1) - logits[:, -1]).numpy()  # logarithm of those of not going forward
        goes_on = odds > self._rng.logistic(size=len(odds))
        return np.where(goes_on, logits[:, :-1].argmax(1).numpy(), logits.shape[1] - 1)
