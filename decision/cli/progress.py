"""What a terminal shows while something runs."""

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

from .terminal import note, stderr


@contextmanager
def working(what: str) -> Iterator[Callable[[float, int, int], None]]:
    """Show on stderr what runs and for how long.

    The yielded function takes what is shown with it: the simulated time in seconds, how many jobs are done, and how
    many there are; from these comes the time that is left. Shows nothing where stderr is not a terminal.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def show(now: float, done: int, jobs: int) -> None:
            text = f"{what}: {done:,} of {jobs:,} jobs, simulated {now:,.0f} s"
            bar.update(task, description=text, completed=done, total=jobs)

        yield show


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of how many are done, which is what the yielded function takes.

    Shows no bar where stderr is not a terminal. Says what is cached if it ends early.
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
                note(f"{done} are finished and kept: the same command resumes from there")
            raise


def announce_compilation() -> None:
    """Say so if the kernels have to be compiled first."""
    from decision.engine.kernels.server import advance
    from decision.jit import cache_directory, is_warm

    if not is_warm(advance):
        note(f"The first run compiles for about a minute; the result is cached in {cache_directory()}")
