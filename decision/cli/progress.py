"""What a person who watches sees while something runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .terminal import stderr


@contextmanager
def working(what: str) -> Iterator[Callable[[float], None]]:
    """Show on stderr what runs, for how long, and the simulated time (seconds) that the yielded function is told.

    Shows nothing where stderr is no terminal.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda now: bar.update(task, description=f"{what}, simulated {now:,.0f} s")


def announce_compilation() -> None:
    """Say so if what follows compiles first."""
    from decision.jit import cache_directory, is_warm

    if not is_warm():
        stderr().print(
            f"The first run compiles for about a minute; the result is kept in {cache_directory().parent}",
            highlight=False,
            soft_wrap=True,
        )
