"""Whole files: read with clear errors, written to a temporary file and renamed."""

import errno
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from decision.model.computer import as_plain_file, is_pipe, unpacked
from decision.model.errors import ConfigError, InputError, log

LONGEST_LINE = 256 << 20  # bytes: a workload of more than a million jobs in one line
_CHUNK = 8 << 20  # bytes
_BLOCK = 2 << 20  # bytes


def read_bytes(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> bytes:
    """The file's content.

    A file with a line of more than `longest_line` bytes is refused before it fills the memory.

    Raises:
        InputError: if it is missing, a directory, unreadable, an archive of several files, or has such a line.
    """
    with opened(path, longest_line) as file:
        return file.read()


def read_blocks(path: str | os.PathLike[str], longest_line: int) -> Iterator[bytes]:
    """The file's content in parts of some megabytes, each but the last of whole lines; errors as `read_bytes`."""
    with opened(path, longest_line) as file:
        rest = b""
        while chunk := file.read(_BLOCK):
            lines, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                yield lines + end
        if rest:
            yield rest


@contextmanager
def opened(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> Iterator[BinaryIO]:
    """The file at its beginning, unpacked where it is compressed; errors as `read_bytes`."""
    try:
        with as_plain_file(path).open("rb") as file:
            log.info("reading %s", path)
            if os.fstat(file.fileno()).st_size > longest_line:
                number, length = 1, 0
                while chunk := file.read(min(_CHUNK, longest_line)):
                    first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
                    if length + (first if first >= 0 else len(chunk)) > longest_line:
                        mistake = f"longer than {longest_line:,} bytes; is it the right file?"
                        raise InputError(f"{path}, line {number}: {mistake}")
                    number += chunk.count(b"\n")
                    length = len(chunk) - last - 1 if last >= 0 else length + len(chunk)
                file.seek(0)
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


def utf8(text: str) -> bytes:
    """A text for a file; names of files whose bytes are no UTF-8 get escapes for these."""
    return text.encode(errors="backslashreplace")


def make_folder(path: Path) -> None:
    """Make a folder, and those that it is in. Raises OSError, whose `strerror` names what stands in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        for place in (path, *path.parents):
            if place.is_symlink() and not place.exists():
                reason = f"{place} is a link to {place.readlink()}, which is not there"
                raise OSError(error.errno, reason) from None
            if place.exists() and not place.is_dir():
                raise OSError(error.errno, f"{place} is not a folder") from None
        raise


def write_files(contents: Mapping[Path, Iterable[bytes]]) -> None:
    """Write all the files or none: each is written to a temporary file next to its target; all are renamed at the end.

    Missing folders are made. A symbolic link stays, and the file that it points to is written. Pipes and devices
    cannot be replaced: they are written directly.

    Raises:
        ConfigError: if a target is a folder, a folder is read-only, or the disk is full; then no file is left behind.
    """
    places: dict[Path, Path] = {}  # the target of each temporary file
    target = Path()
    try:
        for target, chunks in contents.items():
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            # the file at the end of links, or the target itself where that is not a regular file
            place = Path(os.path.realpath(target)) if _replaceable(target) else target
            part = place.with_name(f".{place.name}.{os.getpid()}.part") if _replaceable(place) else place
            make_folder(place.parent)
            places[part] = place
            with part.open("wb") as file:
                file.writelines(chunks)
        for part, target in places.items():
            part.replace(target)
            log.info("wrote %s", target)
    except OSError as error:
        raise ConfigError(
            f"{target}: cannot be written ({error.strerror}); free space or choose another folder"
        ) from None
    finally:
        with suppress(OSError):  # the folder itself is what failed, and it has been reported
            for part, place in places.items():
                if part != place:
                    part.unlink(missing_ok=True)


def _replaceable(path: Path) -> bool:
    """Whether a new file may replace it."""
    return path.is_file() or not path.exists()


def is_plain_number(text: str) -> bool:
    """Whether a text is the usual spelling of a whole number of at most 15 digits, which a float keeps."""
    return text.isascii() and text.isdigit() and len(text) < 16 and str(int(text)) == text


# What a file was that a run or a training began with.

Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]  # without control characters


class InputFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file's name, without its folder, and its content's hash."""

    name: Text
    sha256: Text


def printable(text: str) -> str:
    """A text of the user's without control characters and bytes that are no text."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "?", text)


def file_facts(path: str | os.PathLike[str]) -> InputFacts:
    """Name and hash of a file. Raises InputError."""
    try:
        source = unpacked(Path(path)) if is_pipe(Path(path)) else Path(path)  # a checkpoint is an archive, as it is
        with source.open("rb") as file:
            return InputFacts(name=printable(Path(path).name), sha256=hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
