"""Where commands write: stdout for results, stderr for everything else."""

from functools import cache

from rich.console import Console


@cache
def stdout() -> Console:
    """The console of results."""
    return Console(emoji=False)


@cache
def stderr() -> Console:
    """The console of progress, notes and errors."""
    return Console(stderr=True, emoji=False)
