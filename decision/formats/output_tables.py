"""The tables that Batsim writes about a run, read back: jobs, machine states, energy, pstate changes."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError, InputError
from decision.model.hosts import MOST_HOSTS, parse_intervals
from decision.model.record import EnergyTable, FinalState, Floats, HostState, HostTable, JobTable, PstateTable

Columns = dict[str, Sequence[str]]

_SIX_DIGITS = 5.1e-6  # relative error of a number with six digits, and a little
_TOLERATED = 1.0  # seconds that rounded times may be off
_LONGEST = 1e15  # seconds: later ones are no times of a simulation
_SHOWN = 60  # characters of a host set in an error
RUN_ADVICE = "give the folder or the prefix of what Batsim or decision wrote"


def fault_text(error: Exception) -> str:
    """What is wrong with a table."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def csv_columns(path: Path) -> Columns:
    """The columns of a CSV file by their header."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = []
            for row in reader:
                if len(row) != len(header):
                    raise csv.Error(f"line {reader.line_num} has {len(row)} cells, and the header has {len(header)}")
                rows.append(row)
            return dict(zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: text that is not UTF-8; {RUN_ADVICE}") from None
    except csv.Error as error:
        raise InputError(f"{path}: not a table ({error}); {RUN_ADVICE}") from None


def read_job_table(path: Path) -> JobTable:
    """The jobs of ``jobs.csv``. Raises InputError."""
    columns = csv_columns(path)
    try:
        jobs = _job_table(columns)
        ran = jobs.final_state != FinalState.REJECTED
        untold = ~(np.isfinite(jobs.submit_time) & np.isfinite(jobs.start_time) & np.isfinite(jobs.runtime))
        faults = {
            "a time that is not a finite number": untold,
            "a run time below 0": jobs.runtime < 0,
            "a start before its submission": jobs.start_time < jobs.submit_time - _TOLERATED,
            "a time of 1e15 s or more": np.maximum(jobs.start_time, jobs.runtime) >= _LONGEST,
            "a number of hosts that is not 1 or more": jobs.size < 1,
        }
        for fault, has in faults.items():
            if (ran & has).any():
                raise ValueError(f"job {jobs.id[int((ran & has).argmax())]} has {fault}")
        for hosts in set(jobs.allocation):
            if max((last for _, last in parse_intervals(hosts)), default=0) >= MOST_HOSTS:
                raise ValueError(f"a job ran on the hosts {hosts[:_SHOWN]}, and no platform has so many")
        return jobs
    except (KeyError, ValueError, ConfigError) as error:
        raise InputError(
            f"{path}: not the jobs of a run ({fault_text(error)}); was it written by Batsim 3, 4 or 5?"
        ) from None


def _job_table(columns: Columns) -> JobTable:
    walltime = _numbers(columns["requested_time"])
    names = zip(columns["workload_name"], columns["job_id"], strict=True)
    return JobTable(
        id=[f"{workload}!{job}" for workload, job in names],
        profile=list(columns["profile"]),
        submit_time=_numbers(columns["submission_time"]),
        size=_whole(_numbers(columns["requested_number_of_resources"])),
        walltime=np.where(walltime < 0, math.inf, walltime),
        final_state=np.array([FinalState[name] for name in columns["final_state"]], np.int64),
        start_time=_numbers(columns["starting_time"]),
        runtime=_numbers(columns["execution_time"]),
        allocation=list(columns["allocated_resources"]),
        energy=_numbers(columns["consumed_energy"]),
        metadata=list(columns["metadata"]),
    )


def _numbers(column: Sequence[str]) -> Floats:
    """Batsim leaves cells of rejected jobs empty."""
    return np.array([float(cell) if cell else math.nan for cell in column])


def _whole(numbers: Floats) -> NDArray[np.int64]:
    """Numbers as whole ones; those that are none become 0."""
    return np.where(np.isfinite(numbers) & (np.abs(numbers) < 2**53), numbers, 0).astype(np.int64)


def read_host_table(path: Path, nb_hosts: int) -> HostTable:
    """The numbers of hosts in each state; without rows where there is no file. Raises InputError."""
    if not path.is_file():
        return HostTable(time=np.zeros(0), counts=np.zeros((0, len(HostState)), np.int64))
    columns = csv_columns(path)
    listed = [state for state in HostState if state is not HostState.UNAVAILABLE]
    try:
        counts = np.stack([_numbers(columns[f"nb_{state.name.lower()}"]) for state in listed], axis=1).astype(np.int64)
        away = nb_hosts - counts.sum(axis=1, keepdims=True)
        return HostTable(time=_numbers(columns["time"]), counts=np.hstack([counts, away]))
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the machine states of a run ({fault_text(error)})") from None


def read_energy_table(path: Path) -> EnergyTable | None:
    """The energy over time; None where there is no file. Raises InputError."""
    if not path.is_file():
        return None
    columns = csv_columns(path)
    try:
        return EnergyTable(
            time=_numbers(columns["time"]),
            energy=_numbers(columns["energy"]),
            event=list(columns["event_type"]),
            wattmin=_numbers(columns["wattmin"]),
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the energy of a run ({fault_text(error)})") from None


def read_pstate_table(path: Path, energy: EnergyTable) -> PstateTable | None:
    """The pstate changes; None where there is no file. Raises InputError."""
    if not path.is_file():
        return None
    columns = csv_columns(path)
    try:
        return PstateTable(
            time=_exact(_numbers(columns["time"]), energy),
            hosts=list(columns["machine_id"]),
            pstate=_numbers(columns["new_pstate"]).astype(np.int64),
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the pstate changes of a run ({fault_text(error)})") from None


def _exact(rounded: Floats, energy: EnergyTable) -> Floats:
    """Times of pstate changes as the energy file has them; its first ones are pstates at the beginning, not changes."""
    exact = energy.time[np.array(energy.event) == "p"]
    exact = np.concatenate([np.zeros(max(0, len(rounded) - len(exact))), exact])
    same = len(exact) == len(rounded) and np.allclose(exact, rounded, rtol=_SIX_DIGITS, atol=0)
    return exact if same else rounded
