"""Processes of this machine that do work, one thing each at a time, and that end with the process that started them.

A process that is killed, or takes too long, is replaced, and the process that gave it work hears which part of the
work it was at; the others go on. `concurrent.futures.ProcessPoolExecutor` ends with the first process that is killed.

Rejected: pebble (5.2), which keeps a limit and knows a loss, of a whole task. Ours are of a part of a chunk (`mark`),
or each of 10,000 short runs would be sent alone, and an audit needs another process than that which did it first. Of
this module `_tend` and `_Worker.do`, 50 lines, would go, and as many come.
"""

import ctypes
import multiprocessing
import os
import pickle
import platform
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from decision.model.errors import ConfigError, log
from decision.policies.loading import ignore_interrupt

_PR_SET_PDEATHSIG = 1  # of Linux
_BEGIN = 120.0  # seconds in which a process must have begun
_NONE = -1.0  # no part is under way


AHEAD = 2  # parts of some work given to each worker, so that none waits for the next
STRIKES = 3  # workers that a part of some work may take with it


def working_at_once(crew: Executor) -> int:
    """How many of a crew work at a time."""
    return int(getattr(crew, "slots", 0) or getattr(crew, "_max_workers", 1))


class WorkerLostError(Exception):
    """Who did some work ended before it was done.

    Args:
        at: the part of the work that it did then; None where nobody knows.
        limit: seconds, if it was ended because this part took longer.
        workers: how many ended so.
    """

    def __init__(self, at: int | None, limit: float = 0.0, workers: int = 1) -> None:
        super().__init__(at, limit, workers)
        self.at, self.limit, self.workers = at, limit, workers
        self.host = platform.node() or "localhost"


_place: Any = [_NONE, 0.0]  # the part that this process does, and since when; shared with the process that watches it
_name: int | str = 0


def mark(part: int | None) -> None:
    """Say which part of some work this process begins, None for none, so that a limit is kept and a loss is known."""
    _place[1] = time.monotonic()
    _place[0] = _NONE if part is None else part


def mark_into(place: Any, name: int | str) -> None:
    """Let `mark` write into (part, since): two numbers that somebody else reads; and give this process a name."""
    global _place, _name
    _place, _name = place, name


def this_worker() -> int | str:
    """What `submit_elsewhere` of an executor knows this process by."""
    return _name or os.getpid()


def overdue(place: Any, limit: float) -> bool:
    """Whether a part takes longer than so many seconds; never with 0."""
    return limit > 0.0 and place[0] != _NONE and time.monotonic() - place[1] > limit


class Workers(Executor):
    """Processes that do work; signals to the whole group, as a terminal sends them, are for the parent alone.

    The exception of a future is `WorkerLostError` where a process ended.

    Args:
        processes: how many.
        limit: seconds that a part of some work, see `mark`, may take; 0 means no limit.
    """

    def __init__(self, processes: int, limit: float = 0.0) -> None:
        self.slots = processes
        self._limit = limit
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._tend, daemon=True) for _ in range(processes)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let a process do it; the function is one that it can import."""
        return self._give(_Call(Future(), pickle.dumps((function, args, kwargs)), 0))

    def submit_elsewhere(self, process: int, function: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        """Let another process than this one do it, if there is one."""
        return self._give(_Call(Future(), pickle.dumps((function, args, {})), process))

    def _give(self, call: "_Call") -> "Future[Any]":
        self._calls.put(call)
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End at once, whatever is under way."""
        self._over.set()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _tend(self) -> None:
        """Give one process its work, one thing after the other, until there is no more."""
        worker: _Worker | None = None
        while (call := self._calls.get()) is not None and not self._over.is_set():
            if worker and worker.process.pid == call.elsewhere and self.slots > 1:
                self._calls.put(call)
                time.sleep(_LOOK)
                continue
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                worker = worker or _Worker()
                call.future.set_result(worker.do(call.work, self._limit, self._over))
            except BaseException as error:
                if isinstance(error, WorkerLostError):
                    worker = None
                call.future.set_exception(error)
        if worker:
            worker.end()


_LOOK = 0.1  # seconds between two looks


class _Call(NamedTuple):
    future: "Future[Any]"
    work: bytes  # function and arguments, pickled
    elsewhere: int  # the process that shall not do it


class _Worker:
    """One process. A fresh one: a fork would copy the threads' locks of a progress display."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._place = context.RawArray("d", [_NONE, 0.0])
        self.process = context.Process(target=_serve, args=(there, self._place, log.getEffectiveLevel()))
        self.process.start()
        there.close()
        self._ready = False

    def do(self, work: bytes, limit: float, over: threading.Event) -> Any:
        """What the function returns; raises what it raises, or `WorkerLostError`."""
        deadline = time.monotonic() + _BEGIN
        while not (self._ready or over.is_set()) and self.process.is_alive() and time.monotonic() < deadline:
            if self._here.poll(_LOOK):
                with suppress(EOFError, OSError):
                    self._here.recv_bytes()
                    self._ready = True
        if not self._ready:
            why = "does not begin" if self.process.is_alive() else "ended as it began"
            self.end()
            raise ConfigError(f'a worker process {why}; a script protects its entry: if __name__ == "__main__":')
        with suppress(OSError):
            self._here.send_bytes(work)
        while not over.is_set():
            if self._here in wait([self._here, self.process.sentinel], _LOOK):
                try:
                    done, value = pickle.loads(self._here.recv_bytes())
                except (EOFError, OSError):
                    break
                if done:
                    return value
                raise value
            if not self.process.is_alive():
                break
            if overdue(self._place, limit):
                raise self._lost(limit)
        raise self._lost(0.0)

    def _lost(self, limit: float) -> WorkerLostError:
        at = int(self._place[0])
        self.end()
        return WorkerLostError(None if at < 0 else at, limit)

    def end(self) -> None:
        """Kill the process, and wait until the system has done what it still does for it, such as to write."""
        self.process.kill()
        self.process.join()
        self._here.close()


@contextmanager
def workers(processes: int, limit: float = 0.0) -> Iterator[Workers]:
    """Processes that do work and end with the block, however it is left."""
    pool = Workers(processes, limit)
    try:
        yield pool
    finally:
        pool.shutdown()


def _serve(connection: Connection, place: Any, level: int) -> None:
    """What a process does; `level` is what is logged from."""
    log.setLevel(level)
    signal.signal(signal.SIGINT, ignore_interrupt)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if sys.platform == "linux":  # at once, where the thread waits until a compiled function returns
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    mark_into(place, os.getpid())
    connection.send_bytes(b"ready")
    while True:
        try:
            function, args, kwargs = pickle.loads(connection.recv_bytes())
            answer: tuple[bool, Any] = True, function(*args, **kwargs)
        except (EOFError, ConnectionError):
            return
        except Exception as error:
            answer = False, error
        mark(None)
        try:
            content = pickle.dumps(answer)
        except Exception as error:
            why = f"what was found cannot be sent ({type(error).__name__}: {error})"
            content = pickle.dumps((False, ConfigError(why)))
        connection.send_bytes(content)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
