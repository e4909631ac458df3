"""Networks and training states as bytes; loading executes nothing that they contain."""

import pickle
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import torch

from decision.model.errors import InputError

from .networks import Network


def dump(state: Mapping[str, Any]) -> bytes:
    """Tensors, numbers, texts, and lists and dicts of such, as bytes."""
    data = BytesIO()
    torch.save(state, data)
    return data.getvalue()


def load(where: str, data: bytes) -> dict[str, Any]:
    """What `dump` wrote, on the CPU.

    Raises:
        InputError: if the bytes are damaged or hold anything else.
    """
    try:
        return torch.load(BytesIO(data), map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise InputError(f"{where}: {str(error).splitlines()[0]}; the file is damaged") from None


def load_network(where: str, network: Network, data: bytes) -> None:
    """Give a network its weights.

    Raises:
        InputError: if they are damaged or another network's.
    """
    try:
        network.load_state_dict(load(where, data))
    except RuntimeError as error:
        raise InputError(f"{where}: {' '.join(str(error).split())}") from None
