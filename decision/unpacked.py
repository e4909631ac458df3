"""Inputs that are no plain files, a compressed log (``.swf.gz``) and standard input (``-``), made into files.

Everything above reads files, some of them several times or in other processes. So such an input becomes one, in a
folder that is removed when the process ends.
"""

import atexit
import functools
import gzip
import shutil
import sys
import tempfile
import zlib
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from decision.model.errors import InputError

STDIN = "-"
GZIP = ".gz"
_MAGIC = b"\x1f\x8b"


@functools.cache
def unpacked(path: Path) -> Path:
    """The file with the content of a compressed file or of standard input; unpacked once in a process.

    Args:
        path: a file whose name ends in ``.gz``, or ``-``.

    Raises:
        InputError: if it cannot be read or is damaged.
    """
    if path.name != STDIN:
        try:
            with path.open("rb") as packed:
                return _write(path.name.removesuffix(GZIP), cast(BinaryIO, gzip.open(packed)), str(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    source = cast(BufferedReader, sys.stdin.buffer)
    start = source.peek(64)
    if start.startswith(_MAGIC):
        return _write("stdin.swf", cast(BinaryIO, gzip.open(source)), "standard input")
    return _write("stdin.json" if start.lstrip().startswith(b"{") else "stdin.swf", source, "standard input")


def _write(name: str, source: BinaryIO, what: str) -> Path:
    path = _folder() / name
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{what}: damaged, or not compressed with gzip; copy it again") from None
    except OSError as error:
        raise InputError(f"{what}: cannot be written to {path} ({error.strerror}); free space") from None
    return path


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="decision-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
