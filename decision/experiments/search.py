"""A search for settings: trainings over ranges of them, drawn at random or proposed by optuna from those before.

A trial is a training like any other, in a folder of its own below ``OUT/trainings``. What it tries depends on the seed,
its number and what the trials before its round came to, and on nothing else: a search that is begun again proposes the
same, finds the trainings that are finished and goes on with the others, so that it keeps no state but theirs. Four
trials are proposed at a time, whatever the number of processes, so that this changes nothing either.

Rejected: optuna's storage. It would be a second truth beside the trainings, with trials after a kill that nobody does.
"""

import importlib.util
import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from decision.files.outputs_read import RESULTS
from decision.files.text import utf8, write_files
from decision.model.errors import ConfigError, InputError, how_to_install
from decision.model.table import csv_text
from decision.rl.learning.config import Range, Space
from decision.rl.learning.training import STATE, Report

from .inputs import Inputs, first_log, load_inputs, writable_folder
from .results import CURVES, SearchTrial, read_curves, score_of, sign_of, table_rows
from .store import Result
from .tasks import How, Progress, file_digest, run_tasks
from .training import (
    VALIDATED,
    Combination,
    TrainingTask,
    combination,
    last_judged,
    read_files,
    train_to_folder,
    training_folders,
)

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
        made = [_combinations(search, settings) for settings in proposed]
        tasks = [
            _TrialTask(inputs=inputs, config=each.config, data=data, folder=folder, digests=digests, limits=limits)
            for parts in made
            if not isinstance(parts, str)
            for each, folder in zip(parts, training_folders(parts, output), strict=True)
        ]
        show = partial(_show, progress, len(trials), len(proposed), search.trials)
        done = run_tasks(_train_trial, tasks, output / RESULTS, progress=show, **how) if tasks else ()
        results = zip(tasks, done, strict=True)
        over = [
            _refused(number, settings, parts)
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


def _show(progress: Progress, before: int, trials: int, of_trials: int, done: int, of: int) -> None:
    """Tell how many trials are over, of which some trainings of one round are done."""
    progress(before + done * trials // of, of_trials)


class _Proposals:
    """Which settings are tried, by optuna."""

    def __init__(self, search: SettingsSearch) -> None:
        import optuna

        self._optuna: Any = optuna
        self._search = search
        self._space = {key: self._distribution(values) for key, values in search.space.varied.items()}
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would say that there is a study
        self._study = optuna.create_study()
        optuna.logging.set_verbosity(before)
        self._asked: list[Any] = []

    def _distribution(self, values: Range | Sequence[str]) -> Any:
        kinds = self._optuna.distributions
        if not isinstance(values, Range):
            return kinds.CategoricalDistribution(list(values))
        if values.whole:
            return kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
        return kinds.FloatDistribution(values.low, values.high, log=values.log)

    def ask(self, done: int, count: int) -> list[dict[str, str]]:
        """The settings of the next trials: each one's are drawn with a seed of its own."""
        self._asked = []
        for number in range(done, done + count):
            self._study.sampler = self._sampler(number)
            self._asked.append(self._study.ask(self._space))
        return [{key: self._text(key, trial.params[key]) for key in self._space} for trial in self._asked]

    def _sampler(self, number: int) -> Any:
        seed = int(np.random.SeedSequence([self._search.seeds[0], number]).generate_state(1)[0])
        samplers = self._optuna.samplers
        if self._search.method == "random":
            return samplers.RandomSampler(seed=seed)
        with warnings.catch_warnings():  # some releases call constant_liar experimental
            warnings.simplefilter("ignore")
            return samplers.TPESampler(seed=seed, constant_liar=True)  # which keeps a round's trials apart

    def _text(self, key: str, value: Any) -> str:
        """A value as it is typed, of four digits, within its range."""
        values = self._search.space.varied[key]
        if not isinstance(values, Range) or values.whole:
            return str(value)
        return repr(min(max(float(f"{value:.4g}"), values.low), values.high))

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


def _limits(trials: Sequence[SearchTrial]) -> list[float]:
    """The median of what finished trials had at each validation."""
    finished = [trial.values for trial in trials if trial.state == "finished" and trial.values]
    if len(finished) < _BEFORE_PRUNING:
        return []
    return [median(at) for at in zip(*finished, strict=False)]


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


def _refused(number: int, settings: Mapping[str, str], reason: str) -> SearchTrial:
    return SearchTrial(number=number, settings=settings, state="refused", reason=reason)


def _combinations(search: SettingsSearch, settings: dict[str, str]) -> list[Combination] | str:
    """The trainings of a trial, one for each seed; or why its settings do not fit together."""
    changes = [*search.space.fixed, *(f"{key}={value}" for key, value in settings.items())]
    try:
        return [combination(search.preset, changes, settings, seed, len(search.seeds) > 1) for seed in search.seeds]
    except ConfigError as error:
        return str(error)
