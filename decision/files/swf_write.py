"""Workloads as logs in the Standard Workload Format 2.2."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from decision import __version__
from decision.model.demand import Floats
from decision.model.trace import Trace, of_jobs
from decision.model.workload import Workload

from .batsim_json import label
from .text import is_plain_number, utf8, write_files

_EXTRA = ("group", "executable", "queue")
_COMPLETED, _FAILED, _CANCELLED = 1, 0, 5
_STATUS = {"COMPLETED": _COMPLETED, "CANCELLED": _CANCELLED, "DEADLINE": _CANCELLED}  # of other states: failed


def write_swf(path: str | os.PathLike[str], workload: Workload, runtimes: Floats) -> None:
    """Write a workload as a log, with what was recorded of its jobs; other jobs' waiting times are unknown.

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
    beside = _Beside(workload, order)
    notes += [f"Note: partition {number} is {name!r}" for name, number in beside.partitions.items()]
    head = ["Version: 2.2", f"Conversion: decision {__version__}", f"MaxJobs: {len(jobs)}", f"MaxRecords: {len(jobs)}"]
    if workload.unix_start is not None:
        head += [f"UnixStartTime: {_text(workload.unix_start)}", f"TimeZone: {_text(workload.time_zone)}"]
    head += [f"MaxNodes: {workload.nb_res}", f"MaxProcs: {workload.nb_res}"]
    head += [f"Note: {line}" for line in workload.description.splitlines() if line.strip()]
    yield from (utf8(f"; {line}\n") for line in (*head, *notes))
    rows = zip(numbers, jobs, runtimes[order].tolist(), *columns, strict=True)
    for at, (number, job, runtime, user, *names_of_job) in enumerate(rows):
        walltime = beside.walltime[at] if job.walltime == np.inf else _text(job.walltime)
        allocated, requested = beside.sizes(at, job.size)
        fields = (
            *(number, _text(job.submit_time), beside.wait[at], _text(runtime), allocated, beside.cpu_time[at]),
            *(beside.used_memory[at], requested, walltime, beside.memory[at]),
            *(beside.status(at, workload.profiles[job.profile].exit_code), user, *names_of_job),
            *(beside.partition[at], beside.preceding[at], beside.think_time[at]),
        )
        yield f"{' '.join(map(str, fields))} {beside.rest[at]}".rstrip().encode() + b"\n"


class _Beside:
    """What a log's fields say that jobs do not, from the jobs' records; -1 where it is not known.

    Args:
        workload: the jobs.
        order: in which they are written.
    """

    def __init__(self, workload: Workload, order: Sequence[int]) -> None:
        jobs = len(workload.jobs)
        self._is_recorded = workload.trace is not None
        trace = workload.trace or Trace(id=[""] * jobs, wait=np.full(jobs, np.nan))
        trace = of_jobs(trace, workload.jobs)

        def numbers(part: str, name: str) -> list[str]:
            return [_text(-1.0 if number != number else number) for number in trace.number(part, name)[order].tolist()]

        def texts(part: str, name: str) -> list[str]:
            in_file_order = trace.texts(part, name)
            return [in_file_order[at] for at in order]

        self.wait = [_text(-1.0 if wait != wait else wait) for wait in trace.wait[order].tolist()]
        self.allocated, self.requested = numbers("recorded", "size"), numbers("request", "size")
        self.cpu_time, self.used_memory = numbers("recorded", "cpu_time"), numbers("recorded", "memory")
        self.walltime, self.memory = numbers("request", "walltime"), numbers("request", "memory")
        self.think_time = numbers("request", "think_time")
        self.state, self.rest = texts("recorded", "state"), texts("recorded", "fields")
        self.partition, self.partitions = _numbers(texts("request", "partition"))
        preceding = trace.number("request", "dependency")[order].tolist()
        self.preceding = [_text(-1.0 if number != number else number) for number in preceding]

    def sizes(self, at: int, size: int) -> tuple[str, str]:
        """Hosts allocated and requested, as they were recorded of a job whose size is still the same."""
        requested, allocated = self.requested[at], self.allocated[at]
        if (float(requested) if float(requested) > 0 else float(allocated)) == size:
            return allocated, requested
        return "-1", str(size)

    def status(self, at: int, exit_code: int) -> str:
        """The standard's status of a job."""
        state = self.state[at]
        if not state:
            return "-1" if self._is_recorded else str(_FAILED if exit_code else _COMPLETED)
        return state if state.isdigit() else str(_STATUS.get(state, _FAILED))


def _numbers(texts: Sequence[str]) -> tuple[list[int], Mapping[str, int]]:
    """A number for each text, -1 for none, and what the numbers mean where the texts are no numbers themselves."""
    distinct = [text for text in dict.fromkeys(texts) if text]
    if all(map(is_plain_number, distinct)):
        return [int(text) if text else -1 for text in texts], {}
    names = {text: number for number, text in enumerate(distinct, 1)}
    return [names.get(text, -1) for text in texts], names


def _text(value: float) -> str:
    """A number as it is read again, without decimals where it has none."""
    return f"{value:.0f}" if value % 1 == 0 else repr(value)
