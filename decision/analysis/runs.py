"""Runs that are looked at side by side, and what they are called."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from decision.model.errors import ConfigError, InputError
from decision.model.record import JobTable, RunRecord

from .batsim_files import read_run
from .metrics import makespan, only_ran

JOBS = "*jobs.csv"  # in a run's folder


class Run(NamedTuple):
    """A run and its name among others."""

    name: str
    record: RunRecord
    jobs: JobTable  # those that ran


def load_runs(places: Sequence[Path]) -> list[Run]:
    """Read runs from their folders or prefixes; a folder of folders stands for all runs in it.

    Raises:
        ConfigError: if a run is named twice.
        InputError: if there is no run in a place, its files cannot be read, or no job ran in it.
    """
    found = [run for place in places for run in _runs_in(place)]
    if len({place.resolve() for place in found}) < len(found):
        raise ConfigError(f"{', '.join(map(str, places))}: a run is named twice")
    return [_read(place, name) for place, name in zip(found, short_names(found), strict=True)]


def _read(place: Path, name: str) -> Run:
    record = read_run(place)
    ran = only_ran(record.jobs)
    if not ran.id:
        raise InputError(f"{place}: no job ran in it; there is nothing to analyse")
    return Run(name, record, ran)


def _runs_in(place: Path) -> list[Path]:
    return folders_with(JOBS, place) or [place]


def folders_with(pattern: str, place: Path) -> list[Path]:
    """The place itself if it is a folder with such files, or else the folders in it that are."""
    if any(place.glob(pattern)):
        return [place]
    return sorted({file.parent for file in place.glob(f"*/{pattern}")})


def short_names(places: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart: ``easy`` and ``fcfs``, or ``a/easy`` and ``b/easy``."""
    parts = [place.resolve().parts for place in places]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(place) for place in places]


def last_end(runs: Sequence[Run]) -> float:
    """When the last job of all runs ends, seconds."""
    return max(makespan(run.jobs) for run in runs)
