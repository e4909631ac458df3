"""Many independent tasks over the cores, in processes of their own; what is finished is kept and not done again."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

from decision.model.errors import ConfigError

from .kept import Result, Task, keep, load, place
from .signals import StopRequest, stop_on_signals

_LOOK = 0.1  # seconds between two looks at signals
_AHEAD = 2  # tasks given to each process, so that none waits for the next

T = TypeVar("T", bound=Task)
Progress = Callable[[int, int], None]


def do_all(
    work: Callable[[T], Result],
    tasks: Sequence[T],
    folder: Path,
    *,
    processes: int = 1,
    first: Sequence[T] = (),
    progress: Progress = lambda done, of: None,
) -> list[Result]:
    """Do all tasks that have no result in `folder` yet; each result is kept as soon as there is one.

    SIGINT and SIGTERM let what is under way finish and be kept; a second one does not.

    Args:
        work: what does a task; a function that another process can import.
        tasks: what is to be done.
        folder: where results are kept.
        processes: how many work at a time; with 1 the work is done in this process.
        first: tasks, among these, to be done one after the other before the others: those that compile kernels,
            which the others then find on disk.
        progress: is told how many of how many are done.

    Returns:
        The results, in the order of the tasks; equal tasks are done once.

    Raises:
        ConfigError: if a result cannot be written or a process was killed.
        Interrupted: if a signal asked for the end.
        DecisionError: what a task raises; what has been finished until then is kept.
    """
    places = [place(folder, task) for task in tasks]
    results = {path: result for path in set(places) if (result := load(path)) is not None}
    of = len(set(places))
    progress(len(results), of)
    open_tasks = {path: task for path, task in zip(places, tasks, strict=True) if path not in results}
    leaders = {path: task for path in (place(folder, task) for task in first) if (task := open_tasks.pop(path, None))}
    with stop_on_signals() as stop, _workers(processes) as pool:
        for group, at_once in ((leaders, 1), (open_tasks, _AHEAD * processes)):
            finished = _share(work, group, pool, at_once, stop) if pool else _work_off(work, group, stop)
            for path, result in finished:
                results[path] = result
                progress(len(results), of)
            stop.check()
    return [results[path] for path in places]


def _work_off(work: Callable[[T], Result], tasks: dict[Path, T], stop: StopRequest) -> Iterator[tuple[Path, Result]]:
    """Do tasks in this process and give their results, until a signal asks for the end."""
    for path, task in tasks.items():
        if stop.signal:
            return
        yield path, _do(work, task, path)


def _share(
    work: Callable[[T], Result], tasks: dict[Path, T], pool: ProcessPoolExecutor, at_once: int, stop: StopRequest
) -> Iterator[tuple[Path, Result]]:
    """Let the pool do tasks and give their results as they come; none is handed out after a signal."""
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
            "a process that simulates was killed, perhaps for lack of memory; what is finished is kept: "
            "try again with fewer processes"
        ) from None


def _do(work: Callable[[T], Result], task: T, path: Path) -> Result:
    result = work(task)
    keep(path, task, result)
    return result


@contextmanager
def _workers(processes: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes that do tasks; however the block is left, they do not outlive it. None for one process: this one."""
    if processes == 1:
        yield None
        return
    # fresh processes: a fork would copy the threads' locks of a progress display
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_leave_signals_to_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()


def _leave_signals_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
