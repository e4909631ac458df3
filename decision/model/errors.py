"""Errors that name whose fault they are, checks of arguments, the logger, and signals that end what is under way.

Each error is one clear line for a person: what, where, what to do. `exit_code` is what the command line
ends with: 2 for a user's mistake, 3 for a peer's fault.
"""

import functools
import logging
import math
import operator
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

DISTRIBUTION = "batsim-decision"  # the package's name in an index of packages; there, `decision` is somebody else's


def how_to_install(extra: str) -> str:
    """The command that installs what one of the package's extras needs: learn, analysis.

    It names the packages themselves: this one need not be on an index. A checkout that is not installed names itself.
    """
    from importlib.metadata import PackageNotFoundError, requires  # 20 ms of a start

    try:
        lines = [line.split(";") for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return shlex.join(["pip", "install", f"{Path(__file__).parents[2]}[{extra}]"])
    return shlex.join(["pip", "install", *(line[0].strip() for line in lines if f'"{extra}"' in line[-1])])


class DecisionError(Exception):
    """Root of all errors that this package raises on purpose.

    Args:
        message: one line: what is wrong, what was found, what to do, in words that hold for every interface.
        field: the Python name of the argument to change (``speed``), if one can repair it. The command line adds
            which of its options that is (``--speed``); nothing below it names an option.

    Examples:
        >>> import decision as d
        >>> try:
        ...     d.simulate("toy", "toy", "easy", seed=-1)
        ... except d.DecisionError as error:
        ...     print(error)
        seed: must be a whole number, at least 0; found -1
    """

    exit_code = 2

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ConfigError(DecisionError):
    """The user's mistake: a wrong option, an unreadable file, a workload that does not fit its platform.

    Examples:
        >>> import decision as d
        >>> try:
        ...     d.simulate("toy", "toy", "easyy")
        ... except d.ConfigError as error:
        ...     print(str(error).partition(" (")[0])
        there is no policy 'easyy'; did you mean easy?
    """


class InputError(ConfigError):
    """A file that cannot be used. The message names the file, the place in it and what to do."""


class PolicyError(DecisionError):
    """A policy decided something impossible: the message names the time, the job and the hosts.

    Examples:
        >>> import decision as d
        >>> class Greedy:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         for job in cluster.queue:
        ...             plan.start(job, [0])
        >>> try:
        ...     d.simulate("toy", "toy", Greedy())
        ... except d.PolicyError as error:
        ...     print(error)
        t=0 s: w0!1 needs 3 hosts, 1 given (0)
    """


class DeadlockError(PolicyError):
    """The simulation cannot go on: jobs wait, nothing runs, and the policy asked for nothing."""


class DecideTimeoutError(PolicyError):
    """A policy took longer for a decision than it may: the message names the line at which it was."""


class ProtocolError(DecisionError):
    """Something is wrong with the conversation."""


class LocalProtocolError(ProtocolError):
    """Our own side tried to send what the protocol forbids now."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol forbids: nonsense, a message out of turn, time going backwards."""

    exit_code = 3


class PeerError(DecisionError):
    """The peer never connected, sent nothing more or died."""

    exit_code = 3


class StuckError(PeerError):
    """Batsim says that its simulation cannot go on."""


class Failure(NamedTuple):
    """A run without a result."""

    run: str
    reason: str
    host: str


class RunsFailedError(PolicyError):
    """Some runs have no result, mostly for what a policy has decided; those of all others are stored.

    Args:
        message: as of `DecisionError`.
        failures: the runs.
    """

    exit_code = 1

    def __init__(self, message: str, failures: Sequence[Failure]) -> None:
        super().__init__(message)
        self.failures = failures


class ShareDone(Exception):  # noqa: N818 - no error
    """The share of the runs that this process had to do is done; what there is to say of it."""


class InternalError(Exception):
    """Our own mistake, found before it could do harm: an array of a kernel is full.

    Not a `DecisionError`: the command line says that it is a bug and asks for a report.
    """


# Checks of what callers give to the functions of ``import decision``: each error names the argument.


def whole(field: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`; numpy's will do. Raises ConfigError."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{field}: must be a whole number, at least {least}; found {value!r}", field=field)
    return number


def flag(field: str, value: Any) -> bool:
    """True or False; numpy's will do. Raises ConfigError."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise ConfigError(f"{field}: must be True or False; found {value!r}", field=field)
    return bool(value)


def text(field: str, value: Any) -> str:
    """The value, which must be a text. Raises ConfigError."""
    if not isinstance(value, str):
        raise ConfigError(f"{field}: must be a text; found an object of type {type(value).__name__}", field=field)
    return value


def a_path(field: str, value: Any) -> Path:
    """The path of a file or folder. Raises ConfigError."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{field}: must be a path; found an object of type {type(value).__name__}", field=field)
    return Path(value)


def amount(field: str, value: Any, least: float, most: float) -> float:
    """A number from `least` to `most`. Raises ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ConfigError(f"{field}: must be a number, {least:g} to {most:g}; found {value!r}", field=field)
    return float(value)


def mapping(field: str, value: Any, like: str) -> dict[str, Any]:
    """Values by name, empty for None; `like` is an example for the error. Raises ConfigError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{field}: must be a mapping like {like}; found {value!r}", field=field)
    return dict(value)


def several(value: Any) -> list[Any]:
    """One as a list of one: a text, a path, a table and whatever cannot be iterated."""
    one = isinstance(value, str | os.PathLike | Mapping) or hasattr(value, "columns") or not isinstance(value, Iterable)
    return [value] if one else list(value)


def some(field: str, value: Any, what: str) -> list[Any]:
    """At least one, or a list of at least one. Raises ConfigError where there is none."""
    values = several(value)
    if not values:
        raise ConfigError(f"{field}: give at least one {what}", field=field)
    return values


# What users are told while something runs: the logger ``decision``, of Python's `logging`.
#
# Warnings are next to their results. At INFO there is what is read, compiled, run and written; a notebook shows that
# with ``logging.basicConfig(); logging.getLogger("decision").setLevel("INFO")``, the command line with ``--verbose``.

log = logging.getLogger("decision")


@functools.cache
def warn_once(text: str) -> None:
    """Warn in one line, once in a process, however many policies run the same workload."""
    log.warning("%s", text)


# Signals that come while a compiled loop calls Python: what is raised before the call has begun would be lost.

_CALLED = "decision.compiling.entry", "answer"  # the module and the function that compiled code calls
_waiting: list[BaseException] = []
_PATIENCE = 5.0  # seconds that machine code may go on after a signal
_PATIENCE_UNHEEDED = 1.0  # seconds likewise, in a block that is known to heed none (`heeding_nothing`)
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
            while number[0] in (signal.SIGINT, signal.SIGTERM) and not over.wait(_LOOK):
                if not heeds_nothing() and _heard >= came - _TOGETHER:
                    break  # a handler has run, and what it raised ends the command
                if time.monotonic() > came + (_PATIENCE_UNHEEDED if heeds_nothing() else _PATIENCE):
                    give_up(number[0])
                    return


def interrupt(error: BaseException, frame: FrameType | None) -> None:
    """Raise an interruption, from a handler of signals; where nothing can be raised, at the callback's begin.

    Machine code heeds no signals, so that one arrives when it calls Python: in the callback, or in what that calls,
    before its first line.
    """
    hear()
    places = (frame, frame.f_back) if frame is not None else ()
    if any(at is not None and (at.f_globals.get("__name__"), at.f_code.co_name) == _CALLED for at in places):
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
