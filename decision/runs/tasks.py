"""Many independent tasks, by this process, by others on this machine, or by those of a cluster.

Each result is stored as soon as there is one (`store`), and not computed again. Workers get chunks of tasks, and what
they find comes back to this process, which alone writes (`chunks`). What fails is recorded, and the others go on
(`failures`); a task whose worker is lost is done again, until it has taken three workers with it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from decision.batsim.signals import stop_on_signals
from decision.model.errors import Failure, ShareDone

from .chunks import file_digest as file_digest
from .chunks import task_key
from .dispatch import AnyTask, Dispatch, OpenTask
from .failures import TraceError, failed, write_failures
from .store import Result, ResultStore
from .workers import workers


class Share(NamedTuple):
    """The runs whose key modulo `of` is `number`."""

    number: int
    of: int


class How(TypedDict, total=False):
    """How `run_tasks` does tasks; each as of its arguments."""

    processes: int
    executor: Executor | None
    limit: float
    share: Share | None
    audit: float


Progress = Callable[[int, int], None]


class TaskResults(Sequence[Result]):
    """The results of tasks, in their order, each read when it is asked for.

    Args:
        store: where they are.
        keys: of the tasks.
    """

    def __init__(self, store: ResultStore, keys: Sequence[str]) -> None:
        self._store, self._keys = store, keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return TaskResults(self._store, self._keys[at])
        result = self._store.get(self._keys[at])
        assert result is not None
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


def run_tasks(
    work: Callable[[AnyTask], Result],
    tasks: Collection[AnyTask],
    folder: Path,
    *,
    processes: int = 1,
    executor: Executor | None = None,
    limit: float = 0.0,
    share: Share | None = None,
    audit: float = 0.0,
    first: Sequence[AnyTask] = (),
    progress: Progress = lambda done, of: None,
) -> TaskResults:
    """Do all tasks that have no result in `folder` yet; each result is stored as soon as there is one.

    A task that fails is listed in ``failures.csv`` next to the folder, and the others are done; the next call tries it
    again. After SIGINT or SIGTERM the running tasks finish and are stored; a second signal stops at once.

    Args:
        work: what does a task; a function that another process can import.
        tasks: what is to be done; gone through twice, so they need not be in memory all at once.
        folder: where results are stored.
        processes: how many of this machine work at a time; with 1 and no limit the work is done in this process.
        executor: who does it in their place: those of `decision.runs.cluster`, or any of `concurrent.futures`.
        limit: seconds that a task may take; 0 means no limit. An executor that is given keeps its own.
        share: do these alone, and then raise `ShareDone` if others are missing.
        audit: the share of the tasks that are done twice, by different workers; their results must be equal.
        first: tasks, among these, that are done one after the other before the others: those that compile kernels,
            which the others then find on disk.
        progress: called with the number of tasks that have a result and the number of all tasks.

    Returns:
        The results, in the order of the tasks; equal tasks are done once.

    Raises:
        RunsFailedError: if tasks have failed, when all others are done.
        ConfigError: if a result cannot be stored, or a worker has another version of this package or other files.
        InputError: if the folder has two results of a task that differ.
        ShareDone: if the share is done.
        Interrupted: if a signal asked for the end.
    """
    keys = [task_key(task) for task in tasks]
    table = folder.parent / ("failures.csv" if share is None else f"failures-{share.number}-of-{share.of}.csv")
    with closing(ResultStore(folder)) as store:
        dispatch = Dispatch(work, store, audit)
        wanted = {key for key in keys if share is None or int(key, 16) % share.of == share.number}
        done, of = sum(key in store for key in wanted), len(wanted)
        progress(done, of)
        leaders = list(_without_result(((task_key(task), task) for task in first), wanted, store))
        others = _without_result(zip(keys, tasks, strict=True), wanted - {task.key for task in leaders}, store)
        groups = [(iter(leaders), 1), (others, 0)]
        failures: list[Failure] = []
        try:
            with stop_on_signals() as stop, _crew(executor, processes, limit) as crew:
                for group, at_once in groups if done < of else ():
                    for ended in dispatch.work_off(crew, group, of - done, at_once, stop):
                        if isinstance(ended, Failure):
                            failures.append(ended)
                        else:
                            done += 1
                            progress(done, of)
                    stop.check()
        finally:
            write_failures(table, failures)
    if failures:
        raise failed(failures, of, table) from (TraceError(dispatch.trace) if dispatch.trace else None)
    if share is not None and any(key not in store for key in keys):
        raise ShareDone(f"share {share.number}/{share.of}: {of:,} of {len(set(keys)):,} runs are done, in {folder}")
    return TaskResults(store, keys)


def _crew(executor: Executor | None, processes: int, limit: float) -> AbstractContextManager[Executor | None]:
    """Who does tasks: others, workers of this machine, or None for this process."""
    return nullcontext(executor) if executor or (processes == 1 and not limit) else workers(processes, limit)


def _without_result(
    tasks: Iterable[tuple[str, AnyTask]], wanted: set[str], store: ResultStore
) -> Iterator["OpenTask[AnyTask]"]:
    """Each task once that is wanted and has no result."""
    given: set[str] = set()
    for key, task in tasks:
        if key in wanted and key not in given and key not in store:
            given.add(key)
            yield OpenTask(key, task)
