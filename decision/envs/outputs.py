"""The arrays that a step is written into."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError


class Outputs(NamedTuple):
    """Where a step of N environments is written: arrays of the caller's, C-contiguous."""

    observation: NDArray[np.float32]  # (N, D)
    mask: NDArray[np.int8]  # (N, A) 1 where an action is valid
    reward: NDArray[np.float32]  # (N,)
    terminated: NDArray[np.bool_]  # (N,)
    truncated: NDArray[np.bool_]  # (N,)


def new_outputs(envs: int, width: int, actions: int) -> Outputs:
    """Arrays for N environments with observations of `width` numbers."""
    return Outputs(
        np.empty((envs, width), np.float32),
        np.empty((envs, actions), np.int8),
        np.empty(envs, np.float32),
        np.empty(envs, np.bool_),
        np.empty(envs, np.bool_),
    )


def check_outputs(out: Outputs, like: Outputs) -> Outputs:
    """Refuse arrays that a step cannot be written into: of other shapes or types than those of `like`.

    Raises:
        ConfigError: naming the array, and what it must be.
    """
    given: Iterable[NDArray[Any]] = out
    wanted: Iterable[NDArray[Any]] = like
    for name, array, model in zip(out._fields, given, wanted, strict=True):
        if array.shape != model.shape or array.dtype != model.dtype or not array.flags.c_contiguous:
            found = f"found {array.dtype} {array.shape}"
            raise ConfigError(f"out.{name}: must be C-contiguous {model.dtype} {model.shape}; {found}")
    return out
