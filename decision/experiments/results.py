"""Runs side by side: read, named and summarised; and busy hosts and waiting jobs over time, as step functions."""

import csv
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.files.outputs_read import RUN, RunFacts, read_facts, read_run_record
from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import without_folders
from decision.model.platform import Platform
from decision.model.record import Floats, JobTable, RunRecord

from .energy import emitted, paid, split_energy, waste_bound
from .metric_list import Summary, summarise
from .metrics import GROUPS_FILE, GroupFigures, makespan, only_ran, read_groups
from .worth import later_record

JOBS_FILE = "*jobs.csv"  # in a run's folder


class NamedRun(NamedTuple):
    """A run and its name among others, its policy where that is known; its times count from the first submission."""

    name: str
    record: RunRecord
    jobs: JobTable  # those that ran
    first: float = 0.0  # seconds: the simulated time of the first submission
    facts: RunFacts | None = None  # what made it; None where no run.json says it
    groups: Sequence[GroupFigures] = ()  # what users and the like had, where that is known

    @property
    def clock(self) -> float | None:
        """What the machine's clock showed at the first submission, seconds since 1970; None where it is not known."""
        return None if self.facts is None or self.facts.clock is None else self.facts.clock + self.first


def named_run(name: str, record: RunRecord, facts: RunFacts | None = None) -> NamedRun:
    """A run with its times, which may be Unix times, counted from its first submission."""
    first = first_submission(record.jobs)
    record = replace(
        record,
        jobs=later(record.jobs, -first),
        host_states=replace(record.host_states, time=record.host_states.time - first),
        energy=record.energy and replace(record.energy, time=record.energy.time - first),
        pstates=record.pstates and replace(record.pstates, time=record.pstates.time - first),
    )
    return NamedRun(name, later_record(record, -first), only_ran(record.jobs), first, facts)


def first_submission(jobs: JobTable) -> float:
    """When the first job was submitted, seconds; 0 where there is none."""
    return float(jobs.submit_time.min()) if jobs.id else 0.0


def later(jobs: JobTable, seconds: float) -> JobTable:
    """The jobs with their times moved."""
    return replace(jobs, submit_time=jobs.submit_time + seconds, start_time=jobs.start_time + seconds)


def load_runs(places: Sequence[Path]) -> list[NamedRun]:
    """Read runs from their folders or prefixes; a folder of folders means all runs in it.

    Raises:
        ConfigError: if a run is named twice.
        InputError: if a place has no run, its files cannot be read, or no job ran in it.
    """
    found, facts = _found(places)
    runs = []
    for place, name, made in zip(found, run_names(found, facts), facts, strict=True):
        has_groups = made is not None and GROUPS_FILE in made.files and place.is_dir()
        run = named_run(name, _record(place), made)
        runs.append(run._replace(groups=read_groups(place) if has_groups else ()))
    return runs


def records_of(places: Sequence[Path]) -> dict[str, RunRecord]:
    """Runs by name, with times as their files have them; places and errors as `load_runs`."""
    found, facts = _found(places)
    return {name: _record(place) for name, place in zip(run_names(found, facts), found, strict=True)}


def _found(places: Sequence[Path]) -> tuple[list[Path], list[RunFacts | None]]:
    found = [run for place in places for run in runs_in(place) or [place]]
    if len({place.resolve() for place in found}) < len(found):
        raise ConfigError(f"{', '.join(map(str, places))}: a run is named twice")
    return found, [read_facts(place if place.is_dir() else place.parent) for place in found]


def run_names(places: Sequence[Path], facts: Sequence[RunFacts | None]) -> list[str]:
    """Each run's policy, with its folder where several have one policy; the folder alone where it is not known."""
    folders = short_names(places)
    policies = [None if made is None else without_folders(made.name) for made in facts]
    return [
        folder if policy is None else policy if policies.count(policy) == 1 else f"{policy} ({folder})"
        for policy, folder in zip(policies, folders, strict=True)
    ]


def _record(place: Path) -> RunRecord:
    record = read_run_record(place)
    if not only_ran(record.jobs).id:
        raise InputError(f"{place}: no job ran in it; there is nothing to analyse")
    return record


def runs_in(place: Path) -> list[Path]:
    """The folders of runs in a place, those of runs that failed too: reading one says why it failed."""
    made = {folder: read_facts(folder) for folder in folders_with(RUN, place)}
    described = [folder for folder, facts in made.items() if facts is None or facts.kind != "training"]
    return sorted({*folders_with(JOBS_FILE, place), *described})


def folders_with(pattern: str, place: Path) -> list[Path]:
    """The place itself if it is a folder with such files, or else the folders in it that are."""
    if any(place.glob(pattern)):
        return [place]
    return sorted({file.parent for file in place.glob(f"[!.]*/{pattern}")})  # hidden ones are Batsim's, under way


def short_names(places: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart: ``easy`` and ``fcfs``, or ``a/easy`` and ``b/easy``."""
    parts = [place.resolve().parts for place in places]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(place) for place in places]


def last_end(runs: Sequence[NamedRun]) -> float:
    """When the last job of all runs ends, seconds after the first submission."""
    return max(makespan(run.jobs) for run in runs)


def summaries_of(runs: Sequence[NamedRun], platform: Platform | None = None) -> dict[str, Summary]:
    """Each run's summary, by name; with waste where the platform, with its sleep states, is known."""
    return {
        run.name: summarise(
            run.record.jobs,
            run.record.nb_hosts,
            math.nan if run.record.energy is None else run.record.joules,
            run.record.window_gap,
            run.record,
            waste=waste_of(run.record, platform),
            rated=(emitted(run.record), paid(run.record)),
            lost_work=run.record.lost_work,
        )
        for run in runs
    }


class Steps(NamedTuple):
    """A step function: it has ``values[i]`` from ``times[i]`` until ``times[i + 1]``, and is 0 before the first."""

    times: Floats  # (n,) seconds, ascending
    values: Floats  # (n,)


PIECES = 200  # of a run: thousands of jumps become a line that can be read


def averaged(steps: Steps, edges: Floats) -> Floats:
    """Averages between neighbouring edges, (n + 1,) seconds; (n,). The last value lasts until the last edge."""
    times, values = np.append(steps.times, max(edges[-1], steps.times[-1])), steps.values
    areas = np.append(0.0, np.cumsum(values * np.diff(times)))
    return np.diff(np.interp(edges, times, areas)) / np.diff(edges)


def utilization_over_time(jobs: JobTable, nb_hosts: int) -> Steps:
    """The share of the hosts that run jobs, in [0, 1]; `jobs` are those that ran, as below."""
    times, busy = _steps(jobs.start_time, jobs.start_time + jobs.runtime, jobs.size)
    return Steps(times, busy / nb_hosts)


def queue_over_time(jobs: JobTable) -> Steps:
    """How many jobs have been submitted and not started."""
    return _steps(jobs.submit_time, jobs.start_time, np.ones(len(jobs.id)))


def _steps(begin: Floats, end: Floats, amount: NDArray[Any]) -> Steps:
    """The sum of the amounts whose times contain the present."""
    times, where = np.unique(np.concatenate([begin, end]), return_inverse=True)
    changes = np.bincount(where, weights=np.concatenate([amount, -amount]), minlength=len(times))
    return Steps(times, np.cumsum(changes))


def waste_of(record: RunRecord, platform: Platform | None) -> tuple[float, float]:
    """Joules wasted, and `waste_bound`; nan where no host sleeps, or energy was not simulated."""
    if platform is None or not any(host.sleep for host in platform.hosts):
        return math.nan, math.nan
    return split_energy(record, platform).waste, waste_bound(record, platform)


# Learning curves: what ``decision train`` wrote of trainings, those of several seeds together.

CURVES = "progress.csv"  # of a training's folder
_LEAST_SEEDS = 3  # for a mean and a band
_NEEDED = ("steps", "reward")  # columns that there are

Columns = dict[str, Floats]  # by name, nan where a row has no value


class LearningCurve(NamedTuple):
    """One training, or several of the same thing whose seeds alone differ."""

    name: str
    seeds: list[Columns]  # one, or at least `_LEAST_SEEDS`


def load_trainings(folders: Sequence[Path], kind_of: Callable[[Path], Hashable | None]) -> list[LearningCurve]:
    """Read the curves in folders that ``decision train`` wrote.

    Args:
        folders: one of each training.
        kind_of: the same for trainings that differ in their seed alone; None where that is unknown. Where there
            are fewer than three of a kind, each is by itself.

    Raises:
        ConfigError: if a folder is named twice.
        InputError: if curves cannot be read.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ConfigError(f"{', '.join(map(str, folders))}: a training is named twice")
    kinds: dict[Hashable, list[tuple[str, Columns]]] = {}
    for folder, name in zip(folders, short_names(folders), strict=True):
        kinds.setdefault(kind_of(folder) or folder, []).append((name, read_curves(folder / CURVES)))
    found = []
    for members in kinds.values():
        if len(members) < _LEAST_SEEDS:
            found += [LearningCurve(name, [curves]) for name, curves in members]
        else:
            name = f"{members[0][0]} ... {members[-1][0]} ({len(members)} seeds)"
            found.append(LearningCurve(name, [curves for _, curves in members]))
    return found


def read_curves(path: Path) -> Columns:
    """The columns of a training's curves; an incomplete last line is left out.

    Raises:
        InputError: if it cannot be read, is of another kind, or has no row yet.
    """
    lines = read_bytes(path).decode("utf-8", "replace").split("\n")[:-1]
    header, *rows = list(csv.reader(lines)) or [[]]
    lacking = [name for name in _NEEDED if name not in header]
    if lacking:
        raise InputError(f"{path}: has no column {lacking[0]}; curves are what decision train writes")
    if not rows:
        raise InputError(f"{path}: no iteration has ended yet; wait for the first")
    table = np.zeros((len(rows), len(header)))
    for at, row in enumerate(rows):
        try:
            if len(row) != len(header):
                raise ValueError(f"{len(row)} values, not {len(header)}")
            table[at] = [float(text or "nan") for text in row]
        except ValueError as error:
            raise InputError(f"{path}, line {at + 2}: {error}; the file is damaged") from None
    columns = dict(zip(header, table.T, strict=True))
    if not (np.isfinite(columns["steps"]) & (np.isfinite(columns["reward"]) | (columns["steps"] == 0))).all():
        raise InputError(f"{path}: a row lacks {' or '.join(_NEEDED)}; the file is damaged")
    return columns


def on_common_steps(seeds: Sequence[Columns], name: str) -> tuple[Floats, Floats]:
    """A column of several trainings, each between its own values where it has none, over the steps that all reached.

    Returns:
        Steps (n,) and values (seeds, n); n is 0 where a training has no value, or without a common step.
    """
    own = []
    for columns in seeds:
        values = columns.get(name, np.zeros(0))
        known = np.flatnonzero(np.isfinite(values))
        own.append((columns["steps"][known], values[known]))
    if not all(len(steps) for steps, _ in own):
        return np.zeros(0), np.zeros((len(seeds), 0))
    every = np.unique(np.concatenate([steps for steps, _ in own]))
    common = every[(every >= max(steps[0] for steps, _ in own)) & (every <= min(steps[-1] for steps, _ in own))]
    return common, np.array([np.interp(common, steps, values) for steps, values in own])


# What the trials of a search for settings came to (`decision.experiments.training`).


class SearchTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of settings, and what became of it."""

    number: int  # from 1 on
    settings: Mapping[str, str]  # those that are varied
    state: Literal["finished", "pruned", "refused"]
    steps: int = 0  # of its trainings, the fewest
    judged: Mapping[str, float] = {}  # the last values of the columns that judge, means over the seeds
    folders: Sequence[Path] = ()  # one for each seed
    values: Sequence[float] = ()  # the first of these columns at each validation, mean over the seeds
    reason: str = ""  # why it was refused

    @property
    def changes(self) -> str:
        """Its settings as they are typed."""
        return " ".join(f"--set {key}={value}" for key, value in self.settings.items())


def best_trial(trials: Sequence[SearchTrial]) -> SearchTrial:
    """The finished trial with the best last value; of equal ones the first. Raises ConfigError if none is finished."""
    finished = [trial for trial in trials if trial.state == "finished" and math.isfinite(score_of(trial))]
    if not finished:
        raise ConfigError("no trial has ended with a validation; look at the curves of the trainings")
    return min(finished, key=score_of)


def judged_by(trials: Sequence[SearchTrial]) -> str:
    """The column that decides which trial is best."""
    return next((name for trial in trials for name in trial.judged), "reward")


def more_is_better(column: str) -> bool:
    """Whether what a column of the curves says should be high."""
    return column in ("validation_value_share", "reward")


def table_rows(trials: Sequence[SearchTrial]) -> list[dict[str, object]]:
    """The trials as rows of one table."""
    columns: Mapping[str, float] = next((trial.judged for trial in trials if trial.judged), {})
    return [
        {
            "trial": trial.number,
            "state": trial.state,
            **trial.settings,
            "steps": trial.steps,
            **{name: trial.judged.get(name, math.nan) for name in columns},
            "folders": " ".join(f"{folder.parent.name}/{folder.name}" for folder in trial.folders),
            "reason": trial.reason,
        }
        for trial in trials
    ]


def sign_of(judged: Mapping[str, float]) -> int:
    """-1 where the first of these columns should be high, else 1."""
    return -1 if more_is_better(next(iter(judged), "")) else 1


def score_of(trial: SearchTrial) -> float:
    """What a search minimises: the first of the columns that it judges by."""
    return sign_of(trial.judged) * next(iter(trial.judged.values()), math.nan)
