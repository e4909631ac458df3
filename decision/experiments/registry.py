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
    beside: bool = False  # whether the tables stand side by side: the first column of the first names the rows of all


class Means(NamedTuple):
    """How an experiment of many parts does them."""

    kept: Path  # folder of the parts that are finished
    processes: int  # at a time
    progress: Callable[[int, int], None]  # is told how many parts of how many are done


class Experiment(NamedTuple):
    """One line of the list; what it runs is imported when it is run."""

    name: str
    summary: str
    module: str
    in_parts: bool = False  # whether its function takes `Means`, too

    def run(self, data: Path, means: Means) -> Outcome:
        """Run it on the folder with its inputs."""
        module = importlib.import_module(self.module)
        found: Outcome = module.run(data, means) if self.in_parts else module.run(data)
        return found


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("grid5000-2016", "what OAR really did on 32 hosts, and what we simulate", f"{__package__}.grid5000"),
    Experiment(
        "rlscheduler-table",
        "RLScheduler's bounded slowdowns, by its simulator's rules and by the right ones",
        f"{__package__}.rlscheduler",
        in_parts=True,
    ),
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
