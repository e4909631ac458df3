"""Kernels that other kernels call by address: how a compiled loop runs a policy that it does not know.

Design
------
A compiled loop that named its policies would be compiled again for each, and would have to be edited for each. Here the
loop is compiled once, against an `Interface`; what implements it is compiled apart, and only its address (an integer,
which may change from call to call) reaches the loop. An indirect call costs nanoseconds, where a decision takes at
least hundreds. What an entry raises goes up through the loop as from any kernel. Rejected: numba's C callbacks, which
print what is raised and return 0; its first-class functions, which it cannot cache on disk reliably; closures over
kernels, which compile the loop again for each policy.
"""

import ctypes
import functools
import typing
from collections.abc import Callable
from typing import Any

from decision.model.errors import ConfigError, InternalError

from .bundle import Bundle
from .declared import Intrinsic
from .jit import kernel
from .machine import Raised

Argument = type[int] | type[float] | type[Bundle] | Any  # the last: a hint of an array, such as `bundle.F8`


class Interface:
    """What a kind of entry takes and returns: integers, floats, arrays and bundles, which the caller keeps alive.

    Args:
        result: what is returned, int or float.
        arguments: what it takes, in order; `Bundle` itself is a bundle of the entry's own class, which callers give by
            its address.
    """

    def __init__(self, result: type[int] | type[float], *arguments: Argument) -> None:
        self.result = result
        self.arguments = tuple(int if kind is Bundle else kind for kind in arguments)
        self._own = arguments.index(Bundle) if Bundle in arguments else -1

    def entry(self, function: Callable[..., Any]) -> "Entry":
        """Decorator: compile the function, when its address is first asked for, so that kernels can call it."""
        return Entry(self.result, self.arguments, function)

    def entry_with(self, own: type[Bundle]) -> "Callable[[Callable[..., Any]], Entry]":
        """Decorator: as `entry`, for functions whose own bundle is of this class; an address and a bundle are the same
        word to machine code."""
        at = self._own
        arguments = (*self.arguments[:at], own, *self.arguments[at + 1 :])
        return lambda function: Entry(self.result, arguments, function)

    def callback(self, function: Callable[..., Any]) -> "Callback":
        """A function in Python that kernels can call: bundles reach it as their addresses. It must not raise.

        One call takes a microsecond. The kernels between may have released the lock of Python's interpreter.
        """
        return Callback(self, function)

    def caller(self) -> Any:
        """A function for kernels: ``call(address, (argument, ...))`` calls the entry at an address."""

        def call(_context: Any, address: Any, given: Any) -> Any:
            from numba.core import cgutils
            from numba.core.typing import signature

            from .whole_program import numba_type

            result, arguments = numba_type(self.result), tuple(map(numba_type, self.arguments))

            def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                parts = [
                    context.cast(builder, builder.extract_value(values[1], i), given[i], kind)
                    for i, kind in enumerate(arguments)
                ]
                convention = context.call_conv
                kind = convention.get_function_type(result, arguments).as_pointer()
                entry = builder.inttoptr(values[0], kind)
                # What an entry raises goes on up as if this kernel had raised it.
                status, value = convention.call_function(builder, entry, result, arguments, parts)
                with cgutils.if_unlikely(builder, status.is_error):
                    convention.return_status_propagate(builder, status)
                return value

            return signature(result, numba_type(int), given), generate

        return Intrinsic(call)


class Entry:
    """A function of an interface. Called from Python it runs as plain Python."""

    def __init__(self, result: type, arguments: tuple[Argument, ...], function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._shape, self._function = (arguments, result), function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    @functools.cached_property
    def address(self) -> int:
        """Where its machine code is, in this process; compiled or read from the cache on disk now.

        Raises:
            ConfigError: if numba is switched off.
        """
        # Without numba's decorator the function comes back as it is.
        compiled: Any = kernel(self._function)
        if compiled is self._function:
            raise ConfigError("NUMBA_DISABLE_JIT is set, and simulations run as machine code alone; unset it")
        self._compiled = compiled  # owns the machine code
        return typing.cast(int, compiled.address(*self._shape))

    @functools.cached_property
    def from_python(self) -> Callable[..., Any]:
        """The machine code as a function for Python, to which bundles are given by their addresses.

        A call takes a microsecond, where numba's own way takes three for each bundle.
        """
        arguments, result = self._shape
        kind: Any = _C_TYPES[result]
        code = _prototype(result, arguments)(self.address)
        name = self._function.__name__

        def call(*given: int | float) -> Any:
            returned, raised = kind(), ctypes.POINTER(Raised)()
            if code(ctypes.byref(returned), ctypes.byref(raised), *given):
                error = raised.contents.error() if raised else None
                raise error or InternalError(f"the compiled function {name} failed")
            return returned.value

        return call


class Callback:
    """A Python function of an interface, called in the way in which kernels call; keep it as long as it may be."""

    def __init__(self, interface: Interface, function: Callable[..., Any]) -> None:

        def answer(result_at: Any, _error_at: Any, *given: Any) -> int:
            result_at[0] = function(*given)
            return 0  # nothing was raised

        self._function = _prototype(interface.result, interface.arguments)(answer)
        self.address = int(ctypes.cast(self._function, ctypes.c_void_p).value or 0)


_C_TYPES: dict[Any, Any] = {float: ctypes.c_double, int: ctypes.c_int64}


def _prototype(result: type, arguments: tuple[Argument, ...]) -> Any:
    """How numba's code is called: where the result goes, where to say what was raised, the arguments."""
    given = (_C_TYPES.get(kind, ctypes.c_size_t) for kind in arguments)
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_C_TYPES[result]), ctypes.c_void_p, *given)
