"""A training, from files to a folder that is locked meanwhile and says what made its files; and many, as tasks."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec
from msgspec.structs import replace

from decision.batsim.episodes import BatsimForEpisodes
from decision.files.outputs_read import RESULTS
from decision.files.text import utf8, write_files
from decision.model.errors import ConfigError
from decision.model.table import csv_text
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.config import PpoConfig, TrainConfig, all_settings, alternatives, load_config
from decision.rl.learning.schedulers import ShareOut, TrainingInputs, train_scheduler, training_of
from decision.rl.learning.training import STATE, Report, run_together, training_files
from decision.rl.learning.weights import device_of
from decision.rl.schedulers import find_scheduler

from .folder import Stopped, describe_training, run_folder
from .inputs import Inputs, LogOnHosts, first_log, load_inputs, writable_folder
from .results import CURVES, Columns, read_curves
from .store import Result
from .tasks import How, Progress, file_digest, run_tasks


def check_resumable(folder: Path) -> None:
    """Check that a training has left its state in a folder. Raises ConfigError if none has."""
    if not (folder / STATE).is_file():
        raise ConfigError(
            f"{folder}: there is no training to resume; leave the option out to begin one", field="resume"
        )


class Players(NamedTuple):
    """Who plays the episodes of a training."""

    engine: BatsimForEpisodes | None = None  # what simulates; None for the embedded engine
    share_out: ShareOut | None = None  # as of `decision.rl.learning.schedulers.train_scheduler`


def train_to_folder(
    log: LogOnHosts,
    config: TrainConfig,
    output: Path,
    *,
    data: Path | None = None,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    command: str = "",
    players: Players = Players(),  # noqa: B008 - immutable
) -> Path:
    """Train a scheduler; ``output/run.json`` says how, and whether it finished, failed or was interrupted.

    Args:
        log: what is learned from.
        config: what is learned and how.
        output: gets the checkpoint, the curves and the state.
        data: a file of recorded choices, for algorithms that learn from such.
        resume: as of `decision.rl.learning.training.run_training`, like `stop` and `report`.
        note: gets a line if more steps give another result than one training of so many, and on recorded choices.
        command: what the user typed, for ``run.json``.
        players: who plays the episodes.

    Returns:
        The checkpoint.

    Raises:
        ConfigError: if the inputs do not fit together, the folder holds something else, or another training goes on
            there.
        InputError: if the state in the folder is damaged.
    """
    facts = describe_training(config.scheduler, all_settings(config), config.seed, log.files, log.selection, command)
    with suppress(Stopped), run_folder(output, facts) as written:
        if resume and (line := _difference(output, config)):
            note(line)
        checkpoint = train_scheduler(
            TrainingInputs(
                log.platform,
                log.workload,
                log.files,
                events=log.events,
                selection=log.selection,
                data=data,
                engine=players.engine,
            ),
            config,
            output,
            resume=resume,
            stop=stop,
            report=report,
            note=note,
            share_out=players.share_out,
        )
        if (steps := read_manifest(checkpoint).steps) < config.steps:
            raise Stopped(f"{steps:,} of {config.steps:,} steps are done")
        written += training_files(checkpoint)
    return checkpoint


def train_to_folders(log: LogOnHosts, configs: Sequence[TrainConfig], folders: Sequence[Path]) -> list[Path]:
    """As `train_to_folder`, of several that learn together where they can; those begun before go on."""
    inputs = TrainingInputs(log.platform, log.workload, log.files, events=log.events, selection=log.selection)
    with ExitStack() as locked:
        written = []
        for config, folder in zip(configs, folders, strict=True):
            facts = describe_training(config.scheduler, all_settings(config), config.seed, log.files, log.selection, "")
            written.append(locked.enter_context(run_folder(folder, facts)))
        tasks = [training_of(inputs, config, folder) for config, folder in zip(configs, folders, strict=True)]
        checkpoints = run_together(tasks, resume=True)
        for files, checkpoint in zip(written, checkpoints, strict=True):
            files += training_files(checkpoint)
    return checkpoints


def _difference(folder: Path, config: TrainConfig) -> str:
    """What is to be said of a training that is given more steps than it began with; empty where there is nothing."""
    checkpoint = folder / f"{find_scheduler(config.scheduler).file_name}.ckpt"
    before = read_manifest(checkpoint).config.steps if checkpoint.is_file() else config.steps
    if before >= config.steps or not config.learn.timed:
        return ""
    return (
        f"{folder}: {config.learn.timed} was planned for {before:,} steps: going on to {config.steps:,} gives another "
        f"result than one training of {config.steps:,} steps"
    )


# Many trainings of one scheduler, for each combination of seeds and settings: tasks as others are.
#
# Each training has a folder of its own under ``OUT/trainings``, which workers on other machines must see, too: a
# training whose worker was lost goes on from its last state there, a minute old at most. All compute with one thread,
# unless learn.threads says otherwise, so that where a training was done changes nothing in it. On a GPU of this machine
# the seeds of a combination learn together (`decision.rl.learning.stack`), as each learns alone to rounding.

TABLE = "trainings.csv"
_TRAININGS = "trainings"  # the folder of their folders
_LONGEST = 200  # characters of a folder's name, of which file systems have 255
VALIDATED = "validation_"  # how the columns of curves begin that judge what was learned


class Combination(NamedTuple):
    """One of many trainings: a seed with a value for each setting that is varied."""

    name: str  # what it has of its own, like learn.lr=1e-3,seed=0
    own: dict[str, str]
    config: TrainConfig


def combinations(preset: str, changes: Sequence[str], seeds: Sequence[int]) -> list[Combination]:
    """A training for each seed and each choice among the alternatives of the settings.

    Args:
        preset: as of `decision.rl.learning.config.load_config`.
        changes: its changes, each perhaps with several values.
        seeds: of the trainings.

    Raises:
        ConfigError: if a combination is not valid, or is there twice.
    """
    found = []
    varied = [alternatives(change) for change in changes]
    for chosen in itertools.product(*varied):
        settings = dict(change.split("=", 1) for change, every in zip(chosen, varied, strict=True) if len(every) > 1)
        for seed in seeds:
            found.append(combination(preset, chosen, settings, seed, len(seeds) > 1 or not settings))
    twice = next((each.name for each in found if sum(each.name == other.name for other in found) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is there twice; name each value once", field="changes")
    return found


def combination(
    preset: str, changes: Sequence[str], settings: dict[str, str], seed: int, named_by_seed: bool
) -> Combination:
    """One training of many: with one thread, unless ``learn.threads`` says otherwise.

    Args:
        preset: as of `decision.rl.learning.config.load_config`.
        changes: its changes, each with one value.
        settings: those of them that tell it from the others, by key.
        seed: of the training.
        named_by_seed: whether its name has the seed.

    Raises:
        ConfigError: if the changes do not fit.
    """
    config = load_config(preset, changes, seed=seed)
    if getattr(config.learn, "threads", 1) == 0:
        config = replace(config, learn=replace(config.learn, threads=1))
    mine = settings | ({"seed": str(seed)} if named_by_seed else {})
    name = ",".join(f"{key}={value}" for key, value in mine.items()).replace("/", "_")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return Combination(name, settings | {"seed": str(seed)}, config)


class TrainingTask(msgspec.Struct, frozen=True, kw_only=True):
    """One training as a task."""

    inputs: Inputs
    config: Any  # a TrainConfig, which is pickled as it is
    data: Path | None
    folder: Path  # on which its result does not depend
    digests: tuple[str, ...]  # of the files

    @property
    def title(self) -> str:
        """The task as progress and failures name it."""
        return self.folder.name

    def files(self) -> list[tuple[Path, str]]:
        """What it reads, each with its digest."""
        return list(zip(read_files(self.inputs, self.data), self.digests, strict=True))

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        selection = self.inputs.selection.facts()
        return {"training": msgspec.to_builtins(self.config), "selection": selection, "digests": self.digests}


def read_files(inputs: Inputs, data: Path | None) -> list[Path]:
    return [inputs.platform, *inputs.workloads, *inputs.events, *([data] if data else [])]


def train_all(
    trainings: Sequence[Combination],
    inputs: Inputs,
    output: Path,
    *,
    data: Path | None = None,
    progress: Progress = lambda done, of: None,
    **how: Unpack[How],
) -> list[dict[str, str]]:
    """Do all trainings that are not finished; ``OUT/trainings.csv`` gets a row of each.

    Args:
        trainings: what is learned.
        inputs: what is learned from.
        output: gets a folder for each training, and the table.
        data: a file of recorded choices, for algorithms that learn from such.
        progress: called with the number of finished trainings and of all.
        how: as of `decision.experiments.tasks.run_tasks`; ``audit`` has no effect, since what is done again goes on.

    Returns:
        The rows: what a training has of its own, its steps, and what was judged at last.

    Raises:
        RunsFailedError: if trainings have failed, when all others are done.
        ConfigError, InputError: as of `decision.experiments.training.train_to_folder` and `run_tasks`.
    """
    digests = tuple(map(file_digest, read_files(inputs, data)))
    folders = training_folders(trainings, writable_folder(output))
    tasks = [
        TrainingTask(inputs=inputs, config=each.config, data=data, folder=folder, digests=digests)
        for each, folder in zip(trainings, folders, strict=True)
    ]
    if _together(trainings, data) and not how.get("executor") and not how.get("share"):
        groups = [_Group(trainings=tuple(group)) for _, group in itertools.groupby(tasks, _but_its_seed)]
        found = run_tasks(_train_group, groups, output / RESULTS, progress=progress, **how)
        results = [one for group in found for one in group["trainings"]]
    else:
        results = list(run_tasks(_train, tasks, output / RESULTS, progress=progress, **how))
    texts = [{name: "" if value is None else str(value) for name, value in result.items()} for result in results]
    rows = [{**training.own, **text} for training, text in zip(trainings, texts, strict=True)]
    write_files({output / TABLE: [utf8(csv_text(rows))]})
    return rows


def training_folders(trainings: Sequence[Combination], output: Path) -> list[Path]:
    """The folder of each training, below the output folder."""
    return [output.resolve() / _TRAININGS / training.name for training in trainings]


def _train(task: TrainingTask) -> Result:
    """Do a training, or go on with it."""
    begun = (task.folder / STATE).is_file()
    checkpoint = train_to_folder(
        first_log(load_inputs(task.inputs)), task.config, task.folder, data=task.data, resume=begun
    )
    return _result(task.folder, checkpoint)


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    """Trainings whose seeds alone differ, as one task."""

    trainings: tuple[TrainingTask, ...]

    @property
    def title(self) -> str:
        """The task as progress and failures name it."""
        return " and ".join(training.title for training in self.trainings)

    def files(self) -> list[tuple[Path, str]]:
        """The files that the trainings read."""
        return self.trainings[0].files()

    def definition(self) -> dict[str, Any]:
        """All that the results depend on; each one's last bits depend on which others there are."""
        return {"together": [training.definition() for training in self.trainings]}


def _but_its_seed(training: TrainingTask) -> TrainConfig:
    return replace(training.config, seed=0)


def _together(trainings: Sequence[Combination], data: Path | None) -> bool:
    """Whether seeds learn in one learner: on a GPU. On a CPU that gains nothing over trainings side by side."""
    learn = trainings[0].config.learn
    return data is None and isinstance(learn, PpoConfig) and device_of(learn).type == "cuda"


def _train_group(task: _Group) -> Result:
    """Do the trainings, or go on with them."""
    configs, folders = ([getattr(training, name) for training in task.trainings] for name in ("config", "folder"))
    checkpoints = train_to_folders(first_log(load_inputs(task.trainings[0].inputs)), configs, folders)
    return {"trainings": [_result(*each) for each in zip(folders, checkpoints, strict=True)]}


def _result(folder: Path, checkpoint: Path) -> Result:
    curves = read_curves(folder / CURVES)
    return {
        "steps": int(curves["steps"][-1]),
        **dict(last_judged(curves)),
        "checkpoint_sha256": file_digest(checkpoint),
    }


def last_judged(curves: Columns) -> Iterator[tuple[str, float]]:
    """The last value of each column that judges what was learned: validations; the reward where there is none."""
    names = [name for name in curves if name.startswith(VALIDATED)] or ["reward"]
    for name in names:
        known = [float(value) for value in curves[name] if math.isfinite(value)]
        yield name, known[-1] if known else math.nan
