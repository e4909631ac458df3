"""A training run: curves, checkpoints, and going on where it stopped."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from decision.cores import available_cores
from decision.formats.files import write_files
from decision.model.errors import ConfigError

from .checkpoint import Manifest, read_packed, write_checkpoint
from .collector import Collected, VectorEnv
from .config import PpoConfig, differences
from .learner import Learner
from .logs import CsvLog, EventLog
from .networks import Layout
from .ppo import Losses
from .weights import dump, load

_STATE = "resume.pt"
_SAVE_EVERY = 60.0  # seconds


class Task(NamedTuple):
    """What is learned in, and what is left of it."""

    envs: VectorEnv
    layout: Layout | None  # of its observations, where the network wants to know
    metrics: tuple[str, ...]  # of its episodes, for the curves
    manifest: Manifest  # of the checkpoint, as it is before the first step
    folder: Path  # gets curves, checkpoint and state
    name: str  # of the checkpoint's file, without .ckpt


class Report(NamedTuple):
    """How far the training is, after an iteration."""

    steps: int
    rate: float  # steps per second of this iteration
    row: Mapping[str, float]  # what goes into the curves


def train(
    task: Task,
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
) -> Path:
    """Learn until all steps are done or `stop` says so; what is there then goes on as if it had never stopped.

    Args:
        task: what is learned, and where it is written: ``progress.csv``, TensorBoard's event files, the checkpoint.
        resume: go on from the folder's state, if there is one.
        stop: asked after each iteration.
        report: told after each iteration.

    Returns:
        The checkpoint.

    Raises:
        ConfigError: if the folder holds another run, or one that shall not be resumed.
    """
    checkpoint = task.folder / f"{task.name}.ckpt"
    saved = _saved_state(task, resume)
    manifest = task.manifest if saved is None else _manifest(saved)
    with ExitStack() as open_things:
        open_things.enter_context(_threads(manifest.config.learn))  # the first weights' last bits depend on it, too
        learner = Learner(manifest.config, task.envs, task.layout)
        if saved is not None:
            learner.restore(saved["learner"])
        pool = open_things.enter_context(ThreadPoolExecutor(1))
        curves = CsvLog(task.folder / "progress.csv", _columns(task), keep=learner.iteration)
        events = EventLog(task.folder, learner.steps)
        open_things.callback(curves.close)
        open_things.callback(events.close)
        saved_at = time.monotonic()
        while not learner.finished:
            began = time.perf_counter()
            collected, losses = learner.iterate(pool)
            rate = len(collected.rollout.reward.flatten()) / (time.perf_counter() - began)
            row = _row(learner, collected, losses)
            curves.write(row)
            events.write(learner.steps, {**row, "steps_per_second": rate})
            scores = {name: row[name] for name in task.metrics if name in row}
            manifest = msgspec.structs.replace(manifest, steps=learner.steps, scores=scores or manifest.scores)
            report(Report(learner.steps, rate, row))
            stopping = stop() or learner.finished
            if stopping or time.monotonic() - saved_at > _SAVE_EVERY:
                _save(task, checkpoint, manifest, learner)
                saved_at = time.monotonic()
            if stopping:
                break
    return checkpoint


def _columns(task: Task) -> tuple[str, ...]:
    return ("iteration", "steps", "episodes", "reward", *task.metrics, *Losses._fields, "lr")


def _row(learner: Learner, collected: Collected, losses: Losses) -> dict[str, float]:
    scale = learner.config.learn.reward_scale
    return {
        "iteration": learner.iteration,
        "steps": learner.steps,
        "episodes": collected.episodes,
        "reward": float(collected.rollout.reward.mean()) / scale,
        **collected.metrics,
        **losses._asdict(),
        "lr": learner.lr,
    }


def _save(task: Task, checkpoint: Path, manifest: Manifest, learner: Learner) -> None:
    """The checkpoint, and the state to go on from."""
    write_checkpoint(checkpoint, manifest, dump(learner.network.state_dict()))
    state = {"manifest": msgspec.json.encode(manifest).decode(), "learner": learner.state()}
    write_files({task.folder / _STATE: [dump(state)]})


def _saved_state(task: Task, resume: bool) -> dict[str, Any] | None:
    path = task.folder / _STATE
    if not path.exists():
        task.folder.mkdir(parents=True, exist_ok=True)
        return None
    if not resume:
        raise ConfigError(f"{task.folder} holds a run: go on with --resume, or choose another folder")
    state = load(str(path), read_packed(path))
    _check_same(task, _manifest(state))
    return state


def _manifest(state: Mapping[str, Any]) -> Manifest:
    return msgspec.json.decode(state["manifest"], type=Manifest)


def _check_same(task: Task, before: Manifest) -> None:
    """Refuse to go on with another config or other inputs than the run began with."""
    changed = differences(before.config, task.manifest.config)
    if changed:
        raise ConfigError(f"{task.folder} holds a run with another {changed[0]}; go on with what it began with")
    for name in ("encoder", "platform", "workloads"):
        then, now = getattr(before, name), getattr(task.manifest, name)
        if then != now:
            raise ConfigError(f"{task.folder} holds a run with another {name}: {then}, now {now}")


@contextmanager
def _threads(ppo: PpoConfig) -> Iterator[None]:
    """Let torch compute with so many threads: two that wait for each other at every operation waste both cores."""
    before = torch.get_num_threads()
    cores = available_cores()
    torch.set_num_threads(ppo.threads or max(1, cores // 2 if ppo.overlap else cores))
    try:
        yield
    finally:
        torch.set_num_threads(before)
