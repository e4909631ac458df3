"""Machine code: roots as they are kept on disk, and loaded and called without numba.

To import numba takes a third of the time of a short run, and a warm run compiles nothing. LLVM loads an object file by
itself. What machine code calls, numba's functions for memory among them, is in two libraries of numba's, which are
loaded apart.
"""

import ctypes
import functools
import importlib.util
import pickle
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from .sources import IMPORTED_FROM

_LIBRARIES = {"numba._helperlib": "numba_", "numba.core.runtime._nrt_python": "NRT_"}  # how their names begin in code


class Constants(NamedTuple):
    """What a function finds in Python, its environment, as it is kept on disk."""

    name: str  # of the global variable that points to it
    module: str  # of the function; numba's own way would load it
    objects: list[Any]


class Machine(NamedTuple):
    """The machine code of a root as it is kept on disk."""

    name: str  # of the function, for people
    module: str
    symbol: str  # of the function, where kernels call it
    wrapper: str  # of the function, where Python calls it; "" where only kernels do
    code: bytes  # an object file
    constants: tuple[Constants, ...]  # of the functions in it; the first one's are the root's where it has a wrapper


def load_machine(machine: Machine) -> None:
    """Make the code's functions known by their symbols; they stay until the process ends."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine.code))
    engine.finalize_object()


def function_at(symbol: str) -> int:
    """The address of a function of loaded code."""
    return int(_engine().get_function_address(symbol))


def variable_at(symbol: str) -> int:
    """The address of a global variable of loaded code."""
    return int(_engine().get_global_value_address(symbol))


class Raised(ctypes.Structure):
    """Where machine code says what it raised: numba's ``excinfo_t``."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("hashed", ctypes.c_void_p),
        ("unpickle", ctypes.c_void_p),
        ("from_values", ctypes.c_int32),  # above 0: made of values that were not known when it was compiled
    )

    def error(self) -> Exception | None:
        """What it is; None where only numba can tell."""
        if self.from_values > 0 or not self.pickled:
            return None
        kind, arguments, place = pickle.loads(ctypes.string_at(self.pickled, self.size))
        error: Exception = kind(*arguments or ())
        if place:
            function, file, line = place
            error.add_note(f"in {function}, {Path(IMPORTED_FROM, file)}:{line}")
        return error


@functools.cache
def numba_folder() -> Path:
    """The folder in which numba is installed."""
    spec = importlib.util.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numba is not installed")
    return Path(spec.submodule_search_locations[0])


@functools.cache
def _engine() -> Any:
    """LLVM's loader of object files, to which numba's functions for memory and mathematics are known."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Numba's C helpers, under the names by which its code calls them.
    for name, begins in _LIBRARIES.items():
        for helper, address in _library(name).c_helpers.items():
            llvm.add_symbol(helper if helper.startswith("_") else f"{begins}{helper}", address)
            if llvm.address_of_symbol(helper) is None:
                llvm.add_symbol(helper, address)  # of mathematics
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.create_target_machine(jit=True))


def _library(name: str) -> Any:
    """One of numba's libraries, without the package around it."""
    if name in sys.modules:
        return sys.modules[name]
    stem = numba_folder().joinpath(*name.split(".")[1:])
    file = next(path for suffix in EXTENSION_SUFFIXES if (path := Path(f"{stem}{suffix}")).exists())
    spec = importlib.util.spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    assert spec and spec.loader
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    sys.modules.pop(name, None)  # numba imports it as its own when it is imported itself
    return library
