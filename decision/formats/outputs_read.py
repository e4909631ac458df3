"""Batsim's own output files, read back.

Batsim 3 and 4 write ``PREFIX_jobs.csv``, ``PREFIX_schedule.csv``, ``PREFIX_machine_states.csv`` and, with energy,
``PREFIX_consumed_energy.csv`` and ``PREFIX_pstate_changes.csv``. Batsim 5 writes the same tables without the underscore
(its prefix is ``out/``: ``out/jobs.csv``), and the summary as JSON, ``PREFIXschedule.json``.
"""

import math
import os
import re
from pathlib import Path

import msgspec
import numpy as np

from decision.model.errors import InputError
from decision.model.record import HostState, JobTable, RunRecord

from .files import read_bytes
from .green_files import read_green_files
from .output_tables import (
    RUN_ADVICE,
    csv_columns,
    fault_text,
    read_energy_table,
    read_host_table,
    read_job_table,
    read_pstate_table,
)
from .run_facts import check_whole, read_facts

Place = str | os.PathLike[str]

_NAN = re.compile(rb"(:\s*)-?nan\b")  # what Batsim 5 writes for a mean of nothing, and JSON does not have


class RunFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one run; those after `schedule` need not exist."""

    jobs: Path
    schedule: Path
    machine_states: Path
    consumed_energy: Path
    pstate_changes: Path


def find_run(place: Place) -> RunFiles:
    """The files of a run.

    Args:
        place: a prefix (``out/out`` for Batsim 3 and 4, ``out/`` for Batsim 5), or the folder of one run.

    Raises:
        InputError: if there is not exactly one run, the last one there has not ended well, or its files are not whole.
    """
    for stem in (f"{os.fspath(place)}_", os.fspath(place)):
        if Path(f"{stem}jobs.csv").is_file():
            return _checked(_files(stem))
    check_whole(Path(place))
    found = sorted(Path(place).glob("*jobs.csv"))
    if len(found) != 1:
        several = f"{len(found)} runs ({', '.join(file.name for file in found)})"
        raise InputError(f"{place}: {several if found else 'no run'} there; {RUN_ADVICE}")
    return _checked(_files(str(found[0]).removesuffix("jobs.csv")))


def _said(value: float | None) -> float:
    """What ``run.json`` says; nan where it does not."""
    return math.nan if value is None else value


def _checked(files: RunFiles) -> RunFiles:
    check_whole(files.jobs.parent, msgspec.structs.astuple(files))
    return files


def _files(stem: str) -> RunFiles:
    json = Path(f"{stem}schedule.json")
    return RunFiles(
        jobs=Path(f"{stem}jobs.csv"),
        schedule=json if json.is_file() else Path(f"{stem}schedule.csv"),
        machine_states=Path(f"{stem}machine_states.csv"),
        consumed_energy=Path(f"{stem}consumed_energy.csv"),
        pstate_changes=Path(f"{stem}pstate_changes.csv"),
    )


def read_jobs(place: Place) -> JobTable:
    """The jobs of a run, in the file's order; `place` as in `find_run`.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    return read_job_table(find_run(place).jobs)


def read_joules(place: Place) -> float:
    """``consumed_joules`` of a run's summary; `place` as in `find_run`.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    path = find_run(place).schedule
    return _figure(path, read_schedule(path), "consumed_joules")


def read_run_record(place: Place) -> RunRecord:
    """All that Batsim wrote about a run; `place` as in `find_run`.

    Tables of files that are not there are empty or None. Batsim writes the times of machine states and pstate changes
    with six digits; those of pstate changes are read from the energy file, which has them all.

    Raises:
        InputError: if a file cannot be read or is of another kind.
    """
    files = find_run(place)
    figures = read_schedule(files.schedule)

    def figure(name: str) -> float:
        return _figure(files.schedule, figures, name)

    nb_hosts = int(figure("nb_computing_machines"))
    energy = read_energy_table(files.consumed_energy)
    facts = read_facts(files.jobs.parent)
    return RunRecord(
        **msgspec.structs.asdict(read_green_files(files.jobs.parent)),
        nb_hosts=nb_hosts,
        jobs=read_job_table(files.jobs),
        host_states=read_host_table(files.machine_states, nb_hosts),
        energy=energy,
        pstates=None if energy is None else read_pstate_table(files.pstate_changes, energy),
        window_gap=math.nan if facts is None else _said(facts.window_gap),
        lost_work=math.nan if facts is None else _said(facts.lost_work),
        time_in_state=np.array([figure(f"time_{state.name.lower()}") for state in HostState]),
        joules=figure("consumed_joules"),
        nb_switches=int(figure("nb_machine_switches")),
        nb_grouped_switches=int(figure("nb_grouped_switches")),
        scheduling_time=figure("scheduling_time") if "scheduling_time" in figures else math.nan,
        simulation_time=figure("simulation_time") if "simulation_time" in figures else math.nan,
    )


def read_schedule(path: Path) -> dict[str, str]:
    """Batsim's own figures of a run by name, as texts, from its ``schedule.csv`` or ``schedule.json``.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    if path.suffix == ".json":
        try:
            data = _NAN.sub(rb'\1"nan"', read_bytes(path))
            return {name: str(value) for name, value in msgspec.json.decode(data, type=dict).items()}
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: not the summary of a run ({error}); {RUN_ADVICE}") from None
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; a run's jobs and its summary are read together")
    return {name: column[0] for name, column in csv_columns(path).items() if column}


def _figure(path: Path, figures: dict[str, str], name: str) -> float:
    try:
        return float(figures[name])
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the summary of a run ({fault_text(error)}); {RUN_ADVICE}") from None
