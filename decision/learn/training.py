"""A training run: rollouts and updates in turn, curves, checkpoints, and going on where it stopped."""

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from decision.formats.files import write_files
from decision.model.errors import ConfigError

from .checkpoint import Manifest, read_packed, write_checkpoint
from .collector import Collected, Collector, VectorEnv
from .config import PpoConfig, TrainConfig, differences
from .logs import CsvLog, EventLog
from .networks import Layout, Network, make_network
from .ppo import Losses, Rollout, update
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


class Learner:
    """Network, optimiser and collector of a run.

    Args:
        task: what is learned in.
    """

    def __init__(self, task: Task) -> None:
        self.config: TrainConfig = task.manifest.config
        ppo, space = self.config.learn, task.envs.single_observation_space
        self.device = torch.device(_device(ppo))
        with torch.random.fork_rng(devices=[]):  # the weights are drawn from torch's only generator
            torch.manual_seed(self.config.seed)
            actions = int(task.envs.single_action_space.n)
            network = make_network(self.config.network, space.shape[0], actions, task.layout)
        self.network = network.to(self.device)
        self._compiled: Network = torch.compile(network) if self.device.type == "cuda" else network  # type: ignore[assignment]
        self._behaviour = copy.deepcopy(network)
        self._optimizer = torch.optim.Adam(network.parameters(), lr=ppo.lr, eps=1e-5, fused=True)
        self._generator = torch.Generator().manual_seed(self.config.seed)
        self._collector = Collector(task.envs, ppo.rollout, ppo.reward_scale, self.config.seed)
        self.iteration = 0
        self.pending: Collected | None = None

    @property
    def steps(self) -> int:
        """Environment steps learned from."""
        return self.iteration * self.config.learn.envs * self.config.learn.rollout

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self.config.learn.steps

    def iterate(self, pool: ThreadPoolExecutor) -> tuple[Collected, Losses]:
        """Learn from the pending rollout and collect the next one, at the same time if the config says so.

        Then the next rollout is made by the policy from before this update: what is learned does not depend on which
        of the two is faster.
        """
        collected = self.pending or self._collect()
        last = self.steps + self.config.learn.envs * self.config.learn.rollout >= self.config.learn.steps
        following: Future[Collected] | None = None
        if self.config.learn.overlap and not last:
            following = pool.submit(self._collect)
        losses = self._update(collected.rollout)
        self.iteration += 1
        self.pending = following.result() if following else None
        self._behaviour.load_state_dict(self.network.state_dict())
        if not (following or last):
            self.pending = self._collect()
        return collected, losses

    def _collect(self) -> Collected:
        """A rollout by the policy as it was when an update last began or ended."""
        return self._collector.collect(self._behaviour)

    def _update(self, rollout: Rollout) -> Losses:
        ppo = self.config.learn
        self.lr = ppo.lr * (1 - self.steps / ppo.steps if ppo.lr_schedule == "linear" else 1)
        for group in self._optimizer.param_groups:
            group["lr"] = self.lr
        there = Rollout(*(column.to(self.device) for column in rollout))
        autocast = _autocast(ppo, self.device)
        return update(self._compiled, self._optimizer, there, ppo, self._generator, autocast)

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        return {
            "iteration": self.iteration,
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
            "collector": self._collector.state(),
            "pending": None if self.pending is None else [self.pending.rollout._asdict(), *self.pending[1:]],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration = state["iteration"]
        self.network.load_state_dict(state["network"])
        self._behaviour.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._generator.set_state(state["generator"])
        self._collector.restore(state["collector"])
        if state["pending"] is not None:
            rollout, *rest = state["pending"]
            self.pending = Collected(Rollout(**rollout), *rest)


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
    learner = Learner(task)
    if saved is not None:
        learner.restore(saved["learner"])
    manifest = task.manifest if saved is None else _manifest(saved)
    with ExitStack() as open_things:
        open_things.enter_context(_threads(learner.config.learn))
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


def _device(ppo: PpoConfig) -> str:
    if ppo.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("learn.device is cuda, but torch finds no GPU here: choose cpu or auto")
    return ("cuda" if torch.cuda.is_available() else "cpu") if ppo.device == "auto" else ppo.device


@contextmanager
def _threads(ppo: PpoConfig) -> Iterator[None]:
    """Let torch compute with so many threads: two that wait for each other at every operation waste both cores."""
    before = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(ppo.threads or max(1, cores // 2 if ppo.overlap else cores))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _autocast(ppo: PpoConfig, device: torch.device) -> AbstractContextManager[object]:
    wanted = ppo.precision == "bfloat16" or (ppo.precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, dtype=torch.bfloat16) if wanted else nullcontext()
