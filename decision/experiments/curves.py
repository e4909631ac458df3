"""Learning curves: what ``decision train`` wrote of trainings, those of several seeds together."""

import csv
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError
from decision.model.record import Floats

from .results import short_names

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
    return [training for members in kinds.values() for training in _together(members)]


def _together(members: list[tuple[str, Columns]]) -> list[LearningCurve]:
    if len(members) < _LEAST_SEEDS:
        return [LearningCurve(name, [curves]) for name, curves in members]
    name = f"{members[0][0]} ... {members[-1][0]} ({len(members)} seeds)"
    return [LearningCurve(name, [curves for _, curves in members])]


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
    table = np.array([_numbers(path, number, row, len(header)) for number, row in enumerate(rows, 2)])
    columns = dict(zip(header, table.T, strict=True))
    if not (np.isfinite(columns["steps"]) & (np.isfinite(columns["reward"]) | (columns["steps"] == 0))).all():
        raise InputError(f"{path}: a row lacks {' or '.join(_NEEDED)}; the file is damaged")
    return columns


def _numbers(path: Path, line: int, row: Sequence[str], width: int) -> list[float]:
    try:
        if len(row) != width:
            raise ValueError(f"{len(row)} values, not {width}")
        return [float(text or "nan") for text in row]
    except ValueError as error:
        raise InputError(f"{path}, line {line}: {error}; the file is damaged") from None


def on_common_steps(seeds: Sequence[Columns], name: str) -> tuple[Floats, Floats]:
    """A column of several trainings, each between its own values where it has none, over the steps that all reached.

    Returns:
        Steps (n,) and values (seeds, n); n is 0 where a training has no value, or without a common step.
    """
    own = [_values(columns, name) for columns in seeds]
    if not all(len(steps) for steps, _ in own):
        return np.zeros(0), np.zeros((len(seeds), 0))
    every = np.unique(np.concatenate([steps for steps, _ in own]))
    common = every[(every >= max(steps[0] for steps, _ in own)) & (every <= min(steps[-1] for steps, _ in own))]
    return common, np.array([np.interp(common, steps, values) for steps, values in own])


def _values(columns: Columns, name: str) -> tuple[Floats, Floats]:
    """Steps and values where there is a value."""
    values = columns.get(name, np.zeros(0))
    known = np.flatnonzero(np.isfinite(values))
    return columns["steps"][known], values[known]
