"""Runs side by side: read, named and summarised; and busy hosts and waiting jobs over time, as step functions."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.formats.outputs_read import read_run
from decision.formats.run_status import STATUS
from decision.model.errors import ConfigError, InputError
from decision.model.record import Floats, Ints, JobTable, RunRecord

from .metrics import Summary, makespan, only_ran, summarise

JOBS_FILE = "*jobs.csv"  # in a run's folder


class NamedRun(NamedTuple):
    """A run and its name among others."""

    name: str
    record: RunRecord
    jobs: JobTable  # those that ran


def load_runs(places: Sequence[Path]) -> list[NamedRun]:
    """Read runs from their folders or prefixes; a folder of folders means all runs in it.

    Raises:
        ConfigError: if a run is named twice.
        InputError: if a place has no run, its files cannot be read, or no job ran in it.
    """
    found = [run for place in places for run in runs_in(place) or [place]]
    if len({place.resolve() for place in found}) < len(found):
        raise ConfigError(f"{', '.join(map(str, places))}: a run is named twice")
    return [_read(place, name) for place, name in zip(found, short_names(found), strict=True)]


def _read(place: Path, name: str) -> NamedRun:
    record = read_run(place)
    ran = only_ran(record.jobs)
    if not ran.id:
        raise InputError(f"{place}: no job ran in it; there is nothing to analyse")
    return NamedRun(name, record, ran)


def runs_in(place: Path) -> list[Path]:
    """The folders of runs in a place, those of runs that failed too: reading one says why it failed."""
    return sorted({*folders_with(JOBS_FILE, place), *folders_with(STATUS, place)})


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
    """When the last job of all runs ends, seconds."""
    return max(makespan(run.jobs) for run in runs)


def summaries_of(runs: Sequence[NamedRun]) -> dict[str, Summary]:
    """Each run's summary, by name."""
    return {
        run.name: summarise(
            run.record.jobs, run.record.nb_hosts, math.nan if run.record.energy is None else run.record.joules
        )
        for run in runs
    }


class Steps(NamedTuple):
    """A step function: it has ``values[i]`` from ``times[i]`` until ``times[i + 1]``, and is 0 before the first."""

    times: Floats  # (n,) seconds, ascending
    values: Floats  # (n,)


PIECES = 200  # of a run: thousands of jumps become a line that can be read


def averaged(steps: Steps) -> Steps:
    """Averages over `PIECES` equal pieces of the time between the first and the last jump."""
    edges = np.linspace(steps.times[0], steps.times[-1], PIECES + 1)
    areas = np.append(0.0, np.cumsum(steps.values[:-1] * np.diff(steps.times)))
    return Steps(edges[:-1], np.diff(np.interp(edges, steps.times, areas)) / np.diff(edges))


def utilization_over_time(jobs: JobTable, nb_hosts: int) -> Steps:
    """The share of the hosts that run jobs, in [0, 1]; `jobs` are those that ran, as below."""
    times, busy = _steps(jobs.start_time, jobs.start_time + jobs.runtime, jobs.size)
    return Steps(times, busy / nb_hosts)


def queue_over_time(jobs: JobTable) -> Steps:
    """How many jobs have been submitted and not started."""
    return _steps(jobs.submit_time, jobs.start_time, np.ones(len(jobs.id)))


def _steps(begin: Floats, end: Floats, amount: Floats | Ints) -> Steps:
    """The sum of the amounts whose times contain the present."""
    times, where = np.unique(np.concatenate([begin, end]), return_inverse=True)
    changes = np.bincount(where, weights=np.concatenate([amount, -amount]), minlength=len(times))
    return Steps(times, np.cumsum(changes))
