"""The experiments by name, and what one returns."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from decision.model.errors import ConfigError


class Table(NamedTuple):
    """A table of texts, the first column of which names the row."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Outcome(NamedTuple):
    """What an experiment found."""

    tables: tuple[Table, ...]
    notes: str  # what the tables say, for a person


class Experiment(NamedTuple):
    """One line of the list; what it runs is imported when it is run."""

    name: str
    summary: str
    module: str

    def load(self) -> Callable[[Path], Outcome]:
        """The experiment's function, from the folder with its inputs to what it found."""
        run: Callable[[Path], Outcome] = importlib.import_module(self.module).run
        return run


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("grid5000-2016", "what OAR really did on 32 hosts, and what we simulate", f"{__package__}.grid5000"),
)


def find_experiment(name: str) -> Experiment:
    """The experiment of this name.

    Raises:
        ConfigError: if there is none.
    """
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    raise ConfigError(f"there is no experiment {name!r} (there are {', '.join(e.name for e in EXPERIMENTS)})")
