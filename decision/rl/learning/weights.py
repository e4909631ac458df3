"""Networks and training states as bytes; loading executes nothing that they contain."""

import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from decision.model.errors import ConfigError, InputError

from .checkpoint import REMEDY, WEIGHTS, open_zip, shown
from .networks import Network

_OBJECTS = re.compile(
    r"collections OrderedDict"
    r"|torch\._utils _rebuild_tensor_v2|torch [A-Z][A-Za-z]*Storage"
    r"|torch\._utils _rebuild_tensor_v3|torch\.storage UntypedStorage|torch uint(?:16|32|64)"  # bitmaps of hosts
)
_LONGEST = 20_000  # characters of a text


def dump(state: Mapping[str, Any]) -> bytes:
    """Tensors, numbers, texts, and lists and dicts of such, as bytes."""
    data = BytesIO()
    torch.save(state, data)
    return data.getvalue()


def dump_numbers(weights: NDArray[np.float64]) -> bytes:
    """The numbers of a `ParametricScheduler`, as bytes."""
    return dump({"weights": torch.from_numpy(weights.copy())})


def load(where: str, data: bytes) -> dict[str, Any]:
    """What `dump` wrote, on the CPU.

    Raises:
        InputError: if the bytes are damaged or hold anything else. Torch's own message is not in it: it advises to load
            the file in a way that executes what is in it.
    """
    try:
        _check_zip(data)
        with warnings.catch_warnings(action="ignore"):
            state = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
        if not isinstance(state, dict):
            raise TypeError
    except Exception:  # zipfile and torch raise errors of many kinds for bytes that are damaged
        raise InputError(f"{where}: cannot be read as torch's tensors by name; {REMEDY}") from None
    return state


def load_tensors(
    where: str, data: bytes, shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint: these, of these shapes and of finite numbers.

    Raises:
        InputError: if there are others, or the bytes are damaged.
    """
    where = f"{where}: {WEIGHTS}"
    state = load(where, data)
    for name in (*shapes, *state):
        if name not in state:
            raise InputError(f"{where}: there is no tensor {name}; {REMEDY}")
        if name not in shapes:
            raise InputError(
                f"{where}: there is a tensor {shown(repr(name))}, which the manifest's policy lacks; {REMEDY}"
            )
    for name, shape in shapes.items():
        _check_tensor(f"{where}: {name}", state[name], shape, dtype)
    if sum(state[name].nbytes for name in shapes) > len(data):
        raise InputError(f"{where}: the tensors are larger than the file; {REMEDY}")
    for name in shapes:
        if not state[name].isfinite().all():
            raise InputError(f"{where}: {name}: a number is NaN or infinite; {REMEDY}, with a smaller learn.lr")
    return {name: state[name].detach() for name in shapes}


def load_network(where: str, network: Network, data: bytes) -> None:
    """Give a network on the device "meta" its weights.

    Raises:
        InputError: if they are damaged or another network's.
    """
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    network.load_state_dict(load_tensors(where, data, shapes, torch.float32), assign=True)


def _check_tensor(where: str, value: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if not isinstance(value, torch.Tensor):
        raise InputError(f"{where}: must be a tensor, found {shown(repr(type(value).__name__))}; {REMEDY}")
    if tuple(value.shape) != shape:
        raise InputError(
            f"{where}: size mismatch: must be {shape} by the manifest, found {tuple(value.shape)}; {REMEDY}"
        )
    plain = type(value) is torch.Tensor and value.layout == torch.strided and value.device.type == "cpu"
    if value.dtype != dtype or not plain or not value.is_contiguous():
        found = f"{value.dtype}, {value.layout}, on {value.device}"
        raise InputError(f"{where}: must be contiguous numbers of {dtype}, found {found}; {REMEDY}")


def _check_zip(data: bytes) -> None:
    """Refuse what `dump` does not write, before torch reads it: torch's old formats, packed members, other objects.

    Torch looks through a refused text in time that grows with its square: hence a limit.
    """
    with open_zip(data) as zipped:
        members = zipped.infolist()
        names = {member.filename for member in members}
        (pickled,) = (name for name in names if name.endswith("data.pkl"))
        if len(names) != len(members) or any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise zipfile.BadZipFile
        if sum(member.file_size for member in members) > len(data):
            raise zipfile.BadZipFile
        operations = pickletools.genops(zipped.read(pickled))
    for operation, value, _ in operations:
        if operation.name == "GLOBAL" and not _OBJECTS.fullmatch(str(value)):
            raise pickle.UnpicklingError
        if isinstance(value, str) and len(value) > _LONGEST:
            raise pickle.UnpicklingError


# Where networks learn, on a GPU if there is one and it is wanted, and in which precision they compute there.


class Placed(Protocol):
    """What a config says of where a network learns, and how exactly."""

    @property
    def device(self) -> str:
        """Where it computes: auto, cpu or cuda."""

    @property
    def precision(self) -> str:
        """In which numbers it computes: auto, float32 or bfloat16."""


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
