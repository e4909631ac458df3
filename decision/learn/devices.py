"""Where networks learn, on a GPU if there is one and it is wanted, and in which precision they compute there."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch

from decision.model.errors import ConfigError


class Placed(Protocol):
    """What a config says of it."""

    @property
    def device(self) -> str:
        """Auto, cpu or cuda."""

    @property
    def precision(self) -> str:
        """Auto, float32 or bfloat16."""


def device_of(learn: Placed) -> torch.device:
    """Where a network learns.

    Raises:
        ConfigError: if torch finds no GPU, and one is wanted.
    """
    if learn.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("learn.device is cuda, but torch finds no GPU here: choose cpu or auto")
    auto = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(auto if learn.device == "auto" else learn.device)
    if device.type == "cuda":  # multiplies numbers of 19 bits, ten times as fast, and adds in single precision
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = learn.precision == "auto"
    return device


def autocast(learn: Placed, device: torch.device) -> AbstractContextManager[object]:
    """In which precision it computes.

    Weights in half precision are not kept: updates change them, and those made without gradients have none.
    """
    half = learn.precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False) if half else nullcontext()
