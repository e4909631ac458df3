"""What the modules of kernels declare before numba is imported, which only what compiles needs."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

WORDS = 3  # of a bundle's table, per field: data, shape[0], shape[1]


class ArrayKind(NamedTuple):
    """A C-contiguous array, as kernels are compiled for it; of no dimension: a number."""

    dtype: str
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype} array of {self.ndim} dimensions" if self.ndim else f"{self.dtype} number"


class Intrinsic:
    """A function of LLVM's instructions that kernels may call; what makes them imports numba when it is asked to.

    Args:
        definition: as for ``numba.extending.intrinsic``.
    """

    def __init__(self, definition: Callable[..., Any]) -> None:
        functools.update_wrapper(self, definition)
        self._definition = definition

    @functools.cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        made, context = intrinsic(self._definition), cpu_target.typing_context
        context.refresh()  # it has just been told of it
        return context.resolve_value_type(made)

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError(f"{self._definition.__name__}: only kernels can call it")
