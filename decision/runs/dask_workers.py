"""What the workers of a Dask cluster do, as an executor: each does one thing at a time, and none for too long."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

from decision.model.errors import ConfigError, DecisionError

from .store import host_name
from .workers import WorkerLostError, mark_into, overdue

_LOOK = 0.2  # seconds between two looks at what a worker does
_FLUSH = 1.0  # seconds for a worker's last words
_TOPIC = "decision"  # of the events of workers


class DaskWorkers(Executor):
    """The workers of a Dask cluster as an executor; each does one thing at a time.

    The exception of a future is `WorkerLostError` where a worker ended.

    Args:
        client: of the cluster.
        limit: seconds that a part of some work may take.
    """

    def __init__(self, client: Any, limit: float) -> None:
        self._client, self._limit = client, limit
        self._known: tuple[float, Sequence[str]] = (0.0, ())
        self._given: dict[str, Any] = {}
        self._over: dict[str, int] = {}  # by call: the part that took too long
        client.subscribe_topic(_TOPIC, self._hear)

    @property
    def slots(self) -> int:
        """Workers, as of a moment ago."""
        return max(1, len(self._workers()))

    def _workers(self) -> Sequence[str]:
        if time.monotonic() - self._known[0] > 1.0:
            self._known = time.monotonic(), tuple(self._client.nthreads())
        return self._known[1]

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let a worker do it."""
        return self._submit(partial(function, **kwargs) if kwargs else function, args, None)

    def submit_elsewhere(self, worker: str, function: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        """Let another worker than this one do it, if there is one."""
        return self._submit(function, args, [each for each in self._workers() if each != worker] or None)

    def _submit(self, function: Callable[..., Any], args: Any, workers: list[str] | None) -> "Future[Any]":
        name = uuid.uuid4().hex
        where = {} if workers is None else {"workers": workers, "allow_other_workers": True}
        call = (name, self._limit, str(Path.cwd()), function, args)
        inner = self._client.submit(_on_worker, *call, pure=False, key=name, **where)
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        self._given[name] = inner  # Dask forgets what nobody holds
        inner.add_done_callback(partial(self._pass_on, name, outer))
        return outer

    def _pass_on(self, name: str, outer: "Future[Any]", inner: Any) -> None:
        """Give a future what has become of Dask's."""
        try:
            outer.set_result(inner.result())  # of a worker that was lost since, it is worked out again
        except BaseException as error:
            outer.set_exception(self._error(name, error))
        finally:
            self._given.pop(name, None)

    def _error(self, name: str, error: BaseException) -> Exception:
        import distributed

        if isinstance(error, CancelledError):
            return ConfigError("the Dask scheduler has ended; finished runs are kept: try again")
        if isinstance(error, distributed.KilledWorker):
            at = self._over.pop(name, None)
            lost = WorkerLostError(at, self._limit if at is not None else 0.0)
            lost.host = str(error.last_worker.address)
            return lost
        if isinstance(error, DecisionError):
            return error
        what = f"a worker cannot do this ({type(error).__name__}: {on_one_line(str(error))})"
        return ConfigError(f"{what}; install the same version of decision there")

    def _hear(self, event: tuple[float, Any]) -> None:
        _, message = event
        self._over[message["call"]] = message["part"]


def on_one_line(text: str) -> str:
    """The beginning of what another program said."""
    return " ".join(text.split())[:500]


_place: Any = [-1.0, 0.0]
_turn = threading.Lock()  # policies are not made for threads


def _on_worker(name: str, limit: float, folder: str, function: Callable[..., Any], args: Any) -> Any:
    """Do something on a worker, in the folder of the command. Raises ConfigError if that is missing."""
    from distributed import get_worker

    worker = get_worker()
    with _turn:
        try:
            os.chdir(folder)
        except OSError as error:
            raise ConfigError(f"{host_name()}: {folder}: {error.strerror}; workers need the same folders") from None
        mark_into(_place, worker.address)
        over = threading.Event()
        if limit:
            threading.Thread(target=_watch, args=(worker, name, limit, over), daemon=True).start()
        try:
            return function(*args)
        finally:
            over.set()


def _watch(worker: Any, name: str, limit: float, over: threading.Event) -> None:
    """End this process when a part takes too long, having said which."""
    while not over.wait(_LOOK):
        if overdue(_place, limit):
            worker.log_event(_TOPIC, {"call": name, "part": int(_place[0])})
            time.sleep(_FLUSH)
            os._exit(1)
