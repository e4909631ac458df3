"""`Bundle`: named numbers and arrays that Python and compiled kernels share, passed to a kernel as one pointer.

Design
------
A bundle is declared like a NamedTuple of numbers and arrays, and a kernel reads its fields by name and sets its numbers
by name, but what is passed is the address of a table of (data, shape). The numbers lie side by side in words whose
address begins the table, so that a kernel reads one as it reads an element of an array, and a bundle with other arrays
shares them. Measured on the engine's loop: NamedTuples of arrays travel by value, hundreds of words a call, and made it
85 times slower and its compilation 6 times longer; numba's StructRef counts references at each access and made it 6
times slower. A bundle's memory is borrowed: whoever calls a kernel keeps the bundle alive.
"""

import hashlib
import typing
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .declared import WORDS, ArrayKind, Intrinsic

Float = Annotated[float, ArrayKind("float64", 0)]
Int = Annotated[int, ArrayKind("int64", 0)]
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

        return bundle_type(owner._described, tuple(owner._arrays.items()), tuple(owner._numbers.items()))


class _Number:
    """A number of a bundle, for Python: read from its cell and written to it."""

    def __init__(self, name: str, kind: ArrayKind) -> None:
        self._name, self._type = name, float if kind.dtype == "float64" else int

    def __get__(self, instance: Any, owner: type["Bundle"]) -> Any:
        return instance.__dict__[self._name].item()

    def __set__(self, instance: Any, value: float) -> None:
        instance.__dict__[self._name][()] = value


class Bundle:
    """Base of classes whose annotations are numbers and arrays; an instance is made with one keyword per array.

    Arrays are C-contiguous and of the annotated dtype and dimension; they are not copied. A number that is not given is
    what its declaration says, ``head: Int = -1``, or 0.
    """

    _fields: ClassVar[tuple[str, ...]]
    _arrays: ClassVar[dict[str, ArrayKind]]
    _dtypes: ClassVar[dict[str, np.dtype[Any]]]
    _numbers: ClassVar[dict[str, float]] = {}  # what they begin with
    _described: ClassVar[str]  # short: it is part of each function's symbol
    _numba_type_ = _NumbaType()

    def __init_subclass__(cls) -> None:
        hints = {n: h for n, h in typing.get_type_hints(cls, include_extras=True).items() if hasattr(h, "__metadata__")}
        taken = [name for name in hints if name in ("table", "address") or hasattr(Bundle, name)]
        if taken:
            raise TypeError(f"{cls.__name__}.{taken[0]}: each bundle has an attribute of that name")
        cls._fields = tuple(hints)
        cls._arrays = {n: h.__metadata__[0] for n, h in hints.items()}
        cls._dtypes = {n: np.dtype(kind.dtype) for n, kind in cls._arrays.items()}
        # what numbers begin with is that of all bases, of the nearest one first
        inherited = (vars(base).get("_numbers", {}) for base in reversed(cls.__mro__))
        cls._numbers = {name: begin for numbers in inherited for name, begin in numbers.items()}
        for name, kind in cls._arrays.items():
            if not kind.ndim and (name in vars(cls) or name not in cls._numbers):
                cls._numbers[name] = vars(cls).get(name, 0)
                setattr(cls, name, _Number(name, kind))
        # The name tells classes of the same name and other fields apart, and is the same in each process.
        kinds = " ".join(f"{name} {kind} {cls._numbers.get(name, '')}" for name, kind in cls._arrays.items())
        fields = hashlib.sha256(kinds.encode()).hexdigest()
        cls._described = f"Bundle({cls.__module__}.{cls.__name__}, {fields[:12]})"

    def __init__(self, **given: NDArray[Any] | float) -> None:
        fields = self._numbers | given
        if fields.keys() != set(self._fields):
            raise TypeError(
                f"{type(self).__name__}: fields {sorted(fields.keys() ^ set(self._fields))} missing or unknown"
            )
        self.table = np.zeros(1 + WORDS * len(self._fields), np.int64)
        for i, name in enumerate(self._fields):
            array: Any = fields[name]
            kind = self._arrays[name]
            if not kind.ndim and not isinstance(array, np.ndarray):
                continue
            if (
                not isinstance(array, np.ndarray)
                or array.dtype != self._dtypes[name]
                or array.ndim != kind.ndim
                or not array.flags.c_contiguous
            ):
                found = f"a {array.dtype} array of {array.ndim} dimensions" if hasattr(array, "ndim") else repr(array)
                raise TypeError(f"{type(self).__name__}.{name}: {found}, not {kind}")
            if kind.ndim:
                self.__dict__[name] = array
                self.table[1 + WORDS * i : 2 + WORDS * i + array.ndim] = (array.ctypes.data, *array.shape)
        self.table[0] = self._take_numbers({name: fields[name] for name in self._fields if name in self._numbers})
        self.address = self.table.ctypes.data

    def _take_numbers(self, given: dict[str, Any]) -> int:
        """Share the cells where all are those of one bundle, else take their values; returns where they begin."""
        cells = list(given.values())
        # Cells of one bundle lie side by side: then its words are taken as they are, and both see each change.
        if all(isinstance(cell, np.ndarray) for cell in cells):
            places = [cell.ctypes.data for cell in cells]
            if places == [places[0] + 8 * i for i in range(len(cells))]:
                self.__dict__.update(given)
                return int(places[0]) if places else 0
        words = np.zeros(len(cells), np.int64)
        for i, (name, number) in enumerate(given.items()):
            self.__dict__[name] = np.ndarray((), self._dtypes[name], words, 8 * i)
            self.__dict__[name][()] = number
        return int(words.ctypes.data)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, those of no dimension included that are the cells of its numbers."""
        return {name: self.__dict__[name] for name in self._fields}

    def _replace(self, **changed: NDArray[Any] | float) -> Self:
        """The same bundle with other arrays or numbers for some fields; it shares the arrays that it keeps.

        It shares the numbers where none of them is another.
        """
        return type(self)(**{**self.arrays(), **changed})

    def copy(self) -> Self:
        """The same values in arrays of its own."""
        return type(self)(**{name: array.copy() for name, array in self.arrays().items()})


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


def _begin_again(_context: Any, bundle: Any) -> Any:
    from numba import types

    from .bundle_types import set_numbers

    return types.none(bundle), set_numbers


begin_again = Intrinsic(_begin_again)
"""A function for kernels: the numbers of a bundle are what its class declares that they begin with."""
