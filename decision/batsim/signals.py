"""Ending cleanly when the user or the system asks for it.

A handler notes the signal, or raises where nothing of ours can be half done; what is under way looks at the note
between two messages, so that no line of a recording is cut.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from decision.model.errors import hear, interrupt

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """SIGINT or SIGTERM asked for the end, and the current task was completed.

    Like KeyboardInterrupt it is not an Exception: no handler of errors may swallow it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class StopRequest:
    """Whether a signal has asked for the end."""

    def __init__(self) -> None:
        self.signal = 0

    def check(self) -> None:
        """Raise `Interrupted` if the end was asked for."""
        if self.signal:
            raise Interrupted(self.signal)

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Note a signal; the second one interrupts at once."""
        hear()
        if self.signal:
            raise Interrupted(number)
        self.signal = number


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, interrupt the block as SIGINT does, with `Interrupted`.

    Outside of the main thread, where Python delivers no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: interrupt(Interrupted(number), frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def none_swallowed() -> Iterator[None]:
    """End the block with SIGINT or SIGTERM where a function that C calls got it, from which nothing can be raised.

    Those of the compiler do: it goes on for a moment and then fails of something else.
    """
    before, swallowed = sys.unraisablehook, []

    def keep(unraisable: "sys.UnraisableHookArgs") -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt | Interrupted):
            swallowed.append(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = keep
    try:
        yield
    except Exception:
        if swallowed:
            raise swallowed[0] from None
        raise
    finally:
        sys.unraisablehook = before


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a request that is checked between two messages.

    Outside of the main thread, where Python delivers no signals, this does nothing.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.receive) for number in _ENDING}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
