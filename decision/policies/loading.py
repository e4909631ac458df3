"""What a user's own policy needs: its class is found, what it raises is said in one line, and its time is limited.

A class comes from a module or a file (`find_class`), or from a package above this one (`PolicySource`). Whatever its
code raises becomes one line that names the user's file, line and statement (`failure`), and each of its decisions may
have a limit (`Deadline`).
"""

import ctypes
import importlib
import importlib.util
import linecache
import math
import os
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

from decision.model.errors import ConfigError, DecisionError, InternalError, PolicyError, hear
from decision.model.hosts import nearest
from decision.model.platform import Platform

from .options import OptionLine, PolicyLine

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"
_LIBRARY = f"{sysconfig.get_path('stdlib')}{os.sep}"
_CALLS = {"reset": "reset(self, platform, seed)", "decide": "decide(self, cluster, plan)"}


def reset_policy(policy: Any, platform: Platform, seed: int) -> None:
    """Begin a run: ``policy.reset``.

    Raises:
        PolicyError: what the policy's own code raised, with its place.
    """
    try:
        policy.reset(platform, seed)
    except (DecisionError, InternalError):
        raise
    except (Exception, SystemExit) as error:
        raise failure(policy, "reset", error) from error


def failure(policy: Any, method: str, error: BaseException, when: str = "") -> BaseException:
    """The error to raise for what a method of a policy raised.

    Args:
        policy: that failed; one that only watches another has that as its `__wrapped__`.
        method: reset or decide.
        error: what it raised.
        when: begins the message.

    Returns:
        A PolicyError; `error` itself where a policy of this package failed, which is not the user's mistake.
    """
    where, advice = source_line(error), ""
    if not where:
        # Where it is defined; nothing for functions of this package, and for those without source.
        code = getattr(getattr(_own(policy), method), "__code__", None)
        if code is not None and not code.co_filename.startswith(_PACKAGE):
            line = linecache.getline(code.co_filename, code.co_firstlineno)
            where = _shown(code.co_filename, code.co_firstlineno, line)
        advice = f"; it must be {_CALLS[method]}" if isinstance(error, TypeError) else ""
    if not where and type(_own(policy)).__module__.partition(".")[0] == "decision":
        return error
    return PolicyError(f"{when}policy {name_of(policy)}: {method} failed: {in_words(error, where)}{advice}")


def name_of(policy: Any) -> str:
    """The name of a policy's class."""
    return type(_own(policy)).__qualname__


def _own(policy: Any) -> Any:
    """The user's policy, behind one that watches it."""
    return getattr(policy, "__wrapped__", policy)


def in_words(error: BaseException, where: str | None = None) -> str:
    """Kind, text and place of an error, in one line.

    Args:
        error: that a user's code raised.
        where: the place, if it is known.
    """
    where = source_line(error) if where is None else where
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    described = " ".join(f"{type(error).__name__}: {text}".split()).rstrip(": ")
    return f"{described} ({where})" if where else described


def source_line(error: BaseException) -> str:
    """Where in a user's code an error came from, ``mine.py:5: 1 / 0``; nothing if it went through none."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _shown(error.filename, error.lineno, error.text or "")
    return _innermost(traceback.extract_tb(error.__traceback__))


def place_now(frame: FrameType) -> str:
    """As `source_line`, of code that is running in a frame."""
    return _innermost(traceback.extract_stack(frame))


def _innermost(stack: Sequence[traceback.FrameSummary]) -> str:
    frames = [frame for frame in stack if not frame.filename.startswith(_PACKAGE)]
    users = [
        frame
        for frame in frames
        if not frame.filename.startswith((_LIBRARY, "<frozen"))
        and "site-packages" not in frame.filename
        and "dist-packages" not in frame.filename
    ] or frames
    return _shown(users[-1].filename, users[-1].lineno or 0, users[-1].line or "") if users else ""


def _shown(file: str, line: int, statement: str) -> str:
    """A place in one line; a file below the working folder by its path from there."""
    below = file.removeprefix(f"{Path.cwd()}{os.sep}")
    return f"{below}:{line}: {statement.strip()}" if statement.strip() else f"{below}:{line}"


def find_class(name: str, what: str = "policy", method: str = "decide") -> Any:
    """The class or function that ``module:Class`` or ``./file.py:Class`` names.

    Args:
        name: of it.
        what: it is, for messages.
        method: that such classes have; empty for functions.

    Raises:
        ConfigError: where there is none.
    """
    place, _, attribute = name.rpartition(":")
    called = f"{what} {name}"
    if place.endswith(".py"):
        module = _load_file(called, Path(place))
    elif all(part.isidentifier() for part in place.split(".")):
        try:
            module = importlib.import_module(place)
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{called}: importing {place} failed: {in_words(error)}") from error
    else:
        raise ConfigError(f"{called}: {place!r} is neither a module nor a file that ends in .py")
    made = getattr(module, attribute, None)
    if made is None:
        members, of_it = vars(module).items(), module.__name__
        if method:
            known = [n for n, value in members if hasattr(value, method)]
        else:
            known = [n for n, value in members if isinstance(value, FunctionType) and value.__module__ == of_it]
        nothing = f"any class with a method {method}" if method else "any function"
        there = f" (it has {', '.join(known)})" if known else f" (nor {nothing})"
        raise ConfigError(f"{called}: {place} has no {attribute!r}{nearest(attribute, known)}{there}")
    return made


def _load_file(called: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"{called}: there is no file {path}")
    module_name = f"_policy_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{called}: {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickles look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{called}: running {path} failed: {in_words(error)}") from error
    return module


# What policies need of packages above this one, imported only when a user asks for it.
#
# The only place that names such modules, as texts: `.importlinter` cannot see these imports, and lists them.

_SOURCES = ("decision.rl.learning:LEARNED", "decision.batsim.pybatsim:SCHEDULERS", "decision.slurm.policy:SLURM")
_READERS = {"network": "decision.rl.learning:read_repair", "prices": "decision.rl.learning:read_prices"}


def shipped_sources() -> Iterator[Any]:
    """The sources of policies (`decision.policies.loading.PolicySource`) that come with this package."""
    return map(_find, _SOURCES)


def read_learned(what: str, name: str) -> Any:
    """What a checkpoint has, as `decision.rl.learning` reads it.

    Args:
        what: ``network``: a `decision.policies.placement.search.StartRule` and the levels of the trees that it is for;
            ``prices``: weights (L - 1, N_FEATURES) of trees of L levels.
        name: of the checkpoint.

    Raises:
        ConfigError: if it has nothing of the kind.
        InputError: if it cannot be read.
    """
    return _find(_READERS[what])(name)


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


# What a package gives that has policies of its own, and what answers Batsim's messages itself.

Loader = Callable[[str, Mapping[str, Any]], Any]


class PolicySource(NamedTuple):
    """The policies that a package above this one ships, or that a user registered."""

    names: Sequence[str]  # of policies, or patterns of names, like ``*.ckpt``
    load: Loader  # makes a policy from its name and options
    lines: Callable[[], Iterable[PolicyLine]]  # of the catalogue
    answers_messages: bool = False  # what `load` makes is a `MessageAgent`
    options: Callable[[str], Iterable[OptionLine]] = lambda _: ()  # of the policy of a name
    guarded: Loader | None = None  # of what answers messages: makes a policy of it that can have a guard around it


class MessageAgent(Protocol):
    """A scheduler that answers Batsim's messages itself, one run long."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""

    @property
    def state(self) -> None:
        """Nothing: it keeps its own books."""

    @property
    def window_gap(self) -> float:
        """nan: nothing is known of its windows."""

    def predictions(self, ids: Iterable[str]) -> None:
        """Nothing is known of what it expects."""

    def get_ready(self) -> None:
        """Load what the first reply needs, while Batsim starts."""

    def handle(self, question: bytes) -> bytes:
        """The reply to one of Batsim's messages."""


# A limit on the time that a policy in Python may take for one decision.
#
# Design
# ------
# One thread for all of a process looks a few times a second whether a decision has begun too long ago, and raises
# `TookTooLong` in the thread that decides, where it arrives at the policy's next line. So a decision costs two short
# locks, whatever the limit is. A call that does not come back to Python, such as a long sleep, is interrupted in the
# main thread as Ctrl-C does it; a solver that does not listen to that is ended when it comes back. Rejected: SIGALRM,
# which only the main thread gets and a user's own code may use; a check after each decision, which an endless one never
# reaches.

_LOOK = 0.2  # seconds between two looks
_GRACE = 1.0  # seconds after which a thread that has not come back to Python is interrupted
_ASKS = "decision.policies.prepared"  # the module that calls policies
_COMPILES = ("numba.core.", "decision.compiling.whole_program")  # modules; the latter also links, or waits for another


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
                # A system call of the main thread returns, unless somebody else makes something of SIGINT.
                if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, ignore_interrupt):
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return
            at = frame = sys._current_frames().get(self._thread)
            # What the policy called may be being compiled; what called the policy does not count.
            while at is not None and (module := str(at.f_globals.get("__name__"))) != _ASKS:
                if module.startswith(_COMPILES):
                    self._until = time.monotonic() + self.seconds
                    return
                at = at.f_back
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
