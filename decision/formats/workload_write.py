"""Workloads as Batsim's JSON, and the JSON of a profile as Batsim forwards it."""

import os
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from decision.model.demand import submit_times
from decision.model.trace import of_jobs, trace_fields
from decision.model.workload import Job, Workload

from .files import write_files
from .json_text import json_bytes, with_short_numbers
from .profiles import profile_fields

_CHUNK = 65536  # jobs whose records are made at once
_ENCODER = msgspec.json.Encoder()


def write_workload(path: str | os.PathLike[str], workload: Workload) -> None:
    """Write a workload as Batsim's JSON, one job and one profile per line.

    Fields of jobs and profiles that only their sources know are kept. Numbers have at most 15 digits: of longer ones
    Batsim's RapidJSON makes others than Python. What says when 0 s was is written as
    ``unix_start_time`` and ``time_zone`` (seconds), which Batsim ignores.

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({Path(path): workload_lines(workload)})


def workload_lines(workload: Workload) -> Iterator[bytes]:
    """The content of the file that `write_workload` writes."""
    yield json_bytes(_head(workload))[:-1] + b',\n"jobs":[\n'
    jobs = (
        _ENCODER.encode(_job_fields(job, _written_id(job, workload.name)) | said)
        for job, said in zip(workload.jobs, _said(workload), strict=False)
    )
    yield with_short_numbers(b",\n".join(jobs))
    yield b'\n],\n"profiles":{\n'
    profiles = (_ENCODER.encode(name) + b":" + profile_json(workload, name) for name in workload.profiles)
    yield with_short_numbers(b",\n".join(profiles))
    yield b"\n}}\n"


def _said(workload: Workload) -> Iterator[dict[str, Any]]:
    """What was recorded of each job."""
    if workload.trace is None:
        yield from repeat({})
        return
    trace, submit = of_jobs(workload.trace, workload.jobs), submit_times(workload)
    for first in range(0, len(submit), _CHUNK):
        rows = slice(first, first + _CHUNK)
        yield from trace_fields(trace.part(rows), submit[rows])


def _head(workload: Workload) -> dict[str, Any]:
    head: dict[str, Any] = {"description": workload.description} if workload.description else {}
    if workload.unix_start is not None:
        head |= {"unix_start_time": workload.unix_start, "time_zone": workload.time_zone}
    return {**head, "nb_res": workload.nb_res}


def profile_json(workload: Workload, name: str) -> bytes:
    """A profile's JSON object as Batsim forwards it: the file's where it was kept, or else made from the profile."""
    return workload.profile_sources.get(name) or _ENCODER.encode(profile_fields(workload.profiles[name]))


def _written_id(job: Job, workload: str) -> str:
    """Batsim takes an id that contains the workload's name for a full one."""
    name = job.name
    return job.id if workload in name else name


def _job_fields(job: Job, written_id: str) -> dict[str, Any]:
    fields = job.fields(written_id)
    return {**fields, **job.extra} if job.extra else fields
