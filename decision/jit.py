"""Numba kernels of this package: one decorator, one cache on disk.

A kernel's machine code is kept under a directory named after the package's sources, so that a changed
callee never meets a stale caller (numba itself only watches the file of the outermost function), and a
warm second process compiles nothing. `NUMBA_CACHE_DIR` moves the cache.
"""

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent


def _fingerprint() -> str:
    """A name for the sources of all kernels: each file that uses the decorator or what is compiled into kernels."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for file in sorted(_PACKAGE.glob("*/*.py")) + sorted(_PACKAGE.glob("*.py")):
        source = file.read_bytes()
        if b"kernel" in source or b"Bundle" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path:
    """Where the kernels' machine code is kept for these sources."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return (Path(base) if base else home / "decision") / _fingerprint()


def is_warm(kernel_name: str = "server.advance") -> bool:
    """Whether a kernel (module and name) has been compiled from these sources before on this machine."""
    return any(cache_directory().glob(f"*/{kernel_name}-*.nbi"))


numba.config.CACHE_DIR = str(cache_directory())


def kernel(function: F) -> F:
    """Compile `function` in nopython mode, cached on disk; numpy's rules for division, so that it never raises."""
    return numba.njit(cache=True, error_model="numpy", nogil=True)(function)
