"""Tasks for workers: chunks are given out, what comes back is stored, and what has failed is reported."""

import itertools
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from decision.batsim.signals import StopRequest
from decision.formats.json_text import json_bytes
from decision.model.errors import ConfigError, Failure
from decision.model.notices import log

from .chunks import CHUNK, CachedTask, Done, check_files, definition_of, do_chunk, do_tasks, own_sources
from .store import Result, ResultStore
from .workers import AHEAD, STRIKES, WorkerLostError, working_at_once

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
        return self._do_here(tasks, stop) if crew is None else self._share_out(crew, tasks, count, at_once, stop)

    def _do_here(self, tasks: Iterator["OpenTask[AnyTask]"], stop: StopRequest) -> Iterator[Failure | None]:
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

    def _is_suspect(self, chunk: Sequence["OpenTask[AnyTask]"]) -> bool:
        """Whether it is set aside when its worker is lost once more."""
        return any(self._strikes[each.key] >= STRIKES - 1 for each in chunk)

    def _size(self, left: int, slots: int) -> int:
        """How many tasks make a chunk of some seconds; fewer near the end, so that all workers have some."""
        if not self._tasks:
            return 1
        fit = CHUNK * self._tasks / max(self._seconds, 1e-9)
        return max(1, min(int(fit), _MOST, -(-left // (AHEAD * slots))))

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
            yield from self._lost(chunk, lost)
        except BrokenExecutor as error:
            raise ConfigError(f"the workers have ended ({error}); finished runs are kept: try again") from None
        else:
            yield from self._take(chunk, done)

    def _lost(self, chunk: list["OpenTask[AnyTask]"], lost: WorkerLostError) -> Iterator[Failure]:
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
            elif self._is_audited(each.key) and each.key not in self._found:
                self._found[each.key] = done, result
                self._alone.append(each)
            elif (before := self._found.pop(each.key, None)) and _as_stored(before[1]) != _as_stored(result):
                yield _unequal(each.task, before, (done, result))
            else:
                self._store.add(each.key, definition_of(each.task), _title(each.task), result, done.host)
                log.info("done: %s", _title(each.task))
                yield None

    def _is_audited(self, key: str) -> bool:
        return int(key[:8], 16) < self._audit * 2**32


def _emptied(some: "deque[OpenTask[AnyTask]]") -> Iterator["OpenTask[AnyTask]"]:
    """What is in a queue, taken out."""
    while some:
        yield some.popleft()


def _title(task: CachedTask) -> str:
    return str(getattr(task, "title", "")) or definition_of(task).decode()


def _as_stored(result: Result) -> Result:
    return msgspec.json.decode(json_bytes(result), type=Result)


def _unequal(task: CachedTask, *found: tuple[Done, Result]) -> Failure:
    """That a task has two results."""
    (one, first), (other, second) = found
    first, second = _as_stored(first), _as_stored(second)
    name = next(name for name in first | second if first.get(name) != second.get(name))
    values = f"{name} {first.get(name)!r} and {second.get(name)!r}"
    where = f"on {one.host} ({one.worker}) and on {other.host} ({other.worker})"
    reason = f"done twice, two results: {values} {where}; does the policy read the clock, or draw without its seed?"
    return Failure(run=_title(task), reason=reason, host=other.host)
