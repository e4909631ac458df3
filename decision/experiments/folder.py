"""The folder of a run: locked while it goes, described by ``run.json``; and what differs between two of them."""

import csv
import datetime
import io
import os
import platform
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.batsim.conversation import Responder
from decision.experiments import Engine
from decision.files.outputs_read import (
    CAMPAIGN,
    LOCK,
    RESULTS,
    RUN,
    STATUS,
    RunFacts,
    Status,
    campaign_of,
    lock_folder,
    read_facts,
)
from decision.files.text import InputFacts, file_facts, json_bytes, printable, read_bytes, write_files
from decision.files.workload import Selection
from decision.model.dates import clock_at_zero
from decision.model.errors import ConfigError, DecisionError, InputError
from decision.model.platform import Platform
from decision.model.record import HostState
from decision.simulation import Progress
from decision.state.cluster import ClusterState, platform_facts

from .inputs import LoadedInputs, PolicyChoice, input_files, writable_folder
from .store import Result, ResultStore, StoredRun


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
            plain = isinstance(error, DecisionError | Stopped)
            text = str(error) if plain else f"{type(error).__name__}: {error}"
            reason = printable(text.partition("\n")[0].rstrip(": "))
            with suppress(ConfigError):
                _write(folder, replace(facts, state=state, reason=reason, end=_now(), files=older))
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
        watts = None
        if facts is not None:  # hosts that compute are at full load, the others without load
            hosts, busy = np.arange(len(state.host_state)), state.host_state == HostState.COMPUTING
            watts = float(np.where(busy, facts.full[hosts, state.pstate], facts.idle[hosts, state.pstate]).sum())
        status = replace(
            status,
            written=time.time(),
            now=now,
            submitted=state.nb_jobs,
            waiting=state.nb_queued,
            running=state.nb_running,
            hosts="".join(HOST_LETTERS[code] for code in state.host_state.tolist()),
            watts=watts,
        )
        with suppress(ConfigError):  # a run goes on without a viewer
            write_files({path: [json_bytes(status)]})

    try:
        yield report
    finally:
        with suppress(OSError):
            path.unlink()


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


# The same thing once more: the commands that a folder's ``run.json`` keeps, and what differs between two folders.

# Columns of Batsim's files, and fields of results, that say how long it took us and who wrote them
_NOT_FOUND_OUT = {"batsim_version", "scheduling_time", "simulation_time"}
_COMPARED = (".csv", ".ckpt")  # not pictures, logs and the states from which trainings go on
_SHORT = 12  # characters of a hash, for people
_NOTHING = "-"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is not the same in both folders."""

    what: str
    before: str
    again: str


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in how results were made, and in the results."""

    compared: int  # files of a run, or runs of a campaign, that both folders have
    setup: Sequence[Difference]
    results: Sequence[Difference]


def folder_of(place: Path) -> Path:
    """The folder that a ``run.json``, or another file of a run or a campaign, stands in; of a campaign the whole."""
    folder = place if place.is_dir() else place.parent
    return campaign_of(folder) or folder


def commands_of(folder: Path) -> list[list[str]]:
    """What was typed for a run or a campaign, in order and each once, without the first word.

    Raises:
        InputError: if nothing says it: no ``run.json``, or what made it was no command.
    """
    if campaign_of(folder) is not None:
        typed = [str(writer["command"]) for writer in _writers(folder)]
    else:
        typed = [_facts(folder).command]
    words = [shlex.split(each) for each in dict.fromkeys(typed)]
    for each in words:
        if not each or each[0] not in ("decision", "__main__.py"):
            by = f"by {shlex.join(each)}, not by a command of decision" if each else "from Python, or as a part of many"
            raise InputError(f"{folder / RUN}: it was made {by}; run that again, and compare what it leaves")
    return [each[1:] for each in words]


def into(words: Sequence[str], output: Path) -> list[str]:
    """The same command with another output folder, from the beginning."""
    end = words.index("--") if "--" in words else len(words)
    kept: list[str] = []
    given = iter(words[:end])
    for word in given:
        if word in ("-o", "--output"):
            next(given, None)
        elif not (word.startswith("--output=") or (word.startswith("-o") and word != "-o") or word == "--resume"):
            kept.append(word)
    return [*kept, "-o", str(output), *words[end:]]


def check_new(output: Path) -> None:
    """Refuse a folder that holds something. Raises ConfigError."""
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise ConfigError(f"{output}: is there already; choose a new folder", field="output")


def compare_folders(before: Path, again: Path) -> Repetition:
    """What differs between two runs, or two campaigns.

    Raises:
        InputError: if the folders hold nothing that can be compared, or files of them are damaged.
    """
    if campaign_of(before) is not None:
        return _of_campaigns(before, again)
    one, other = _facts(before), _facts(again)
    setup = _unequal(_setup(one), _setup(other))
    if one.state != "finished":
        return Repetition(compared=0, setup=setup, results=_unequal({"state": one.state}, {"state": other.state}))
    names = [name for name in one.files.keys() | other.files.keys() if name.endswith(_COMPARED)]
    results = [each for name in sorted(names) for each in _in_file(name, before, one, again, other)]
    return Repetition(compared=len(names), setup=setup, results=results)


def _facts(folder: Path) -> RunFacts:
    facts = read_facts(folder)
    if facts is None:
        raise InputError(f"{folder / RUN}: not there, or no run's; give the output folder of a run or a comparison")
    return facts


def _unequal(one: Mapping[str, str], other: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(what=name, before=one.get(name, _NOTHING), again=other.get(name, _NOTHING))
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    ]


def _setup(facts: RunFacts) -> dict[str, str]:
    files = {"platform": [facts.platform], "workload": facts.workloads, "events": facts.events}
    policy_file = {} if facts.policy_file is None else {"policy's file": _content(facts.policy_file)}
    plain = {"version": facts.decision, "policy": facts.name, "seed": facts.seed, "engine": facts.engine}
    return (
        {name: str(value) for name, value in plain.items()}
        | {
            f"{kind} {n}" if n else kind: _content(each)
            for kind, every in files.items()
            for n, each in enumerate(every)
        }
        | policy_file
    )


def _content(file: InputFacts) -> str:
    return f"{file.name} {file.sha256[:_SHORT]}"


# --- Files of two runs ----------------------------------------------------------------------------------------------


def _in_file(name: str, before: Path, one: RunFacts, again: Path, other: RunFacts) -> Iterator[Difference]:
    contents = []
    for folder, facts in ((before, one), (again, other)):
        size, path = facts.files.get(name), folder / Path(name).name
        there = path.stat().st_size if path.is_file() else None
        state = "not written" if size is None else "not there" if there is None else "changed after the run"
        contents.append((path, "") if size is not None and there == size else (None, state))
    (left, why), (right, why_again) = contents
    if left is None or right is None:
        yield Difference(what=name, before=why or "there", again=why_again or "there")
    elif (mine := _content(file_facts(left))) != (its := _content(file_facts(right))):
        if left.suffix == ".csv":
            yield from _in_tables(name, read_bytes(left), read_bytes(right))
        else:
            yield Difference(what=name, before=mine, again=its)


def _in_tables(name: str, left: bytes, right: bytes) -> Iterator[Difference]:
    (head, *rows), (other_head, *other_rows) = (
        list(csv.reader(io.StringIO(data.decode("utf-8", "replace")))) or [[]] for data in (left, right)
    )
    if head != other_head or len(rows) != len(other_rows):
        sizes = [
            f"{len(part):,} rows of {len(names)} columns" for names, part in ((head, rows), (other_head, other_rows))
        ]
        yield Difference(what=name, before=sizes[0], again=sizes[1])
        return
    pairs = [pair for pair in zip(rows, other_rows, strict=True) if pair[0] != pair[1]]
    for at, column in enumerate(head):
        unequal = [(a[at], b[at]) for a, b in pairs if a[at : at + 1] != b[at : at + 1]]
        if unequal and column not in _NOT_FOUND_OUT:
            where = f"{name}: {column}" + (f", first of {len(unequal):,} rows" if len(rows) > 1 else "")
            yield Difference(what=where, before=unequal[0][0], again=unequal[0][1])


# --- Results of two campaigns ---------------------------------------------------------------------------------------


def _writers(folder: Path) -> list[dict[str, Any]]:
    """Who wrote the results, the first one first."""
    place = folder / RESULTS if (folder / RESULTS / RUN).is_file() else folder
    found = msgspec.json.decode(read_bytes(place / RUN))
    writers = [each["writer"] for each in found["results"] if each.get("writer")]
    if found.get("kind") != CAMPAIGN or not writers:
        raise InputError(f"{place / RUN}: nothing says which command made the results")
    return sorted(writers, key=lambda writer: writer["begin"])


def _of_campaigns(before: Path, again: Path) -> Repetition:
    if campaign_of(again) is None:
        raise InputError(f"{again}: has no results of many runs, and {before} has")
    versions = [
        {name: ", ".join(sorted({str(writer[name]) for writer in _writers(folder)})) for name in ("decision", "python")}
        for folder in (before, again)
    ]
    setup = _unequal(*({"version": each["decision"], "Python": each["python"]} for each in versions))
    one, other = _runs(before), _runs(again)
    both = [name for name in one if name in other]
    changed = Counter(
        (field.what, field.before, field.again)
        for name in both
        for field in _unequal(_texts(one[name].definition), _texts(other[name].definition))
    )
    for (field, old, new), runs in changed.items():
        setup.append(Difference(what=f"{field} of {runs:,} runs", before=old, again=new))
    results = _unequal(dict.fromkeys(one, "there"), dict.fromkeys(other, "there"))
    for name in both:
        fields = _unequal(_texts(one[name].result), _texts(other[name].result))
        results += [msgspec.structs.replace(each, what=f"{name}: {each.what}") for each in fields]
    return Repetition(compared=len(both), setup=setup, results=results)


def _runs(folder: Path) -> dict[str, StoredRun]:
    """Results by the runs' names; where runs share one, as for versions of a file, by their keys behind these."""
    runs = [*ResultStore(folder / RESULTS if (folder / RESULTS).is_dir() else folder).runs()]
    named = Counter(run.run for run in runs)
    return {run.run if named[run.run] == 1 else f"{run.run} ({run.key})": run for run in runs}


def _texts(fields: Result) -> dict[str, str]:
    """Fields of a result or a definition, for people."""
    values = {name: value for name, value in fields.items() if name not in _NOT_FOUND_OUT}
    return {name: v if isinstance(v, str) else msgspec.json.encode(v).decode() for name, v in values.items()}
