"""Many independent tasks over the cores, in separate processes; each result is cached and not computed again.

A result is a small file whose name is a hash of the task's definition and of the numerics: the package's version in an
installed release, all sources except those of the command line in a checkout. So a change of the numerics never meets
an old result.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from decision import __version__
from decision.batsim.signals import StopRequest, stop_on_signals
from decision.formats.files import write_files
from decision.formats.input_facts import file_facts
from decision.model.errors import ConfigError

from .workers import workers

_PACKAGE = Path(__file__).parent.parent

Result = dict[str, Any]


class CachedTask(Protocol):
    """Something that any process can do, and whose result depends on its definition alone."""

    def definition(self) -> dict[str, Any]:
        """All that its result depends on, except this package; files by their content, not their path."""


class CachedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A file's content."""

    version: str  # of this package
    definition: dict[str, Any]
    result: Result


def result_path(folder: Path, task: CachedTask) -> Path:
    """The file of a task's result; a different one after any change of the task or of the numerics."""
    definition = msgspec.json.encode(task.definition(), order="deterministic")
    return folder / f"{hashlib.sha256(definition + _numerics().encode()).hexdigest()[:24]}.json"


def load_result(path: Path) -> Result | None:
    """The result in a file; None if the file is missing or is not a result."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=CachedResult).result
    except (OSError, msgspec.MsgspecError):
        return None


def save_result(path: Path, task: CachedTask, result: Result) -> None:
    """Write a task's result to a temporary file and rename it, so that the file is whole or absent.

    Raises:
        ConfigError: if it cannot be written.
    """
    content = CachedResult(version=__version__, definition=task.definition(), result=result)
    write_files({path: [msgspec.json.format(msgspec.json.encode(content)), b"\n"]})


def file_digest(path: Path) -> str:
    """A hash of a file's content.

    Raises:
        InputError: if it cannot be read.
    """
    return file_facts(path).sha256[:24]


@functools.cache
def _numerics() -> str:
    """What identifies this package's numerics: its version if it is installed, a hash of its sources in a checkout."""
    if not (_PACKAGE.parent / "pyproject.toml").is_file():
        return __version__
    found = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        if "cli" not in file.relative_to(_PACKAGE).parts:
            found.update(file.read_bytes())
    return found.hexdigest()


_LOOK = 0.1  # seconds between two looks at signals
_AHEAD = 2  # tasks given to each process, so that none waits for the next

_T = TypeVar("_T", bound=CachedTask)
Progress = Callable[[int, int], None]


def run_tasks(
    work: Callable[[_T], Result],
    tasks: Sequence[_T],
    folder: Path,
    *,
    processes: int = 1,
    first: Sequence[_T] = (),
    progress: Progress = lambda done, of: None,
) -> list[Result]:
    """Do all tasks that have no result in `folder` yet; each result is saved as soon as there is one.

    After SIGINT or SIGTERM the running tasks finish and are saved; a second signal stops at once.

    Args:
        work: what does a task; a function that another process can import.
        tasks: what is to be done.
        folder: where results are saved.
        processes: how many work at a time; with 1 the work is done in this process.
        first: tasks, among these, that are done one after the other before the others: those that compile kernels,
            which the others then find on disk.
        progress: called with the number of tasks that are done and the number of all tasks.

    Returns:
        The results, in the order of the tasks; equal tasks are done once.

    Raises:
        ConfigError: if a result cannot be written or a process was killed.
        Interrupted: if a signal asked for the end.
        DecisionError: what a task raises; what has been finished until then is saved.
    """
    places = [result_path(folder, task) for task in tasks]
    results = {path: result for path in set(places) if (result := load_result(path)) is not None}
    of = len(set(places))
    progress(len(results), of)
    open_tasks = {path: task for path, task in zip(places, tasks, strict=True) if path not in results}
    leaders = {
        path: task for path in (result_path(folder, task) for task in first) if (task := open_tasks.pop(path, None))
    }
    with stop_on_signals() as stop, nullcontext() if processes == 1 else workers(processes) as pool:
        for group, at_once in ((leaders, 1), (open_tasks, _AHEAD * processes)):
            finished = _share(work, group, pool, at_once, stop) if pool else _work_off(work, group, stop)
            for path, result in finished:
                results[path] = result
                progress(len(results), of)
            stop.check()
    return [results[path] for path in places]


def _work_off(work: Callable[[_T], Result], tasks: dict[Path, _T], stop: StopRequest) -> Iterator[tuple[Path, Result]]:
    """Do tasks in this process and give their results, until a signal asks for the end."""
    for path, task in tasks.items():
        if stop.signal:
            return
        yield path, _do(work, task, path)


def _share(
    work: Callable[[_T], Result], tasks: dict[Path, _T], pool: ProcessPoolExecutor, at_once: int, stop: StopRequest
) -> Iterator[tuple[Path, Result]]:
    """Let the pool do tasks and give their results as they come; no task is started after a signal."""
    waiting = iter(tasks.items())
    under_way: dict[Future[Result], Path] = {}
    while True:
        for path, task in islice(waiting, 0 if stop.signal else at_once - len(under_way)):
            under_way[pool.submit(_do, work, task, path)] = path
        if not under_way:
            return
        for future in wait(under_way, _LOOK, FIRST_COMPLETED).done:
            yield under_way.pop(future), _result(future)


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except BrokenProcessPool:
        raise ConfigError(
            "a worker process was killed, perhaps for lack of memory; finished runs are kept: "
            "try again with fewer processes"
        ) from None


def _do(work: Callable[[_T], Result], task: _T, path: Path) -> Result:
    result = work(task)
    save_result(path, task, result)
    return result
