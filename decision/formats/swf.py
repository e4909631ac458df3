"""Logs in the Standard Workload Format 2.2 (Feitelson's Parallel Workloads Archive), and in the Grid Workload Format.

One line per job, 18 numbers, -1 where unknown; header comments start with ``;``. Some logs have more fields, ``;`` or
tabs between them, or names in fields 12 to 16. The Grid Workload Format has the same first 16 fields, 29 in all, and
comments that start with ``#``. Logs are records of real machines and have odd lines; those that no simulation could
use are left out, counted by reason in `Workload.dropped`, with the numbers of the first of them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from decision.model.column import Labelled, Texts, narrow, numbered, small
from decision.model.columns import DelayProfiles, JobColumns
from decision.model.reshape import Filters, Walltimes, reshape
from decision.model.trace import Reading
from decision.model.usage import recorded, use_of
from decision.model.workload import Workload

from .profiles import delay_profiles
from .swf_header import Header, machine_size, origin, time_zone, unix_start
from .swf_lines import TEXT_FIELDS, Columns, LogLines, Table, job_columns

REQUESTED_TIME = 9  # field of the standard, counted from 1


def load_swf(
    path: str | os.PathLike[str],
    *,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    missing_walltime: str = "none",
    time_field: int = REQUESTED_TIME,
    shift: bool = False,
    grid: bool = False,
    name: str = "w0",
) -> Workload:
    """Read a log: one job per usable line, in order of submission, one delay profile per distinct run time.

    A job's size is the number of processors requested, or allocated where that is unknown; its walltime is the
    requested time, and none where that is unknown. A job that ran for longer than its walltime is stopped at
    its walltime, as Batsim does. The options are those of `decision.model.reshape.Filters`.

    Args:
        path: the log.
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: hosts of the platform; by default the header's MaxProcs or MaxNodes, a file PATH.machines, or else the
            peak of what was in use, as far as starts are known.
        walltime: ``requested`` as above; ``runtime`` is the run time (perfect estimates); ``none`` leaves jobs without.
        missing_walltime: of jobs without a requested time: ``none``, ``runtime`` or ``longest``.
        time_field: the field with the requested time, counted from 1; 9 in the standard, others in some logs.
        shift: let the first job kept come at 0 s.
        grid: the log is in the Grid Workload Format.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job is left.
        ConfigError: if an option is out of range.
    """
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, missing=missing_walltime, shift=shift)
    log = LogLines(path, grid)
    parts = [
        {**job_columns(table, time_field), "rest": rest, "line": narrow(lines)} for table, rest, lines in log.tables()
    ]
    columns = _in_order(log.without_repeats(_joined(parts)))
    ids = numbered(name, columns["number"])
    trace, requested = log.trace(ids, columns), int(np.isfinite(columns["walltime"]).sum())
    jobs_read, profiles = _jobs(columns, ids, log.labels)
    workload = Workload(
        name=name,
        jobs=jobs_read,
        profiles=profiles,
        nb_res=int(jobs_read.size.max(initial=1)),
        path=str(path),
        description=origin(log.header),
        dropped=log.dropped,
        dropped_lines=log.dropped_lines,
        unix_start=unix_start(log.header),
        time_zone=time_zone(log.header),
        trace=trace,
    )
    machine, source, notes = _machine(log.header, workload)
    reading = Reading(
        format="gwf" if grid else "swf",
        records=log.records,
        unit="processors",
        unit_reason="the format counts processors",
        hosts_from="given" if nodes else source,
        requested=requested,
    )
    workload = replace(workload, nb_res=machine, reading=reading, notes=() if nodes else notes)
    return reshape(workload, filters if nodes else replace(filters, nodes=machine))


def _machine(header: Header, workload: Workload) -> tuple[int, str, tuple[str, ...]]:
    """The number of hosts, where it is from, and what is to be said of it."""
    if stated := machine_size(header):
        return stated, "header", ()
    if listed := _machines_file(f"{workload.path}.machines"):
        return listed, f"{Path(workload.path).name}.machines", ()
    jobs, largest = recorded(workload), workload.nb_res
    if jobs is not None:
        peak = max(int(use_of(jobs).hosts.max()), largest)
        why = "no header says how many hosts the machine had"
        return peak, "peak of recorded use", (f"{why}; {peak:,}, the peak of what was in use",)
    why = "neither a header nor recorded starts say how many hosts the machine had"
    return largest, "largest job", (f"warning: {why}; {largest:,}, the largest job (give it with --machine)",)


def _machines_file(path: str) -> int:
    """The processors of a file of clusters next to a log, as Alea has it: id, name, nodes, processors of each; or 0."""
    try:
        rows = [line.split() for line in Path(path).read_text("utf-8", "replace").splitlines() if line.strip()]
        return sum(int(row[2]) * int(row[3]) for row in rows)
    except (OSError, ValueError, IndexError):
        return 0


def _joined(tables: list[Columns]) -> Columns:
    """The columns of all tables, which are taken from them."""
    return {name: np.concatenate([table.pop(name) for table in tables]) for name in list(tables[0])}


def _in_order(columns: Columns) -> Columns:
    """By submission; at one time in the order of the log."""
    if (np.diff(columns["submit"]) >= 0).all():
        return columns
    order = np.argsort(columns["submit"], kind="stable")
    return {name: columns.pop(name)[order] for name in list(columns)}


def _jobs(columns: Columns, ids: Texts, labels: Callable[[Table], Labelled[str]]) -> tuple[JobColumns, DelayProfiles]:
    """The jobs, and the profiles of all."""
    profile, profiles = delay_profiles(columns.pop("run"))
    jobs = JobColumns(
        id=ids,
        submit_time=columns["submit"].astype(np.float64),
        size=columns["size"].astype(np.int32),
        walltime=columns["walltime"].astype(np.float64),
        profile=profile,
        user=labels(columns["user"]),
        extra=_extras([labels(columns.pop(name)) for name in TEXT_FIELDS]),
    )
    return jobs, profiles


def _extras(known: Sequence[Labelled[str]]) -> Labelled[Mapping[str, str] | None]:
    """Each job's group, executable and queue, as far as they are known."""
    sizes = [len(column.labels) for column in known]
    distinct, which = np.unique(np.ravel_multi_index([column.codes for column in known], sizes), return_inverse=True)
    codes = np.unravel_index(distinct, sizes)
    rows = zip(*(Labelled(k.labels, code) for k, code in zip(known, codes, strict=True)), strict=True)
    extras = [{name: text for name, text in zip(TEXT_FIELDS, row, strict=True) if text} or None for row in rows]
    return Labelled(extras, small(which))
