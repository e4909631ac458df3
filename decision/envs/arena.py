"""One block of memory for the arrays of many environments, so that stepping them touches few pages.

An environment has a hundred arrays. Each in pages of its own, those of a hundred environments are more pages than a
processor remembers the places of. A large block also gets large pages from the operating system.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

_LINE = 64  # bytes: arrays begin at a multiple

E = TypeVar("E", bound=tuple[Any, ...])


def gather(envs: Sequence[E], fields: Sequence[str], lazy: Sequence[str]) -> list[E]:
    """The same environments with all arrays of these fields side by side, except `lazy` (rarely touched) ones.

    An array that has two names keeps both.
    """
    room = sum(_aligned(array.nbytes) for env in envs for _, _, array in _arrays(env, fields, lazy))
    block, at, moved = np.zeros(room + _LINE, np.uint8), 0, []
    block = block[-block.ctypes.data % _LINE :]
    for env in envs:
        changed: dict[str, dict[str, np.ndarray]] = {field: {} for field in fields}
        places: dict[int, np.ndarray] = {}
        for field, name, array in sorted(_arrays(env, fields, lazy), key=_size):
            if id(array) not in places:
                at = _aligned(at) if array.ndim or not places else at  # numbers lie side by side
                place = block[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
                if array.any():  # a page that was never written costs nothing
                    place[...] = array
                places[id(array)] = place
                at += array.nbytes
            changed[field][name] = places[id(array)]
        moved.append(env._replace(**{f: getattr(env, f)._replace(**new) for f, new in changed.items()}))  # type: ignore[attr-defined]
    return moved


def _arrays(env: Any, fields: Sequence[str], lazy: Sequence[str]) -> list[tuple[str, str, np.ndarray]]:
    """Field, name and value of each array."""
    return [
        (field, name, array)
        for field in fields
        for name, array in getattr(env, field).arrays().items()
        if name not in lazy
    ]


def _size(entry: tuple[str, str, np.ndarray]) -> tuple[bool, int]:
    """Numbers come first, then the small arrays."""
    _, _, array = entry
    return array.ndim > 0, array.nbytes


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE
