"""Where commands write: stdout for results, stderr for everything else.

What stands in brackets is text here, not markup: names of files and policies have some, and ``decision[learn]``.
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
