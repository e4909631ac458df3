"""A workload of any format, as its content says, or its shipped name."""

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.files.accounting.read import TraceOptions, begins_as_json, check_format, load_trace, recognise
from decision.model.columns import DelayProfiles, JobColumns, Labelled, labelled
from decision.model.computer import find_workload
from decision.model.demand import walltimes
from decision.model.errors import ConfigError, InputError, amount, flag, text, whole
from decision.model.record import Floats
from decision.model.reshape import Filters, Walltimes, at_most, reshape
from decision.model.trace import Reading
from decision.model.workload import Workload

from .batsim_json import load_json
from .oar import is_oar_table, load_oar
from .swf import REQUESTED_TIME, read_swf

if TYPE_CHECKING:
    from pandas import DataFrame

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
    if not isinstance(options, TraceOptions):
        raise ConfigError(f"options: must be TraceOptions; found {options!r}", field="options")
    if speed is not None:
        speed = amount("speed", speed, 1e-9, 1e30)
    keep_source, path = flag("keep_source", keep_source), find_workload(source)
    filters = Filters(jobs=jobs, nodes=nodes, walltime=walltime, missing=missing_walltime, speed=speed)
    return _read_filtered(path, name, filters, keep_source, options, time_field, time_zone)


def _read_filtered(
    path: Path,
    name: str,
    filters: Filters,
    keep_source: bool,
    options: TraceOptions,
    time_field: int | None,
    time_zone: str | None,
) -> Workload:
    """The jobs of a file that filters keep. A field and a zone are for those formats that know such a thing."""
    format = _format_of(path, options)
    if time_field is not None and format == "swf":
        options = replace(options, time_field=time_field)
    if time_zone is not None and format not in ZONELESS:
        options = replace(options, time_zone=time_zone)
    options = replace(options, machine=filters.nodes or options.machine)
    # a job's source says the walltime of the file, so it cannot be kept with another one
    changes = filters.walltime != "requested" or filters.missing != "none"
    workload = _read_as(format, [path], name, options, keep_source and changes, keep_source)
    return _filtered(workload, filters)


def _filtered(workload: Workload, filters: Filters) -> Workload:
    return workload if filters == Filters(speed=filters.speed) else reshape(workload, filters)


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
    return _read_as(_format_of(paths[0], options), paths, name, options, keep_extra, keep_source)


def _format_of(path: Path, options: TraceOptions) -> str:
    """The format that a user names, or else that the content has."""
    if options.format:
        return check_format(options.format)
    return "sacct" if options.names_columns else recognise(path)


def _read_as(
    format: str, paths: Sequence[Path], name: str, options: TraceOptions, keep_extra: bool, keep_source: bool
) -> Workload:
    path = paths[0]
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
        return read_swf(path, machine=options.machine, time_field=field, grid=format == "gwf", name=name)
    elif format == "oar":
        workload = load_oar(path, name)
    else:
        if path.suffix.lower() != ".json" and not begins_as_json(path):
            mistake = "neither JSON nor a log or table of a known format; name its format, or give the table a header"
            raise InputError(f"{path}: {mistake}", field="format")
        workload = load_json(path, name, keep_source=keep_source and not keep_extra, keep_extra=keep_extra)
        reading = Reading(
            format="json",
            records=len(workload.jobs),
            unit_reason="the file counts hosts",
            hosts_from="nb_res",
            requested=int(np.isfinite(walltimes(workload)).sum()),
        )
        workload = replace(workload, reading=reading)
    return at_most(workload, options.machine) if options.machine and format != "json" else workload


def no_time_field(names: str) -> ConfigError:
    """The error of a field that only some logs have."""
    mistake = "not a log in the Standard Workload Format, so it has no field with the requested time"
    return ConfigError(f"{names}: {mistake}; leave out the number of the field", field="time_field")


def no_local_times(names: str) -> ConfigError:
    """The error of a time zone where no time is a local one."""
    return ConfigError(f"{names}: times are seconds, and not local times; leave out the zone", field="time_zone")


def is_log(workload: Workload) -> bool:
    """Whether a workload is what a machine recorded, and no file of Batsim's."""
    return workload.reading is not None and workload.reading.format != "json"


# Which jobs of a workload's file are used, and with which walltimes.

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a workload; see `decision.files.load_workload`. By default all jobs as they are."""

    jobs: tuple[_Number, _Number | None] = (0, None)  # the first, and the one after the last; by order of submission
    nodes: _Number | None = None  # larger jobs are left out
    walltime: Walltimes = "requested"
    missing: str = "none"  # walltimes of jobs without one: see `decision.policies.runtimes.walltimes`
    time_field: _Number | None = None  # of SWF; the standard's if None
    time_zone: str | None = None  # of a log's times that say none; UTC if None

    def read(self, path: Path, name: str, *, keep_source: bool = False, speed: float | None = None) -> Workload:
        """The selected jobs of a file. Raises InputError, and ConfigError, as `decision.files.load_workload`."""
        filters = self._filters(speed)
        return _read_filtered(path, name, filters, keep_source, TraceOptions(), self.time_field, self.time_zone)

    def of(self, workload: Workload, *, speed: float | None = None) -> Workload:
        """The selected jobs of a workload that has been read; errors as `decision.model.reshape.reshape`."""
        return _filtered(workload, self._filters(speed))

    def _filters(self, speed: float | None) -> Filters:
        return Filters(
            jobs=None if self.jobs == (0, None) else slice(*self.jobs),
            nodes=None if self.nodes is None else whole("nodes", self.nodes, 1),
            walltime=self.walltime,
            missing=self.missing,
            speed=speed,
        )

    def facts(self) -> dict[str, Any]:
        """All options as data, of which keys of finished runs are made: a zone only where there is one."""
        facts = msgspec.to_builtins(self)
        return facts if self.time_zone else {name: value for name, value in facts.items() if name != "time_zone"}

    def texts(self) -> dict[str, str]:
        """Each option's value as a user writes it, by its name here."""
        first, last = self.jobs
        return {
            "jobs": "all" if self.jobs == (0, None) else f"{first or ''}:{'' if last is None else last}",
            "nodes": "any" if self.nodes is None else str(self.nodes),
            "walltime": self.walltime,
            "missing_walltime": self.missing,
            "time_field": str(self.time_field or REQUESTED_TIME),
            **({"time_zone": self.time_zone} if self.time_zone else {}),
        }


# Jobs of a pandas DataFrame, as the result of a run has them, as a workload.

_NEEDED = ("submit_time", "size", "runtime")
_UNITS = {"size": ", of hosts", **dict.fromkeys(("submit_time", "runtime", "walltime"), ", in seconds")}
_LIMITS = {"submit_time": 0.0, "size": 1.0, "runtime": 0.0, "walltime": 0.0}  # what no number may be below


def is_frame(value: Any) -> "TypeGuard[DataFrame]":
    """Whether it is a pandas DataFrame; pandas is not imported for that."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def frame_workload(frame: "DataFrame", name: str = "w0") -> Workload:
    """The workload of a table with a row per job.

    Args:
        frame: columns ``submit_time``, ``runtime`` (seconds) and ``size`` (hosts); ``id``, ``walltime`` (seconds) and
            ``user`` if there are any. Without ids jobs are counted from 1; a walltime that is nan or inf is none.
            Others are left out.
        name: the workload's, the part of job ids before ``!``.

    Raises:
        ConfigError: naming the column and the row.
    """
    absent = [column for column in _NEEDED if column not in frame.columns]
    if absent:
        there = ", ".join(map(str, frame.columns)) or "none"
        raise ConfigError(f"workload: a table of jobs needs the column {absent[0]} (it has {there})", field="workload")
    if not len(frame):
        raise ConfigError("workload: the table has no jobs", field="workload")
    submit, size, runtime = (_numbers(frame, column) for column in _NEEDED)
    walltime = _numbers(frame, "walltime") if "walltime" in frame.columns else np.full(len(frame), math.inf)
    # a workload's name that ids begin with is replaced
    given = frame["id"] if "id" in frame.columns else range(1, len(frame) + 1)
    ids = [f"{name}!{str(job_id).rpartition('!')[2]}" for job_id in given]
    if len(set(ids)) < len(ids):
        raise ConfigError("workload: two jobs have the same id", field="workload")
    durations, which = np.unique(runtime, return_inverse=True)
    names = [f"{seconds:.17g}" for seconds in durations.tolist()]
    return Workload(
        name=name,
        jobs=JobColumns(
            id=Labelled(ids, np.arange(len(frame))),
            submit_time=submit,
            size=size.astype(np.int32),
            walltime=walltime,
            profile=Labelled(names, which),
            user=labelled([str(user) for user in frame["user"]] if "user" in frame.columns else [""] * len(frame)),
        ),
        profiles=DelayProfiles(names, durations),
        nb_res=int(size.max()),
    )


def _numbers(frame: "DataFrame", column: str) -> Floats:
    try:
        if frame[column].dtype.kind in "mM":  # numpy would count nanoseconds
            raise TypeError
        numbers = frame[column].to_numpy(np.float64, na_value=math.nan).copy()
    except (TypeError, ValueError):
        raise ConfigError(
            f"workload: column {column} must have numbers only{_UNITS[column]}", field="workload"
        ) from None
    if column == "walltime":
        numbers[np.isnan(numbers)] = math.inf
    wrong = ~(numbers >= _LIMITS[column]) | (np.isinf(numbers) & (column != "walltime"))
    if column in ("runtime", "walltime"):
        wrong |= numbers == 0
    if column == "size":
        wrong |= (numbers % 1 != 0) | (numbers > np.iinfo(np.int32).max)
    for row in np.flatnonzero(wrong)[:1].tolist():
        wanted = (
            "a whole number, at least 1" if column == "size" else "at least 0" if column == _NEEDED[0] else "above 0"
        )
        where = f"row {row} (counted from 0), column {column}"
        raise ConfigError(f"workload: {where}: must be {wanted}; found {numbers[row]:g}", field="workload")
    return numbers
