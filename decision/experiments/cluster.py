"""Workers on other machines: those of a Dask cluster, or the jobs of a batch system that Dask submits.

All that runs, watches and replaces workers is Dask's (`distributed`, `dask_jobqueue`); this module and `dask_workers`
alone import it. What is added: refusals in the batch system's own words where Dask would wait for ever, a limit on the
time of a run, and no job that stays in the queue.
"""

import logging
import os
import shlex
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from decision.model.errors import ConfigError, DecisionError

from .store import host_name
from .workers import WorkerLostError, mark_into, overdue

# What the workers of a Dask cluster do, as an executor: each does one thing at a time, and none for too long.

_WORKER_LOOK = 0.2  # seconds between two looks at what a worker does
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
        client.subscribe_topic(_TOPIC, lambda event: self._over.update({event[1]["call"]: event[1]["part"]}))

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
        import distributed

        try:
            outer.set_result(inner.result())  # of a worker that was lost since, it is worked out again
        except CancelledError:
            outer.set_exception(ConfigError("the Dask scheduler has ended; finished runs are kept: try again"))
        except distributed.KilledWorker as error:
            at = self._over.pop(name, None)
            lost = WorkerLostError(at, self._limit if at is not None else 0.0)
            lost.host = str(error.last_worker.address)
            outer.set_exception(lost)
        except DecisionError as error:
            outer.set_exception(error)
        except BaseException as error:
            reason = f"a worker cannot do this ({type(error).__name__}: {on_one_line(str(error))})"
            outer.set_exception(ConfigError(f"{reason}; install the same version of decision there"))
        finally:
            self._given.pop(name, None)


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
    while not over.wait(_WORKER_LOOK):
        if overdue(_place, limit):
            worker.log_event(_TOPIC, {"call": name, "part": int(_place[0])})
            time.sleep(_FLUSH)
            os._exit(1)


BATCH_SYSTEMS = {
    "slurm": ("SLURMCluster", "squeue --noheader --me --format=%i:%T:%r --name={}"),
    "oar": ("OARCluster", "oarstat -u"),
    "pbs": ("PBSCluster", "qstat -u"),
    "lsf": ("LSFCluster", "bjobs -J {}"),
    "sge": ("SGECluster", "qstat"),
    "htcondor": ("HTCondorCluster", "condor_q"),
}
LOCAL = "local"

_REFUSAL = 60.0  # seconds in which a scheduler must answer
_LOOK = 0.2  # seconds between two looks at workers
_WORKER_END = "60s"  # when a worker that says nothing, or has lost its scheduler, is gone
_LOGS = "decision-jobs"  # folder, where the command was given, of what jobs print


@contextmanager
def cluster(on: str, workers: int, *, submit: str = "", wait: float = 600.0, limit: float = 0.0) -> Iterator[Executor]:
    """Workers of a cluster, which end with the block if they are jobs, however it is left.

    Args:
        on: a batch system, of `BATCH_SYSTEMS`; or the address or the file of a Dask scheduler.
        workers: how many jobs, of one worker each.
        submit: options of the jobs, as the batch system spells them.
        wait: seconds until the first worker has begun.
        limit: seconds that a run may take; 0 means no limit.

    Raises:
        ConfigError: if Dask is not installed, the batch system refuses a job, no scheduler answers, or no worker comes.
    """
    try:
        with _kept_signals():  # dask_jobqueue takes SIGINT for itself when it is imported
            import dask
            import dask_jobqueue  # noqa: F401
            import distributed
    except ImportError:
        raise ConfigError('workers elsewhere need Dask: pip install "batsim-decision[scale]"', field="on") from None
    if submit and on not in BATCH_SYSTEMS:
        raise ConfigError(f"{on} submits nothing; leave the options of jobs out", field="submit")
    for name in logging.root.manager.loggerDict:
        if name.partition(".")[0] in ("distributed", "dask_jobqueue", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings = {
        "distributed.scheduler.allowed-failures": 0,  # `run_tasks` counts
        "distributed.scheduler.worker-ttl": _WORKER_END,
        "distributed.admin.system-monitor.interval": "10s",
    }
    with ExitStack() as held, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held.enter_context(dask.config.set(settings))
        if on in BATCH_SYSTEMS:
            jobs = held.enter_context(_jobs(on, workers, submit))
            client = held.enter_context(distributed.Client(jobs.cluster))
            jobs.await_worker(client, wait)
        else:
            client = held.enter_context(_connected(on, min(wait, _REFUSAL)))
            _await_worker(client, wait, lambda: f"{on}: no worker of this Dask scheduler")
        yield DaskWorkers(client, limit)


@contextmanager
def _connected(on: str, wait: float) -> Iterator[Any]:
    """A client of a scheduler that somebody else has started; while it is used, lost workers are not tried again."""
    import distributed

    if "://" not in on and not Path(on).is_file():
        known = ", ".join((LOCAL, *BATCH_SYSTEMS))
        raise ConfigError(f"{on!r} is none of {known}, tcp://HOST:PORT, or a Dask scheduler's file", field="on")
    where = {"address": on} if "://" in on else {"scheduler_file": on}
    try:
        client = distributed.Client(**where, timeout=wait)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(f"{on}: no Dask scheduler answers ({error or type(error).__name__})", field="on") from None

    def count(failures: int, dask_scheduler: Any = None) -> int:
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, failures
        return int(before)

    with client:
        before = client.run_on_scheduler(count, 0)
        try:
            yield client
        finally:
            with suppress(Exception):
                client.run_on_scheduler(count, before)


# --- Jobs of a batch system -----------------------------------------------------------------------------------------


class _Jobs:
    """The jobs that are submitted, and what the batch system says of them.

    Args:
        on: the batch system.
        name: of the jobs.
        submit: their options.
    """

    def __init__(self, on: str, name: str, submit: str) -> None:
        import dask
        import dask_jobqueue

        self.on, self.name = on, name
        kind = getattr(dask_jobqueue, BATCH_SYSTEMS[on][0])
        refusals: list[str] = []

        class Job(kind.job_cls):  # type: ignore[name-defined]
            async def _submit_job(self, script_filename: str) -> Any:
                try:
                    return await super()._submit_job(script_filename)
                except Exception as error:
                    printed = str(error).partition("stderr:")[2]  # what the batch system's command has said
                    refusals.append(on_one_line(printed or str(error)))
                    raise

        Cluster = type(kind.__name__, (kind,), {"job_cls": Job})  # noqa: N806
        self.refusals, self.job_class = refusals, Job
        options: list[str] = []  # lines of a script, each an option with its value
        for word in shlex.split(submit):
            if word.startswith("-") or not options:
                options.append(word)
            else:
                options[-1] += f" {word}"
        if dask.config.get(f"jobqueue.{on}.walltime", "") == "00:30:00":  # Dask's own default, not the user's
            dask.config.set({f"jobqueue.{on}.walltime": None})
        memory = dask.config.get(f"jobqueue.{on}.memory", None)
        skipped = ["--mem="] if memory is None else []
        skipped += ["#OAR -l"] if on == "oar" and any(option.startswith("-l") for option in options) else []
        more = {"memory_per_core_property_name": "not_applicable"} if on == "oar" else {}
        self.cluster = Cluster(
            cores=1,
            processes=1,
            memory=memory or "2GB",
            job_name=name,
            job_extra_directives=options,
            job_directives_skip=skipped,
            log_directory=_LOGS,
            worker_extra_args=[] if memory else ["--memory-limit", "0"],
            scheduler_options={"dashboard": False, "dashboard_address": None},
            n_workers=0,
            **more,
        )

    def await_worker(self, client: Any, wait: float) -> None:
        """Return when a worker has begun. Raises ConfigError if none does."""

        def words() -> str:
            command, state = BATCH_SYSTEMS[self.on][1].format(self.name), ""
            with suppress(Exception):
                state = on_one_line(str(self.cluster.sync(self.job_class._call, shlex.split(command))))
            return f"{self.on}: no job has begun ({state or 'it says nothing of them'})"

        def check() -> None:
            if self.refusals:
                raise ConfigError(f"{self.on}: {self.refusals[0]}", field="submit")

        _await_worker(client, wait, words, check)

    def close(self) -> None:
        """End all jobs, those that wait in the queue, too."""
        with suppress(Exception):
            self.cluster.close(timeout=20)
        if self.on == "slurm":  # what was being submitted meanwhile
            with suppress(Exception):
                self.cluster.sync(self.job_class._call, ["scancel", f"--name={self.name}"])


@contextmanager
def _jobs(on: str, workers: int, submit: str) -> Iterator[_Jobs]:
    """Jobs, of which so many are in the queue or at work: one that ends is replaced."""
    jobs = None
    try:
        try:
            jobs = _Jobs(on, f"decision-{uuid.uuid4().hex[:8]}", submit)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"{on}: Dask cannot begin ({on_one_line(str(error))})", field="on") from None
        jobs.cluster.adapt(minimum=workers, maximum=workers, interval="2s")
        yield jobs
    finally:
        if jobs is not None:
            with _kept_signals() as kept:
                for number in kept:  # a second Ctrl-C would leave jobs in the queue
                    signal.signal(number, signal.SIG_IGN)
                jobs.close()


@contextmanager
def _kept_signals() -> Iterator[tuple[signal.Signals, ...]]:
    """Give what ends a process its handlers back after the block; the names of those signals."""
    if threading.current_thread() is not threading.main_thread():
        yield ()
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield tuple(before)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _await_worker(client: Any, wait: float, words: Callable[[], str], check: Callable[[], None] = lambda: None) -> None:
    """Return when there is a worker. Raises ConfigError with these words if there is none in time."""
    deadline = time.monotonic() + wait
    while not client.nthreads():
        check()
        if time.monotonic() > deadline:
            raise ConfigError(f"{words()}; none in {wait:g} s", field="wait")
        time.sleep(_LOOK)
