"""Where commands write: stdout for results, stderr for everything else.

Text in brackets is not markup here: names of files and policies have some, and ``batsim-decision[learn]``.
"""

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from decision.model.hosts import encodable

PAGE = 80  # columns of pictures in characters where there is no terminal
_QUIET = ContextVar("quiet", default=False)
_UNCUT = 10_000  # columns: a pipe takes lines of any length


@cache
def stdout() -> Console:
    """The console on which results are printed."""
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
    from decision.model.computer import as_given  # with the libraries that unpack

    return as_given(text)


def can_draw(lost: str) -> bool:
    """Whether pictures can be drawn; where not, a note says what is lost, and why."""
    from decision.model.errors import ConfigError
    from decision.report.plots import require_matplotlib

    try:
        require_matplotlib()
    except ConfigError as error:
        note(f"{lost}: {error}")
        return False
    return True


def printed(page: Path | None, wanted: bool) -> Path | None:
    """The PDF of a page, if it is wanted and a browser is here; where none is, a note says how to print the page."""
    from decision.model.errors import ConfigError
    from decision.report.browser import print_page

    if page is None or not wanted:
        return None
    try:
        return print_page(page)
    except ConfigError as error:
        note(f"no PDF: {error}")
        return None


# What a failure of the machine, and not of ours, is to its user: one line of what is missing, and what to do.

_NEEDS = {
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n 1024), or take fewer processes (-j 1)",
    errno.ENFILE: "the machine has too many files open; end other programs",
    errno.EAGAIN: "no further process or thread may begin; raise the limit (ulimit -u), or take fewer processes (-j 1)",
    errno.ENOMEM: "out of memory; take a smaller input, or fewer processes (-j 1)",
}
_ADVICE = {
    errno.ENOSPC: "free space or choose another folder",
    errno.EDQUOT: "free space or choose another folder",
    errno.EROFS: "choose a folder that can be written",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "Cannot allocate", "MemoryError")
_LIMITED = "out of memory, or of what ulimit -v allows, as a library was loaded; raise the limit"


def cause_in_words(error: BaseException) -> str | None:
    """What the machine lacks, in one line; None for a failure that is not of the machine."""
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'no more is free'}); take a smaller input, or less at a time"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _NEEDS[errno.EAGAIN]
    if isinstance(error, ImportError) and any(text in str(error) for text in _NO_MEMORY):
        return _LIMITED
    if not isinstance(error, OSError):
        return None
    if isinstance(error, FileNotFoundError):
        try:
            Path.cwd()
        except FileNotFoundError:
            return "the current folder has been removed; change to another one (cd)"
    if error.errno is None:  # of a library that could not be loaded
        context = error.__context__
        short = isinstance(context, OSError) and any(text in str(context) for text in _NO_MEMORY)
        return _LIMITED if short else None
    if error.errno == errno.ENAMETOOLONG:
        return f"{str(error.filename)[:60]}...: no file has so long a name"
    if error.errno in _NEEDS:
        return _NEEDS[error.errno]
    if error.filename is None:  # of a file that is open, mostly standard output
        why = f"what is printed, or a file, cannot be written ({error.strerror}); free space, or send it elsewhere"
        return why if error.errno in _FULL else None
    if str(error.filename).startswith("/dev/shm/"):  # what processes share
        return f"/dev/shm cannot be written ({error.strerror}), and several processes need it; take one (-j 1)"
    advice = _ADVICE.get(error.errno, "check the path and its permissions")
    return f"{error.filename}: {error.strerror}; {advice}"


def print_rest() -> None:
    """Write what is still to be printed. Raises OSError if that cannot be; not where its reader has had enough."""
    if sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        print_no_more()
        if error.errno != errno.EPIPE:
            raise


def print_no_more() -> None:
    """Let Python, which flushes standard output once more at its end, find nothing wrong then."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# What a terminal shows while something runs, and what is written in its place where there is none.

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
        # Seconds; 0 where nothing is compiled, or the compiler is not even loaded.
        jit = sys.modules.get("decision.compiling.jit")
        compiling = float(jit.compiling_for()) if jit else 0.0
        compiles = f"compiling for {clock_time(compiling)}" if compiling else ""
        parts = [compiles, self._more, f"{clock_time(elapsed)} elapsed"]
        if self._of:
            parts.insert(0, f"{self._done:,} of {self._of:,} {self._unit}".rstrip())
            gained = self._done - max(self._first, 0)
            left = elapsed * (self._of - self._done) / gained if gained else None
            if not compiling:  # nobody knows for how long
                parts.append("time left unknown" if left is None else f"about {clock_time(left)} left")
        return f"{self._what}: {', '.join(part for part in parts if part)}"


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
def counting(what: str, kept: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of how many are done, which is what the yielded function takes.

    Where stderr is not a terminal, it is a line a minute. Says what is cached if it ends early, where runs are `kept`.
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
            if kept and last[0]:
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
