"""What a terminal shows while something runs, and what is written in its place where there is none."""

import sys
import threading
import time
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

from .terminal import is_quiet, note, stderr

_PERIOD = 60.0  # seconds between two lines


class Pace:
    """How far something is, in words.

    Args:
        what: is done.
        unit: of what is counted, if that is something else.
    """

    def __init__(self, what: str, unit: str = "") -> None:
        self._what, self._unit = what, unit
        self._began = time.monotonic()
        self._first, self._done, self._of, self._more = -1, 0, 0, ""

    def set(self, done: int, of: int, more: str = "") -> None:
        """So many of so many are done; the first call says how many were when it began."""
        if self._first < 0:
            self._first = done
        self._done, self._of, self._more = done, of, more

    def __str__(self) -> str:
        elapsed = time.monotonic() - self._began
        compiling = _compiling_for()
        compiles = f"compiling for {clock_time(compiling)}" if compiling else ""
        parts = [compiles, self._more, f"{clock_time(elapsed)} elapsed"]
        if self._of:
            parts.insert(0, f"{self._done:,} of {self._of:,} {self._unit}".rstrip())
            gained = self._done - max(self._first, 0)
            left = elapsed * (self._of - self._done) / gained if gained else None
            if not compiling:  # nobody knows for how long
                parts.append("time left unknown" if left is None else f"about {clock_time(left)} left")
        return f"{self._what}: {', '.join(part for part in parts if part)}"


def _compiling_for() -> float:
    """Seconds; 0 where nothing is compiled, or the compiler is not even loaded."""
    jit = sys.modules.get("decision.compiling.jit")
    return float(jit.compiling_for()) if jit else 0.0


def clock_time(seconds: float) -> str:
    """A time as ``45 s``, ``12 min`` or ``3 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min"


@contextmanager
def paced(pace: Pace) -> Iterator[None]:
    """Say on stderr once a minute how far it is, where no terminal shows a bar."""
    if stderr().is_terminal or is_quiet():
        yield
        return
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_PERIOD):
            note(str(pace))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def working(what: str) -> Iterator[Callable[[float, int, int], None]]:
    """Show on stderr what runs and for how long.

    The yielded function takes what is shown with it: the simulated time in seconds, how many jobs are done, and how
    many there are; from these comes the time that is left. Where stderr is not a terminal, it is a line a minute.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    bars = Progress(*columns, console=stderr(), transient=True, disable=not has_bars())
    pace = Pace(what, "jobs")
    with bars as bar, paced(pace):
        task = bar.add_task(what, total=None)

        def show(now: float, done: int, jobs: int) -> None:
            pace.set(done, jobs, f"simulated {now:,.0f} s")
            text = f"{what}: {done:,} of {jobs:,} jobs, simulated {now:,.0f} s"
            bar.update(task, description=text, completed=done, total=jobs)

        yield show


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of how many are done, which is what the yielded function takes.

    Where stderr is not a terminal, it is a line a minute. Says what is cached if it ends early.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    pace = Pace(what)
    bars = Progress(*columns, TimeRemainingColumn(), console=stderr(), transient=True, disable=not has_bars())
    with bars as bar, paced(pace):
        task = bar.add_task(what, total=None)
        last = (0, 0)

        def show(done: int, of: int) -> None:
            nonlocal last
            last = done, of
            pace.set(done, of)
            bar.update(task, completed=done, total=of)

        try:
            yield show
        except BaseException:
            if last[0]:
                done = f"{last[0]:,} of {last[1]:,} {what}"
                note(f"{done} are finished and kept: the same command resumes from there")
            raise


def has_bars() -> bool:
    """Whether a terminal shows bars."""
    return stderr().is_terminal and not is_quiet()


def announce_compilation() -> None:
    """Say so where kernels have to be compiled first, and how much of it is done."""
    from decision.compiling.jit import cache_directory, is_shipped, on_compiling, warn_if_not_kept, why_not_kept

    def tell(done: int, of: int) -> None:
        which = f" {done + 1} of {of}" if of else ""
        kept = "" if why_not_kept() else f"; this is done once, and kept in {cache_directory()}"
        note(f"Compiling{which}{kept}")

    if not is_shipped():
        warn_if_not_kept()
    on_compiling[:] = [tell]
