"""Batsim 4.2.1's output files: same columns, same number formats, same formulas.

Many rows of jobs are written at once in machine code, which takes longer to load than a small table to write.
"""

import csv
import math
import os
import re
import resource
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.compiling.bundle import I1, I4, I8, Bundle, F8x2, I8x2
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import nearest_millionths
from decision.model.columns import HostSets
from decision.model.computer import forget_rows
from decision.model.errors import ConfigError, InputError
from decision.model.record import (
    NULL_RUNTIME,
    BatteryTable,
    Context,
    EnergyTable,
    FinalState,
    HostState,
    HostTable,
    JobTable,
    PredictionTable,
    PstateTable,
    RateTable,
    RunRecord,
    SupplyTable,
    WorthTable,
)

from .text import read_bytes, write_files

JOB_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata\n"
)
_JOB_ROW = "%s,%s,%s,%f,%d,%f,%d,%s,%f,%f,%f,%f,%f,%f,%s,%f,%s\n"
_REJECTED_ROW = "%s,%s,%s,%f,%d,%f,0,REJECTED,,,,,,,,,%s\n"
STATE_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
_STATE_ROW = "%g,%d,%d,%d,%d,%d\n"
ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"
_ENERGY_ROW = "%f,%f,%s,%f,%s\n"
PSTATE_HEADER = "time,machine_id,new_pstate\n"
_PSTATE_ROW = "%g,%s,%d\n"

_STATE_NAMES = [state.name for state in FinalState]
_SPECIAL = re.compile(r'[,"\r\n]')
_CHUNK = 16384  # rows
_MANY = 100_000  # jobs whose rows are worth machine code: 0.2 s are saved, and 0.01 s go to load it
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
    parts = run_tables(record, version)
    contents = {Path(f"{os.fspath(prefix)}_{name}.csv"): chunks for name, chunks in parts.items()}
    write_files(contents)
    remove_older(prefix, contents)
    return list(contents)


def run_tables(record: RunRecord, version: str = f"decision-{__version__}") -> dict[str, Iterable[bytes]]:
    """The files of a run in chunks, by the ends of their names: ``jobs``, ``schedule``, ``machine_states`` ..."""
    jobs, states, energy, pstates = record.jobs, record.host_states, record.energy, record.pstates
    values = job_values(jobs) | host_values(record)
    cells = {key: str(value) if isinstance(value, int) else f"{value:f}" for key, value in values.items()}
    cells["batsim_version"] = _cells([version])[0]
    names = sorted(cells)
    parts: dict[str, Iterable[bytes]] = {
        "jobs": _job_chunks(jobs),
        "schedule": [f"{','.join(names)}\n{','.join(cells[name] for name in names)}\n".encode()],
        "machine_states": table_chunks(STATE_HEADER, len(states.time), partial(state_rows, states)),
    }
    if energy is not None:
        parts["consumed_energy"] = table_chunks(ENERGY_HEADER, len(energy.time), partial(energy_rows, energy))
    if pstates is not None:
        parts["pstate_changes"] = table_chunks(PSTATE_HEADER, len(pstates.time), partial(pstate_rows, pstates))
    return parts


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


def _job_chunks(jobs: JobTable) -> Iterator[bytes]:
    yield JOB_HEADER.encode()
    for begin in range(0, len(jobs.id), _CHUNK):
        columns = _job_columns(jobs, slice(begin, begin + _CHUNK))
        written = csv_rows(columns) if len(jobs.id) >= _MANY and "REJECTED" not in columns[_STATE] else None
        if written is None:
            rows = (
                _JOB_ROW % row if row[_STATE] != "REJECTED" else _REJECTED_ROW % (*row[:6], row[-1])
                for row in _cells_by_row(columns)
            )
            written = "".join(rows).encode()
        yield written


def _cells_by_row(columns: Iterable[Sequence[str] | NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*(cells.tolist() if isinstance(cells, np.ndarray) else cells for cells in columns), strict=True)


_STATE = 7  # the column of the final state


def _job_columns(jobs: JobTable, rows: slice) -> list[Sequence[str] | NDArray[Any]]:
    """The cells of jobs by column, texts as they stand in the file, in the order of the file's columns."""
    parts = [full.partition("!") for full in jobs.id[rows]]
    submit, start, runtime = jobs.submit_time[rows], jobs.start_time[rows], _runtimes(jobs.runtime[rows])
    finish = start + runtime
    turnaround = finish - submit
    return [
        _cells([name for _, _, name in parts]),
        _cells([workload for workload, _, _ in parts]),
        _cells(list(jobs.profile[rows])),
        submit,
        jobs.size[rows],
        np.where(np.isfinite(jobs.walltime[rows]), jobs.walltime[rows], -1.0),
        jobs.final_state[rows] == FinalState.COMPLETED_SUCCESSFULLY,
        [_STATE_NAMES[state] for state in jobs.final_state[rows].tolist()],
        start,
        runtime,
        finish,
        start - submit,
        turnaround,
        turnaround / runtime,
        jobs.allocation[rows],
        jobs.energy[rows],
        ['"' + text.replace('"', '""') + '"' for text in jobs.metadata[rows]],
    ]


def _runtimes(runtime: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(runtime == 0, NULL_RUNTIME, runtime)


def _cells(column: Sequence[str]) -> Sequence[str]:
    """The texts as CSV cells: quoted where they hold a comma, a quote or a line end."""
    if not _SPECIAL.search("".join(column)):
        return column
    return ['"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text for text in column]


# ---------------------------------------------------------------------------------------- hosts and energy


def state_rows(table: HostTable, rows: slice) -> Iterator[str]:
    """The rows of the trace of hosts."""
    columns = [table.counts[rows, state].tolist() for state in range(HostState.UNAVAILABLE)]
    times = table.time[rows].tolist()
    if table.in_file:
        forget_rows(table.time, rows.start, min(rows.stop, len(table.time)))
    return map(_STATE_ROW.__mod__, zip(times, *columns, strict=True))


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

    def add(name: str, column: NDArray[np.float64]) -> None:
        values[f"mean_{name}"] = _mean(float(column.sum(dtype=np.longdouble)), nb_jobs)
        values[f"max_{name}"] = _largest(column)

    # one after the other, so that not all of them stand in memory
    add("waiting_time", start - submit)
    add("turnaround_time", finish - submit)
    add("slowdown", (finish - submit) / runtime)
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


# Batsim 5.0.0-rc2's output files: the tables of Batsim 4, traces only where asked for, and the summary as JSON.

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
    figures = {"batsim_version": f'"{version}"'}
    for name, value in (job_values(jobs) | host_values(record)).items():
        if isinstance(value, int | np.integer):
            figures[name] = str(value)
        elif name not in _TIMES:  # as C writes it, of whose 0 / 0 the sign is negative
            figures[name] = "-nan" if math.isnan(value) else f"{value:f}"
    unit = 1024 if sys.platform == "darwin" else 1  # bytes there, kilobytes elsewhere
    peak = str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit)
    used = {"memory_VmHWM_kB": peak, "memory_VmPeak_kB": peak}
    used |= {"time_in_edc_seconds": f"{seconds[0]:f}", "time_in_simu_seconds": f"{seconds[1]:f}"}
    parts: dict[str, Iterable[bytes]] = {
        "jobs.csv": table_chunks(JOB_HEADER, len(jobs.id), partial(_job_rows5, jobs)),
        "schedule.json": [_object(figures)],
        "real_exec_info.json": [_object(used)],
    }
    if machine_states:
        parts["machine_states.csv"] = table_chunks(STATE_HEADER, len(states.time), partial(state_rows, states))
    if energy is not None:
        parts["consumed_energy.csv"] = table_chunks(ENERGY_HEADER, len(energy.time), partial(energy_rows, energy))
    if pstates is not None and pstate_changes:
        rows = partial(pstate_rows, pstates)
        parts["pstate_changes.csv"] = table_chunks(PSTATE_HEADER, len(pstates.time), rows)
    contents = {Path(f"{os.fspath(prefix)}{name}"): chunks for name, chunks in parts.items()}
    write_files(contents)
    return list(contents)


def _job_rows5(jobs: JobTable, rows: slice) -> Iterator[str]:
    for *cells, _ in _cells_by_row(_job_columns(jobs, rows)):
        job_id, workload, profile, *rest = cells
        full = profile if "!" in str(profile) else f"{workload}!{profile}"
        cells = [job_id, workload, full, *rest]
        yield _REJECTED % tuple(cells[:6]) if cells[7] == FinalState.REJECTED.name else _ROW % tuple(cells)


def _object(cells: dict[str, str]) -> bytes:
    rows = ",\n".join(f'  "{name}": {cells[name]}' for name in sorted(cells))
    return f"{{\n{rows}\n}}\n".encode()


# What a policy expected of each job and what it was, as CSV.

_PREDICTION_HEADER = "job_id,predicted_runtime,corrections,runtime,walltime,promised_start,start\n"


def write_predictions(path: Path, jobs: JobTable, predictions: PredictionTable) -> None:
    """Write what a policy expected of each job and what it was, as CSV.

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({path: table_chunks(_PREDICTION_HEADER, len(jobs.id), partial(_prediction_rows, jobs, predictions))})


def _prediction_rows(jobs: JobTable, predictions: PredictionTable, rows: slice) -> Iterator[str]:
    numbers = (
        predictions.predicted[rows],
        predictions.corrections[rows],
        jobs.runtime[rows],
        jobs.walltime[rows],
        predictions.promised[rows],
        jobs.start_time[rows],
    )
    for job, *row in zip(jobs.id[rows], *(column.tolist() for column in numbers), strict=True):
        cells = ("" if math.isnan(number) else f"{number:.12g}" for number in row)
        yield f"{job},{','.join(cells)}\n"


# What a run is measured by: ``worth.csv``, ``supply.csv``, ``battery.csv``, ``carbon.csv``, ``price.csv``.
#
# Batsim writes none of them: they stand next to its files, copied from the workloads, the events and the policy's
# options, so that a folder can be analysed alone.

_TABLES: dict[str, tuple[type, tuple[str, ...]]] = {  # by the field of a `Context`: the table, and the file's columns
    "worth": (WorthTable, ("job_id", "value", "deadline")),
    "supply": (SupplyTable, ("time", "hosts")),
    "battery": (BatteryTable, ("host_seconds", "charge_hosts", "discharge_hosts", "efficiency")),
    "carbon": (RateTable, ("time", "g_per_kwh")),
    "price": (RateTable, ("time", "per_kwh")),
}


def write_green_files(folder: Path, context: Context) -> list[Path]:
    """Write what there is; what an older run has left is removed.

    Raises:
        ConfigError: if a file cannot be written.
    """
    contents = {}
    for name, (_, columns) in _TABLES.items():
        table = getattr(context, name)
        if table is not None:
            values = (list(getattr(table, field)) for field in table.__struct_fields__)
            rows = (",".join(map(str, row)) + "\n" for row in zip(*values, strict=True))
            contents[_file(folder, name)] = ["".join((",".join(columns) + "\n", *rows)).encode()]
    write_files(contents)
    for name in _TABLES:
        if _file(folder, name) not in contents:
            _file(folder, name).unlink(missing_ok=True)
    return list(contents)


def read_green_files(folder: Path) -> Context:
    """What a run is measured by; None where no file says it.

    Raises:
        InputError: if a file is of another kind.
    """
    tables: dict[str, Any] = {}
    for part, (kind, names) in _TABLES.items():
        path = _file(folder, part)
        if path.is_file():
            rows = list(csv.DictReader(read_bytes(path).decode(errors="replace").splitlines()))
            try:
                columns = {name: [row[name] for row in rows] for name in names}
                values = [c if name == "job_id" else np.array(c, np.float64) for name, c in columns.items()]
            except (KeyError, ValueError, TypeError):
                raise InputError(f"{path}: not a table of {', '.join(names)}; run the policy again") from None
            tables[part] = kind(**dict(zip(kind.__struct_fields__, values, strict=True)))  # type: ignore[attr-defined]
    return Context(**tables)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv"


# Rows of a table as CSV, many at once, in machine code: texts, whole numbers, and numbers as C's ``%f`` writes them.

_TEXT, _WHOLE, _FIXED = range(3)  # forms of a cell
_LIMIT = 2.0**53  # numbers beyond are not written here
_DIGITS = 16  # of a number below `_LIMIT`
_DIGITS_OF_HOST = 10  # of the largest of four bytes
_MILLION = 1_000_000
_COMMA, _LINE_END, _BLANK, _MINUS, _POINT, _ZERO = (ord(sign) for sign in ",\n -.0")


class TableRows(Bundle):
    """n rows of cells; texts and numbers by column."""

    form: I8  # (cells,) _TEXT, _WHOLE or _FIXED
    column: I8  # (cells,) which column of the texts or of the numbers
    text: I1  # the bytes of all texts, column by column
    text_end: I8x2  # (columns of texts, n + 1) where the text before a row ends, and so that of the row begins
    number: F8x2  # (columns of numbers, n)
    out: I1  # what is written


class SetsOfHosts(Bundle):
    """Intervals of hosts, set by set."""

    first: I4  # (m,) hosts
    last: I4  # (m,)
    count: I4  # (n,) intervals of each set
    end: I8  # (n,) where the text of each set ends
    out: I1  # what is written


Cells = Sequence[str] | NDArray[np.generic]


def csv_rows(columns: Sequence[Cells]) -> bytes | None:
    """The rows, cells between commas; None where a number is nan, infinite or not below 2**53.

    Args:
        columns: the texts, as they are to stand there, or an array of numbers, written as ``%d`` where its type is a
            whole one and as ``%f`` else; all of one length n.
    """
    number = np.array([column for column in columns if isinstance(column, np.ndarray)], np.float64)
    if not np.all(np.abs(number) < _LIMIT):  # so are nan
        return None
    texts = [_bytes_of(column) for column in columns if not isinstance(column, np.ndarray)]
    text_end = np.zeros((len(texts), number.shape[1] + 1), np.int64)
    first = 0
    for at, (text, ends) in enumerate(texts):
        text_end[at, 0], text_end[at, 1:] = first, first + ends
        first += len(text)
    form = np.array(
        [
            _TEXT if not isinstance(column, np.ndarray) else _WHOLE if column.dtype.kind in "iub" else _FIXED
            for column in columns
        ]
    )
    place = np.where(form == _TEXT, np.cumsum(form == _TEXT), np.cumsum(form != _TEXT)) - 1
    rows = TableRows(
        form=form,
        column=place,
        text=np.concatenate([np.zeros(0, np.int8), *(text for text, _ in texts)]),
        text_end=text_end,
        number=number,
        out=np.empty(first + number.size * (_DIGITS + len("-.000000")) + number.shape[1] * len(columns), np.int8),
    )
    return rows.out[: write_rows.from_python(rows.address)].tobytes()


def _bytes_of(column: Sequence[str]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The bytes of all texts (n,), one behind the other, and where each ends (n,)."""
    if isinstance(column, HostSets):
        # What waited in a file comes as the fields of its rows, which do not lie side by side
        first, last, count = (np.ascontiguousarray(of) for of in column.intervals())
        out = np.empty(len(first) * 2 * (_DIGITS_OF_HOST + 1), np.int8)
        sets = SetsOfHosts(first=first, last=last, count=count, end=np.empty(len(count), np.int64), out=out)
        return out[: write_sets.from_python(sets.address)], sets.end
    text = "".join(column).encode()
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    if lengths.sum() < len(text):  # not all is ASCII
        lengths = np.fromiter((len(cell.encode()) for cell in column), np.int64, len(column))
    return np.frombuffer(text, np.int8), np.cumsum(lengths)


@Interface(int, SetsOfHosts).entry
def write_sets(sets):
    """Write all sets of hosts as ``0-3 7``, one behind the other; how many bytes that are."""
    out, at, interval = sets.out, 0, 0
    for row in range(len(sets.count)):
        for i in range(sets.count[row]):
            if i > 0:
                out[at] = _BLANK
                at += 1
            at = _put_digits(out, at, np.int64(sets.first[interval]))
            if sets.first[interval] < sets.last[interval]:
                out[at] = _MINUS
                at = _put_digits(out, at + 1, np.int64(sets.last[interval]))
            interval += 1
        sets.end[row] = at
    return at


@Interface(int, TableRows).entry
def write_rows(rows):
    """Write all rows; how many bytes that are."""
    out, at = rows.out, 0
    cells = len(rows.form)
    for row in range(rows.number.shape[1]):
        for cell in range(cells):
            column = rows.column[cell]
            if rows.form[cell] == _TEXT:
                for i in range(rows.text_end[column, row], rows.text_end[column, row + 1]):
                    out[at] = rows.text[i]
                    at += 1
            elif rows.form[cell] == _WHOLE:
                number = rows.number[column, row]
                if number < 0:
                    out[at] = _MINUS
                    at += 1
                at = _put_digits(out, at, abs(int(number)))
            else:
                at = _put_fixed(out, at, rows.number[column, row])
            out[at] = _COMMA if cell < cells - 1 else _LINE_END
            at += 1
    return at


@kernel
def _put_fixed(out, at, number):
    """As C's ``%f`` does: the nearest, of two as near the one whose last digit is even; -0.0 has its sign."""
    if math.copysign(1.0, number) < 0:
        out[at] = _MINUS
        at += 1
    whole = math.floor(abs(number))
    millionths = int(nearest_millionths(abs(number) - whole))
    if millionths == _MILLION:
        whole, millionths = whole + 1, 0
    at = _put_digits(out, at, int(whole))
    out[at] = _POINT
    for i in range(6, 0, -1):
        out[at + i] = _ZERO + millionths % 10
        millionths //= 10
    return at + 7


@kernel
def _put_digits(out, at, number):
    """A whole number from 0 on."""
    length, rest = 1, number // 10
    while rest > 0:
        length, rest = length + 1, rest // 10
    for i in range(length - 1, -1, -1):
        out[at + i] = _ZERO + number % 10
        number //= 10
    return at + length
