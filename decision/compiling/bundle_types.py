"""How kernels see bundles, their numbers and arrays: numba's types, and what they are compiled to."""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, models, register_model, unbox

from .declared import WORDS, ArrayKind
from .parts import Borrowing, mark_memory


class BundleType(Borrowing):
    """Numba's view of a bundle class."""

    def __init__(self, name: str, fields: dict[str, types.Type], numbers: dict[str, float]) -> None:
        self.fields, self.numbers = fields, numbers  # numbers: what they begin with
        self.index = {field: i for i, field in enumerate(fields)}
        self.place = {field: i for i, field in enumerate(field for field in fields if field in numbers)}
        super().__init__(name=name)


@functools.cache
def bundle_type(
    name: str, fields: tuple[tuple[str, ArrayKind], ...], numbers: tuple[tuple[str, float], ...]
) -> BundleType:
    """The type of the bundles of a class of this name, with these fields and numbers to begin with."""
    return BundleType(name, {field: field_type(kind) for field, kind in fields}, dict(numbers))


def field_type(kind: ArrayKind) -> types.Type:
    """The type of a field: a number's where it has no dimension."""
    return array_type(kind) if kind.ndim else getattr(types, kind.dtype)


@functools.cache
def array_type(kind: ArrayKind) -> types.Array:
    """The type of arrays of a kind."""
    dtype = types.boolean if kind.dtype == "bool" else getattr(types, kind.dtype)
    return types.Array(dtype, kind.ndim, "C")


@register_model(BundleType)
class _BundleModel(models.OpaqueModel):
    """A bare pointer to the table."""


@unbox(BundleType)
def _unbox_bundle(kind: BundleType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.builder.inttoptr(c.pyapi.long_as_ulonglong(address), c.context.get_value_type(kind))
    c.pyapi.decref(address)
    return NativeValue(pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, kind: BundleType, field: str) -> types.Type | None:
        return kind.fields.get(field)


@lower_getattr_generic(BundleType)
def _get_field(context: Any, builder: Any, kind: BundleType, pointer: Any, field: str) -> Any:
    """Read the number, or build the array from its table entry; it owns nothing, so no references are counted."""
    array_type = kind.fields[field]
    if not isinstance(array_type, types.Array):
        number = builder.load(_cell(context, builder, kind, pointer, field))
        return mark_memory(builder, number, f"number {field}")
    words = [_load(builder, pointer, 1 + WORDS * kind.index[field] + k) for k in range(1 + array_type.ndim)]
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


@lower_setattr_generic(BundleType)
def _set_number(context: Any, builder: Any, signature: Any, values: Any, field: str) -> None:
    pointer, value = values
    stored = builder.store(value, _cell(context, builder, signature.args[0], pointer, field))
    mark_memory(builder, stored, f"number {field}")


def set_numbers(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Let each number be what it begins with."""
    kind = signature.args[0]
    for field, value in kind.numbers.items():
        begin = context.get_constant(kind.fields[field], value)
        stored = builder.store(begin, _cell(context, builder, kind, values[0], field))
        mark_memory(builder, stored, f"number {field}")
    return context.get_dummy_value()


def _cell(context: Any, builder: Any, kind: BundleType, pointer: Any, field: str) -> Any:
    """Where a number lies, among the words whose address begins the table."""
    words = builder.inttoptr(_load(builder, pointer, 0), ir.IntType(64).as_pointer())
    word = builder.gep(words, [ir.Constant(ir.IntType(64), kind.place[field])])
    return builder.bitcast(word, context.get_value_type(types.CPointer(kind.fields[field])))


def _load(builder: Any, pointer: Any, index: int) -> Any:
    """A word of the table; it never changes while a kernel runs, which lets LLVM keep it in a register."""
    table = builder.bitcast(pointer, ir.IntType(64).as_pointer())
    word = builder.load(builder.gep(table, [ir.Constant(ir.IntType(32), index)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word
