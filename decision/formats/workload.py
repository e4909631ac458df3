"""A workload of any format, as its content says, or its shipped name."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from decision.computer.shipped import find_workload
from decision.model.arguments import amount, flag, text, whole
from decision.model.demand import walltimes
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import Filters, Walltimes, at_most, reshape
from decision.model.trace import Reading
from decision.model.workload import Workload

from .oar import load_oar
from .oar_records import is_oar_table
from .swf import REQUESTED_TIME, load_swf
from .traces.read import TraceOptions, load_trace
from .traces.recognise import begins_as_json, check_format, recognise
from .workload_json import load_json

ZONELESS = frozenset(("json", "swf", "gwf", "oar"))  # formats whose times are seconds


def load_workload(
    source: str | os.PathLike[str],
    name: str = "w0",
    *,
    keep_source: bool = False,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    speed: float | None = None,
    options: TraceOptions = TraceOptions(),  # noqa: B008 - immutable
) -> Workload:
    """Read a workload: Batsim's JSON, a log or accounting file of any known format, or a shipped one.

    Args:
        source: the file, or the name of a shipped workload (``taurus_week``).
        name: the workload's name, the part of job ids before ``!``.
        keep_source: of JSON: keep each job's and profile's JSON as Batsim forwards it (see `Job.source`).
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: leave out jobs larger than this; by default, of logs, than the machine in the header.
        walltime: ``requested`` time, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of jobs without a requested time: ``none``, ``runtime`` or ``longest``.
        time_field: of SWF: the field with the requested time, counted from 1; 9 if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        speed: flop/s of the hosts, for the run times of jobs that compute.
        options: how a log is read.

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
    nodes, name = None if nodes is None else whole("nodes", nodes, 1), text("name", name)
    if speed is not None:
        speed = amount("speed", speed, 1e-9, 1e30)
    if not isinstance(options, TraceOptions):
        raise ConfigError(f"options: must be TraceOptions; found {options!r}", field="options")
    keep_source, path = flag("keep_source", keep_source), find_workload(source)
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, missing=missing_walltime, speed=speed)
    changes = walltime != "requested" or missing_walltime != "none"  # a job's source says another walltime
    if time_field is not None and recognise(path) == "swf":
        options = replace(options, time_field=time_field)
    if time_zone is not None and recognise(path) not in ZONELESS:
        options = replace(options, time_zone=time_zone)
    options = replace(options, machine=nodes or options.machine)
    workload = read_workload([path], name, options, keep_source and changes, keep_source)
    return workload if filters == Filters(speed=speed) else reshape(workload, filters)


def read_workload(
    paths: Sequence[Path],
    name: str = "w0",
    options: TraceOptions = TraceOptions(),  # noqa: B008 - immutable
    keep_extra: bool = False,
    keep_source: bool = False,
) -> Workload:
    """The workload of one or more files of one format, as it is.

    Args:
        paths: the files; several only of accounting records.
        name: the workload's name.
        options: how a log is read.
        keep_extra: of JSON, as `load_json`.
        keep_source: of JSON, as `load_json`, unless extra fields are kept.

    Raises:
        InputError: if a file cannot be used, or no job is left.
        ConfigError: if an option does not fit the file.
    """
    path = paths[0]
    if options.format:
        format = check_format(options.format)
    else:
        format = "sacct" if options.names_columns else recognise(path)
    if format == "csv" and not options.columns and is_oar_table(path):
        format = "oar"
    if options.time_field is not None and format != "swf":
        raise no_time_field(str(path))
    if options.time_zone is not None and format in ZONELESS:
        raise no_local_times(str(path))
    if format not in ("json", "swf", "gwf", "oar"):
        workload = load_trace(paths, format, options, name)
    elif len(paths) > 1:
        raise ConfigError(f"{path}: only accounting records can be read from several files; give one")
    elif format in ("swf", "gwf"):
        field = options.time_field or REQUESTED_TIME
        return load_swf(path, nodes=options.machine, time_field=field, grid=format == "gwf", name=name)
    else:
        workload = load_oar(path, name) if format == "oar" else _read_json(path, name, keep_extra, keep_source)
    return at_most(workload, options.machine) if options.machine and format != "json" else workload


def no_time_field(names: str) -> ConfigError:
    """The error of a field that only some logs have."""
    what = "not a log in the Standard Workload Format, so it has no field with the requested time"
    return ConfigError(f"{names}: {what}; leave out the number of the field", field="time_field")


def no_local_times(names: str) -> ConfigError:
    """The error of a time zone where no time is a local one."""
    return ConfigError(f"{names}: times are seconds, and not local times; leave out the zone", field="time_zone")


def _read_json(path: Path, name: str, keep_extra: bool, keep_source: bool) -> Workload:
    if path.suffix.lower() != ".json" and not begins_as_json(path):
        raise InputError(
            f"{path}: neither JSON nor a log or table of a known format; name its format, or give the table a header",
            field="format",
        )
    workload = load_json(path, name, keep_source=keep_source and not keep_extra, keep_extra=keep_extra)
    reading = Reading(
        format="json",
        records=len(workload.jobs),
        unit_reason="the file counts hosts",
        hosts_from="nb_res",
        requested=int(np.isfinite(walltimes(workload)).sum()),
    )
    return replace(workload, reading=reading)


def is_log(workload: Workload) -> bool:
    """Whether a workload is what a machine recorded, and no file of Batsim's."""
    return workload.reading is not None and workload.reading.format != "json"
