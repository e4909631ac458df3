"""Many independent tasks, by this process, by others on this machine, or by those of a cluster.

Each result is stored as soon as there is one (`store`), and not computed again. Workers get chunks of tasks, and what
they find comes back to this process, which alone writes (`chunks`). What fails is recorded, and the others go on
(`failures`); a task whose worker is lost is done again, until it has taken three workers with it.
"""

import csv
import functools
import hashlib
import io
import itertools
import pickle
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

import msgspec

from decision import __version__
from decision.batsim.signals import StopRequest, stop_on_signals
from decision.files.text import file_facts, json_bytes, utf8, write_files
from decision.model.errors import ConfigError, DecisionError, Failure, RunsFailedError, ShareDone, log

from .store import Result, ResultStore, host_name
from .workers import AHEAD, STRIKES, WorkerLostError, mark, this_worker, workers, working_at_once

# What a worker does: some tasks of a command, if it has the same sources and the same files as that.

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
        try:
            outcome = _Outcome(work(task))
        except DecisionError as error:
            trace = "" if error.__cause__ is None else "".join(traceback.format_exception(error))
            outcome = _Outcome(None, str(error), trace)
        except Exception as error:
            outcome = _Outcome(None, f"{type(error).__name__}: {error}", traceback.format_exc())
        outcomes.append(outcome)
        if time.monotonic() - began > CHUNK:
            break
    seconds = time.monotonic() - began
    mark(None)
    check_files(files)
    return Done(outcomes, host_name(), this_worker(), seconds)


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


# Tasks for workers: chunks are given out, what comes back is stored, and what has failed is reported.

_LOOK = 0.1  # seconds between two looks at signals
_MOST = 2000  # tasks in a chunk

AnyTask = TypeVar("AnyTask", bound=CachedTask)


class OpenTask(NamedTuple, Generic[AnyTask]):
    """A task without a result."""

    key: str
    task: AnyTask


class Dispatch(Generic[AnyTask]):
    """Gives chunks of tasks to workers, stores what they find, and tells what has failed.

    Args:
        work: what does a task.
        store: gets the results.
        audit: as of `run_tasks`.
    """

    def __init__(self, work: Callable[[AnyTask], Result], store: ResultStore, audit: float) -> None:
        self._work, self._store, self._audit = work, store, audit
        self._strikes: Counter[str] = Counter()  # workers that each task has taken with it
        self._found: dict[str, tuple[Done, Result]] = {}  # of those that are done again
        self._alone: deque[OpenTask[AnyTask]] = deque()  # those whose worker was lost, or that are done again
        self._back: deque[OpenTask[AnyTask]] = deque()  # those that a worker had no time for
        self._seconds, self._tasks = 0.0, 0  # of those that are done
        self.trace = ""  # of the first failure that has one

    def work_off(
        self, crew: Executor | None, tasks: Iterator["OpenTask[AnyTask]"], count: int, at_once: int, stop: StopRequest
    ) -> Iterator[Failure | None]:
        """Do tasks, and give a failure, or None, for each that is done, until a signal asks for the end.

        Args:
            crew: who does it; None for this process.
            tasks: what is to be done.
            count: how many they are, at most.
            at_once: chunks under way; 0 for as many as the workers need.
            stop: whether to stop.
        """
        if crew is not None:
            yield from self._share_out(crew, tasks, count, at_once, stop)
            return
        while not stop.signal and (chunk := [*islice(itertools.chain(_emptied(self._alone), tasks), 1)]):
            files = self._files(chunk)
            check_files(files)
            yield from self._take(chunk, do_tasks(self._work, [chunk[0].task], files))

    def _share_out(
        self, crew: Executor, tasks: Iterator["OpenTask[AnyTask]"], left: int, at_once: int, stop: StopRequest
    ) -> Iterator[Failure | None]:
        under_way: dict[Future[Done], list[OpenTask[AnyTask]]] = {}
        while True:
            slots = working_at_once(crew)
            while not stop.signal and len(under_way) < (at_once or AHEAD * slots):
                # A suspect is set aside when its worker is lost once more: whose worker that is, is known for certain
                # only when nothing else is under way.
                shown = itertools.chain([*self._alone][:1], *under_way.values())
                if under_way and any(self._strikes[each.key] >= STRIKES - 1 for each in shown):
                    break
                # Tasks of some seconds; fewer near the end, so that all workers have some.
                fit = int(CHUNK * self._tasks / max(self._seconds, 1e-9))
                size = max(1, min(fit, _MOST, -(-left // (AHEAD * slots))))
                waiting = itertools.chain(_emptied(self._back), tasks)
                chunk = [self._alone.popleft()] if self._alone else [*islice(waiting, size)]
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

    def _submit(self, crew: Executor, chunk: list["OpenTask[AnyTask]"]) -> "Future[Done]":
        content = pickle.dumps((self._work, [each.task for each in chunk]))
        before = self._found.get(chunk[0].key)
        if before and hasattr(crew, "submit_elsewhere"):
            future: Future[Done] = crew.submit_elsewhere(before[0].worker, do_chunk, self._sources(chunk), content)
            return future
        return crew.submit(do_chunk, self._sources(chunk), content)

    def _sources(self, chunk: Sequence["OpenTask[AnyTask]"]) -> tuple[Any, ...]:
        return own_sources(self._files(chunk))

    def _files(self, chunk: Sequence["OpenTask[AnyTask]"]) -> tuple[tuple[str, str], ...]:
        """All that the tasks read, with digests."""
        read = (getattr(each.task, "files", None) for each in chunk)
        return tuple(dict.fromkeys((str(path), digest) for files in read if files for path, digest in files()))

    def _ended(self, future: "Future[Done]", chunk: list["OpenTask[AnyTask]"]) -> Iterator[Failure | None]:
        try:
            done = future.result()
        except WorkerLostError as lost:
            # The guilty one, if it is known, has one life less.
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
        except BrokenExecutor as error:
            raise ConfigError(f"the workers have ended ({error}); finished runs are kept: try again") from None
        else:
            yield from self._take(chunk, done)

    def _take(self, chunk: list["OpenTask[AnyTask]"], done: Done) -> Iterator[Failure | None]:
        """Store what a worker has found of the first of these tasks."""
        self._seconds += done.seconds
        self._tasks += len(done.outcomes)
        if len(done.outcomes) < len(chunk):
            self._back.extend(chunk[len(done.outcomes) :])
        for each, (result, reason, trace) in zip(chunk, done.outcomes, strict=False):
            if result is None:
                self.trace = self.trace or trace
                yield Failure(run=_title(each.task), reason=reason, host=done.host)
            elif int(each.key[:8], 16) < self._audit * 2**32 and each.key not in self._found:
                self._found[each.key] = done, result
                self._alone.append(each)
            elif (before := self._found.pop(each.key, None)) and _as_stored(before[1]) != _as_stored(result):
                one, first, second = before[0], _as_stored(before[1]), _as_stored(result)
                name = next(name for name in first | second if first.get(name) != second.get(name))
                values = f"{name} {first.get(name)!r} and {second.get(name)!r}"
                where = f"on {one.host} ({one.worker}) and on {done.host} ({done.worker})"
                why = "does the policy read the clock, or draw without its seed?"
                reason = f"done twice, two results: {values} {where}; {why}"
                yield Failure(run=_title(each.task), reason=reason, host=done.host)
            else:
                self._store.add(each.key, definition_of(each.task), _title(each.task), result, done.host)
                log.info("done: %s", _title(each.task))
                yield None


def _emptied(some: "deque[OpenTask[AnyTask]]") -> Iterator["OpenTask[AnyTask]"]:
    """What is in a queue, taken out."""
    while some:
        yield some.popleft()


def _title(task: CachedTask) -> str:
    return str(getattr(task, "title", "")) or definition_of(task).decode()


def _as_stored(result: Result) -> Result:
    return msgspec.json.decode(json_bytes(result), type=Result)


# Runs that have failed: an error that lists them, and ``failures.csv``.


class TraceError(Exception):
    """Where a run failed, as a text: it may have been in another process."""


def write_failures(path: Path, failures: Sequence[Failure]) -> None:
    """Write the table; where nothing has failed, none is left."""
    if not failures:
        with suppress(OSError):
            path.unlink()
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Failure._fields)
    writer.writerows(failures)
    write_files({path: [utf8(text.getvalue())]})


def failed(failures: Sequence[Failure], of: int, path: Path) -> RunsFailedError:
    """The error that says so; `path` is that of the table."""
    each = failures[0]
    first = f"the first is {each.run}: {each.reason.removeprefix(f'{each.run}: ')}"
    advice = f"{path} lists them, and the same command tries them again"
    return RunsFailedError(f"{len(failures):,} of {of:,} runs failed; {first}; {advice}", failures)


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
        executor: who does it in their place: those of `decision.experiments.cluster`, or any of `concurrent.futures`.
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
            # Tasks are done by others, by this process (None), or by workers of this machine
            here = executor or (processes == 1 and not limit)
            with stop_on_signals() as stop, nullcontext(executor) if here else workers(processes, limit) as crew:
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


def _without_result(
    tasks: Iterable[tuple[str, AnyTask]], wanted: set[str], store: ResultStore
) -> Iterator["OpenTask[AnyTask]"]:
    """Each task once that is wanted and has no result."""
    given: set[str] = set()
    for key, task in tasks:
        if key in wanted and key not in given and key not in store:
            given.add(key)
            yield OpenTask(key, task)


# One call's work shared out among workers, and waited for: what a generation of an evolution needs.
#
# Nothing is stored, so what a lost worker had is done by another one, and the call goes on as long as there is one.

Work = Callable[[Sequence[Any]], list[Any]]


def share_out(crew: Executor, work: Work, items: Sequence[Any]) -> list[Any]:
    """What `work` makes of the items, done in parts by workers, in the order of the items.

    Args:
        crew: who does it.
        work: a function that workers can import; what it makes of an item must not depend on the others.
        items: what is to be done.

    Raises:
        ConfigError: if a worker has another version of this package, or a part has taken three workers with it.
    """
    size = max(1, -(-len(items) // (AHEAD * working_at_once(crew))))
    parts = [items[at : at + size] for at in range(0, len(items), size)]
    under_way = [_given(crew, work, part) for part in parts]
    return [found for future, part in zip(under_way, parts, strict=True) for found in _found(crew, work, part, future)]


def _given(crew: Executor, work: Work, part: Sequence[Any]) -> "Future[list[Any]]":
    return crew.submit(_do, own_sources(), pickle.dumps((work, part)))


def _found(crew: Executor, work: Work, part: Sequence[Any], future: "Future[list[Any]]") -> list[Any]:
    lost = 0
    while True:
        try:
            return future.result()
        except WorkerLostError as error:
            lost += error.workers
            if lost >= STRIKES:
                raise ConfigError(
                    f"a part of the work has ended {lost} workers; give them more memory or time"
                ) from None
            future = _given(crew, work, part)


def _do(sources: tuple[Any, ...], content: bytes) -> list[Any]:
    """Do one call in a worker; `content` is the function with its arguments."""
    check_same(WorkerSources(*sources))
    work, part = pickle.loads(content)
    found: list[Any] = work(part)
    return found
