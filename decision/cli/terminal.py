"""Where commands write: stdout for results, stderr for everything else.

Text in brackets is not markup here: names of files and policies have some, and ``batsim-decision[learn]``.
"""

import os
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from rich.console import Console

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


def be_quiet(quiet: bool) -> None:
    """Whether from now on notes and progress are left out; errors, which have a style, are printed."""
    _QUIET.set(quiet)


def is_quiet() -> bool:
    """Whether notes and progress are left out."""
    return _QUIET.get()


def encodable(text: str) -> str:
    """A text with escapes for what is not a character: halves of pairs in names of files and in a user's errors."""
    return text.encode(errors="backslashreplace").decode()


def say(text: str) -> None:
    """Print text to stdout as it is; only the terminal breaks long lines."""
    stdout().print(encodable(text), highlight=False, soft_wrap=True)


def note(text: str, style: str | None = None) -> None:
    """Print text to stderr as it is; only the terminal breaks long lines."""
    from decision.computer.unpacked import as_given  # with the libraries that unpack

    if style or not is_quiet():
        stderr().print(encodable(as_given(text)), style=style, highlight=False, soft_wrap=True)


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
