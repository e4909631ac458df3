"""`Bundle`: named arrays that Python and compiled kernels share, passed to a kernel as one pointer.

Design
------
A bundle is declared like a NamedTuple of arrays, and a kernel reads its fields by name, but what is passed is the
address of a table of (data, shape). Measured on the engine's loop: NamedTuples of arrays travel by value, hundreds of
words a call, and made it 85 times slower and its compilation 6 times longer; numba's StructRef counts references at
each access and made it 6 times slower. A bundle's arrays are borrowed: whoever calls a kernel keeps the bundle alive.
"""

import hashlib
import typing
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .declared import WORDS, ArrayKind, Intrinsic

F8 = Annotated[NDArray[np.float64], ArrayKind("float64", 1)]
F4 = Annotated[NDArray[np.float32], ArrayKind("float32", 1)]
I8 = Annotated[NDArray[np.int64], ArrayKind("int64", 1)]
I4 = Annotated[NDArray[np.int32], ArrayKind("int32", 1)]
I1 = Annotated[NDArray[np.int8], ArrayKind("int8", 1)]
U8 = Annotated[NDArray[np.uint64], ArrayKind("uint64", 1)]
B1 = Annotated[NDArray[np.bool_], ArrayKind("bool", 1)]
F4x2 = Annotated[NDArray[np.float32], ArrayKind("float32", 2)]
F8x2 = Annotated[NDArray[np.float64], ArrayKind("float64", 2)]
I8x2 = Annotated[NDArray[np.int64], ArrayKind("int64", 2)]
I4x2 = Annotated[NDArray[np.int32], ArrayKind("int32", 2)]
I1x2 = Annotated[NDArray[np.int8], ArrayKind("int8", 2)]
U8x2 = Annotated[NDArray[np.uint64], ArrayKind("uint64", 2)]


class _NumbaType:
    """Numba's type of a class of bundles, made when it is asked for: only what compiles needs numba."""

    def __get__(self, instance: Any, owner: type["Bundle"]) -> Any:
        from .bundle_types import bundle_type

        return bundle_type(owner._described, **owner._arrays)


class Bundle:
    """Base of classes whose annotations are arrays; an instance is made with one keyword per field.

    Arrays are C-contiguous and of the annotated dtype and dimension; they are not copied.
    """

    _fields: ClassVar[tuple[str, ...]]
    _arrays: ClassVar[dict[str, ArrayKind]]
    _dtypes: ClassVar[dict[str, np.dtype[Any]]]
    _described: ClassVar[str]  # short: it is part of each function's symbol
    _numba_type_ = _NumbaType()

    def __init_subclass__(cls) -> None:
        hints = {n: h for n, h in typing.get_type_hints(cls, include_extras=True).items() if hasattr(h, "__metadata__")}
        cls._fields = tuple(hints)
        cls._arrays = {n: h.__metadata__[0] for n, h in hints.items()}
        cls._dtypes = {n: np.dtype(kind.dtype) for n, kind in cls._arrays.items()}
        fields = hashlib.sha256(" ".join(f"{name} {kind}" for name, kind in cls._arrays.items()).encode()).hexdigest()
        cls._described = f"Bundle({cls.__module__}.{cls.__name__}, {fields[:12]})"

    def __init__(self, **arrays: NDArray[Any]) -> None:
        if arrays.keys() != set(self._fields):
            raise TypeError(
                f"{type(self).__name__}: fields {sorted(arrays.keys() ^ set(self._fields))} missing or unknown"
            )
        self.table = np.zeros(WORDS * len(self._fields), np.int64)
        for i, name in enumerate(self._fields):
            array, kind = arrays[name], self._arrays[name]
            if array.dtype != self._dtypes[name] or array.ndim != kind.ndim or not array.flags.c_contiguous:
                raise TypeError(
                    f"{type(self).__name__}.{name}: a {array.dtype} array of {array.ndim} dimensions, not {kind}"
                )
            setattr(self, name, array)
            self.table[WORDS * i : WORDS * i + 1 + array.ndim] = (array.ctypes.data, *array.shape)
        self.address = self.table.ctypes.data

    def _replace(self, **changed: NDArray[Any]) -> Self:
        """The same bundle with other arrays for some fields."""
        return type(self)(**{name: changed.get(name, getattr(self, name)) for name in self._fields})

    def copy(self) -> Self:
        """The same values in arrays of its own."""
        return type(self)(**{name: getattr(self, name).copy() for name in self._fields})


def bundle_at(bundle: type[Bundle]) -> Any:
    """A function for kernels, from `Bundle.address` to the bundle: so that one call can serve many bundles.

    Passing an integer in an array is also much cheaper than passing a bundle, which takes 3 microseconds.
    """

    def at(_context: Any, address: Any) -> Any:
        from numba import types

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return bundle._numba_type_(types.int64), generate

    return Intrinsic(at)
