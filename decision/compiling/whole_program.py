"""Whole programs: kernels keep their typed IR until a root asks for it, and are compiled with it, once.

Numba compiles each function by itself, for each combination of types: wrappers for Python and for C, a link of all that
it calls, two rounds of LLVM's passes, machine code. Of hundreds of kernels, Python calls only a few. Here a kernel that
another one calls is typed and lowered, no more. What Python calls, or has the address of, is a root: all the IR that it
reaches is linked, optimised and turned into machine code once, with everything but the root internal to it, so that
LLVM sees a whole program.

Integers are int64 at every call between kernels: a kernel is typed once, and not again for an int32 and for a literal.
Numba's own functions, which kernels call, are compiled in the same way, while a kernel is.

This module, `parts` and `machine` know numba's private parts, and no other does. They were tried with numba 0.63 and
0.68. Only what compiles, or is called from Python as a kernel, imports this one.
"""

import contextlib
import ctypes
import functools
import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Protocol, cast, get_type_hints

import llvmlite.binding as llvm
from numba import _dynfunc
from numba.core import entrypoints, types, typing
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.sigutils import normalize_signature

from .bundle_types import array_type
from .machine import Constants, Machine, function_at, load_machine, variable_at
from .parts import Plain, parts_only, returning_fields

_ENVIRONMENT = "_ZN08NumbaEnv"  # how the global variables begin that point to functions' environments
_FIRST: dict[str, Any] = {"loop_vectorize": False, "slp_vectorize": False, "cost": "cheap"}  # as numba: references
_ONCE: dict[str, Any] = {"loop_vectorize": False, "slp_vectorize": False, "opt": 2}


class Store(Protocol):
    """Keeps the machine code of the roots of one kernel."""

    def find(self, args: tuple[Any, ...], make: Callable[[], Machine]) -> Machine:
        """What is kept for arguments of these types, or else what `make` makes."""


def numba_type(kind: Any) -> types.Type:
    """Numba's type of what is annotated so: int, float, bool, a bundle, a hint of an array, a NamedTuple of these."""
    if hasattr(kind, "__metadata__"):
        return array_type(kind.__metadata__[0])
    if kind in _PLAIN:
        return _PLAIN[kind]
    if issubclass(kind, tuple):
        fields = get_type_hints(kind, include_extras=True).values()
        return cast(types.Type, types.containers.BaseTuple.from_types([*map(numba_type, fields)], kind))
    return cast(types.Type, kind._numba_type_)


_PLAIN: dict[type, types.Type] = {int: types.int64, float: types.float64, bool: types.boolean}


class Dispatcher(CPUDispatcher):
    """Numba's part of a kernel.

    Args:
        function: to be compiled.
        store: keeps the machine code of its roots.
        options: numba's.
        vectors: whether LLVM goes through a root of it twice, and looks for loops to vectorise.
    """

    def __init__(self, function: Callable[..., Any], store: Store, options: dict[str, Any], vectors: bool) -> None:
        plain = not any(isinstance(constant, CodeType) for constant in function.__code__.co_consts)
        pipeline = Plain if plain else Compiler
        super().__init__(function, None, {"nopython": True, **options}, pipeline)
        self._store, self._vectors = store, vectors
        self._parts: dict[tuple[types.Type, ...], CompileResult] = {}
        self.roots: dict[tuple[types.Type, ...], tuple[Any, Any]] = {}  # for Python: what is called, and what it owns

    @functools.cached_property
    def numba_type(self) -> types.Type:
        """How numba sees it where a kernel calls it."""
        return types.Dispatcher(self)

    # --- As a part of others ------------------------------------------------------------------------------------

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """How another kernel calls this one (numba asks)."""
        signature, given = self._compiler.fold_argument_types(args, kws)
        given = tuple(map(_unified, given))
        self._part(given)
        name = self.py_func.__name__
        signatures = [part.signature for part in self._parts.values()]
        template = typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=signatures)
        return template, signature, given, {}

    def get_overload(self, sig: Any) -> Any:
        """What stands for the function in another kernel's IR (numba asks)."""
        return self._parts[tuple(normalize_signature(sig)[0])].entry_point

    def _part(self, args: tuple[types.Type, ...], result: types.Type | None = None) -> CompileResult:
        """Typed IR for arguments of these types."""
        with global_compiler_lock, self._compiling_counter:
            if args not in self._parts:
                with parts_only(self.targetctx, _Library):
                    self._parts[args] = self._compiler.compile(args, result)
                self.overloads[args] = self._parts[args]
            return self._parts[args]

    # --- As a root ----------------------------------------------------------------------------------------------

    def _compilation_chain_init_hook(self) -> None:
        """Numba asks the installed packages for extensions here, at each first call: only what compiles needs them."""

    def compile(self, sig: Any) -> Any:
        """The function for Python, for arguments of these types (numba asks)."""
        return self._for_python(tuple(normalize_signature(sig)[0]))

    def prepare(self) -> None:
        """Compile it for Python, or find what is kept, for the types that its annotations say."""
        hints = get_type_hints(self.py_func, include_extras=True)
        self._for_python(tuple(numba_type(hint) for name, hint in hints.items() if name != "return"))

    def compiled(self, arguments: tuple[Any, ...], result: Any) -> Machine:
        """The machine code for kernels that have its address; types are as those of `numba_type`."""
        with global_compiler_lock:
            return self._compiled(tuple(map(numba_type, arguments)), numba_type(result), for_python=False)

    def _for_python(self, args: tuple[types.Type, ...]) -> Any:
        with global_compiler_lock:
            if args not in self.roots:
                machine = self._store.find(args, lambda: self._compiled(args, None, for_python=True))
                load_machine(machine)
                environments = environments_of(machine)
                module, name = sys.modules[machine.module], machine.name.rpartition(".")[2]
                function = _dynfunc.make_function(module, name, "", function_at(machine.wrapper), environments[0], ())
                self.roots[args] = function, environments
                self._insert([cast(Any, each)._code for each in args], self.roots[args][0], False)
            return self.roots[args][0]

    def _compiled(self, args: tuple[types.Type, ...], result: types.Type | None, for_python: bool) -> Machine:
        with _no_garbage():
            entrypoints.init_all()
            context = self.targetctx
            context.refresh()
            part = self._part(args, result)
            fndesc, codegen = part.fndesc, context.codegen()
            if for_python and fndesc.llvm_func_name in returning_fields:
                raise TypeError(f"{fndesc.qualname}: returns an array of a bundle, which Python would not keep alive")
            library = _Library(codegen, fndesc.qualname)
            if for_python:
                wrap = context.subtarget(enable_nrt=True).create_cpython_wrapper
                wrap(library, fndesc, part.environment, part.call_helper, release_gil=True)
            library.add_linking_library(part.library)
            library.link(fndesc.llvm_func_name, vectors=self._vectors)
            constants = library.constants(fndesc.env_name, f"{fndesc.llvm_func_name} {for_python}")
            calls_python = for_python or any(each.objects for each in constants)
            return Machine(
                name=fndesc.qualname,
                module=self.py_func.__module__,
                symbol=fndesc.llvm_func_name,
                wrapper=fndesc.llvm_cpython_wrapper_name if for_python else "",
                code=codegen._tm.emit_object(library._final_module),
                constants=constants if calls_python else (),
            )


def environments_of(machine: Machine) -> list[Any]:
    """The environments that loaded code points to from now on: it lives as long as somebody holds them."""
    environments = []
    for constants in machine.constants:
        module = sys.modules.get(constants.module)
        each = Environment(vars(module) if module else {"__name__": constants.module})
        each.consts[:], each.env_name = constants.objects, constants.name
        environments.append(each)
        ctypes.c_void_p.from_address(variable_at(each.env_name)).value = id(each)
    return environments


def _unified(kind: types.Type) -> types.Type:
    """The type that a value has as an argument of a kernel that is called by another."""
    if isinstance(kind, types.BooleanLiteral):
        return types.boolean
    if isinstance(kind, types.IntegerLiteral):
        return types.int64
    if kind in (types.int8, types.int16, types.int32):
        return types.int64
    return kind


class _Library(JITCodeLibrary):
    """The IR of one function until somebody needs machine code; then that of all that it reaches, too."""

    _alone: Any = None  # the module of the function alone, once it was linked into others

    def add_linking_library(self, library: Any) -> None:
        self._linking_libraries.append(library)  # as it is: numba would compile it now

    def add_llvm_module(self, ll_module: Any) -> None:
        self._final_module.link_in(ll_module)  # not optimised: the root is

    def finalize(self) -> None:
        """For somebody else's compiled code that calls a kernel, or a function of numba's that a kernel called, too."""
        self._alone = self.part().clone()
        self.link()
        self._finalize_final_module()

    def link(self, *exported: str, vectors: bool = True) -> None:
        """Link all that is reached, and optimise; only `exported` and what is in here stay visible from outside.

        `vectors` is whether LLVM goes through it twice, and looks for loops to vectorise.
        """
        self._codegen._check_llvm_bugs()
        self._raise_if_finalized()
        module, seen, todo = self._final_module, {id(self)}, list(self._linking_libraries)
        visible = {*exported, *self.visible()}
        finished: list[Any] = [rtsys.library]
        while todo:
            library = todo.pop()
            if id(library) in seen:
                continue
            seen.add(id(library))
            if isinstance(library, _Library):
                module.link_in(library.part(), preserve=True)
                todo += library._linking_libraries
            else:
                finished.append(library)
        for library in finished:  # last: only what is called by then is taken from these
            module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "external" if function.name in visible else "internal"
        for settings in ({**_FIRST, "opt": self._codegen._opt_level}, {}) if vectors else (_ONCE,):
            manager, builder = self._codegen._module_pass_manager(**settings)
            manager.run(module, builder)
        module.verify()

    def part(self) -> Any:
        """The IR of the function alone, in which what several parts bring with them may be merged."""
        if self._alone is None:
            self._alone = self._final_module
            for function in self._alone.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "weak_odr"
        return self._alone

    def visible(self) -> tuple[str, ...]:
        """The names of the functions that other code may call."""
        functions = self._final_module.functions
        return tuple(f.name for f in functions if not f.is_declaration and f.linkage != llvm.Linkage.internal)

    def constants(self, first: str, root: str) -> tuple[Constants, ...]:
        """What functions in here find by the addresses of global variables, that of the name `first` before others.

        Other roots have the same functions in them, so each root has variables of its own, named after it.
        """
        found: list[Constants] = []
        suffix = hashlib.sha256(root.encode()).hexdigest()[:16]
        for variable in list(self._final_module.global_variables):
            name = variable.name
            environment = lookup_environment(name) if name.startswith(_ENVIRONMENT) else None
            if environment is not None and environment.can_cache():
                variable.name = f"{name}.{suffix}"
                made = Constants(variable.name, environment.globals["__name__"], list(environment.consts))
                found.insert(0 if name == first else len(found), made)
        return tuple(found)


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Do not look for garbage: compiling makes millions of objects that stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
