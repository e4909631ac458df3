"""A training run: curves, checkpoints, and going on where it stopped."""

import csv
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import torch
from msgspec.structs import replace

from decision.files.text import write_files
from decision.model.computer import available_cores, keep_freed_memory
from decision.model.errors import ConfigError
from decision.policies.policy import Policy
from decision.rl.envs.batch import ChooseAll

from .checkpoint import Manifest, decode_manifest, read_packed, write_checkpoint
from .config import TrainConfig, changed_settings
from .ppo import PpoLearner
from .stack import PpoStack, why_alone
from .weights import device_of, dump, load

_CURVES, STATE = "progress.csv", "resume.pt"
_SAVE_EVERY = 60.0  # seconds between two savings, or more:
_FAST = 1  # of zlib's levels: weights and moments become no smaller by others, and what was chosen hardly
_MOST_PACKED = 1032  # times that zlib can make anything smaller
_SHARE = 20.0  # times what saving takes, so that it costs 5 % at most


class Algorithm(Protocol):
    """A way of learning, and how far it got."""

    columns: tuple[str, ...]  # of the curves: what `iterate` returns

    @property
    def iteration(self) -> int:
        """How many iterations are done."""

    @property
    def steps(self) -> int:
        """How many steps were learned from."""

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""

    def iterate(self) -> Mapping[str, float]:
        """Learn a little; returns values for the curves, those that there are."""

    def policy(self) -> Policy | ChooseAll:
        """What was learned, for `decision.rl.envs.evaluate`."""

    def weights(self) -> Mapping[str, torch.Tensor]:
        """What was learned, for the checkpoint."""

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""

    def close(self) -> None:
        """End what runs beside: threads and environments."""


class Training(NamedTuple):
    """What is learned, and what it leaves."""

    algorithm: Callable[[TrainConfig], Algorithm]  # as it is before the first step
    metrics: tuple[str, ...]  # of the curves: those that the checkpoint has, too
    manifest: Manifest  # of the checkpoint, as it is before the first step
    folder: Path  # gets curves, checkpoint and state
    name: str  # of the checkpoint's file, without .ckpt
    validate: Callable[[Policy | ChooseAll], Mapping[str, float]] = lambda _: {}
    validated: tuple[str, ...] = ()  # columns that it gives

    @property
    def checkpoint(self) -> Path:
        """The file that the training leaves."""
        return self.folder / f"{self.name}.ckpt"


class Report(NamedTuple):
    """How far the training is, before the first iteration and after each."""

    steps: int
    rate: float  # steps per second of this iteration; 0 before the first
    row: Mapping[str, float]  # what goes into the curves
    seconds: float = 0.0  # of a processor, that this iteration took, without its validation


def run_training(
    task: Training,
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
) -> Path:
    """Learn until all steps are done or `stop` says so; what is there then goes on as if it had never stopped.

    Args:
        task: what is learned, and where it is written: ``progress.csv``, TensorBoard's event files, the checkpoint.
        resume: go on from the folder's state, if there is one; more steps than it began with extend the training.
        stop: asked after each iteration.
        report: called before the first iteration, and after each.

    Returns:
        The checkpoint.

    Raises:
        ConfigError: if the folder holds another run, or one that shall not be resumed.
    """
    return run_together([task], resume=resume, stop=stop, report=report)[0]


def run_together(
    tasks: Sequence[Training],
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
) -> list[Path]:
    """As `run_training`, of several: in one learner where they can (`decision.rl.learning.stack`), else one after the
    other.

    Each leaves what it leaves alone, and can go on alone. The report is the first one's.
    """
    with ExitStack() as open_things:
        saved = [_saved_state(task, resume) for task in tasks]
        started = [
            task.manifest if state is None else replace(_manifest(task, state), config=task.manifest.config)
            for task, state in zip(tasks, saved, strict=True)  # with the steps of now
        ]
        open_things.enter_context(_threads(started[0].config))  # the first weights' last bits depend on it, too
        learners = []
        for task, manifest, state in zip(tasks, started, saved, strict=True):
            learners.append(task.algorithm(manifest.config))
            open_things.callback(learners[-1].close)
            if state is not None:
                try:
                    learners[-1].restore(state["learner"])
                except ValueError:  # of an optimiser that moves other parameters
                    raise ConfigError(
                        f"{task.folder} holds a run that an earlier version began, whose networks moved otherwise; "
                        "learn into another folder",
                        field="resume",
                    ) from None
        del saved
        ready = list(zip(tasks, started, learners, strict=True))
        for part in [ready] if _stackable(learners) else [[training] for training in ready]:
            alike = _stackable([learner for _, _, learner in part])
            stack = PpoStack(alike) if alike else None
            if stack is not None:
                open_things.callback(stack.close)
            runs = [
                _Run(*training, open_things, report if training is ready[0] else lambda _: None) for training in part
            ]
            _learn(runs, stack, stop)
    return [task.checkpoint for task in tasks]


def _learn(runs: Sequence["_Run"], stack: PpoStack | None, stop: Callable[[], bool]) -> None:
    """Until all steps are done or `stop` says so."""
    due = time.monotonic() + _SAVE_EVERY
    while not runs[0].learner.finished:
        for run in runs:
            run.begin()
        rows = stack.iterate() if stack is not None else [run.learner.iterate() for run in runs]
        stopping = stop() or runs[0].learner.finished
        saving = stopping or time.monotonic() > due
        if stack is not None and (saving or runs[0].validates):
            stack.hand_back()
        for run, row in zip(runs, rows, strict=True):
            run.tell(row)
        if saving:
            began = time.monotonic()
            for run in runs:
                run.save()
            due = time.monotonic() + max(_SAVE_EVERY, _SHARE * (time.monotonic() - began))
        if stopping:
            break


class _Run:
    """One training on its way."""

    def __init__(
        self,
        task: Training,
        manifest: Manifest,
        learner: Algorithm,
        open_things: ExitStack,
        report: Callable[[Report], None],
    ) -> None:
        self.learner, self._task, self._manifest = learner, task, manifest
        self._curves = open_things.enter_context(closing(_Curves(task, learner, report)))
        if not learner.steps and (validated := task.validate(learner.policy())):
            self._curves.tell(0.0, validated)

    def begin(self) -> None:
        """Note when an iteration begins, and from which step on."""
        self._began, self._before, self._used = time.perf_counter(), self.learner.steps, time.process_time()

    @property
    def validates(self) -> bool:
        """Whether a validation is due after this iteration."""
        return self.learner.finished or _rounds(self._task, self.learner.steps) > _rounds(self._task, self._before)

    def tell(self, learned: Mapping[str, float]) -> None:
        """Validate if it is time, and write a row of the curves: an iteration is done."""
        rate = (self.learner.steps - self._before) / (time.perf_counter() - self._began)
        used = time.process_time() - self._used
        if self.validates:
            learned = {**learned, **self._task.validate(self.learner.policy())}
        row = self._curves.tell(rate, learned, used)
        scores = {name: row[name] for name in self._task.metrics if name in row}
        self._manifest = replace(self._manifest, steps=self.learner.steps, scores=scores or self._manifest.scores)

    def save(self) -> None:
        """The checkpoint, and the state to go on from."""
        write_checkpoint(self._task.checkpoint, self._manifest, dump(self.learner.weights()))
        state = {"manifest": msgspec.json.encode(self._manifest).decode(), "learner": self.learner.state()}
        write_files({self._task.folder / STATE: [zlib.compress(dump(state), _FAST)]})


def _stackable(learners: Sequence[Algorithm]) -> list[PpoLearner]:
    """Those that learn in one `PpoStack`: several that can, and one on a GPU; else none."""
    alike = [learner for learner in learners if isinstance(learner, PpoLearner)]
    if len(alike) < len(learners) or why_alone(alike):
        return []
    return alike if len(alike) > 1 or device_of(alike[0].ppo).type == "cuda" else []


class _Curves:
    """The rows of a training, in all places that show them."""

    def __init__(self, task: Training, learner: Algorithm, report: Callable[[Report], None]) -> None:
        columns = ("iteration", "steps", *learner.columns, *task.validated)
        self._csv = CsvLog(task.folder / _CURVES, columns, keep=learner.iteration)
        self._events = EventLog(task.folder, learner.steps)
        self._learner, self._report = learner, report

    def tell(self, rate: float, values: Mapping[str, float], seconds: float = 0.0) -> Mapping[str, float]:
        """A row of now, with these values."""
        steps = self._learner.steps
        row = {"iteration": self._learner.iteration, "steps": steps, **values}
        self._csv.write(row)
        self._events.write(steps, row | ({"steps_per_second": rate} if rate else {}))
        self._report(Report(steps, rate, row, seconds))
        return row

    def close(self) -> None:
        self._csv.close()
        self._events.close()


def training_files(checkpoint: Path) -> list[Path]:
    """All that a training has written."""
    folder = checkpoint.parent
    return [checkpoint, folder / _CURVES, folder / STATE, *sorted(folder.glob(EVENT_FILES))]


def _rounds(task: Training, steps: int) -> int:
    """How many validations are due after so many steps."""
    return steps // task.manifest.config.learn.validated_every


def _saved_state(task: Training, resume: bool) -> dict[str, Any] | None:
    path = task.folder / STATE
    if not path.exists():
        task.folder.mkdir(parents=True, exist_ok=True)
        return None
    if not resume:
        raise ConfigError(f"{task.folder} holds a run: resume it, or choose another folder", field="resume")
    state = load(str(path), _unpacked(path))
    _check_same(task, _manifest(task, state))
    return state


def _unpacked(path: Path) -> bytes:
    """A state's bytes; earlier versions compressed none. What is damaged is left for its reader to refuse."""
    data = read_packed(path)
    unpacking = zlib.decompressobj()
    with suppress(zlib.error):
        data = unpacking.decompress(data, _MOST_PACKED * len(data))
    return data


def _manifest(task: Training, state: Mapping[str, Any]) -> Manifest:
    return decode_manifest(str(task.folder / STATE), state["manifest"])


def _check_same(task: Training, before: Manifest) -> None:
    """Refuse to go on with another config or other inputs than the run began with; more steps are fine."""
    steps = before.config.steps
    if task.manifest.config.steps < steps:
        more = f"{task.folder} holds a run of {steps:,} steps, which can become more and not fewer"
        raise ConfigError(f"{more}; found {task.manifest.config.steps:,}", field="steps")
    changed = [
        key for key in changed_settings(before.config, task.manifest.config) if not key.startswith("learn.steps:")
    ]
    if changed:
        raise ConfigError(f"{task.folder} holds a run with another {changed[0]}; go on with what it began with")
    _check_same_jobs(task, before)
    for name in ("encoder", "platform", "workloads", "data"):
        then, now = getattr(before, name), getattr(task.manifest, name)
        if name == "encoder":
            then = {**now, **then}  # fields that an earlier version did not have follow from the settings
        if then != now:
            raise ConfigError(f"{task.folder} holds a run with another {name}: {then}, now {now}")


def _check_same_jobs(task: Training, before: Manifest) -> None:
    if before.selection is None or task.manifest.selection is None:  # a state of an older version does not say
        return
    now = task.manifest.selection.texts()
    for name, then in before.selection.texts().items():
        if then != now[name]:
            reason = f"began with {name.replace('_', ' ')} {then}, not {now[name]}"
            raise ConfigError(f"{task.folder} holds a run that {reason}; go on with what it began with", field=name)


@contextmanager
def _threads(config: TrainConfig) -> Iterator[None]:
    """Let torch compute with as many threads as the algorithm wants, and take memory that it has had before."""
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(config.learn.torch_threads(available_cores(), config.network))
    try:
        yield
    finally:
        torch.set_num_threads(before)


# The curves of a training run: a CSV file, which is the same for the same seed, and TensorBoard's event files.
#
# Event files are written without TensorBoard: records of TFRecord (length, checksum, content, checksum) that hold
# protocol buffers of four messages. Rejected: the package tensorboard, 20 more packages to write one float.


EVENT_FILES = "events.out.tfevents.*.decision"


class CsvLog:
    """Rows of numbers in a file; each is on disk before the next one is made.

    Args:
        path: the file.
        columns: their names; the first is a row's number.
        keep: rows up to this number stay, later ones are dropped: a run that goes on makes them again.
    """

    def __init__(self, path: Path, columns: Sequence[str], keep: int = 0) -> None:
        self._columns = columns
        write_files({path: [_csv(columns).encode(), *_rows_up_to(path, columns, keep)]})
        self._file = path.open("a", newline="")

    def write(self, row: Mapping[str, float]) -> None:
        """Append a row; a column that it lacks stays empty."""
        cells = [repr(row[name]) if name in row else "" for name in self._columns]
        self._file.write(_csv(cells))
        self._file.flush()

    def close(self) -> None:
        """Close the file; no more rows come."""
        self._file.close()


class EventLog:
    """TensorBoard's event file in a folder.

    Args:
        folder: gets a new file; TensorBoard reads all of a folder's as one curve.
        last_step: the last one that counts in older files; what they say of later ones is void.
    """

    def __init__(self, folder: Path, last_step: int) -> None:
        now = time.time()
        self._file = (folder / EVENT_FILES.replace("*", f"{int(now)}.{os.getpid()}")).open("ab")
        self._record(_double(1, now) + _bytes(3, b"brain.Event:2"))
        session_start = _varint(8) + _varint(1)  # SessionLog.status = START: older values from this step on are void
        self._record(_double(1, now) + _int(2, last_step + 1) + _bytes(7, session_start))

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Append values of curves at a step."""
        values = (
            _bytes(1, _bytes(1, tag.encode()) + _varint(2 << 3 | 5) + struct.pack("<f", value))
            for tag, value in scalars.items()
        )
        self._record(_double(1, time.time()) + _int(2, step) + _bytes(5, b"".join(values)))

    def close(self) -> None:
        """Close the file; no more values come."""
        self._file.close()

    def _record(self, content: bytes) -> None:
        length = struct.pack("<Q", len(content))
        self._file.write(length + _masked_crc(length) + content + _masked_crc(content))
        self._file.flush()


def _csv(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _rows_up_to(path: Path, columns: Sequence[str], last: int) -> list[bytes]:
    """Whole rows of a file, which may be of an older version with fewer columns."""
    if not path.exists() or not last:
        return []
    header, *rows = path.read_text().splitlines(keepends=True)
    names, kept = header.strip().split(","), []
    for row in rows:
        if row.endswith("\n") and int(row.split(",", 1)[0]) <= last:
            cells = dict(zip(names, row.strip().split(","), strict=False))
            kept.append(_csv([cells.get(name, "") for name in columns]).encode())
    return kept


# Fields of protocol buffers: a varint of number and kind (0: a varint, 1: 8 bytes, 2: with its length, 5: 4 bytes)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial
        table.append(byte)
    return table


_CRC = _crc_table()


def _masked_crc(content: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
