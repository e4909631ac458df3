"""Workloads as logs in the Standard Workload Format 2.2."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from decision import __version__
from decision.model.demand import Floats
from decision.model.workload import Job, Workload

from .files import write_files
from .workload_json import label

_EXTRA = ("group", "executable", "queue")
_COMPLETED, _FAILED = 1, 0


def write_swf(path: str | os.PathLike[str], workload: Workload, runtimes: Floats) -> None:
    """Write a workload as a log of jobs that nobody has scheduled yet: waiting times are unknown.

    Lines come in order of submission. Job numbers are the jobs' names where all of these are numbers, or else counted
    from 1; users, groups, executables and queues likewise, with the names in the header.

    Args:
        path: the file.
        workload: the jobs.
        runtimes: how long each takes, (J,) seconds (see `decision.model.demand.runtimes`).

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({Path(path): swf_lines(workload, runtimes)})


def swf_lines(workload: Workload, runtimes: Floats) -> Iterator[bytes]:
    """The content of the file that `write_swf` writes."""
    order = np.argsort([job.submit_time for job in workload.jobs], kind="stable").tolist()
    jobs = [workload.jobs[i] for i in order]
    numbers, names = _numbers([job.name for job in jobs])
    notes = ["Note: jobs are numbered from 1"] if names else []
    labels = {"user": [job.user for job in jobs]}
    labels |= {name: [label((job.extra or {}).get(name)) for job in jobs] for name in _EXTRA}
    columns = []
    for kind, texts in labels.items():
        column, names = _numbers(texts)
        columns.append(column)
        notes += [f"Note: {kind} {number} is {name!r}" for name, number in names.items()]
    yield from (f"; {line}\n".encode() for line in [*_head(workload), *notes])
    rows = zip(numbers, jobs, runtimes[order].tolist(), *columns, strict=True)
    yield from (_line(workload, *row) for row in rows)


def _head(workload: Workload) -> Iterator[str]:
    yield "Version: 2.2"
    yield f"Conversion: decision {__version__}"
    yield f"MaxJobs: {len(workload.jobs)}"
    yield f"MaxRecords: {len(workload.jobs)}"
    if workload.unix_start is not None:
        yield f"UnixStartTime: {_text(workload.unix_start)}"
        yield f"TimeZone: {_text(workload.time_zone)}"
    yield f"MaxNodes: {workload.nb_res}"
    yield f"MaxProcs: {workload.nb_res}"
    yield from (f"Note: {line}" for line in workload.description.splitlines() if line.strip())


def _numbers(texts: Sequence[str]) -> tuple[list[int], Mapping[str, int]]:
    """A number for each text, -1 for none, and what the numbers mean where the texts are no numbers themselves."""
    distinct = [text for text in dict.fromkeys(texts) if text]
    if all(map(_is_number, distinct)):
        return [int(text) if text else -1 for text in texts], {}
    names = {text: number for number, text in enumerate(distinct, 1)}
    return [names.get(text, -1) for text in texts], names


def _is_number(text: str) -> bool:
    """Whether a text is the usual spelling of a number that survives being read as a float."""
    return text.isascii() and text.isdigit() and len(text) < 16 and str(int(text)) == text


def _line(
    workload: Workload, number: int, job: Job, runtime: float, user: int, group: int, executable: int, queue: int
) -> bytes:
    walltime = -1 if job.walltime == np.inf else job.walltime
    status = _FAILED if workload.profiles[job.profile].exit_code else _COMPLETED
    return (
        f"{number} {_text(job.submit_time)} -1 {_text(runtime)} {job.size} -1 -1 {job.size} {_text(walltime)} -1 "
        f"{status} {user} {group} {executable} {queue} -1 -1 -1\n"
    ).encode()


def _text(value: float) -> str:
    """A number as it is read again, without decimals where it has none."""
    return f"{value:.0f}" if value % 1 == 0 else repr(value)
