"""What a worker does: some tasks of a command, if it has the same sources and the same files as that."""

import functools
import hashlib
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from decision import __version__
from decision.formats.input_facts import file_facts
from decision.formats.json_text import json_bytes
from decision.model.errors import ConfigError, DecisionError

from .store import Result, host_name
from .workers import mark, this_worker

_PACKAGE = Path(__file__).parent.parent


class CachedTask(Protocol):
    """Something that any process can do, and whose result depends on its definition alone.

    It may have a ``title``, its name for people, and ``files()``: the files that it reads, each with what `file_digest`
    said of it when the task was made.
    """

    def definition(self) -> dict[str, Any]:
        """All that its result depends on, except this package; files by their content, not their path."""


def task_key(task: CachedTask) -> str:
    """What a task's result is stored under; another one after any change of the task or of the numerics."""
    return key_of(definition_of(task))


def definition_of(task: CachedTask) -> bytes:
    return json_bytes(task.definition(), order="deterministic")


def key_of(definition: bytes) -> str:
    return hashlib.sha256(definition + numerics().encode()).hexdigest()[:24]


def file_digest(path: Path) -> str:
    """A hash of a file's content.

    Raises:
        InputError: if it cannot be read.
    """
    return file_facts(path).sha256[:24]


@functools.cache
def numerics() -> str:
    """What identifies this package's numerics: its version if it is installed, a hash of its sources in a checkout."""
    if not (_PACKAGE.parent / "pyproject.toml").is_file():
        return __version__
    found = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        if "cli" not in file.relative_to(_PACKAGE).parts:
            found.update(file.read_bytes())
    return found.hexdigest()


CHUNK = 2.0  # seconds that a worker does tasks before it hands over what it has found


class WorkerSources(NamedTuple):
    """What a worker must have in common with the command."""

    python: tuple[int, ...]
    numerics: str
    files: tuple[tuple[str, str], ...]  # path and digest


def own_sources(files: tuple[tuple[str, str], ...] = ()) -> tuple[Any, ...]:
    """Those of this process, with files that the work reads; plain, so that another version can read them."""
    return tuple(WorkerSources(sys.version_info[:2], numerics(), files))


class _Outcome(NamedTuple):
    """What became of a task."""

    result: Result | None
    reason: str = ""  # why there is none
    trace: str = ""  # where it failed, if that may be a mistake in a program


class Done(NamedTuple):
    """What became of the first tasks of a chunk."""

    outcomes: list[_Outcome]
    host: str
    worker: int | str
    seconds: float


def do_chunk(sources: tuple[Any, ...], content: bytes) -> Done:
    """Do tasks one after the other, for some seconds; a worker's whole work.

    Args:
        sources: those of the command, which must be this worker's.
        content: a pickled function, and the tasks that it does.

    Raises:
        ConfigError: if this worker has other sources or files.
    """
    check_same(WorkerSources(*sources))
    work, tasks = pickle.loads(content)
    return do_tasks(work, tasks, WorkerSources(*sources).files)


def do_tasks(work: Callable[[Any], Result], tasks: Sequence[Any], files: Sequence[tuple[str, str]]) -> Done:
    """Do tasks for some seconds. Raises ConfigError if a file is another one now."""
    outcomes, began = [], time.monotonic()
    for number, task in enumerate(tasks):
        mark(number)
        outcomes.append(_outcome(work, task))
        if time.monotonic() - began > CHUNK:
            break
    seconds = time.monotonic() - began
    mark(None)
    check_files(files)
    return Done(outcomes, host_name(), this_worker(), seconds)


def _outcome(work: Callable[[Any], Result], task: Any) -> _Outcome:
    try:
        return _Outcome(work(task))
    except DecisionError as error:
        trace = "" if error.__cause__ is None else "".join(traceback.format_exception(error))
        return _Outcome(None, str(error), trace)
    except Exception as error:
        return _Outcome(None, f"{type(error).__name__}: {error}", traceback.format_exc())


def check_same(sources: WorkerSources) -> None:
    """Refuse to work for a command with other sources, before anything of it is read."""
    python, own_numerics = sys.version_info[:2], numerics()
    if sources.python != python:
        theirs, own = (".".join(map(str, each)) for each in (sources.python, python))
        raise ConfigError(f"{host_name()}: has Python {own}, and the command has {theirs}; take the same there")
    if sources.numerics != own_numerics:
        differs = f"has another version of decision ({__version__}, {own_numerics[:12]}) than the command"
        raise ConfigError(f"{host_name()}: {differs} ({sources.numerics[:12]}); install the same there")
    check_files(sources.files)


def check_files(files: Iterable[tuple[str, str]]) -> None:
    for path, digest in files:
        try:
            status = Path(path).stat()
            found = _digest_at(path, status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError as error:
            raise ConfigError(
                f"{host_name()}: {path} cannot be read ({error.strerror}); workers need it, too"
            ) from None
        if found != digest:
            raise ConfigError(f"{host_name()}: {path} is not what it was when the command began; begin again")


@functools.lru_cache(maxsize=1024)
def _digest_at(path: str, *changed: int) -> str:
    return file_digest(Path(path))
