"""A workload of any format, by its file's ending or its shipped name."""

import os
from pathlib import Path

from decision.model.arguments import whole
from decision.model.errors import ConfigError
from decision.model.reshape import Filters, Walltimes, reshape
from decision.model.workload import Workload
from decision.shipped import find_workload

from .swf import REQUESTED_TIME, load_swf
from .workload_json import load_json


def load_workload(
    source: str | os.PathLike[str],
    name: str = "w0",
    *,
    keep_source: bool = False,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    time_field: int = REQUESTED_TIME,
    speed: float | None = None,
) -> Workload:
    """Read a workload: Batsim's JSON, a log in the Standard Workload Format (``.swf``), or a shipped one.

    Args:
        source: the file, or the name of a shipped workload (``taurus_week``).
        name: the workload's name, the part of job ids before ``!``.
        keep_source: of JSON: keep each job's and profile's JSON as Batsim forwards it (see `Job.source`).
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: leave out jobs larger than this; by default, of logs, than the machine in the header.
        walltime: ``requested`` time, ``runtime`` (perfect estimates) or ``none``.
        time_field: of logs: the field with the requested time, counted from 1.
        speed: flop/s of the hosts, for the run times of jobs that compute.

    Raises:
        InputError: if the file cannot be used, no workload of that name is shipped, or no job is left.
        ConfigError: if an option is out of range, or a run time is needed and not known.

    Examples:
        >>> import decision as d
        >>> [job.size for job in d.load_workload("toy", jobs=slice(0, 2)).jobs]
        [3, 4]
    """
    if jobs is not None and not isinstance(jobs, slice):
        raise ConfigError(f"jobs: must be a range like slice(0, 5000); found {jobs!r}", field="jobs")
    nodes = None if nodes is None else whole("nodes", nodes, 1)
    path = find_workload(source)
    if is_swf(path):
        return load_swf(path, jobs=jobs, nodes=nodes, walltime=walltime, time_field=time_field, name=name)
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, speed=speed)
    if filters == Filters(speed=speed):
        return load_json(path, name, keep_source=keep_source)
    if walltime == "requested":
        return reshape(load_json(path, name, keep_source=keep_source), filters)
    return reshape(load_json(path, name, keep_extra=keep_source), filters)  # a job's source says another walltime


def is_swf(path: Path) -> bool:
    """Whether a file's name says that it is a log in the Standard Workload Format."""
    return path.suffix.lower() == ".swf"
