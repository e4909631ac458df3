"""A Batsim as a process: its command, its start and its end.

It reads its own files for half a second before it says anything, and we read ours as long. So `started_ahead` starts
it before we know more than the names of the files; what we then find out either agrees with its command, or that
Batsim is ended, which has written nothing but into a fresh folder, and another one is started. This module imports
little, so that it is there first. A command of ours that ``decision again`` repeats is a process, too.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from decision.model.errors import ConfigError

FRESH = ".batsim-"  # FOLDER/.batsim-*: where Batsim writes
FILE_PREFIX = "out"  # FOLDER/out_jobs.csv, as Batsim names its files by default
TERM_GRACE = 5.0  # seconds between SIGTERM and SIGKILL
_GUARD = 'read -r word || kill -TERM "$1"'  # its input ends without a word when the process that writes to it dies
_SOCKET = "batsim"  # in a folder of its own


class Ahead(NamedTuple):
    """A Batsim that was started before its inputs were read."""

    command: list[str]  # all but the socket's
    fresh: Path  # the folder that it writes into, within the run's
    socket: str  # the path of the socket that it connects to
    log: Path  # what it prints
    process: "subprocess.Popen[bytes]"


def command_of_4(
    executable: Sequence[str],
    inputs: Sequence[tuple[str, Path]],
    fresh: Path,
    *,
    verbosity: str,
    schedule_trace: bool,
    switches: Sequence[str],
) -> list[str]:
    """Batsim 4 and its options, all but the socket's.

    Args:
        executable: it, or the words that start its container.
        inputs: options with their files.
        fresh: the folder that it writes into.
        verbosity: of what it prints.
        schedule_trace: whether it writes out_schedule.trace.
        switches: options without a word.
    """
    words = [str(word) for pair in inputs for word in pair] + ["-e", f"{fresh}/{FILE_PREFIX}", "-v", verbosity]
    return [*executable, *words, *([] if schedule_trace else ["--disable-schedule-tracing"]), *switches]


def find_batsim(batsim: str) -> str:
    """The path of Batsim's executable. Raises ConfigError if the command is not found."""
    path = shutil.which(batsim)
    if path is None:
        raise ConfigError(f"{batsim}: command not found; give the path of Batsim's executable", field="batsim")
    return path


def speaks_5(batsim: str) -> bool:
    """Whether an executable is a Batsim 5, by its help: the text of its version says nothing for certain."""
    try:
        status = Path(batsim).stat()
        return _is_of_5(batsim, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return False  # starting it to simulate says why


@lru_cache(maxsize=16)
def _is_of_5(batsim: str, *_state: int) -> bool:
    """The same, asked once of a file as it is: a process that steps simulations starts many."""
    return _has_options_of_5(_asked_for_help(batsim))


def _asked_for_help(batsim: str) -> "subprocess.Popen[bytes]":
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.Popen([batsim, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=wide)


def _has_options_of_5(asked: "subprocess.Popen[bytes]") -> bool:
    with asked, suppress(subprocess.TimeoutExpired):
        return b"--edc-socket-str" in asked.communicate(timeout=TERM_GRACE * 6)[0]
    return False


@contextmanager
def started_ahead(batsim: str, folder: Path, command: Callable[[str, Path], list[str]]) -> Iterator[Ahead | None]:
    """A Batsim 4 that runs until the block is left; None where it cannot be started, of which others say why.

    Args:
        batsim: the executable.
        folder: of the run; it is made where it is missing, and removed where nothing came into it.
        command: makes the command from the executable's path and the folder that Batsim writes into; it may write
            files there that Batsim reads, and is called while the executable says what it is.
    """
    with ExitStack() as stack:
        ahead = None
        with suppress(Exception):
            executable = find_batsim(batsim)
            asked = _asked_for_help(executable)
            try:
                if not folder.exists():
                    folder.mkdir()
                    stack.callback(_remove_if_empty, folder)
                fresh = Path(stack.enter_context(TemporaryDirectory(prefix=FRESH, dir=folder.absolute())))
                socket = f"{stack.enter_context(TemporaryDirectory(prefix='decision-'))}/{_SOCKET}"
                words, log = command(executable, fresh), fresh / "batsim.log"
            finally:
                new = _has_options_of_5(asked)
            if not new:
                process = stack.enter_context(started([*words, "-s", f"ipc://{socket}"], log, patience=0.0))
                ahead = Ahead(words, fresh, socket, log, process)
        yield ahead


def dismiss(ahead: Ahead) -> None:
    """End it, and remove what it has written: the run has another command."""
    _end(ahead.process, 0.0)
    for path in (*ahead.fresh.glob(f"{FILE_PREFIX}*"), ahead.log):
        path.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def started(command: Sequence[str], log: Path, patience: float = TERM_GRACE) -> Iterator["subprocess.Popen[bytes]"]:
    """Batsim, running until the block is left; then it has so many seconds to end by itself."""
    try:
        output = log.open("wb")
    except OSError as error:
        raise ConfigError(f"{log}: cannot be written ({error.strerror}); choose another folder") from None
    with output:
        try:
            # a session of its own: Ctrl-C is for us, and we end Batsim
            batsim = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            mistake = f"{command[0]}: cannot be started ({error.strerror})"
            raise ConfigError(f"{mistake}; give the path of Batsim's executable", field="batsim") from None
        try:
            with _guarded(batsim):
                yield batsim
        finally:
            _end(batsim, patience)


@contextmanager
def _guarded(batsim: "subprocess.Popen[bytes]") -> Iterator[None]:
    """A shell that ends Batsim should we die without a chance to, by SIGKILL or for want of memory.

    Linux alone could do without: its PR_SET_PDEATHSIG needs code between fork and exec, which threads make unsafe.
    """
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", str(batsim.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives a signal to our process group
    )
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(b"over\n")


def _end(batsim: "subprocess.Popen[bytes]", patience: float) -> None:
    if batsim.poll() is None:
        batsim.terminate()
        wait(batsim, patience)
        batsim.kill()
        batsim.wait()


def wait(batsim: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait for its end, but no longer than this."""
    with suppress(subprocess.TimeoutExpired):
        batsim.wait(seconds)


def run_decision(words: Sequence[str], *, aside: bool) -> int:
    """A command of ours in a process of its own, as it was typed; its exit code.

    Args:
        words: what was typed behind ``decision``.
        aside: print on stderr what it prints on stdout.
    """
    return subprocess.run([sys.executable, "-m", "decision", *words], stdout=2 if aside else None).returncode
