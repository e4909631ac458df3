"""Batsim 4.2.1's output files: same columns, same number formats, same formulas."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.model.record import EnergyTable, FinalState, HostState, HostTable, JobTable, PstateTable, RunRecord

from .files import write_files

_JOB_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata\n"
)
_JOB_ROW = '%s,%s,%s,%f,%d,%f,%d,%s,%f,%f,%f,%f,%f,%f,%s,%f,"%s"\n'
_REJECTED_ROW = '%s,%s,%s,%f,%d,%f,0,REJECTED,,,,,,,,,"%s"\n'
_STATE_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
_STATE_ROW = "%g,%d,%d,%d,%d,%d\n"
_ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"
_ENERGY_ROW = "%f,%f,%s,%f,%s\n"
_PSTATE_HEADER = "time,machine_id,new_pstate\n"
_PSTATE_ROW = "%g,%s,%d\n"

_SPECIAL = re.compile(r'[,"\r\n]')
_CHUNK = 65536  # rows


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
    parts: dict[str, Iterable[bytes]] = {
        "jobs": _encoded(_JOB_HEADER, _job_rows(record.jobs)),
        "schedule": [_schedule(record, version).encode()],
        "machine_states": _encoded(_STATE_HEADER, _state_rows(record.host_states)),
    }
    if record.energy is not None:
        parts["consumed_energy"] = _encoded(_ENERGY_HEADER, _energy_rows(record.energy))
    if record.pstates is not None:
        parts["pstate_changes"] = _encoded(_PSTATE_HEADER, _pstate_rows(record.pstates))
    contents = {Path(f"{os.fspath(prefix)}_{name}.csv"): rows for name, rows in parts.items()}
    write_files(contents)
    return list(contents)


def _encoded(header: str, rows: Iterator[str]) -> Iterator[bytes]:
    yield header.encode()
    chunk: list[str] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _CHUNK:
            yield "".join(chunk).encode()
            chunk.clear()
    yield "".join(chunk).encode()


# --------------------------------------------------------------------------------------------------- jobs


def _job_rows(jobs: JobTable) -> Iterator[str]:
    workload, name = _split_ids(jobs.id)
    finish = jobs.start_time + jobs.runtime
    turnaround = finish - jobs.submit_time
    columns: list[Sequence[object]] = [
        _cells(name),
        _cells(workload),
        _cells(jobs.profile),
        jobs.submit_time.tolist(),
        jobs.size.tolist(),
        np.where(np.isfinite(jobs.walltime), jobs.walltime, -1.0).tolist(),
        (jobs.final_state == FinalState.COMPLETED_SUCCESSFULLY).tolist(),
        [_STATE_NAMES[state] for state in jobs.final_state.tolist()],
        jobs.start_time.tolist(),
        jobs.runtime.tolist(),
        finish.tolist(),
        (jobs.start_time - jobs.submit_time).tolist(),
        turnaround.tolist(),
        (turnaround / jobs.runtime).tolist(),
        jobs.allocation,
        jobs.energy.tolist(),
        [text.replace('"', '""') for text in jobs.metadata],
    ]
    return (_JOB_ROW % row if row[7] != "REJECTED" else _rejected(row) for row in zip(*columns, strict=True))


_STATE_NAMES = [state.name for state in FinalState]


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


def _state_rows(table: HostTable) -> Iterator[str]:
    columns = [table.counts[:, state].tolist() for state in range(HostState.UNAVAILABLE)]
    return map(_STATE_ROW.__mod__, zip(table.time.tolist(), *columns, strict=True))


def _energy_rows(table: EnergyTable) -> Iterator[str]:
    """The last column is the mean power since the entry before; NA where no time has passed."""
    elapsed = np.diff(table.time, prepend=0.0)
    joules = np.diff(table.energy, prepend=0.0)
    power = np.divide(joules, elapsed, out=np.full(len(elapsed), np.nan), where=elapsed > 0)
    rows = zip(table.time.tolist(), table.energy.tolist(), table.event, table.wattmin.tolist(), strict=True)
    for row, watts in zip(rows, power.tolist(), strict=True):
        yield _ENERGY_ROW % (*row, "NA" if math.isnan(watts) else f"{watts:f}")


def _pstate_rows(table: PstateTable) -> Iterator[str]:
    return map(_PSTATE_ROW.__mod__, zip(table.time.tolist(), table.hosts, table.pstate.tolist(), strict=True))


# ----------------------------------------------------------------------------------------------- schedule


def _schedule(record: RunRecord, version: str) -> str:
    values = _job_values(record.jobs) | _host_values(record)
    cells = {key: str(value) if isinstance(value, int) else f"{value:f}" for key, value in values.items()}
    cells["batsim_version"] = _cells([version])[0]
    keys = sorted(cells)
    return ",".join(keys) + "\n" + ",".join(cells[key] for key in keys) + "\n"


def _job_values(jobs: JobTable) -> dict[str, int | float]:
    """Batsim's metrics: means are over all jobs, and rejected jobs add nothing to the sums."""
    ran = jobs.final_state != FinalState.REJECTED
    submit, start, runtime = jobs.submit_time[ran], jobs.start_time[ran], jobs.runtime[ran]
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


def _host_values(record: RunRecord) -> dict[str, int | float]:
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
