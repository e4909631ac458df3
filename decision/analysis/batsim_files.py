"""Batsim's own output files, read back."""

import csv
import math
from pathlib import Path

import numpy as np

from decision.model.errors import InputError
from decision.model.record import FinalState, JobTable

Row = dict[str, str]


def read_jobs(prefix: str) -> JobTable:
    """The jobs of ``PREFIX_jobs.csv``, in the file's order.

    Raises:
        InputError: if the file cannot be read or is no such file.
    """
    path = Path(f"{prefix}_jobs.csv")
    rows = _rows(path)
    try:
        return _table(rows)
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the jobs of a run ({error}); was it written by Batsim 3 or 4?") from None


def read_joules(prefix: str) -> float:
    """``consumed_joules`` of ``PREFIX_schedule.csv``.

    Raises:
        InputError: if the file cannot be read or is no such file.
    """
    path = Path(f"{prefix}_schedule.csv")
    try:
        return float(_rows(path)[0]["consumed_joules"])
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"{path}: not the summary of a run ({error})") from None


def _rows(path: Path) -> list[Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None


def _table(rows: list[Row]) -> JobTable:
    walltime = np.array([float(row["requested_time"]) for row in rows])
    return JobTable(
        id=[f"{row['workload_name']}!{row['job_id']}" for row in rows],
        profile=[row["profile"] for row in rows],
        submit_time=np.array([float(row["submission_time"]) for row in rows]),
        size=np.array([int(row["requested_number_of_resources"]) for row in rows], np.int64),
        walltime=np.where(walltime < 0, math.inf, walltime),
        final_state=np.array([FinalState[row["final_state"]] for row in rows], np.int64),
        start_time=np.array([_number(row["starting_time"]) for row in rows]),
        runtime=np.array([_number(row["execution_time"]) for row in rows]),
        allocation=[row["allocated_resources"] for row in rows],
        energy=np.array([_number(row["consumed_energy"]) for row in rows]),
        metadata=[row["metadata"] for row in rows],
    )


def _number(cell: str) -> float:
    """Batsim leaves cells of rejected jobs empty."""
    return float(cell) if cell else math.nan
