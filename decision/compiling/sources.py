"""Stamps: names for the sources of a module and of all that it imports from this package, directly or not.

Each start asks for some. So what was read of a file is kept beside the machine code, with the file's size and the times
of its last change: the next process reads only what has changed since. A file that changed just now is not kept, since
it may change again within the same tick of the file system's clock.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).parents[1]
IMPORTED_FROM = os.path.join(_PACKAGE.parent, "")  # the folder that the package is in
_IMPORT = re.compile(rb"\n[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))")
_NAME = re.compile(rb"(\w+)(?: as \w+)?")
_TICK = 2 * 10**9  # nanoseconds within which a file may change twice unseen


class _Source(NamedTuple):
    """What is known of a file."""

    state: list[int]  # its size, and the times of its last change
    digest: str
    imports: list[str]  # the files of this package that it imports


def stamp(module: str, compiler: str, folder: Path) -> str:
    """A name for the sources of a module and of all that it imports.

    Args:
        module: its full name; it is imported.
        compiler: versions of what compiles, a part of the name.
        folder: where what was read is kept.
    """
    kept, seen = _kept(folder), dict[str, str]()
    # From file to file by what each imports, in any order: the stamp is of the sorted files.
    todo, read = [_file_of(module) or sys.modules[module].__file__ or ""], False
    while todo:
        file = todo.pop()
        if file not in seen:
            state = _state(file)
            if file not in kept or kept[file].state != state:
                kept[file], read = _source(file, state), True
            seen[file] = kept[file].digest
            todo += kept[file].imports
    if read:
        _write(_file(folder), kept)
    return _short(" ".join([compiler, *(seen[file] for file in sorted(seen))]))


@functools.cache
def _kept(folder: Path) -> dict[str, _Source]:
    """What this process and earlier ones have read, by file."""
    with contextlib.suppress(Exception):  # what is torn raises anything
        os.utime(_file(folder).parent)  # in use
        return {name: _Source(*known) for name, known in json.loads(_file(folder).read_bytes()).items()}
    return {}


def _write(file: Path, kept: dict[str, _Source]) -> None:
    # What changed within the clock's tick may change again and look the same.
    latest = time.time_ns() - _TICK
    settled = {name: source for name, source in kept.items() if max(source.state[1:]) < latest}
    with contextlib.suppress(OSError):  # a folder that cannot be written
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(settled))
        beside.replace(file)


def _file(folder: Path) -> Path:
    return folder / "sources" / _short(IMPORTED_FROM) / "sources.json"


@functools.cache
def _state(file: str) -> list[int]:
    status = os.stat(file)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _source(file: str, state: list[int]) -> _Source:
    text = Path(file).read_bytes()
    inside = file.startswith(IMPORTED_FROM)
    # By their text and not by importing them: a start must not import what it does not need.
    package = file[len(IMPORTED_FROM) :].split(os.sep)[:-1] if inside else []
    imports: list[str | None] = []
    for origin, names, plain in _IMPORT.findall(b"\n" + text):
        base = (origin or plain).decode()
        if dots := len(base) - len(base.lstrip(".")):
            base = ".".join([*package[: len(package) - dots + 1], *filter(None, [base[dots:]])])
        parts = [_file_of(f"{base}.{name.decode()}") for name in _NAME.findall(names)]
        imports += [part for part in parts if part] if all(parts) and parts else [*filter(None, parts), _file_of(base)]
    where = b"" if inside else file.encode()  # what kernels raise names their file; inside, from this package's folder
    return _Source(state, _short(text + where), [imported for imported in imports if imported])


@functools.cache
def _file_of(module: str) -> str | None:
    """A module's source; None where it is not of this package."""
    parts = module.split(".")
    if parts[0] != _PACKAGE.name:
        return None
    path = IMPORTED_FROM + os.sep.join(parts)
    candidates = path + ".py", os.path.join(path, "__init__.py")
    return next((file for file in candidates if os.path.isfile(file)), None)


def _short(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]
