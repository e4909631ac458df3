"""A training run: curves, checkpoints, and going on where it stopped."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import torch

from decision.computer.cores import available_cores
from decision.envs.evaluation import ChooseAll
from decision.formats.files import write_files
from decision.model.errors import ConfigError
from decision.policies.policy import Policy

from .checkpoint import Manifest, decode_manifest, read_packed, write_checkpoint
from .config import TrainConfig, changed_settings
from .logs import EVENT_FILES, CsvLog, EventLog
from .weights import dump, load

_CURVES, STATE = "progress.csv", "resume.pt"
_SAVE_EVERY = 60.0  # seconds


class Algorithm(Protocol):
    """A way of learning, and how far it got."""

    columns: tuple[str, ...]  # of the curves: what `iterate` returns

    @property
    def iteration(self) -> int:
        """Those that are done."""

    @property
    def steps(self) -> int:
        """Steps learned from."""

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""

    def iterate(self) -> Mapping[str, float]:
        """Learn a little; returns values for the curves, those that there are."""

    def policy(self) -> Policy | ChooseAll:
        """What was learned, for `decision.envs.evaluate`."""

    def weights(self) -> Mapping[str, torch.Tensor]:
        """What was learned, for the checkpoint."""

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""

    def close(self) -> None:
        """End threads and environments."""


class Training(NamedTuple):
    """What is learned, and what it leaves."""

    algorithm: Callable[[TrainConfig], Algorithm]  # as it is before the first step
    metrics: tuple[str, ...]  # of the curves: those that the checkpoint has, too
    manifest: Manifest  # of the checkpoint, as it is before the first step
    folder: Path  # gets curves, checkpoint and state
    name: str  # of the checkpoint's file, without .ckpt
    validate: Callable[[Policy | ChooseAll], Mapping[str, float]] = lambda _: {}
    validated: tuple[str, ...] = ()  # columns that it gives


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
    checkpoint = task.folder / f"{task.name}.ckpt"
    saved = _saved_state(task, resume)
    manifest = task.manifest
    if saved is not None:  # with the steps of now
        manifest = msgspec.structs.replace(_manifest(task, saved), config=task.manifest.config)
    with ExitStack() as open_things:
        open_things.enter_context(_threads(manifest.config))  # the first weights' last bits depend on it, too
        learner = open_things.enter_context(closing(task.algorithm(manifest.config)))
        if saved is not None:
            learner.restore(saved["learner"])
        curves = open_things.enter_context(closing(_Curves(task, learner, report)))
        if not learner.steps and (validated := task.validate(learner.policy())):
            curves.tell(0.0, validated)
        saved_at = time.monotonic()
        while not learner.finished:
            began, before, used = time.perf_counter(), learner.steps, time.process_time()
            learned = dict(learner.iterate())
            rate, used = (learner.steps - before) / (time.perf_counter() - began), time.process_time() - used
            if learner.finished or _rounds(task, learner.steps) > _rounds(task, before):
                learned |= task.validate(learner.policy())
            row = curves.tell(rate, learned, used)
            scores = {name: row[name] for name in task.metrics if name in row}
            manifest = msgspec.structs.replace(manifest, steps=learner.steps, scores=scores or manifest.scores)
            stopping = stop() or learner.finished
            if stopping or time.monotonic() - saved_at > _SAVE_EVERY:
                _save(task, checkpoint, manifest, learner)
                saved_at = time.monotonic()
            if stopping:
                break
    return checkpoint


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


def _save(task: Training, checkpoint: Path, manifest: Manifest, learner: Algorithm) -> None:
    """The checkpoint, and the state to go on from."""
    write_checkpoint(checkpoint, manifest, dump(learner.weights()))
    state = {"manifest": msgspec.json.encode(manifest).decode(), "learner": learner.state()}
    write_files({task.folder / STATE: [dump(state)]})


def _saved_state(task: Training, resume: bool) -> dict[str, Any] | None:
    path = task.folder / STATE
    if not path.exists():
        task.folder.mkdir(parents=True, exist_ok=True)
        return None
    if not resume:
        raise ConfigError(f"{task.folder} holds a run: resume it, or choose another folder", field="resume")
    state = load(str(path), read_packed(path))
    _check_same(task, _manifest(task, state))
    return state


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
    """Let torch compute with as many threads as the algorithm wants."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.learn.torch_threads(available_cores(), config.network))
    try:
        yield
    finally:
        torch.set_num_threads(before)
