"""Where commands write: stdout for results, stderr for everything else."""

import sys
from functools import cache

from rich.console import Console


@cache
def stdout() -> Console:
    """The console of results."""
    return Console()


@cache
def stderr() -> Console:
    """The console of progress, notes and errors."""
    return Console(stderr=True)


def interactive() -> bool:
    """Whether a person watches stderr."""
    return sys.stderr.isatty()
