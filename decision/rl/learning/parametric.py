"""Policies of checkpoints that have numbers, and no network: they need no torch."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from decision.model.errors import ConfigError, InputError
from decision.policies.policy import Policy
from decision.rl.schedulers.base import ParametricScheduler, Scheduler

from .checkpoint import REMEDY, WEIGHTS, Manifest, read_numbers, shown


def parametric_policy(
    path: Path, manifest: Manifest, scheduler: Scheduler, data: bytes, options: Mapping[str, Any] | None = None
) -> Policy:
    """The policy of a checkpoint's numbers.

    Args:
        path: of the checkpoint.
        manifest: it has.
        scheduler: that it is of.
        data: its weights.
        options: that the scheduler knows.

    Raises:
        InputError: if the numbers are damaged.
        ConfigError: if they are of another version than ours, or of a scheduler that is none; or for an option's
            value that does not fit.
    """
    if not isinstance(scheduler, ParametricScheduler):
        raise ConfigError(
            f"{path}: it has {scheduler.name} and is not a policy: use easy,allocation=tree,prices={path}"
        )
    if manifest.encoder != scheduler.sees:
        sees = f"this package's {scheduler.name} {dict(scheduler.sees)}"
        raise ConfigError(f"{path}: it sees {shown(manifest.encoder)}, {sees}; train again")
    numbers = read_numbers(str(path), data)
    if len(numbers) + scheduler.added == math.prod(scheduler.weights):
        numbers = np.append(numbers, np.zeros(scheduler.added))
    try:
        weights = numbers.reshape(scheduler.weights)
    except ValueError:
        needs = " x ".join(map(str, scheduler.weights))
        found = f"there are {len(numbers)} numbers, and {scheduler.name} has {needs}"
        raise InputError(f"{path}: {WEIGHTS}: {found}; {REMEDY}") from None
    return scheduler.policy(weights, path.name, **(options or {}))
