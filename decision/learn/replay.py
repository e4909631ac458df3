"""Transitions that algorithms learn from again and again: recorded ones, and the newest of environments."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from decision.envs.demonstrations import Demonstrations

from .perceptrons import Network

_CHUNK = 8192  # observations that are prepared at once


class Transitions(NamedTuple):
    """n of them."""

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
    """Where batches come from."""

    def __len__(self) -> int:
        """Transitions that there are."""

    def take(self, index: NDArray[np.int64]) -> Transitions:
        """These transitions."""


class RecordedChoices:
    """The choices of demonstrations.

    Args:
        demonstrations: of one environment.
        network: prepares their observations: once, or each time where they are packed.
    """

    def __init__(self, demonstrations: Demonstrations, network: Network) -> None:
        self._seen, self._network = demonstrations.observation, network
        self.rows = demonstrations.choices
        self._prepared = None if demonstrations.observation.packed else self._prepare_all()
        columns = demonstrations.mask, demonstrations.action, demonstrations.reward, ~demonstrations.terminated
        self._mask, self._action, self._reward, self._goes_on = map(torch.from_numpy, columns)

    def __len__(self) -> int:
        """Valid choices."""
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

    def _prepare_all(self) -> Tensor:
        chunks = range(0, len(self._seen), _CHUNK)
        return torch.from_numpy(np.concatenate([self._network.prepare(self._seen[at : at + _CHUNK]) for at in chunks]))


class Recent:
    """The newest transitions of environments, up to a number.

    Args:
        size: how many are kept.
    """

    def __init__(self, size: int) -> None:
        self._size, self._next, self._full = size, 0, False
        self._columns: list[Tensor] = []

    def __len__(self) -> int:
        """Those that are kept."""
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
        """These transitions."""
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
        own = index[(index >= 0) & (index < size)]
        if len(own):
            parts.append(replay.take(own))
        index = index - size
    return parts[0] if len(parts) == 1 else Transitions(*map(torch.cat, zip(*parts, strict=True)))
