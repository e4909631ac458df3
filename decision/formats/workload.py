"""A workload of any format, by its file's ending or its shipped name."""

import os
from pathlib import Path

from decision.model.reshape import Walltimes
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
) -> Workload:
    """Read a workload: Batsim's JSON, a log in the Standard Workload Format (``.swf``), or a shipped one.

    Args:
        source: the file, or the name of a shipped workload (``taurus_week``).
        name: the workload's name, the part of job ids before ``!``.
        keep_source: of JSON: keep each job's and profile's JSON as Batsim forwards it (see `Job.source`).
        jobs: of logs, like the following: which of the usable jobs to keep, in order of submission; all if absent.
        nodes: leave out jobs larger than this; by default than the machine in the log's header.
        walltime: ``requested`` time, ``runtime`` (perfect estimates) or ``none``.
        time_field: the field with the requested time, counted from 1.

    Raises:
        InputError: if the file cannot be used, or no workload of that name is shipped.
    """
    path = find_workload(source)
    if is_swf(path):
        return load_swf(path, jobs=jobs, nodes=nodes, walltime=walltime, time_field=time_field, name=name)
    return load_json(path, name, keep_source=keep_source)


def is_swf(path: Path) -> bool:
    """Whether a file's name says that it is a log in the Standard Workload Format."""
    return path.suffix.lower() == ".swf"
