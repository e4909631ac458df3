"""Many independent tasks, by this process, by others on this machine, or by those of a cluster.

Each result is stored as soon as there is one (`store`), and not computed again. Workers get chunks of tasks, and what
they find comes back to this process, which alone writes (`chunks`). What fails is recorded, and the others go on
(`failures`); a task whose worker is lost is done again, until it has taken three workers with it.
"""

import itertools
import pickle
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import msgspec

from decision.batsim.signals import StopRequest, stop_on_signals
from decision.model.errors import ConfigError, Failure, ShareDone

from .chunks import CHUNK, CachedTask, Done, check_files, definition_of, do_chunk, do_tasks, own_sources, task_key
from .chunks import file_digest as file_digest
from .failures import TraceError, failed, write_failures
from .store import Result, ResultStore
from .workers import AHEAD, STRIKES, WorkerLostError, workers, working_at_once


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


_LOOK = 0.1  # seconds between two looks at signals
_MOST = 2000  # tasks in a chunk

_T = TypeVar("_T", bound=CachedTask)
Progress = Callable[[int, int], None]


class _Open(NamedTuple, Generic[_T]):
    """A task without a result."""

    key: str
    task: _T


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
    work: Callable[[_T], Result],
    tasks: Collection[_T],
    folder: Path,
    *,
    processes: int = 1,
    executor: Executor | None = None,
    limit: float = 0.0,
    share: Share | None = None,
    audit: float = 0.0,
    first: Sequence[_T] = (),
    progress: Progress = lambda done, of: None,
) -> TaskResults:
    """Do all tasks that have no result in `folder` yet; each result is stored as soon as there is one.

    A task that fails is listed in ``failures.csv`` beside the folder, and the others are done; the next call tries it
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
        campaign = _Campaign(work, store, audit)
        wanted = {key for key in keys if share is None or int(key, 16) % share.of == share.number}
        done, of = sum(key in store for key in wanted), len(wanted)
        progress(done, of)
        leaders = {key: task for task in first if (key := task_key(task)) in wanted and key not in store}
        others = _without_result(zip(keys, tasks, strict=True), wanted, store, leaders)
        groups = [(itertools.starmap(_Open, leaders.items()), 1), (others, 0)]
        failures: list[Failure] = []
        pool = nullcontext(executor) if executor or (processes == 1 and not limit) else workers(processes, limit)
        try:
            with stop_on_signals() as stop, pool as crew:
                for group, at_once in groups if done < of else ():
                    for ended in campaign.work_off(crew, group, of - done, at_once, stop):
                        if isinstance(ended, Failure):
                            failures.append(ended)
                        else:
                            done += 1
                            progress(done, of)
                    stop.check()
        finally:
            write_failures(table, failures)
    if failures:
        raise failed(failures, of, table) from (TraceError(campaign.trace) if campaign.trace else None)
    if share is not None and any(key not in store for key in keys):
        raise ShareDone(f"share {share.number}/{share.of}: {of:,} of {len(set(keys)):,} runs are done, in {folder}")
    return TaskResults(store, keys)


def _without_result(
    tasks: Iterable[tuple[str, _T]], wanted: set[str], store: ResultStore, leaders: Collection[str]
) -> Iterator["_Open[_T]"]:
    """Each task once that is wanted and is not a leader."""
    given: set[str] = set()
    for key, task in tasks:
        if key in wanted and key not in leaders and key not in given and key not in store:
            given.add(key)
            yield _Open(key, task)


class _Campaign(Generic[_T]):
    """Gives chunks of tasks to workers, stores what they find, and tells what has failed.

    Args:
        work: what does a task.
        store: gets the results.
        audit: as of `run_tasks`.
    """

    def __init__(self, work: Callable[[_T], Result], store: ResultStore, audit: float) -> None:
        self._work, self._store, self._audit = work, store, audit
        self._strikes: Counter[str] = Counter()  # workers that each task has taken with it
        self._found: dict[str, tuple[Done, Result]] = {}  # of those that are done again
        self._alone: deque[_Open[_T]] = deque()  # those whose worker was lost, or that are done again
        self._back: deque[_Open[_T]] = deque()  # those that a worker had no time for
        self._seconds, self._tasks = 0.0, 0  # of those that are done
        self.trace = ""  # of the first failure that has one

    def work_off(
        self, crew: Executor | None, tasks: Iterator["_Open[_T]"], count: int, at_once: int, stop: StopRequest
    ) -> Iterator[Failure | None]:
        """Do tasks, and give a failure, or None, for each that is done, until a signal asks for the end.

        Args:
            crew: who does it; None for this process.
            tasks: what is to be done.
            count: how many they are, at most.
            at_once: chunks under way; 0 for as many as the workers need.
            stop: whether to stop.
        """
        return self._do_here(tasks, stop) if crew is None else self._share_out(crew, tasks, count, at_once, stop)

    def _do_here(self, tasks: Iterator["_Open[_T]"], stop: StopRequest) -> Iterator[Failure | None]:
        while not stop.signal and (chunk := [*islice(itertools.chain(_emptied(self._alone), tasks), 1)]):
            files = self._files(chunk)
            check_files(files)
            yield from self._take(chunk, do_tasks(self._work, [chunk[0].task], files))

    def _share_out(
        self, crew: Executor, tasks: Iterator["_Open[_T]"], left: int, at_once: int, stop: StopRequest
    ) -> Iterator[Failure | None]:
        under_way: dict[Future[Done], list[_Open[_T]]] = {}
        while True:
            slots = working_at_once(crew)
            while not stop.signal and len(under_way) < (at_once or AHEAD * slots):
                if under_way and (self._has_suspect() or any(map(self._is_suspect, under_way.values()))):
                    break  # whose worker is lost next is known for certain only when nothing else is under way
                waiting = itertools.chain(_emptied(self._back), tasks)
                chunk = [self._alone.popleft()] if self._alone else [*islice(waiting, self._size(left, slots))]
                if not chunk:
                    break
                under_way[self._submit(crew, chunk)] = chunk
            if stop.signal:
                for future in [future for future in under_way if future.cancel()]:
                    del under_way[future]
            if not under_way:
                return
            for future in wait(under_way, _LOOK, FIRST_COMPLETED).done:
                for ended in self._ended(future, under_way.pop(future)):
                    left -= 1
                    yield ended

    def _has_suspect(self) -> bool:
        return bool(self._alone) and self._is_suspect([self._alone[0]])

    def _is_suspect(self, chunk: Sequence["_Open[_T]"]) -> bool:
        """Whether it is set aside when its worker is lost once more."""
        return any(self._strikes[each.key] >= STRIKES - 1 for each in chunk)

    def _size(self, left: int, slots: int) -> int:
        """How many tasks make a chunk of some seconds; fewer near the end, so that all workers have some."""
        if not self._tasks:
            return 1
        fit = CHUNK * self._tasks / max(self._seconds, 1e-9)
        return max(1, min(int(fit), _MOST, -(-left // (AHEAD * slots))))

    def _submit(self, crew: Executor, chunk: list["_Open[_T]"]) -> "Future[Done]":
        content = pickle.dumps((self._work, [each.task for each in chunk]))
        before = self._found.get(chunk[0].key)
        if before and hasattr(crew, "submit_elsewhere"):
            future: Future[Done] = crew.submit_elsewhere(before[0].worker, do_chunk, self._sources(chunk), content)
            return future
        return crew.submit(do_chunk, self._sources(chunk), content)

    def _sources(self, chunk: Sequence["_Open[_T]"]) -> tuple[Any, ...]:
        return own_sources(self._files(chunk))

    def _files(self, chunk: Sequence["_Open[_T]"]) -> tuple[tuple[str, str], ...]:
        """All that the tasks read, with digests."""
        read = (getattr(each.task, "files", None) for each in chunk)
        return tuple(dict.fromkeys((str(path), digest) for files in read if files for path, digest in files()))

    def _ended(self, future: "Future[Done]", chunk: list["_Open[_T]"]) -> Iterator[Failure | None]:
        try:
            done = future.result()
        except WorkerLostError as lost:
            yield from self._lost(chunk, lost)
        except BrokenExecutor as error:
            raise ConfigError(f"the workers have ended ({error}); finished runs are kept: try again") from None
        else:
            yield from self._take(chunk, done)

    def _lost(self, chunk: list["_Open[_T]"], lost: WorkerLostError) -> Iterator[Failure]:
        """What becomes of the tasks of a worker that was lost: the guilty one, if it is known, has one life less."""
        guilty = chunk if lost.at is None else [chunk[lost.at]]
        for each in guilty:
            self._strikes[each.key] += lost.workers
            if lost.limit:
                yield Failure(run=_title(each.task), reason=f"took longer than {lost.limit:g} s", host=lost.host)
            elif self._strikes[each.key] >= STRIKES and len(guilty) == 1:
                reason = f"killed {self._strikes[each.key]} workers"
                yield Failure(run=_title(each.task), reason=reason, host=lost.host)
            else:
                self._alone.append(each)
        self._back.extend(each for each in chunk if each not in guilty)

    def _take(self, chunk: list["_Open[_T]"], done: Done) -> Iterator[Failure | None]:
        """Store what a worker has found of the first of these tasks."""
        self._seconds += done.seconds
        self._tasks += len(done.outcomes)
        if len(done.outcomes) < len(chunk):
            self._back.extend(chunk[len(done.outcomes) :])
        for each, (result, reason, trace) in zip(chunk, done.outcomes, strict=False):
            if result is None:
                self.trace = self.trace or trace
                yield Failure(run=_title(each.task), reason=reason, host=done.host)
            elif self._is_audited(each.key) and each.key not in self._found:
                self._found[each.key] = done, result
                self._alone.append(each)
            elif (before := self._found.pop(each.key, None)) and _as_stored(before[1]) != _as_stored(result):
                yield _unequal(each.task, before, (done, result))
            else:
                self._store.add(each.key, definition_of(each.task), _title(each.task), result, done.host)
                yield None

    def _is_audited(self, key: str) -> bool:
        return int(key[:8], 16) < self._audit * 2**32


def _emptied(some: "deque[_Open[_T]]") -> Iterator["_Open[_T]"]:
    """What is in a queue, taken out."""
    while some:
        yield some.popleft()


def _title(task: CachedTask) -> str:
    return str(getattr(task, "title", "")) or definition_of(task).decode()


def _as_stored(result: Result) -> Result:
    return msgspec.json.decode(msgspec.json.encode(result), type=Result)


def _unequal(task: CachedTask, *found: tuple[Done, Result]) -> Failure:
    """That a task has two results."""
    (one, first), (other, second) = found
    first, second = _as_stored(first), _as_stored(second)
    name = next(name for name in first | second if first.get(name) != second.get(name))
    values = f"{name} {first.get(name)!r} and {second.get(name)!r}"
    where = f"on {one.host} ({one.worker}) and on {other.host} ({other.worker})"
    reason = f"done twice, two results: {values} {where}; does the policy read the clock, or draw without its seed?"
    return Failure(run=_title(task), reason=reason, host=other.host)
