"""What a failure of the machine, and not of ours, is to its user: one line of what is missing, and what to do."""

import contextlib
import errno
import os
import sys
from pathlib import Path

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
    if isinstance(error, FileNotFoundError) and not _has_folder():
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
        return _unwritten(error) if error.errno in _FULL else None
    if str(error.filename).startswith("/dev/shm/"):  # what processes share
        return f"/dev/shm cannot be written ({error.strerror}), and several processes need it; take one (-j 1)"
    advice = _ADVICE.get(error.errno, "check the path and its permissions")
    return f"{error.filename}: {error.strerror}; {advice}"


def _has_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _unwritten(error: OSError) -> str:
    return f"what is printed, or a file, cannot be written ({error.strerror}); free space, or send it elsewhere"


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
