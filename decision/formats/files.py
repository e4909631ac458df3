"""Whole files: read with clear errors, written beside and renamed."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from decision.model.errors import ConfigError, InputError


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The file's content.

    Raises:
        InputError: if it is missing, a directory, or unreadable.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


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
