"""What a person who watches sees while something runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

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


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of how many are done, as the yielded function is told.

    Shows no bar where stderr is no terminal. Says what is kept if it ends early.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = stderr()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)
        last = (0, 0)

        def show(done: int, of: int) -> None:
            nonlocal last
            last = done, of
            bar.update(task, completed=done, total=of)

        try:
            yield show
        except BaseException:
            if last[0]:
                done = f"{last[0]:,} of {last[1]:,} {what}"
                console.print(f"{done} are finished and kept: the same command goes on from there", highlight=False)
            raise


def announce_compilation() -> None:
    """Say so if what follows compiles first."""
    from decision.jit import cache_directory, is_warm

    if not is_warm():
        stderr().print(
            f"The first run compiles for about a minute; the result is kept in {cache_directory().parent}",
            highlight=False,
            soft_wrap=True,
        )
