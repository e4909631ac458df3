"""How a kernel becomes a part of a program: numba types it and lowers it to LLVM's IR, and goes no further.

Three quarters of the time of compiling was numba's own: it is written for one function at a time, and for all of
Python. `plain` are its passes for functions that have little of that; `parts_only` replaces what numba does again and
again where once is enough. Neither changes what a kernel computes, nor what it raises. It was tried with numba 0.63 and
0.68.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils, errors, ir
from numba.core import typed_passes as typed
from numba.core import untyped_passes as untyped
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager, _pass_registry, register_pass
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.extending import overload
from numba.np import arrayobj

from .sources import IMPORTED_FROM


class Borrowing(types.Type):
    """A type whose attributes are arrays that somebody else owns."""


returning_fields: set[str] = set()  # names in LLVM of the functions that return an array of a bundle
_PASS_ON = ("cast", "getitem", "static_getitem", "build_tuple")  # what may give on the memory of an array


ELEMENT = "element"  # of any array


def mark_memory(builder: Any, instruction: Any, what: str) -> Any:
    """Say to LLVM what a load or store is of: memory of one name never is that of another.

    So a store into an array leaves all numbers of bundles in registers, and a number all others.
    """
    module, zero = builder.module, llvm.Constant(llvm.IntType(64), 0)
    root = module.add_metadata([llvm.MetaDataString(module, "bundles")])
    kind = module.add_metadata([llvm.MetaDataString(module, what), root, zero])
    instruction.set_metadata("tbaa", module.add_metadata([kind, kind, zero]))
    return instruction


class _Lower(Lower):
    """Numba's way from typed code to LLVM's, without the half of its lines that LLVM would only remove again.

    An array of a bundle has no owner, and most other types nothing to own: no references to them are counted. A number
    in an array is read and written without a copy of what describes the array.
    """

    @functools.cached_property
    def _borrowed(self) -> set[str]:
        """Variables that are never anything but an array of a bundle."""
        assigns = [assign for block in self.blocks.values() for assign in block.find_insts(ir.Assign)]
        return {a.target.name for a in assigns if self._is_field(a.value)} - {
            a.target.name for a in assigns if not self._is_field(a.value)
        }

    def _is_field(self, value: Any) -> bool:
        is_attribute = isinstance(value, ir.Expr) and value.op == "getattr"
        return is_attribute and isinstance(self.typeof(value.value.name), Borrowing)

    def post_lower(self) -> None:
        super().post_lower()
        if self._returns_field():
            returning_fields.add(self.fndesc.llvm_func_name)

    def _returns_field(self) -> bool:
        """Whether what the function returns may be an array of a bundle, or a part of one."""
        assigned: dict[str, list[Any]] = {}
        todo, seen = [], set()
        for block in self.blocks.values():
            todo += [returned.value.name for returned in block.find_insts(ir.Return)]
            for assign in block.find_insts(ir.Assign):
                assigned.setdefault(assign.target.name, []).append(assign.value)
        while todo:
            name = todo.pop()
            if name not in seen and self._is_counted(self.typeof(name)):
                seen.add(name)
                for value in assigned.get(name, ()):
                    if self._is_field(value):
                        return True
                    if isinstance(value, ir.Var):
                        todo.append(value.name)
                    elif isinstance(value, ir.Expr) and value.op in _PASS_ON:
                        todo += [variable.name for variable in value.list_vars()]
        return False

    def _is_counted(self, kind: types.Type) -> bool:
        return cast(bool, self.context.data_model_manager[kind].contains_nrt_meminfo())

    def return_exception(self, exc_class: Any, exc_args: Any = None, loc: Any = None) -> None:
        super().return_exception(exc_class, exc_args, loc and _in_any_checkout(loc))

    def return_dynamic_exception(self, exc_class: Any, exc_args: Any, nb_types: Any, loc: Any = None) -> None:
        super().return_dynamic_exception(exc_class, exc_args, nb_types, loc and _in_any_checkout(loc))

    def delvar(self, name: str) -> None:
        if name not in self._borrowed and self._is_counted(self.typeof(name)):
            super().delvar(name)

    def incref(self, typ: types.Type, val: Any) -> None:
        if self._is_counted(typ):
            super().incref(typ, val)

    def decref(self, typ: types.Type, val: Any) -> None:
        if self._is_counted(typ):
            super().decref(typ, val)

    def lower_getitem(self, resty: types.Type, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        place = self._place(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        element = mark_memory(self.builder, self.builder.load(place), ELEMENT)
        return self.context.cast(self.builder, element, self.typeof(value.name).dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        kind = self.typeof(value_var.name)
        place = self._place(target_var, index_var) if isinstance(kind, types.Number | types.Boolean) else None
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), kind, self.typeof(target_var.name).dtype)
        return mark_memory(self.builder, self.builder.store(value, place), ELEMENT)

    def _place(self, array: Any, index: Any) -> Any:
        """Where a number lies in a C-contiguous array of numbers; None where it is none."""
        kind, given = self.typeof(array.name), self.typeof(index.name)
        given_kinds = tuple(given) if isinstance(given, types.containers.BaseTuple) else (given,)
        if type(kind) is not types.Array or kind.layout != "C" or not kind.aligned or len(given_kinds) != kind.ndim:
            return None
        if not isinstance(kind.dtype, types.Integer | types.Float):
            return None
        if not all(isinstance(of, types.Integer) for of in given_kinds):
            return None
        context, builder, value, at = self.context, self.builder, self.loadvar(array.name), self.loadvar(index.name)
        model = context.data_model_manager[kind]
        indices = [at] if given_kinds == (given,) else cgutils.unpack_tuple(builder, at)
        shape = cgutils.unpack_tuple(builder, model.get(builder, value, "shape"))
        offset = None
        for axis, (of, where, size) in enumerate(zip(given_kinds, indices, shape, strict=True)):
            step = arrayobj.fix_integer_index(context, builder, of, where, size)
            if context.enable_boundscheck:
                cgutils.do_boundscheck(context, builder, step, size, axis)
            offset = step if offset is None else builder.add(builder.mul(offset, size), step)
        return builder.gep(model.get(builder, value, "data"), [offset])


def _in_any_checkout(place: ir.Loc) -> ir.Loc:
    """A place in a source as each checkout that shares the machine code may know it."""
    return ir.Loc(place.filename.removeprefix(IMPORTED_FROM), place.line)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed.BaseNativeLowering):
    _name = "whole_program_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


class Plain(CompilerBase):
    """Numba's passes without those for closures, `with`, literal tuples, parallel loops, annotations and what it does
    not support, which take a tenth of the time, for functions that have none of it."""

    def define_pipelines(self) -> list[Any]:
        manager = _Passes("plain")
        for compiler_pass in (
            untyped.TranslateByteCode,
            untyped.FixupArgs,
            untyped.IRProcessing,
            untyped.RewriteSemanticConstants,
            untyped.DeadBranchPrune,
            untyped.GenericRewrites,
            untyped.RewriteDynamicRaises,
            untyped.ReconstructSSA,
            typed.NopythonTypeInference,
            typed.PreLowerStripPhis,
            typed.InlineOverloads,
            typed.NopythonRewrites,
            typed.IRLegalization,
            _Lowering,
            typed.NoPythonBackend,
        ):
            manager.add_pass(compiler_pass, compiler_pass.__name__)
        manager.finalize()
        return [manager]


class _Passes(PassManager):
    """Numba's passes one after the other, without its timers, events and checks of each of them."""

    def run(self, state: Any) -> None:
        for kind, name in self.passes:
            if kind is typed.NopythonRewrites and not _makes_arrays(state):
                continue
            one = _pass_registry.get(kind).pass_inst
            one.analysis = self._analysis
            try:
                one.run_initialization(state)
                one.run_pass(state)
                one.run_finalizer(state)
            except errors.NumbaError as error:
                self._patch_error(f"Failed in {self.pipeline_name} mode pipeline (step: {name})", error)
                raise


def _makes_arrays(state: Any) -> bool:
    """Whether a function computes whole arrays: nothing else is rewritten once types are known."""
    return any(
        assign.value.op in ("binop", "inplace_binop", "unary", "call")
        and isinstance(state.typemap[assign.target.name], types.Array)
        for block in state.func_ir.blocks.values()
        for assign in block.find_insts(ir.Assign)
        if isinstance(assign.value, ir.Expr)
    )


@contextlib.contextmanager
def parts_only(context: Any, library: type) -> Iterator[None]:
    """Let numba type and lower, its own functions included, and make neither wrappers nor machine code."""
    codegen, typing_context = context.codegen(), cpu_target.typing_context
    if "_library_class" in vars(codegen):  # inside of another
        yield
        return
    resolve = functools.partial(_resolve, typing_context.resolve_function_type)
    changed: tuple[tuple[Any, str, Any], ...] = (
        (codegen, "_library_class", library),
        (context, "get_executable", lambda *_: [].append),  # a builtin of its own stands for the function
        (context, "create_cpython_wrapper", _nothing),
        (context, "create_cfunc_wrapper", _nothing),
        (context, "refresh", functools.partial(_refresh, context, context.refresh)),
        (typing_context, "resolve_function_type", resolve),
        # numba's way, as dictionaries of all options, takes a tenth of the time
        (Flags, "__eq__", lambda some, other: isinstance(other, Flags) and some._values == other._values),
        (Flags, "__hash__", lambda flags: hash(frozenset(name for name, value in flags._values.items() if value))),
        (ir.Inst, "_rec_list_vars", _variables_in),
        (errors, "_termcolor_inst", _NO_COLOURS),  # of errors that numba tries and forgets
        (errors.WarningsFixer, "catch_warnings", _as_they_come),  # type: ignore[attr-defined]
        (arrayobj, "raise_with_shape_context", _refuse_shape),  # its text with both shapes compiles for a second
    )
    before = [vars(owner).get(name, _ABSENT) for owner, name, _ in changed]
    for owner, name, value in changed:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name, _), value in zip(changed, before, strict=True):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


_ABSENT: Any = object()  # of an attribute that is the class's alone


def _nothing(*_: Any, **__: Any) -> None:
    """In place of what makes wrappers."""


def _refresh(context: Any, numbas_own: Callable[[], None]) -> None:
    """As numba's method, which looks through all registries for each function: here where something is new in one."""
    registries = *context._registries, *context.typing_context._registries
    known = [len(entries) for registry in registries for entries in vars(registry).values()]
    if _known.get(context) != known:
        numbas_own()
        _known[context] = known


_known: dict[Any, list[int]] = {}  # how many entries registries had, by context


_NO_COLOURS = SimpleNamespace(**dict.fromkeys(("code", "errmsg", "filename", "indicate", "highlight", "reset"), str))


def _as_they_come(*_: Any, **__: Any) -> Any:
    """Warnings of numba's are not caught at each variable, and sorted."""
    return contextlib.nullcontext()


def _variables_in(instruction: Any, value: Any) -> list[ir.Var]:
    """As numba's method, which asks of each value for all that it may be: most are none of it."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind is dict:
        value, kind = value.values(), list
    if kind in (list, tuple):
        variables = []
        for item in value:
            of = type(item)
            if of is ir.Var:
                variables.append(item)
            elif of not in _WITHOUT_VARIABLES:
                variables += _variables_in(instruction, item)
        return variables
    return value.list_vars() if isinstance(value, ir.Inst) else []


_WITHOUT_VARIABLES = frozenset((ir.Loc, str, int, type(None), bool))


def _refuse_shape(src_shapes: Any, index_shape: Any) -> None:
    """What kernels raise where an array is assigned to a slice of another shape."""


@overload(_refuse_shape)
def _refuse_shape_compiled(src_shapes: Any, index_shape: Any) -> Callable[..., None]:
    def refuse(src_shapes: Any, index_shape: Any) -> None:
        raise ValueError("cannot assign slice from input of different size")

    return refuse


_resolved: dict[Any, Any] = {}  # signatures of numba's own functions and operators, by function and types


def _resolve(numbas_own: Callable[..., Any], function: Any, args: Any, kws: Any) -> Any:
    """As numba's method, which tries all definitions of `+` for each `a + b`: here once for each pair of types."""
    is_numbas = isinstance(function, types.BaseFunction) or not isinstance(function, types.Type)
    if kws or not is_numbas or not all(isinstance(kind, types.Type) for kind in args):
        return numbas_own(function, args, kws)
    key = function, args
    if key not in _resolved:
        signature = numbas_own(function, args, kws)
        if signature is None:
            return None
        _resolved[key] = signature
    return _resolved[key]
