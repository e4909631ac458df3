"""Results that are kept from run to run, each in a small file named by a hash of what defines it."""

import functools
import hashlib
from pathlib import Path
from typing import Any, Protocol

import msgspec

from decision import __version__
from decision.formats.files import read_bytes, write_files

_PACKAGE = Path(__file__).parent.parent

Result = dict[str, Any]


class Task(Protocol):
    """Something that can be done in any process, and whose result depends on its definition alone."""

    def definition(self) -> dict[str, Any]:
        """All that its result depends on, but for this package's sources; files by their content, not their place."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A file's content."""

    version: str  # of this package
    definition: dict[str, Any]
    result: Result


def place(folder: Path, task: Task) -> Path:
    """The file of a task's result; another one after any change of the task or of this package's sources."""
    definition = msgspec.json.encode(task.definition(), order="deterministic")
    return folder / f"{hashlib.sha256(definition + _sources().encode()).hexdigest()[:24]}.json"


def load(path: Path) -> Result | None:
    """The result in a file; None if there is none or it is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept).result
    except (OSError, msgspec.MsgspecError):
        return None


def keep(path: Path, task: Task, result: Result) -> None:
    """Write a task's result beside and rename it, so that the file is whole or absent.

    Raises:
        ConfigError: if it cannot be written.
    """
    kept = Kept(version=__version__, definition=task.definition(), result=result)
    write_files({path: [msgspec.json.format(msgspec.json.encode(kept)), b"\n"]})


def digest(path: Path) -> str:
    """A name for a file's content.

    Raises:
        InputError: if it cannot be read.
    """
    return hashlib.sha256(read_bytes(path)).hexdigest()[:24]


@functools.cache
def _sources() -> str:
    """A name for the sources of this package, but for the command line."""
    found = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        if "cli" not in file.relative_to(_PACKAGE).parts:
            found.update(file.read_bytes())
    return found.hexdigest()
