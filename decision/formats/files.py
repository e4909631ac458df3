"""Whole files: read with clear errors, written beside and renamed."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from decision.model.errors import ConfigError, InputError

LONGEST_LINE = 256 << 20  # bytes: a workload of more than a million jobs in one line
_CHUNK = 8 << 20  # bytes
_PACKED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
}


def read_bytes(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> bytes:
    """The file's content.

    A file with a line of more than `longest_line` bytes is refused before it fills the memory.

    Raises:
        InputError: if it is missing, a directory, unreadable, compressed, or has such a line.
    """
    try:
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size > longest_line:
                _check_lines(file, longest_line, path)
            data = file.read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    for magic, (kind, command) in _PACKED.items():
        if data.startswith(magic):
            raise InputError(f"{path}: compressed with {kind}; unpack it first: {command} {Path(path).name}")
    return data


def _check_lines(file: BinaryIO, longest: int, path: str | os.PathLike[str]) -> None:
    """Refuse a line of more than `longest` bytes, having read the file by parts; go back to its beginning."""
    number, length = 1, 0
    while chunk := file.read(min(_CHUNK, longest)):
        first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
        if length + (first if first >= 0 else len(chunk)) > longest:
            raise InputError(f"{path}, line {number}: longer than {longest:,} bytes; is it the right file?")
        number += chunk.count(b"\n")
        length = len(chunk) - last - 1 if last >= 0 else length + len(chunk)
    file.seek(0)


def write_files(contents: Mapping[Path, Iterable[bytes]]) -> None:
    """Write all the files or none: each is written beside its place, and all are renamed at the end.

    Missing folders are made.

    Raises:
        ConfigError: if a folder is missing or read-only, or the disk is full; no file is then left behind.
    """
    beside = {path: path.with_name(f".{path.name}.{os.getpid()}.part") for path in contents}
    target = Path()
    try:
        for target, chunks in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside[target].open("wb") as file:
                file.writelines(chunks)
        for target, part in beside.items():
            part.replace(target)
    except OSError as error:
        reason = f"{target}: cannot be written ({error.strerror}); free space or choose another folder"
        raise ConfigError(reason) from None
    finally:
        _remove(beside.values())


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:  # the folder itself is what failed, and it has been reported
            return
