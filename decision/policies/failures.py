"""What a policy's own code raises, as one line that names the user's file, line and statement."""

import linecache
import os
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from decision.model.errors import DecisionError, InternalError, PolicyError
from decision.model.platform import Platform

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
        where = _definition(getattr(_own(policy), method))
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
    what = " ".join(f"{type(error).__name__}: {text}".split()).rstrip(": ")
    return f"{what} ({where})" if where else what


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
    own = [frame for frame in frames if not _is_library(frame.filename)] or frames
    return _shown(own[-1].filename, own[-1].lineno or 0, own[-1].line or "") if own else ""


def _is_library(file: str) -> bool:
    return file.startswith((_LIBRARY, "<frozen")) or "site-packages" in file or "dist-packages" in file


def _definition(function: Callable[..., Any]) -> str:
    """The place of a function's definition; nothing for functions of this package, and for those without source."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith(_PACKAGE):
        return ""
    return _shown(code.co_filename, code.co_firstlineno, linecache.getline(code.co_filename, code.co_firstlineno))


def _shown(file: str, line: int, statement: str) -> str:
    """A place in one line; a file below the working folder by its path from there."""
    below = file.removeprefix(f"{Path.cwd()}{os.sep}")
    return f"{below}:{line}: {statement.strip()}" if statement.strip() else f"{below}:{line}"
