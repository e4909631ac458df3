"""Numba kernels of this package: one decorator, one cache on disk.

Design
------
A kernel's machine code contains that of the kernels that it calls, but numba's own cache only watches the file of the
outermost one, so a changed callee would meet a stale caller. Here the code of a kernel lies under
``MODULE/STAMP``, where the stamp is a hash of the module and of all modules of this package that it imports, directly
or not. So a warm second process compiles nothing, a change recompiles only what depends on it, and several checkouts
share what they have in common. Folders that no process has used for a month are removed.

Only our own kernels use this cache: numba's settings for other code stay as they are (rejected: setting
``numba.config.CACHE_DIR``, which moves the user's cache, too). `NUMBA_CACHE_DIR` moves it for both. Where the folder
cannot be written, kernels are compiled in each process.
"""

import contextlib
import functools
import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

F = TypeVar("F", bound=Callable[..., Any])

_ROOT = os.path.join(Path(__file__).parent.parent, "")
_IMPORT = re.compile(rb"\n[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))")
_NAME = re.compile(rb"(\w+)(?: as \w+)?")
_UNUSED = 30 * 86400.0  # seconds after which a folder of machine code is removed


@functools.cache
def cache_directory() -> Path:
    """The folder of the kernels' machine code."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(base) if base else home / "decision"


def is_warm(compiled: Callable[..., Any]) -> bool:
    """Whether a kernel has been compiled from the present sources before, on this machine."""
    return any(_folder(compiled.__module__).glob(f"*.{compiled.__name__}-*.nbi"))


def kernel(function: F) -> F:
    """Compile `function` in nopython mode, cached on disk; numpy's rules for division, so that it never raises."""
    return _compiled(function)


def inlined(function: F) -> F:
    """As `kernel`, and made part of each caller: for the parts of one loop, of which each call would cost a tenth."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    compiled = numba.njit(error_model="numpy", nogil=True, **options)(function)
    if not numba.config.DISABLE_JIT:
        keep_on_disk(compiled, function)
    return compiled


def keep_on_disk(compiled: Any, function: Callable[..., Any]) -> None:
    """Let numba keep the machine code of `compiled`, which it makes of `function`, in our cache."""
    compiled._cache = _KernelCache(function)


class _Locator(_CacheLocator):
    """Where numba looks for a kernel's machine code."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # numba's warnings name it
        self._line, self._module = function.__code__.co_firstlineno, function.__module__

    def get_cache_path(self) -> str:
        return str(_folder(self._module))

    def get_source_stamp(self) -> str:
        return _stamp(self._module)

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        if not _folder(self._module).exists():
            _remove_unused()
        super().ensure_cache_path()

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator":
        return cls(py_func, py_file)


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):  # a folder that cannot be written
            super().save_overload(sig, data)


@functools.cache
def _folder(module: str) -> Path:
    folder = cache_directory() / module / _stamp(module)
    with contextlib.suppress(OSError):
        os.utime(folder)  # in use
    return folder


@functools.cache
def _stamp(module: str) -> str:
    """A name for the sources of a module and of all that it imports from the same package."""
    seen, todo = set(), [_file_of(module) or sys.modules[module].__file__ or ""]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += _source(file).imports
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {numba.config.BOUNDSCHECK}".encode())
    for file in sorted(seen):
        digest.update(_source(file).digest)
    return digest.hexdigest()[:16]


class _Source(NamedTuple):
    digest: bytes
    imports: list[str]  # the files of this package that it imports


@functools.cache
def _source(file: str) -> _Source:
    text = Path(file).read_bytes()
    inside = file.startswith(_ROOT)
    package = file[len(_ROOT) :].split(os.sep)[:-1] if inside else []
    found: list[str | None] = []
    for origin, names, plain in _IMPORT.findall(b"\n" + text):
        base = _absolute(origin.decode(), package) if origin else plain.decode()
        parts = [_file_of(f"{base}.{name.decode()}") for name in _NAME.findall(names)]
        found += [part for part in parts if part] if all(parts) and parts else [*filter(None, parts), _file_of(base)]
    return _Source(hashlib.sha256(text).digest(), [each for each in found if each])


def _absolute(origin: str, package: list[str]) -> str:
    """A module's full name; `origin` may begin with dots."""
    name = origin.lstrip(".")
    dots = len(origin) - len(name)
    return ".".join([*package[: len(package) - dots + 1], *([name] if name else [])]) if dots else name


@functools.cache
def _file_of(module: str) -> str | None:
    """A module's source; None where it is not of this package."""
    parts = module.split(".")
    if parts[0] != __package__:
        return None
    path = _ROOT + os.sep.join(parts)
    return next((each for each in (path + ".py", os.path.join(path, "__init__.py")) if os.path.isfile(each)), None)


def _remove_unused() -> None:
    """Remove machine code of sources that have not been used for long, and of earlier layouts of this cache."""
    oldest = time.time() - _UNUSED
    for folder in [*cache_directory().glob("*/*/"), *cache_directory().glob("*/")]:
        with contextlib.suppress(OSError):
            if re.fullmatch("[0-9a-f]{16}", folder.name) and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)
