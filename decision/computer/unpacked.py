"""Inputs that are no plain files, compressed ones and standard input (``-``), made into files.

Everything above reads files, some of them several times or in other processes. So such an input becomes one, in a
folder that is removed when the process ends. Which compression it is, the first bytes say.
"""

import atexit
import bz2
import functools
import gzip
import lzma
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from decision.model.errors import InputError

STDIN = "-"
_PACKED: dict[bytes, tuple[str, str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", ".gz", gzip.open),
    b"BZh": ("bzip2", ".bz2", bz2.open),
    b"\xfd7zXZ": ("xz", ".xz", lzma.open),
}
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


def packing(path: Path) -> str:
    """The compression of a file that can be read, by its first bytes or else its name's ending; "" of a plain one."""
    try:
        with path.open("rb") as file:
            return _kind(file.read(8))[0]
    except OSError:
        return next((kind for kind, ending, _ in _PACKED.values() if path.name.lower().endswith(ending)), "")


def _kind(begin: bytes) -> tuple[str, str, Callable[[Any], Any]]:
    return next((said for magic, said in _PACKED.items() if begin.startswith(magic)), ("", "", lambda file: file))


_given: dict[Path, str] = {}  # what users gave, by the file that it became


def as_given(text: str) -> str:
    """A text for people with what they gave in the place of the files that it became."""
    for path, given in _given.items():
        text = text.replace(str(path), given)
    return text


@functools.cache
def unpacked(path: Path) -> Path:
    """The file with the content of a compressed file or of standard input; unpacked once in a process.

    Args:
        path: a compressed file, or ``-``.

    Raises:
        InputError: if it cannot be read or is damaged.
    """
    if path.name == STDIN:
        source = cast(BufferedReader, sys.stdin.buffer)
        kind, _, open_packed = _kind(source.peek(64))
        return _write("stdin", cast(BinaryIO, open_packed(source)), "standard input", kind)
    try:
        with path.open("rb") as packed:
            kind, ending, open_packed = _kind(packed.read(8))
            packed.seek(0)
            return _write(path.name.removesuffix(ending), cast(BinaryIO, open_packed(packed)), str(path), kind)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def _write(name: str, source: BinaryIO, what: str, kind: str) -> Path:
    path = _folder() / name
    _given[path] = what
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(source, file)
    except _DAMAGED:
        raise InputError(f"{what}: damaged, or not compressed with {kind}; copy it again") from None
    except OSError as error:
        if error.errno is None:  # what bz2 raises
            raise InputError(f"{what}: damaged, or not compressed with {kind}; copy it again") from None
        raise InputError(f"{what}: cannot be written to {path} ({error.strerror}); free space") from None
    return path


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="decision-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
