"""Batsim 5.0.0-rc2's output files: the tables of Batsim 4, traces only where asked for, and the summary as JSON."""

import math
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from decision.model.record import FinalState, JobTable, RunRecord

from . import outputs_write as old
from .files import write_files

_ROW = "%s,%s,%s,%f,%d,%f,%d,%s,%f,%f,%f,%f,%f,%f,%s,%f,\n"
_REJECTED = "%s,%s,%s,%f,%d,%f,0,REJECTED,,,,,,,,,\n"
_TIMES = ("scheduling_time", "simulation_time")  # which are in a file of their own


def write_run_of_5(
    prefix: str,
    record: RunRecord,
    version: str,
    *,
    machine_states: bool = False,
    pstate_changes: bool = False,
    seconds: tuple[float, float] = (0.0, 0.0),
) -> list[Path]:
    """Write what Batsim 5 would leave of this run, all files or none.

    ``PREFIXjobs.csv``, ``PREFIXschedule.json``, ``PREFIXreal_exec_info.json``, with energy
    ``PREFIXconsumed_energy.csv``, and the traces.

    Args:
        prefix: folder and beginning of the files' names; folders are made.
        record: the run.
        version: what stands under ``batsim_version``.
        machine_states: whether the states of hosts are traced.
        pstate_changes: whether changes of pstates are.
        seconds: in the decision process, and in all, on the wall clock.

    Raises:
        ConfigError: if a folder is read-only, or the disk is full.
    """
    jobs, states, energy, pstates = record.jobs, record.host_states, record.energy, record.pstates
    parts: dict[str, Iterable[bytes]] = {
        "jobs.csv": old.table_chunks(old.JOB_HEADER, len(jobs.id), partial(_job_rows, jobs)),
        "schedule.json": [_object(_figures(record, version))],
        "real_exec_info.json": [_object(_own_figures(seconds))],
    }
    if machine_states:
        parts["machine_states.csv"] = old.table_chunks(
            old.STATE_HEADER, len(states.time), partial(old.state_rows, states)
        )
    if energy is not None:
        parts["consumed_energy.csv"] = old.table_chunks(
            old.ENERGY_HEADER, len(energy.time), partial(old.energy_rows, energy)
        )
    if pstates is not None and pstate_changes:
        rows = partial(old.pstate_rows, pstates)
        parts["pstate_changes.csv"] = old.table_chunks(old.PSTATE_HEADER, len(pstates.time), rows)
    contents = {Path(f"{os.fspath(prefix)}{name}"): chunks for name, chunks in parts.items()}
    write_files(contents)
    return list(contents)


def _job_rows(jobs: JobTable, rows: slice) -> Iterator[str]:
    for *cells, _ in old.job_cells(jobs, rows):
        job_id, workload, profile, *rest = cells
        full = profile if "!" in str(profile) else f"{workload}!{profile}"
        cells = [job_id, workload, full, *rest]
        yield _REJECTED % tuple(cells[:6]) if cells[7] == FinalState.REJECTED.name else _ROW % tuple(cells)


def _figures(record: RunRecord, version: str) -> dict[str, str]:
    values = old.job_values(record.jobs) | old.host_values(record)
    cells = {name: _number(value) for name, value in values.items() if name not in _TIMES}
    return {**cells, "batsim_version": f'"{version}"'}


def _number(value: int | float) -> str:
    """As C writes it, of whose 0 / 0 the sign is negative."""
    if isinstance(value, int | np.integer):
        return str(value)
    return "-nan" if math.isnan(value) else f"{value:f}"


def _own_figures(seconds: tuple[float, float]) -> dict[str, str]:
    unit = 1024 if sys.platform == "darwin" else 1  # bytes there, kilobytes elsewhere
    peak = str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit)
    cells = {"memory_VmHWM_kB": peak, "memory_VmPeak_kB": peak}
    return {**cells, "time_in_edc_seconds": f"{seconds[0]:f}", "time_in_simu_seconds": f"{seconds[1]:f}"}


def _object(cells: dict[str, str]) -> bytes:
    rows = ",\n".join(f'  "{name}": {cells[name]}' for name in sorted(cells))
    return f"{{\n{rows}\n}}\n".encode()
