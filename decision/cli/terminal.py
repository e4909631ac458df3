"""Where commands write: stdout for results, stderr for everything else.

Text in brackets is not markup here: names of files and policies have some, and ``batsim-decision[learn]``.
"""

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from rich.console import Console

from decision.model.names import encodable

PAGE = 80  # columns of pictures in characters where there is no terminal
_QUIET = ContextVar("quiet", default=False)
_UNCUT = 10_000  # columns: a pipe takes lines of any length


@cache
def stdout() -> Console:
    """The console of results."""
    return _console(Console(emoji=False, markup=False))


@cache
def stderr() -> Console:
    """The console of progress, notes and errors."""
    return _console(Console(stderr=True, emoji=False, markup=False))


def _console(console: Console) -> Console:
    """Let no line be cut where no terminal cuts it."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNCUT
    return console


def is_uncut(width: int) -> bool:
    """Whether so many columns are those of a console that is no terminal, and cuts nothing."""
    return width >= _UNCUT


def page_width() -> int:
    """Columns of long texts where there is no terminal: those of the one that stderr is, such as beside ``less``."""
    with suppress(OSError, ValueError, AttributeError):
        return max(os.get_terminal_size(sys.__stderr__.fileno()).columns, PAGE // 2)  # type: ignore[union-attr]
    return PAGE


def be_quiet(quiet: bool) -> None:
    """Whether from now on notes and progress are left out; errors, which have a style, are printed."""
    _QUIET.set(quiet)


def log_from(level: str) -> None:
    """Print what the logger ``decision`` is told, from this level on, as notes are printed."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stderr().print(encodable(as_users_named_it(record.getMessage())), highlight=False, soft_wrap=True)

    logger = logging.getLogger("decision")
    logger.setLevel(level)
    logger.handlers[:] = [each for each in logger.handlers if type(each).__name__ != Notes.__name__] + [Notes()]


def is_quiet() -> bool:
    """Whether notes and progress are left out."""
    return _QUIET.get()


def say(text: str) -> None:
    """Print text to stdout as it is; only the terminal breaks long lines."""
    stdout().print(encodable(text), highlight=False, soft_wrap=True)


def note(text: str, style: str | None = None) -> None:
    """Print text to stderr as it is; only the terminal breaks long lines."""
    if style or not is_quiet():
        stderr().print(encodable(as_users_named_it(text)), style=style, highlight=False, soft_wrap=True)


def as_users_named_it(text: str) -> str:
    """A text with the files that the user gave, not those that they were unpacked to."""
    from decision.computer.unpacked import as_given  # with the libraries that unpack

    return as_given(text)


def can_draw(lost: str) -> bool:
    """Whether pictures can be drawn; where not, a note says what is lost, and why."""
    from decision.analysis.plots import require_matplotlib
    from decision.model.errors import ConfigError

    try:
        require_matplotlib()
    except ConfigError as error:
        note(f"{lost}: {error}")
        return False
    return True


def printed(page: Path | None, wanted: bool) -> Path | None:
    """The PDF of a page, if it is wanted and a browser is here; where none is, a note says how to print the page."""
    from decision.computer.browser import print_page
    from decision.model.errors import ConfigError

    if page is None or not wanted:
        return None
    try:
        return print_page(page)
    except ConfigError as error:
        note(f"no PDF: {error}")
        return None
