"""A limit on the time that a policy in Python may take for one decision.

Design
------
One thread for all of a process looks a few times a second whether a decision has begun too long ago, and raises
`TookTooLong` in the thread that decides, where it arrives at the policy's next line. So a decision costs two short
locks, whatever the limit is. A call that does not come back to Python, such as a long sleep, is interrupted in the
main thread as Ctrl-C does it; a solver that does not listen to that is ended when it comes back. Rejected: SIGALRM,
which only the main thread gets and a user's own code may use; a check after each decision, which an endless one never
reaches.
"""

import ctypes
import math
import signal
import sys
import threading
import time
from types import FrameType
from weakref import WeakSet

from decision.model.interrupts import hear

from .failures import place_now

_LOOK = 0.2  # seconds between two looks
_GRACE = 1.0  # seconds after which a thread that has not come back to Python is interrupted
_ASKS = "decision.policies.prepared"  # the module that calls policies


class TookTooLong(BaseException):
    """Raised in a policy whose time is over; no Exception, so that the policy's own handlers do not take it."""


class Deadline:
    """Ends what takes too long in the thread that began it.

    Args:
        seconds: that it may take each time. Compiling does not count.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._thread, self._until = 0, math.inf
        self.over, self.where = False, ""  # whether the time was over, and the user's line that ran then
        _watch(self)

    def begin(self) -> None:
        """The time begins now, for this thread."""
        self._thread, self.over = threading.get_ident(), False
        self._until = time.monotonic() + self.seconds

    def end(self) -> None:
        """Nothing is ended from now on."""
        with self._lock:
            self._until = math.inf
            if self.over:
                _raise_in(self._thread, None)

    def look(self) -> None:
        """Raise `TookTooLong` in the thread if its time is over; again at each look, for one that caught it."""
        with self._lock:
            late = time.monotonic() - self._until
            if late < 0:
                return
            if self.over and late > _GRACE and self._thread == threading.main_thread().ident:
                _interrupt_main_thread()
                return
            frame = sys._current_frames().get(self._thread)
            if _compiles(frame):
                self._until = time.monotonic() + self.seconds
                return
            if frame is not None and not self.over:
                self.where = place_now(frame)
            self.over = True
            _raise_in(self._thread, TookTooLong)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise in a thread at its next line; None takes back what has not been raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


def ignore_interrupt(_number: int, _frame: FrameType | None) -> None:
    """A handler of SIGINT for processes that leave it to their parent: Ctrl-C does nothing, a deadline still ends."""
    hear()
    if any(deadline.over for deadline in list(_deadlines)):
        raise TookTooLong


def _interrupt_main_thread() -> None:
    """Let a system call of the main thread return, unless somebody else makes something of SIGINT."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, ignore_interrupt):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _compiles(frame: FrameType | None) -> bool:
    """Whether what the policy called is being compiled; what called the policy does not count."""
    while frame is not None and (module := str(frame.f_globals.get("__name__"))) != _ASKS:
        if module.startswith("numba.core."):
            return True
        frame = frame.f_back
    return False


_deadlines: "WeakSet[Deadline]" = WeakSet()
_guard = threading.Lock()
_watcher: threading.Thread | None = None


def _watch(deadline: Deadline) -> None:
    global _watcher
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, ignore_interrupt)  # a shell's background job: its system calls must return, too
    with _guard:
        _deadlines.add(deadline)
        if _watcher is None:
            _watcher = threading.Thread(target=_keep_looking, name="decision-deadline", daemon=True)
            _watcher.start()


def _keep_looking() -> None:
    """Look at all deadlines, until there are none."""
    global _watcher
    while True:
        time.sleep(_LOOK)
        with _guard:
            watched = list(_deadlines)
            if not watched:
                _watcher = None
                return
        for deadline in watched:
            deadline.look()
        del watched
