"""Exports of the batch scheduler OAR as workloads: a table of jobs as CSV, or JSON."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.model.column import labelled
from decision.model.errors import InputError
from decision.model.reshape import refuse_empty
from decision.model.trace import Reading, Trace
from decision.model.workload import Job, Workload

from .oar_records import ROW_PLACE, Record, csv_records, json_records
from .profiles import delay_profiles

_NAMED = 5  # lines of a reason whose numbers are kept


_REASONS = ("that never started", "that did not end", "that ended when they started, or before", "without resources")


class _Ran(NamedTuple):
    """Jobs that ran, and why the others are left out."""

    records: list[Record]
    dropped: dict[str, int]
    lines: dict[str, tuple[int, ...]]  # the first of them, in a table


def load_oar(path: str | os.PathLike[str], name: str = "w0") -> Workload:
    """Read an export: one job per record that ran, in order of submission, one delay profile per distinct run time.

    The first submission is 0 s. A job's size is the number of its resources; the machine has as many as the jobs used.

    A CSV file has a header with the columns ``job_id``, ``submission_time``, ``start_time``, ``stop_time`` and
    ``resources`` (ids separated by spaces) or ``resource_count``; ``walltime`` (seconds), ``user`` and ``queue`` where
    known. JSON has the same fields, or those of OAR's commands: it is what ``oarstat --gantt "FROM, TO" -J`` prints;
    that of ``oarstat -J`` and of the REST API serves too where it has stop times and resources.

    Args:
        path: the export; ``.json`` or else CSV.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job ran; one line with file, line or job, and field.
    """
    read = json_records if Path(path).suffix.lower() == ".json" else csv_records
    records = list(read(path))
    _check_ids(records, path)
    ran = _ran(records)
    jobs = sorted(ran.records, key=lambda record: record.submission)
    first = jobs[0].submission if jobs else 0.0
    names, profiles = delay_profiles(np.array([job.stop - job.start for job in jobs], np.float64))
    workload = Workload(
        name=name,
        jobs=tuple(_job(record, first, profile, name) for record, profile in zip(jobs, names, strict=True)),
        profiles=profiles,
        nb_res=_machine_size(jobs),
        path=str(path),
        dropped=ran.dropped,
        dropped_lines=ran.lines,
        unix_start=first,
        trace=_trace(jobs, name),
        reading=Reading(
            format="oar",
            records=len(records),
            unit="resources",
            unit_reason="the format counts resources",
            hosts_from="distinct resources" if any(job.resources for job in jobs) else "largest job",
            requested=sum(math.isfinite(job.walltime) for job in jobs),
            clock="UTC",
        ),
    )
    refuse_empty(workload)
    return workload


def _check_ids(records: Sequence[Record], path: str | os.PathLike[str]) -> None:
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            raise InputError(f"{path}{record.place}: job {record.id!r} is there twice; make ids unique")
        seen.add(record.id)


def _ran(records: Iterable[Record]) -> _Ran:
    reasons = [(record, _why_not(record)) for record in records]
    dropped = Counter(why for _, why in reasons if why)
    lines: dict[str, tuple[int, ...]] = {}
    for record, why in reasons:
        if why and record.place.startswith(ROW_PLACE):
            lines[why] = (*lines.get(why, ()), int(record.place.removeprefix(ROW_PLACE)))[:_NAMED]
    kept = [record for record, why in reasons if not why]
    return _Ran(kept, {why: dropped[why] for why in _REASONS if dropped[why]}, lines)


def _why_not(record: Record) -> str:
    """Why a job is left out; empty if it is not."""
    wrong = (record.start <= 0, record.stop <= 0, record.stop <= record.start, record.size < 1)
    return next((reason for reason, holds in zip(_REASONS, wrong, strict=True) if holds), "")


def _job(record: Record, first: float, profile: str, name: str) -> Job:
    return Job(
        id=f"{name}!{record.id}",
        submit_time=record.submission - first,
        size=record.size,
        walltime=record.walltime,
        profile=profile,
        user=record.user,
        extra={"queue": record.queue} if record.queue else None,
    )


def _trace(records: Sequence[Record], name: str) -> Trace:
    """What happened to the jobs."""
    size = np.array([record.size for record in records], np.float64)
    nodes = labelled([" ".join(record.resources) for record in records])
    return Trace(
        id=[f"{name}!{record.id}" for record in records],
        wait=np.array([max(0.0, record.start - record.submission) for record in records], np.float64),
        recorded={"size": size, "nodes": nodes} if any(nodes.used()) else {"size": size},
        request={"partition": queue} if any((queue := labelled([r.queue for r in records])).used()) else {},
    )


def _machine_size(records: Sequence[Record]) -> int:
    """How many resources the jobs used; where they are not named, those of the largest job."""
    named = len(set(_resources_of(records)))
    return max(named, max((record.size for record in records), default=1))


def _resources_of(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        yield from record.resources
