"""Batsim 4.2.1's output files: same columns, same number formats, same formulas."""

import math
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.model.errors import ConfigError
from decision.model.record import (
    NULL_RUNTIME,
    EnergyTable,
    FinalState,
    HostState,
    HostTable,
    JobTable,
    PstateTable,
    RunRecord,
)

from .files import write_files

JOB_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata\n"
)
_JOB_ROW = '%s,%s,%s,%f,%d,%f,%d,%s,%f,%f,%f,%f,%f,%f,%s,%f,"%s"\n'
_REJECTED_ROW = '%s,%s,%s,%f,%d,%f,0,REJECTED,,,,,,,,,"%s"\n'
STATE_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
_STATE_ROW = "%g,%d,%d,%d,%d,%d\n"
ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"
_ENERGY_ROW = "%f,%f,%s,%f,%s\n"
PSTATE_HEADER = "time,machine_id,new_pstate\n"
_PSTATE_ROW = "%g,%s,%d\n"

_STATE_NAMES = [state.name for state in FinalState]
_SPECIAL = re.compile(r'[,"\r\n]')
_CHUNK = 16384  # rows
_FILES = (
    "jobs.csv",
    "schedule.csv",
    "schedule.json",
    "real_exec_info.json",
    "machine_states.csv",
    "consumed_energy.csv",
    "pstate_changes.csv",
    "schedule.trace",
)


def write_run(
    prefix: str | os.PathLike[str], record: RunRecord, version: str = f"decision-{__version__}"
) -> list[Path]:
    """Write what Batsim would leave of this run, all files or none.

    ``PREFIX_jobs.csv``, ``PREFIX_schedule.csv``, ``PREFIX_machine_states.csv``, and with energy
    ``PREFIX_consumed_energy.csv`` and ``PREFIX_pstate_changes.csv``.

    Args:
        prefix: folder and beginning of the files' names.
        record: the run.
        version: what stands under ``batsim_version``.

    Raises:
        ConfigError: if a folder is missing or read-only, or the disk is full.
    """
    jobs, states, energy, pstates = record.jobs, record.host_states, record.energy, record.pstates
    parts: dict[str, Iterable[bytes]] = {
        "jobs": table_chunks(JOB_HEADER, len(jobs.id), partial(_job_rows, jobs)),
        "schedule": [_schedule(record, version).encode()],
        "machine_states": table_chunks(STATE_HEADER, len(states.time), partial(state_rows, states)),
    }
    if energy is not None:
        parts["consumed_energy"] = table_chunks(ENERGY_HEADER, len(energy.time), partial(energy_rows, energy))
    if pstates is not None:
        parts["pstate_changes"] = table_chunks(PSTATE_HEADER, len(pstates.time), partial(pstate_rows, pstates))
    contents = {Path(f"{os.fspath(prefix)}_{name}.csv"): chunks for name, chunks in parts.items()}
    write_files(contents)
    remove_older(prefix, contents)
    return list(contents)


def remove_older(prefix: str | os.PathLike[str], kept: Container[Path]) -> None:
    """Remove the files that an older run has left under this prefix: all of a run's files that are not `kept`.

    Raises:
        ConfigError: if a file cannot be removed.
    """
    for name in _FILES:
        path = Path(f"{os.fspath(prefix)}_{name}")
        try:
            if path not in kept:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"{path}: of an older run, cannot be removed ({error.strerror}); remove it") from None


def table_chunks(header: str, length: int, rows: Callable[[slice], Iterable[str]]) -> Iterator[bytes]:
    """A file in chunks of rows, so that a million rows never stand in memory as text."""
    yield header.encode()
    for begin in range(0, length, _CHUNK):
        yield "".join(rows(slice(begin, begin + _CHUNK))).encode()


# --------------------------------------------------------------------------------------------------- jobs


def _job_rows(jobs: JobTable, rows: slice) -> Iterator[str]:
    return (_JOB_ROW % row if row[7] != "REJECTED" else _rejected(row) for row in job_cells(jobs, rows))


def job_cells(jobs: JobTable, rows: slice) -> Iterator[tuple[object, ...]]:
    """The cells of jobs, in the order of the file's columns."""
    workload, name = _split_ids(jobs.id[rows])
    submit, start, runtime = jobs.submit_time[rows], jobs.start_time[rows], _runtimes(jobs.runtime[rows])
    finish = start + runtime
    turnaround = finish - submit
    columns: list[Sequence[object]] = [
        _cells(name),
        _cells(workload),
        _cells(list(jobs.profile[rows])),
        submit.tolist(),
        jobs.size[rows].tolist(),
        np.where(np.isfinite(jobs.walltime[rows]), jobs.walltime[rows], -1.0).tolist(),
        (jobs.final_state[rows] == FinalState.COMPLETED_SUCCESSFULLY).tolist(),
        [_STATE_NAMES[state] for state in jobs.final_state[rows].tolist()],
        start.tolist(),
        runtime.tolist(),
        finish.tolist(),
        (start - submit).tolist(),
        turnaround.tolist(),
        (turnaround / runtime).tolist(),
        jobs.allocation[rows],
        jobs.energy[rows].tolist(),
        [text.replace('"', '""') for text in jobs.metadata[rows]],
    ]
    return zip(*columns, strict=True)


def _runtimes(runtime: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(runtime == 0, NULL_RUNTIME, runtime)


def _rejected(row: tuple[object, ...]) -> str:
    return _REJECTED_ROW % (*row[:6], row[-1])


def _split_ids(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    parts = [full.partition("!") for full in ids]
    return [part[0] for part in parts], [part[2] for part in parts]


def _cells(column: Sequence[str]) -> Sequence[str]:
    """The texts as CSV cells: quoted where they hold a comma, a quote or a line end."""
    if not _SPECIAL.search("".join(column)):
        return column
    return ['"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text for text in column]


# ---------------------------------------------------------------------------------------- hosts and energy


def state_rows(table: HostTable, rows: slice) -> Iterator[str]:
    """The rows of the trace of hosts."""
    columns = [table.counts[rows, state].tolist() for state in range(HostState.UNAVAILABLE)]
    return map(_STATE_ROW.__mod__, zip(table.time[rows].tolist(), *columns, strict=True))


def energy_rows(table: EnergyTable, rows: slice) -> Iterator[str]:
    """The last column is the mean power since the entry before; NA where no time has passed."""
    first = rows.start - 1
    elapsed = np.diff(table.time[rows], prepend=table.time[first] if rows.start else 0.0)
    joules = np.diff(table.energy[rows], prepend=table.energy[first] if rows.start else 0.0)
    power = np.divide(joules, elapsed, out=np.full(len(elapsed), np.nan), where=elapsed > 0)
    powers = ["NA" if math.isnan(watts) else f"{watts:f}" for watts in power.tolist()]
    columns = (table.time[rows].tolist(), table.energy[rows].tolist(), table.event[rows], table.wattmin[rows].tolist())
    return map(_ENERGY_ROW.__mod__, zip(*columns, powers, strict=True))


def pstate_rows(table: PstateTable, rows: slice) -> Iterator[str]:
    """The rows of the trace of pstates."""
    columns = (table.time[rows].tolist(), table.hosts[rows], table.pstate[rows].tolist())
    return map(_PSTATE_ROW.__mod__, zip(*columns, strict=True))


# ----------------------------------------------------------------------------------------------- schedule


def _schedule(record: RunRecord, version: str) -> str:
    values = job_values(record.jobs) | host_values(record)
    cells = {key: str(value) if isinstance(value, int) else f"{value:f}" for key, value in values.items()}
    cells["batsim_version"] = _cells([version])[0]
    keys = sorted(cells)
    return ",".join(keys) + "\n" + ",".join(cells[key] for key in keys) + "\n"


def job_values(jobs: JobTable) -> dict[str, int | float]:
    """Batsim's metrics: means are over all jobs, and rejected jobs add nothing to the sums."""
    ran = jobs.final_state != FinalState.REJECTED
    submit, start, runtime = jobs.submit_time, jobs.start_time, _runtimes(jobs.runtime)
    if not ran.all():
        submit, start, runtime = submit[ran], start[ran], runtime[ran]
    finish = start + runtime
    nb_jobs, nb_finished = len(ran), int(ran.sum())
    nb_success = int((jobs.final_state == FinalState.COMPLETED_SUCCESSFULLY).sum())
    values: dict[str, int | float] = {
        "nb_jobs": nb_jobs,
        "nb_jobs_finished": nb_finished,
        "nb_jobs_success": nb_success,
        "nb_jobs_killed": nb_finished - nb_success,
        "nb_jobs_rejected": nb_jobs - nb_finished,
        "success_rate": _mean(nb_success, nb_jobs),
        "makespan": _largest(finish),
    }
    measures = {
        "waiting_time": start - submit,
        "turnaround_time": finish - submit,
        "slowdown": (finish - submit) / runtime,
    }
    for name, column in measures.items():
        values[f"mean_{name}"] = _mean(float(column.sum(dtype=np.longdouble)), nb_jobs)
        values[f"max_{name}"] = _largest(column)
    return values


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan


def _largest(column: NDArray[np.float64]) -> float:
    return float(column.max(initial=0.0))


def host_values(record: RunRecord) -> dict[str, int | float]:
    """Batsim's figures of the hosts."""
    values: dict[str, int | float] = {
        "nb_computing_machines": record.nb_hosts,
        "nb_machine_switches": record.nb_switches,
        "nb_grouped_switches": record.nb_grouped_switches,
        "consumed_joules": float(record.joules),
        "scheduling_time": float(record.scheduling_time),
        "simulation_time": float(record.simulation_time),
    }
    for state in HostState:
        values[f"time_{state.name.lower()}"] = float(record.time_in_state[state])
    return values
