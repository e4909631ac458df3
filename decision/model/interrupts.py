"""Signals that come while a compiled loop calls Python: what is raised before the call has begun would be lost."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_CALLED = "decision.compiling.entry", "answer"  # the module and the function that compiled code calls
_waiting: list[BaseException] = []
_PATIENCE = 5.0  # seconds that machine code may go on after a signal
_LOOK = 0.1  # seconds between two looks whether it does
_TOGETHER = 1.0  # seconds within which signals may have had one handler for all
_heard = -math.inf  # when a handler ran last, by the monotonic clock


def hear() -> None:
    """A handler of signals runs, so machine code does not: what `ended_if_deaf` waits for."""
    global _heard
    _heard = time.monotonic()


@contextmanager
def ended_if_deaf(give_up: Callable[[int], None]) -> Iterator[None]:
    """Call `give_up` with the number of a signal that reached no handler of ours for some seconds, in another thread.

    Python runs handlers only between two steps of the main thread, which a long search in a solver, or a loop of
    machine code that has no end, does not come to. Outside of the main thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, python = os.pipe()
    os.set_blocking(python, False)
    before, over = signal.set_wakeup_fd(python, warn_on_full_buffer=False), threading.Event()
    watcher = threading.Thread(target=_watch, args=(ours, over, give_up), name="decision-signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        over.set()
        os.close(python)
        watcher.join()


def _watch(signals: int, over: threading.Event, give_up: Callable[[int], None]) -> None:
    with open(signals, "rb", buffering=0) as arrived:
        while number := arrived.read(1):
            came = time.monotonic()
            while number[0] in (signal.SIGINT, signal.SIGTERM) and _heard < came - _TOGETHER and not over.wait(_LOOK):
                if time.monotonic() > came + _PATIENCE:
                    give_up(number[0])
                    return


def interrupt(error: BaseException, frame: FrameType | None) -> None:
    """Raise an interruption, from a handler of signals; where nothing can be raised, at the callback's begin.

    Machine code heeds no signals, so that one arrives when it calls Python: in the callback, or in what that calls,
    before its first line.
    """
    hear()
    places = (frame, frame.f_back) if frame is not None else ()
    if any(each is not None and (each.f_globals.get("__name__"), each.f_code.co_name) == _CALLED for each in places):
        _waiting.append(error)
        return
    raise error


def raise_interruption() -> None:
    """Raise what came before, if something did; the first thing that a callback tries."""
    if _waiting:
        raise _waiting.pop()
