"""Many trainings of one scheduler, for each combination of seeds and settings: tasks as others are.

Each training has a folder of its own under ``OUT/trainings``, which workers on other machines must see, too: a training
whose worker was lost goes on from its last state there, a minute old at most. All compute with one thread, unless
learn.threads says otherwise, so that where a training was done changes nothing in it.
"""

import csv
import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec
from msgspec.structs import replace

from decision.analysis.curves import CURVES, Columns, read_curves
from decision.formats.files import write_files
from decision.learn.config import TrainConfig, alternatives, load_config
from decision.learn.training import STATE
from decision.model.errors import ConfigError

from .chunks import file_digest
from .inputs import Inputs, first_log, load_inputs, writable_folder
from .store import Result
from .tasks import How, Progress, run_tasks
from .training import train_to_folder

TABLE = "trainings.csv"
_RESULTS, _TRAININGS = "runs", "trainings"  # folders
_SHOWN = "validation_"  # how the columns of curves begin that judge what was learned


class Combination(NamedTuple):
    """One of the trainings."""

    name: str  # what it has of its own, like learn.lr=1e-3,seed=0
    own: dict[str, str]
    config: TrainConfig


def combinations(preset: str, changes: Sequence[str], seeds: Sequence[int]) -> list[Combination]:
    """A training for each seed and each choice among the alternatives of the settings.

    Args:
        preset: as of `decision.learn.config.load_config`.
        changes: its changes, each perhaps with several values.
        seeds: of the trainings.

    Raises:
        ConfigError: if a combination is not valid, or is there twice.
    """
    found = []
    varied = [alternatives(change) for change in changes]
    for chosen in itertools.product(*varied):
        own = dict(change.split("=", 1) for change, every in zip(chosen, varied, strict=True) if len(every) > 1)
        for seed in seeds:
            config = load_config(preset, chosen, seed=seed)
            if getattr(config.learn, "threads", 1) == 0:
                config = replace(config, learn=replace(config.learn, threads=1))
            mine = own | ({"seed": str(seed)} if len(seeds) > 1 or not own else {})
            name = ",".join(f"{key}={value}" for key, value in mine.items()).replace("/", "_")
            found.append(Combination(name, own | {"seed": str(seed)}, config))
    twice = next((each.name for each in found if sum(each.name == other.name for other in found) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is there twice; name each value once", field="changes")
    return found


class _Training(msgspec.Struct, frozen=True, kw_only=True):
    """One training as a task."""

    inputs: Inputs
    config: Any  # a TrainConfig, which is pickled as it is
    data: Path | None
    folder: Path  # on which its result does not depend
    digests: tuple[str, ...]  # of the files

    @property
    def title(self) -> str:
        """For people."""
        return self.folder.name

    def files(self) -> list[tuple[Path, str]]:
        """What it reads, each with its digest."""
        return list(zip(_files(self.inputs, self.data), self.digests, strict=True))

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        selection = self.inputs.selection.facts()
        return {"training": msgspec.to_builtins(self.config), "selection": selection, "digests": self.digests}


def _files(inputs: Inputs, data: Path | None) -> list[Path]:
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
        how: as of `decision.runs.tasks.run_tasks`; ``audit`` has no effect, since what is done again goes on.

    Returns:
        The rows: what a training has of its own, its steps, and what was judged at last.

    Raises:
        RunsFailedError: if trainings have failed, when all others are done.
        ConfigError, InputError: as of `decision.runs.training.train_to_folder` and `run_tasks`.
    """
    digests = tuple(map(file_digest, _files(inputs, data)))
    folders = training_folders(trainings, writable_folder(output))
    tasks = [
        _Training(inputs=inputs, config=each.config, data=data, folder=folder, digests=digests)
        for each, folder in zip(trainings, folders, strict=True)
    ]
    results = run_tasks(_train, tasks, output / _RESULTS, progress=progress, **how)
    rows = [{**each.own, **_texts(result)} for each, result in zip(trainings, results, strict=True)]
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_files({output / TABLE: [text.getvalue().encode()]})
    return rows


def training_folders(trainings: Sequence[Combination], output: Path) -> list[Path]:
    """Where each training is."""
    return [output.resolve() / _TRAININGS / each.name for each in trainings]


def _train(task: _Training) -> Result:
    """Do a training, or go on with it."""
    begun = (task.folder / STATE).is_file()
    checkpoint = train_to_folder(
        first_log(load_inputs(task.inputs)), task.config, task.folder, data=task.data, resume=begun
    )
    curves = read_curves(task.folder / CURVES)
    return {"steps": int(curves["steps"][-1]), **dict(_judged(curves)), "checkpoint_sha256": file_digest(checkpoint)}


def _judged(curves: Columns) -> Iterator[tuple[str, float]]:
    """The last value of each column that judges what was learned; the reward's where there is none."""
    names = [name for name in curves if name.startswith(_SHOWN)] or ["reward"]
    for name in names:
        known = [float(value) for value in curves[name] if math.isfinite(value)]
        yield name, known[-1] if known else math.nan


def _texts(result: Mapping[str, Any]) -> dict[str, str]:
    return {name: "" if value is None else str(value) for name, value in result.items()}
