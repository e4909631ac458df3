"""Where commands write: stdout for results, stderr for everything else.

Text in brackets is not markup here: names of files and policies have some, and ``batsim-decision[learn]``.
"""

from functools import cache

from rich.console import Console


@cache
def stdout() -> Console:
    """The console of results."""
    return Console(emoji=False, markup=False)


@cache
def stderr() -> Console:
    """The console of progress, notes and errors."""
    return Console(stderr=True, emoji=False, markup=False)


def say(text: str) -> None:
    """Print text to stdout as it is; only the terminal breaks long lines."""
    stdout().print(text, highlight=False, soft_wrap=True)


def note(text: str, style: str | None = None) -> None:
    """Print text to stderr as it is; only the terminal breaks long lines."""
    stderr().print(text, style=style, highlight=False, soft_wrap=True)
