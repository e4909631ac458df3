"""Signals that come while a compiled loop calls Python: what is raised before the call has begun would be lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_CALLED = "decision.compiling.entry", "answer"  # the module and the function that compiled code calls
_waiting: list[BaseException] = []


def interrupt(error: BaseException, frame: FrameType | None) -> None:
    """Raise an interruption, from a handler of signals; where nothing can be raised, at the callback's begin.

    Machine code heeds no signals, so that one arrives when it calls Python: in the callback, or in what that calls,
    before its first line.
    """
    places = (frame, frame.f_back) if frame is not None else ()
    if any(each is not None and (each.f_globals.get("__name__"), each.f_code.co_name) == _CALLED for each in places):
        _waiting.append(error)
        return
    raise error


_deaf: list[None] = []  # blocks under way, in all threads


@contextmanager
def heeding_nothing() -> Iterator[None]:
    """A block in which machine code runs for long and calls no Python: what ends the process need not wait for it."""
    _deaf.append(None)
    try:
        yield
    finally:
        _deaf.pop()


def heeds_nothing() -> bool:
    """Whether such a block is under way."""
    return bool(_deaf)


def raise_interruption() -> None:
    """Raise what came before, if something did; the first thing that a callback tries."""
    if _waiting:
        raise _waiting.pop()
