"""A training, from files to a folder that is locked meanwhile; many as tasks; and a search for settings among such."""

import hashlib
import importlib.util
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, Unpack

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.batsim.episodes import BatsimForEpisodes
from decision.files.outputs_read import RESULTS
from decision.files.text import utf8, write_files
from decision.model.errors import ConfigError, InputError, how_to_install
from decision.model.table import csv_text
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.config import PpoConfig, Range, Space, TrainConfig, all_settings, alternatives, load_config
from decision.rl.learning.schedulers import ShareOut, TrainingInputs, train_scheduler, training_of
from decision.rl.learning.training import STATE, Report, run_together, training_files
from decision.rl.learning.weights import device_of
from decision.rl.schedulers import find_scheduler

from .folder import Stopped, describe_training, run_folder
from .inputs import Inputs, LogOnHosts, first_log, load_inputs, writable_folder
from .results import CURVES, Columns, SearchTrial, read_curves, score_of, sign_of, table_rows
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
        by_kind = itertools.groupby(tasks, lambda task: replace(task.config, seed=0))
        groups = [_Group(trainings=tuple(group)) for _, group in by_kind]
        found = run_tasks(_train_group, groups, output / RESULTS, progress=progress, **how)
        results = [one for group in found for one in group["trainings"]]
    else:
        results = list(run_tasks(_train, tasks, output / RESULTS, progress=progress, **how))
    texts = [{name: "" if value is None else str(value) for name, value in result.items()} for result in results]
    rows = [{**training.own, **text} for training, text in zip(trainings, texts, strict=True)]
    write_files({output / TABLE: [utf8(csv_text(rows))]})
    return rows


def _together(trainings: Sequence[Combination], data: Path | None) -> bool:
    """Whether seeds learn in one learner: on a GPU. On a CPU that gains nothing over trainings side by side."""
    learn = trainings[0].config.learn
    return data is None and isinstance(learn, PpoConfig) and device_of(learn).type == "cuda"


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


# A search for settings: trainings over ranges of them, drawn at random or proposed by optuna from those before.
#
# A trial is a training like any other, in a folder of its own below ``OUT/trainings``. What it tries depends on the
# seed, its number and what the trials before its round came to, and on nothing else: a search that is begun again
# proposes the same, finds the trainings that are finished and goes on with the others, so that it keeps no state but
# theirs. Four trials are proposed at a time, whatever the number of processes, so that this changes nothing either.
#
# Rejected: optuna's storage. It would be a second truth beside the trainings, with trials after a kill that nobody
# does.

_TABLE = "search.csv"
_ROUND = 4  # trials that are proposed together
_BEFORE_PRUNING = 5  # trials that end before one is given up, as optuna's MedianPruner has it
Method = Literal["bayesian", "random"]


class SettingsSearch(NamedTuple):
    """What is searched, and how."""

    preset: str
    space: Space
    trials: int
    method: Method
    seeds: Sequence[int]  # of each trial's trainings; the first one is the search's own, too


def require_optuna() -> None:
    """Check that a search can propose trials. Raises ConfigError if optuna is not installed, with how to install it."""
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError(f"a search needs optuna, which is not installed: {how_to_install('search')}")


def search_settings(
    search: SettingsSearch,
    inputs: Inputs,
    output: Path,
    *,
    data: Path | None = None,
    progress: Progress = lambda done, of: None,
    **how: Unpack[How],
) -> list[SearchTrial]:
    """Do all trials that are not finished; ``OUT/search.csv`` gets a row of each.

    Where each trial is one training, it is given up at a validation at which its best one so far is worse than the
    median that finished trials of the rounds before had there, as by optuna's MedianPruner.

    Args:
        search: what is searched, and how.
        inputs: what is learned from.
        output: gets a folder for each training, and the table.
        data: a file of recorded choices, for algorithms that learn from such.
        progress: called with the number of trials that are over and of all.
        how: as of `decision.experiments.tasks.run_tasks`.

    Returns:
        The trials in their order.

    Raises:
        ConfigError: if optuna is not installed, or all trials are refused: their settings do not fit together.
        RunsFailedError, InputError: as of `decision.experiments.training.train_all`.
    """
    require_optuna()
    digests = tuple(map(file_digest, read_files(inputs, data)))
    proposals = _Proposals(search)
    trials: list[SearchTrial] = []
    writable_folder(output)
    while len(trials) < search.trials:
        progress(len(trials), search.trials)
        limits = tuple(_limits(trials)) if len(search.seeds) == 1 else ()
        proposed = proposals.ask(len(trials), min(_ROUND, search.trials - len(trials)))
        made: list[list[Combination] | str] = []  # of each trial one for each seed; or why its settings do not fit
        for settings in proposed:
            changes = [*search.space.fixed, *(f"{key}={value}" for key, value in settings.items())]
            several = len(search.seeds) > 1
            try:
                made.append([combination(search.preset, changes, settings, seed, several) for seed in search.seeds])
            except ConfigError as error:
                made.append(str(error))
        tasks = [
            _TrialTask(inputs=inputs, config=each.config, data=data, folder=folder, digests=digests, limits=limits)
            for parts in made
            if not isinstance(parts, str)
            for each, folder in zip(parts, training_folders(parts, output), strict=True)
        ]

        def show(done: int, of: int, before: int = len(trials), new: int = len(proposed)) -> None:
            progress(before + done * new // of, search.trials)

        done = run_tasks(_train_trial, tasks, output / RESULTS, progress=show, **how) if tasks else ()
        results = zip(tasks, done, strict=True)
        over = [
            SearchTrial(number=number, settings=settings, state="refused", reason=parts)
            if isinstance(parts, str)
            else _over(number, settings, [*islice(results, len(parts))])
            for number, (settings, parts) in enumerate(zip(proposed, made, strict=True), len(trials) + 1)
        ]
        proposals.tell(over)
        trials += over
        rows = [{name: "" if value != value else value for name, value in row.items()} for row in table_rows(trials)]
        write_files({output / _TABLE: [utf8(csv_text(rows))]})  # what nobody knows, not a number, is empty
    progress(len(trials), search.trials)
    if all(trial.state == "refused" for trial in trials):
        raise ConfigError(f"no trial's settings fit together; the last one: {trials[-1].reason}", field="changes")
    return trials


def _limits(trials: Sequence[SearchTrial]) -> list[float]:
    """The median of what finished trials had at each validation."""
    finished = [trial.values for trial in trials if trial.state == "finished" and trial.values]
    if len(finished) < _BEFORE_PRUNING:
        return []
    return [median(at) for at in zip(*finished, strict=False)]


class _Proposals:
    """Which settings are tried, by optuna."""

    def __init__(self, search: SettingsSearch) -> None:
        import optuna

        self._optuna: Any = optuna
        self._search = search
        self._space: dict[str, Any] = {}
        kinds = optuna.distributions
        for key, values in search.space.varied.items():
            if not isinstance(values, Range):
                self._space[key] = kinds.CategoricalDistribution(list(values))
            elif values.whole:
                self._space[key] = kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
            else:
                self._space[key] = kinds.FloatDistribution(values.low, values.high, log=values.log)
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would say that there is a study
        self._study = optuna.create_study()
        optuna.logging.set_verbosity(before)
        self._asked: list[Any] = []

    def ask(self, done: int, count: int) -> list[dict[str, str]]:
        """The settings of the next trials: each one's are drawn with a seed of its own."""
        self._asked, samplers = [], self._optuna.samplers
        for number in range(done, done + count):
            seed = int(np.random.SeedSequence([self._search.seeds[0], number]).generate_state(1)[0])
            with warnings.catch_warnings():  # some releases call constant_liar experimental
                warnings.simplefilter("ignore")
                self._study.sampler = (
                    samplers.RandomSampler(seed=seed)
                    if self._search.method == "random"
                    else samplers.TPESampler(seed=seed, constant_liar=True)  # which keeps a round's trials apart
                )
            self._asked.append(self._study.ask(self._space))
        proposed = []
        for trial in self._asked:
            texts = {key: str(trial.params[key]) for key in self._space}
            for key, values in self._search.space.varied.items():
                if isinstance(values, Range) and not values.whole:  # of four digits, within its range
                    texts[key] = repr(min(max(float(f"{trial.params[key]:.4g}"), values.low), values.high))
            proposed.append(texts)
        return proposed

    def tell(self, trials: Sequence[SearchTrial]) -> None:
        """Say what became of the trials that were asked for."""
        states = self._optuna.trial.TrialState
        for asked, trial in zip(self._asked, trials, strict=True):
            score = score_of(trial)
            if trial.state == "finished" and math.isfinite(score):
                self._study.tell(asked, score)
                continue
            sign = sign_of(trial.judged)
            for at, value in enumerate(trial.values):
                asked.report(sign * value, at)
            self._study.tell(asked, state=states.PRUNED if trial.values else states.FAIL)


class _TrialTask(TrainingTask, frozen=True, kw_only=True):
    """A training of a trial as a task."""

    limits: tuple[float, ...]  # at each validation, beyond which it is given up; none after the last one

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {**super().definition(), "limits": self.limits}


def _train_trial(task: _TrialTask) -> Result:
    """Do a training, or go on with it, until it is over or not worth more."""
    with suppress(InputError):  # no row yet
        seen = _seen(task.folder) if (task.folder / CURVES).is_file() else _Seen(0, {}, [])
        if seen.is_worse(task.limits) and seen.steps < task.config.steps:  # a kill came before its result was kept
            return seen.result(task.config.steps)
    given_up: list[bool] = []

    def judge(now: Report) -> None:
        if task.limits and any(name.startswith(VALIDATED) for name in now.row):
            given_up[:] = [_seen(task.folder).is_worse(task.limits)]

    train_to_folder(
        first_log(load_inputs(task.inputs)),
        task.config,
        task.folder,
        data=task.data,
        resume=(task.folder / STATE).is_file(),
        stop=lambda: any(given_up),
        report=judge,
    )
    return _seen(task.folder).result(task.config.steps)


class _Seen(NamedTuple):
    """What the curves of a training say."""

    steps: int
    judged: dict[str, float]  # by column, the last values of what judges it
    values: list[float]  # of the first of these, at each validation after the first step

    def is_worse(self, limits: Sequence[float]) -> bool:
        """Whether its best value is worse than the limit of the last validation."""
        at = len(self.values) - 1
        sign = sign_of(self.judged)
        return 0 <= at < len(limits) and min(sign * value for value in self.values) > sign * limits[at]

    def result(self, steps: int) -> Result:
        """As a result of a training of so many steps."""
        return {**self._asdict(), "pruned": self.steps < steps}


def _seen(folder: Path) -> _Seen:
    curves = read_curves(folder / CURVES)
    judged = dict(last_judged(curves))
    first = next(iter(judged))
    known = curves[first][(curves["steps"] > 0) & np.isfinite(curves[first])]
    return _Seen(int(curves["steps"][-1]), judged, known.tolist() if first.startswith(VALIDATED) else [])


def _over(number: int, settings: Mapping[str, str], parts: Sequence[tuple[_TrialTask, Result]]) -> SearchTrial:
    """A trial whose trainings are over, one for each seed."""
    results = [result for _, result in parts]
    every = [{name: math.nan if value is None else value for name, value in each["judged"].items()} for each in results]
    return SearchTrial(
        number=number,
        settings=settings,
        state="pruned" if results[0]["pruned"] else "finished",
        steps=min(result["steps"] for result in results),
        judged={name: fmean(each[name] for each in every) for name in every[0]},
        folders=[task.folder for task, _ in parts],
        values=[fmean(at) for at in zip(*(result["values"] for result in results), strict=False)],
    )
