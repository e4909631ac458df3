"""The folder of one run: locked while it goes, and described by ``run.json`` from its first moment on."""

import datetime
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.batsim.conversation import Responder
from decision.experiments import Engine
from decision.files.outputs_read import LOCK, RUN, STATUS, RunFacts, Status, lock_folder, read_facts
from decision.files.text import InputFacts, file_facts, json_bytes, printable, write_files
from decision.files.workload import Selection
from decision.model.dates import clock_at_zero
from decision.model.errors import ConfigError, DecisionError
from decision.model.platform import Platform
from decision.model.record import HostState
from decision.simulation import Progress
from decision.state.cluster import ClusterState, PlatformFacts, platform_facts

from .inputs import LoadedInputs, PolicyChoice, input_files, writable_folder


class Written(list[Path]):
    """The files that a run has written, and what else it has found."""

    window_gap: float | None = None  # as `RunFacts`
    lost_work: float | None = None


class Stopped(BaseException):
    """A training was asked to stop, and resumes."""


def describe_run(case: LoadedInputs, choice: PolicyChoice, engine: Engine, command: str) -> RunFacts:
    """What is about to run, and how. Raises InputError if a file cannot be read."""
    policy_file, inputs = choice.spec.file, case.inputs
    facts = _describe(choice.policy, choice.settings, choice.seed, input_files(inputs), inputs.selection, command)
    return replace(
        facts,
        policy_file=None if policy_file is None else file_facts(policy_file),
        engine=engine.value,
        energy=inputs.energy,
        events=tuple(map(file_facts, inputs.events)),
        clock=clock_at_zero(case.workloads),
    )


def describe_training(
    scheduler: str,
    settings: Mapping[str, str],
    seed: int,
    files: Sequence[InputFacts],
    selection: Selection,
    command: str,
) -> RunFacts:
    """What is about to be trained, and how; `files` are of the platform and the workload."""
    return replace(_describe(scheduler, settings, seed, files, selection, command), kind="training")


def _describe(
    policy: str, options: Mapping[str, str], seed: int, files: Sequence[InputFacts], selection: Selection, command: str
) -> RunFacts:
    return RunFacts(
        decision=__version__,
        command=printable(command),
        policy=printable(policy),
        options={name: printable(value) for name, value in options.items()},
        seed=seed,
        engine=Engine.EMBEDDED.value,
        platform=files[0],
        workloads=tuple(files[1:]),
        selection=selection,
        host=platform.node(),
        process=os.getpid(),
        begin=_now(),
    )


@contextmanager
def run_folder(output: Path, facts: RunFacts) -> Iterator[Written]:
    """A folder for the files of one run, which replace those of the run before as a whole.

    The block appends the files that it has written to the yielded list. Then files of the run before that it has not
    written are removed, and ``run.json`` says that the run has finished. If the block fails, it says why; after a
    ConfigError, which is a mistake found before anything is written, it is what it was before.

    Raises:
        ConfigError: if another run goes on in the folder, it holds a training and this is a run or the other way round,
            or it cannot be written.
    """
    folder = writable_folder(output)
    with _locked(folder):
        before = read_facts(folder)
        if before is not None and before.kind != facts.kind:
            holds = f"the folder holds a {before.kind} of {before.policy}"
            raise ConfigError(f"{folder}: {holds}; choose another folder", field="output")
        older = {} if before is None else before.files
        _write(folder, replace(facts, files=older))
        written = Written()
        try:
            yield written
        except ConfigError:
            if before is None:
                _remove(folder / RUN)
            else:
                with suppress(ConfigError):
                    _write(folder, before)
            raise
        except BaseException as error:
            resumes = facts.kind == "training" and not isinstance(error, Exception)
            state: Literal["interrupted", "failed"] = "interrupted" if resumes else "failed"
            with suppress(ConfigError):
                _write(folder, replace(facts, state=state, reason=_reason(error), end=_now(), files=older))
            raise
        files = {path.name: path.stat().st_size for path in written}
        for name in older.keys() - files.keys():
            _remove(folder / Path(name).name)
        found = {"window_gap": written.window_gap, "lost_work": written.lost_work}
        _write(folder, replace(facts, state="finished", end=_now(), files=files, **found))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        lock = lock_folder(folder)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    if lock is None:
        facts = read_facts(folder)
        owner = "" if facts is None else f" (process {facts.process} on {facts.host})"
        kind = "run" if facts is None else facts.kind
        raise ConfigError(
            f"{folder}: another {kind} goes on in this folder{owner}; wait for its end, or choose another folder",
            field="output",
        )
    with lock:
        try:
            yield
        finally:
            _remove(folder / LOCK)


def _write(folder: Path, facts: RunFacts) -> None:
    write_files({folder / RUN: [msgspec.json.format(json_bytes(facts), indent=2), b"\n"]})


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _reason(error: BaseException) -> str:
    plain = isinstance(error, DecisionError | Stopped)
    text = str(error) if plain else f"{type(error).__name__}: {error}"
    return printable(text.partition("\n")[0].rstrip(": "))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


# The progress of a run: a small file in the run's folder while it runs, for viewers in other processes.
#
# Batsim's output files say nothing before the end, since both Batsim and we write them late. So a run writes
# ``status.json`` (`decision.files.outputs_read`) to its folder twice a second, to a temporary file that is renamed, and
# removes it when it ends.

_INTERVAL = 0.5  # seconds between two writes
HOST_LETTERS = "SNFICU"  # by HostState: sleeping, switching on, switching off, idle, computing, unavailable


@contextmanager
def live_status(folder: Path, policy: str, jobs: int, platform: Platform) -> Iterator[Progress]:
    """Keep ``status.json`` in `folder` while the block runs; the yielded function reports the run's progress.

    A file that cannot be written does not stop the run.
    """
    facts = platform_facts(platform, energy=True)[0] if platform.has_power else None
    path, last = folder / STATUS, -_INTERVAL
    status = Status(
        policy=policy,
        written=time.time(),
        jobs=jobs,
        now=0.0,
        submitted=0,
        waiting=0,
        running=0,
        hosts=HOST_LETTERS[HostState.IDLE] * len(platform.hosts),
        watts=None,
    )

    def report(now: float, state: ClusterState | None) -> None:
        nonlocal last, status
        if state is None or time.monotonic() - last < _INTERVAL:
            return
        last = time.monotonic()
        status = _status_at(status, now, state, facts)
        with suppress(ConfigError):  # a run goes on without a viewer
            write_files({path: [json_bytes(status)]})

    try:
        yield report
    finally:
        with suppress(OSError):
            path.unlink()


def _status_at(last: Status, now: float, state: ClusterState, facts: PlatformFacts | None) -> Status:
    return replace(
        last,
        written=time.time(),
        now=now,
        submitted=state.nb_jobs,
        waiting=state.nb_queued,
        running=state.nb_running,
        hosts="".join(HOST_LETTERS[code] for code in state.host_state.tolist()),
        watts=None if facts is None else _watts(state, facts),
    )


def _watts(state: ClusterState, facts: PlatformFacts) -> float:
    """What all hosts draw in their pstates: those that compute at full load, the others without load."""
    hosts = np.arange(len(state.host_state))
    busy = state.host_state == HostState.COMPUTING
    return float(np.where(busy, facts.full[hosts, state.pstate], facts.idle[hosts, state.pstate]).sum())


class ReportingResponder:
    """An agent that reports the run's progress after each of its replies."""

    def __init__(self, agent: Responder, progress: Progress) -> None:
        self._agent, self._progress = agent, progress

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._agent.finished

    @property
    def now(self) -> float:
        """Simulated time of the agent's last message, seconds."""
        return self._agent.now

    @property
    def state(self) -> ClusterState | None:
        """What the agent knows of the cluster."""
        return self._agent.state

    def get_ready(self) -> None:
        """Let the agent get ready, as the loop asks it to."""
        self._agent.get_ready()

    def handle(self, question: bytes) -> bytes:
        """Let the agent answer, and show where the run is."""
        reply = self._agent.handle(question)
        self._progress(self._agent.now, self._agent.state)
        return reply
