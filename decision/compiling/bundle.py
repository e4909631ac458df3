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
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, intrinsic, models, register_model, typeof_impl, unbox
from numpy.typing import NDArray

from .parts import Borrowing

F8 = Annotated[NDArray[np.float64], types.float64[::1]]
F4 = Annotated[NDArray[np.float32], types.float32[::1]]
I8 = Annotated[NDArray[np.int64], types.int64[::1]]
I4 = Annotated[NDArray[np.int32], types.int32[::1]]
I1 = Annotated[NDArray[np.int8], types.int8[::1]]
U8 = Annotated[NDArray[np.uint64], types.uint64[::1]]
B1 = Annotated[NDArray[np.bool_], types.boolean[::1]]
F4x2 = Annotated[NDArray[np.float32], types.float32[:, ::1]]
F8x2 = Annotated[NDArray[np.float64], types.float64[:, ::1]]
I8x2 = Annotated[NDArray[np.int64], types.int64[:, ::1]]
I4x2 = Annotated[NDArray[np.int32], types.int32[:, ::1]]
I1x2 = Annotated[NDArray[np.int8], types.int8[:, ::1]]
U8x2 = Annotated[NDArray[np.uint64], types.uint64[:, ::1]]

_WORDS = 3  # of the table, per field: data, shape[0], shape[1]


class BundleType(Borrowing):
    """Numba's view of a bundle class."""

    def __init__(self, name: str, arrays: dict[str, types.Array]) -> None:
        self.arrays = arrays
        self.index = {field: i for i, field in enumerate(arrays)}
        fields = hashlib.sha256(" ".join(f"{f} {a}" for f, a in arrays.items()).encode()).hexdigest()
        super().__init__(name=f"Bundle({name}, {fields[:12]})")  # short: it is part of each function's symbol


class Bundle:
    """Base of classes whose annotations are arrays; an instance is made with one keyword per field.

    Arrays are C-contiguous and of the annotated dtype and dimension; they are not copied.
    """

    _fields: ClassVar[tuple[str, ...]]
    _arrays: ClassVar[dict[str, types.Array]]
    _dtypes: ClassVar[dict[str, np.dtype[Any]]]
    _numba_type_: ClassVar[BundleType]

    def __init_subclass__(cls) -> None:
        hints = {n: h for n, h in typing.get_type_hints(cls, include_extras=True).items() if hasattr(h, "__metadata__")}
        taken = [name for name in hints if name in ("table", "address") or hasattr(Bundle, name)]
        if taken:
            raise TypeError(f"{cls.__name__}.{taken[0]}: each bundle has an attribute of that name")
        cls._fields = tuple(hints)
        cls._arrays = {n: array_type(h) for n, h in hints.items()}
        cls._dtypes = {n: np.dtype(str(kind.dtype)) for n, kind in cls._arrays.items()}  # numba's way takes 20 us each
        cls._numba_type_ = BundleType(f"{cls.__module__}.{cls.__name__}", cls._arrays)

    def __init__(self, **arrays: NDArray[Any]) -> None:
        if arrays.keys() != set(self._fields):
            raise TypeError(
                f"{type(self).__name__}: fields {sorted(arrays.keys() ^ set(self._fields))} missing or unknown"
            )
        self.table = np.zeros(_WORDS * len(self._fields), np.int64)
        for i, name in enumerate(self._fields):
            array, kind = arrays[name], self._arrays[name]
            if array.dtype != self._dtypes[name] or array.ndim != kind.ndim or not array.flags.c_contiguous:
                raise TypeError(
                    f"{type(self).__name__}.{name}: a {array.dtype} array of {array.ndim} dimensions, not {kind}"
                )
            setattr(self, name, array)
            self.table[_WORDS * i : _WORDS * i + 1 + array.ndim] = (array.ctypes.data, *array.shape)
        self.address = self.table.ctypes.data

    def _replace(self, **changed: NDArray[Any]) -> Self:
        """The same bundle with other arrays for some fields."""
        return type(self)(**{name: changed.get(name, getattr(self, name)) for name in self._fields})

    def copy(self) -> Self:
        """The same values in arrays of its own."""
        return type(self)(**{name: getattr(self, name).copy() for name in self._fields})


def array_type(hint: Any) -> types.Array:
    """Numba's type of an annotation such as `F8`: it stands there, since numpy's own part changes with its version."""
    kind: types.Array = hint.__metadata__[0]
    return kind


@typeof_impl.register(Bundle)
def _typeof_bundle(value: Bundle, context: Any) -> BundleType:
    return value._numba_type_


@register_model(BundleType)
class _BundleModel(models.OpaqueModel):
    """A bare pointer to the table."""


@unbox(BundleType)
def _unbox_bundle(kind: BundleType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.builder.inttoptr(c.pyapi.long_as_ulonglong(address), c.context.get_value_type(kind))
    c.pyapi.decref(address)
    return NativeValue(pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


def bundle_at(bundle: type[Bundle]) -> Any:
    """A function for kernels, from `Bundle.address` to the bundle: so that one call can serve many bundles.

    Passing an integer in an array is also much cheaper than passing a bundle, which takes 3 microseconds.
    """

    @intrinsic
    def at(_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return bundle._numba_type_(types.int64), generate

    return at


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, kind: BundleType, field: str) -> types.Type | None:
        return kind.arrays.get(field)


@lower_getattr_generic(BundleType)
def _get_field(context: Any, builder: Any, kind: BundleType, pointer: Any, field: str) -> Any:
    """Build the array from its table entry; it owns nothing, so no references are counted."""
    array_type = kind.arrays[field]
    words = [_load(builder, pointer, _WORDS * kind.index[field] + k) for k in range(1 + array_type.ndim)]
    model = context.data_model_manager[array_type]
    itemsize = ir.Constant(ir.IntType(64), array_type.dtype.bitwidth // 8)
    parts = {
        "nitems": words[1] if array_type.ndim == 1 else builder.mul(words[1], words[2]),
        "itemsize": itemsize,
        "data": builder.inttoptr(words[0], context.get_value_type(types.CPointer(array_type.dtype))),
        "shape": cgutils.pack_array(builder, words[1:]),
        "strides": cgutils.pack_array(
            builder, [itemsize] if array_type.ndim == 1 else [builder.mul(words[2], itemsize), itemsize]
        ),
    }
    array = ir.Constant(context.get_value_type(array_type), None)  # of no owner
    for name, value in parts.items():
        array = model.set(builder, array, value, name)
    return array


def _load(builder: Any, pointer: Any, index: int) -> Any:
    """A word of the table; it never changes while a kernel runs, which lets LLVM keep it in a register."""
    table = builder.bitcast(pointer, ir.IntType(64).as_pointer())
    word = builder.load(builder.gep(table, [ir.Constant(ir.IntType(32), index)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word
